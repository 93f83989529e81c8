/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contexts of the open calls with FI_PEER: checked here, and not used after
 * the call. Lock: as import.h says.
 */
#include "peer/import.h"

#include <rdma/fi_errno.h>

#include "peer/import_srx.h"

struct fid_domain *tdm_import_domain(const void *context)
{
	const struct fi_peer_domain_context *ctx = context;

	if (!ctx || ctx->size < sizeof(*ctx) || !ctx->domain ||
	    !ctx->domain->ops || !ctx->domain->mr)
		return NULL;
	return ctx->domain;
}

struct fid_peer_cq *tdm_import_cq(const void *context)
{
	const struct fi_peer_cq_context *ctx = context;

	if (!ctx || ctx->size < sizeof(*ctx) || !ctx->cq || !ctx->cq->owner_ops)
		return NULL;
	return ctx->cq;
}

struct fid_peer_cntr *tdm_import_cntr(const void *context)
{
	const struct fi_peer_cntr_context *ctx = context;

	if (!ctx || ctx->size < sizeof(*ctx) || !ctx->cntr ||
	    !ctx->cntr->owner_ops)
		return NULL;
	return ctx->cntr;
}

struct fid_peer_srx *tdm_import_srx(const void *context)
{
	const struct fi_peer_srx_context *ctx = context;

	if (!ctx || ctx->size < sizeof(*ctx) || !ctx->srx ||
	    !ctx->srx->owner_ops)
		return NULL;
	return ctx->srx;
}

struct fid_eq *tdm_import_eq(const void *context)
{
	const struct fi_peer_eq_context *ctx = context;

	if (!ctx || ctx->size < sizeof(*ctx) || !ctx->eq || !ctx->eq->ops)
		return NULL;
	return ctx->eq;
}

int tdm_import_wait(enum fi_wait_obj obj)
{
	return obj == FI_WAIT_NONE || obj == FI_WAIT_UNSPEC ||
			       obj == FI_WAIT_FD ?
		       0 :
		       -FI_ENOSYS;
}

void tdm_import_progress(struct tdm_engine *engine)
{
	tdm_lock_acquire(engine->lock);
	engine->lent = 1;
	if (engine->imports)
		tdm_imports_late(engine->imports);
	engine->progress(engine);
	engine->lent = 0;
	tdm_lock_release(engine->lock);
}

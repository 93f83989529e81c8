/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open, control and close of a CQ, and its bookkeeping for endpoints and link.
 * Writing is in cq_write.c, reading in cq_read.c, the structure with its
 * invariants in cq_priv.h.
 *
 * Locking: as each function's contract in cq.h says.
 * Spec: fi_cq(3); fi_peer(3), "PEER CQ".
 */
#include "peer/cq.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "peer/cq_priv.h"
#include "peer/errstr.h"
#include "peer/import.h"
#include "tdm_nosys.h"

enum {
	DEFAULT_ENTRIES = 4096,
	RING_MOST_ENTRIES = 65536, /* larger CQs use the overflow */
};

static struct fi_ops cq_fid_ops;
static struct fi_ops export_fid_ops;
static struct fi_ops_cq import_ops;

static const struct fi_cq_attr default_attr = {
	.format = FI_CQ_FORMAT_UNSPEC,
	.wait_obj = FI_WAIT_NONE,
};

/* Returns the size of an entry in 8-byte words; 0: unknown format. */
static unsigned int format_words(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
		return TDM_CQ_WORDS_CONTEXT;
	case FI_CQ_FORMAT_MSG:
		return TDM_CQ_WORDS_MSG;
	case FI_CQ_FORMAT_DATA:
		return TDM_CQ_WORDS_DATA;
	case FI_CQ_FORMAT_TAGGED:
		return TDM_CQ_WORDS_TAGGED;
	}
	return 0;
}

static int check_attr(const struct fi_cq_attr *attr)
{
	if (!format_words(attr->format) || attr->size > UINT32_MAX)
		return -FI_EINVAL;
	if (attr->wait_obj == FI_WAIT_NONE)
		return 0;
	if (attr->wait_cond != FI_CQ_COND_NONE &&
	    attr->wait_cond != FI_CQ_COND_THRESHOLD)
		return -FI_EINVAL;
	return 0;
}

/*
 * Returns how many ring slots a CQ gets that the application opened with @size
 * entries.
 */
static size_t ring_entries(size_t size)
{
	if (!size)
		return DEFAULT_ENTRIES;
	return tdm_roundup_pow2(tdm_min(size, RING_MOST_ENTRIES));
}

/* Free the errors that have not been read. */
static void free_errs(struct tdm_cq *cq)
{
	struct tdm_cq_err *err;

	for (err = cq->errs; err; err = err->next)
		free(err->entry.err_data);
	cq->errs = NULL;
	free(cq->err_data);
	tdm_pool_fini(&cq->err_pool);
}

/* Accepts a zeroed @cq. Lock: not needed, nobody else knows @cq. */
static void cq_free(struct tdm_cq *cq)
{
	struct tdm_cq_chunk *chunk;

	tdm_wait_fini(&cq->wait);
	free_errs(cq);
	while ((chunk = cq->over)) {
		cq->over = chunk->next;
		free(chunk);
	}
	free(cq->spare);
	free(cq->src);
	free(cq->ring);
	free(cq);
}

/*
 * Allocates the ring, the first error entries and the first overflow chunk, so
 * that a short lack of memory later loses no completion.
 */
static int cq_alloc(struct tdm_cq *cq, size_t entries, int source)
{
	void *err;

	/* Not cleared: a slot is written before it is read. */
	cq->ring = malloc(entries * cq->words * sizeof(*cq->ring));
	if (!cq->ring)
		return -FI_ENOMEM;
	if (source) {
		cq->src = malloc(entries * sizeof(*cq->src));
		if (!cq->src)
			return -FI_ENOMEM;
	}
	cq->spare = tdm_cq_chunk_alloc();
	if (!cq->spare)
		return -FI_ENOMEM;
	tdm_pool_init(&cq->err_pool, sizeof(struct tdm_cq_err), 0);
	err = tdm_pool_alloc(&cq->err_pool);
	if (!err)
		return -FI_ENOMEM;
	tdm_pool_free(&cq->err_pool, err);
	return 0;
}

static void cq_init(struct tdm_cq *cq, struct tdm_engine *engine,
		    const struct fi_cq_attr *attr, void *context)
{
	int i;

	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->empty = -FI_EAGAIN;
	cq->fid.ops = &tdm_cq_ops;
	cq->engine = engine;
	cq->words = format_words(attr->format);
	cq->room = ring_entries(attr->size);
	cq->mask = cq->room - 1;
	cq->size = tdm_max(cq->room, attr->size);
	cq->errs_end = &cq->errs;
	cq->wait_cond = attr->wait_cond;
	for (i = 0; i < TDM_TRANSPORTS; i++) {
		cq->exports[i].cq = cq;
		cq->exports[i].peer.fid.fclass = FI_CLASS_PEER_CQ;
		cq->exports[i].peer.fid.context = cq;
		cq->exports[i].peer.fid.ops = &export_fid_ops;
		cq->exports[i].peer.owner_ops = tdm_cq_owner_ops(cq->words);
	}
}

/* Not 0 when a read would return something else than -FI_EAGAIN. */
static int pending(const struct tdm_cq *cq)
{
	return cq->tail != cq->head || cq->errs || cq->overrun;
}

/*
 * The look() of a struct tdm_waitset_member; fi_cq_signal ends a wait on the
 * set as well.
 */
static int cq_look(void *arg, int progress)
{
	struct tdm_cq *cq = arg;
	int ret;

	tdm_lock_acquire(cq->engine->lock);
	if (progress)
		cq->engine->progress(cq->engine);
	if (pending(cq) || (progress && cq->interrupt))
		ret = 1;
	else
		ret = tdm_wait_look(&cq->wait);
	if (progress)
		cq->interrupt = 0;
	tdm_lock_release(cq->engine->lock);
	return ret;
}

/* Open @cq, in which nothing is allocated, without a ring: @owner has one. */
static int cq_import(struct tdm_cq *cq, const struct fi_cq_attr *attr,
		     struct fid_peer_cq *owner)
{
	int ret;

	cq->owner = owner;
	cq->size = UINT64_MAX;
	cq->fid.ops = &import_ops;
	tdm_lock_acquire(cq->engine->lock);
	ret = tdm_wait_init(&cq->wait, cq->engine, attr->wait_obj, NULL);
	tdm_lock_release(cq->engine->lock);
	return ret;
}

/* fi_cq_open(3) with FI_PEER: fi_peer(3), PEER CQ. */
static int import_open(struct tdm_engine *engine, const struct fi_cq_attr *attr,
		       const void *context, struct tdm_cq **out)
{
	/* Only below another owner @context is what fi_peer(3) says. */
	struct fid_peer_cq *owner = engine->imports ? tdm_import_cq(context) :
						      NULL;
	struct tdm_cq *cq;
	int ret;

	if (!owner)
		return -FI_EINVAL;
	ret = tdm_import_wait(attr->wait_obj);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq_init(cq, engine, attr, NULL);
	ret = cq_import(cq, attr, owner);
	if (ret)
		cq_free(cq);
	else
		*out = cq;
	return ret;
}

int tdm_cq_open(struct tdm_engine *engine, struct fi_cq_attr *attr, int source,
		void *context, struct tdm_cq **cq_out)
{
	const struct fi_cq_attr *in = attr ? attr : &default_attr;
	struct tdm_cq *cq;
	int ret;

	ret = check_attr(in);
	if (ret)
		return ret;
	if (in->flags & FI_PEER)
		return import_open(engine, in, context, cq_out);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq_init(cq, engine, in, context);
	ret = cq_alloc(cq, cq->mask + 1, source);
	if (ret)
		goto err;
	tdm_lock_acquire(engine->lock);
	ret = tdm_wait_init(&cq->wait, engine, in->wait_obj, in->wait_set);
	tdm_lock_release(engine->lock);
	if (!ret)
		ret = tdm_wait_join(&cq->wait, cq_look, cq);
	if (ret)
		goto err;
	if (attr) {
		attr->size = tdm_max(attr->size, cq->mask + 1);
		attr->wait_obj = cq->wait.obj;
		if (attr->format == FI_CQ_FORMAT_UNSPEC)
			attr->format = FI_CQ_FORMAT_CONTEXT;
	}
	*cq_out = cq;
	return 0;
err:
	cq_free(cq);
	return ret;
}

struct tdm_cq *tdm_cq_from_fid(struct fid_cq *fid)
{
	return tdm_container_of(fid, struct tdm_cq, fid);
}

struct fid_cq *tdm_cq_fid(struct tdm_cq *cq)
{
	return &cq->fid;
}

struct tdm_engine *tdm_cq_engine(const struct tdm_cq *cq)
{
	return cq->engine;
}

int tdm_cq_full(const struct tdm_cq *cq)
{
	return tdm_unlikely(cq->tail - cq->head + cq->nerrs >= cq->size);
}

int tdm_cq_full_of_errors(const struct tdm_cq *cq)
{
	return tdm_unlikely(cq->nerrs >= cq->size);
}

size_t tdm_cq_waiting(const struct tdm_cq *cq)
{
	return (size_t)(cq->tail - cq->head + cq->nerrs);
}

size_t tdm_cq_size(const struct tdm_cq *cq)
{
	return (size_t)cq->size;
}

int tdm_cq_ready(const struct tdm_cq *cq)
{
	tdm_assert_held(cq->engine->lock);
	return pending(cq);
}

struct fid_peer_cq *tdm_cq_export(struct tdm_cq *cq, enum tdm_transport t)
{
	return cq->owner ? cq->owner : &cq->exports[t].peer;
}

struct fid_cq *tdm_cq_local(struct tdm_cq *cq)
{
	return cq->local;
}

void tdm_cq_set_local(struct tdm_cq *cq, struct fid_cq *local)
{
	cq->local = local;
}

void tdm_cq_get(struct tdm_cq *cq)
{
	tdm_assert_held(cq->engine->lock);
	cq->users++;
}

void tdm_cq_put(struct tdm_cq *cq)
{
	tdm_assert_held(cq->engine->lock);
	cq->users--;
}

void tdm_cq_on_close(struct tdm_cq *cq, void (*closed)(void *arg), void *arg)
{
	cq->closed = closed;
	cq->closed_arg = arg;
}

int tdm_cq_trywait(struct tdm_cq *cq)
{
	int ret;

	tdm_lock_acquire(cq->engine->lock);
	ret = pending(cq) ? -FI_EAGAIN : tdm_wait_try(&cq->wait);
	tdm_lock_release(cq->engine->lock);
	return ret;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct tdm_cq *cq = tdm_container_of(fid, struct tdm_cq, fid.fid);

	return tdm_wait_control(&cq->wait, command, arg);
}

void tdm_cq_orphan(struct tdm_cq *cq)
{
	tdm_assert_held(cq->engine->lock);
	cq->empty = -FI_EOPBADSTATE;
}

static int cq_close(struct fid *fid)
{
	struct tdm_cq *cq = tdm_container_of(fid, struct tdm_cq, fid.fid);
	struct tdm_lock *lock = cq->engine->lock;
	int ret;

	tdm_lock_acquire(lock);
	ret = cq->engine->orphan ? -FI_EOPBADSTATE : cq->users ? -FI_EBUSY : 0;
	tdm_lock_release(lock);
	if (ret)
		return ret;
	tdm_wait_leave(&cq->wait);
	tdm_lock_acquire(lock);
	if (cq->local)
		ret = fi_close(&cq->local->fid);
	if (!ret && cq->closed)
		cq->closed(cq->closed_arg);
	tdm_lock_release(lock);
	if (ret)
		return ret;
	cq_free(cq);
	return 0;
}

/* fi_peer(3), PEER CQ: reading makes progress and returns no entry. */
static ssize_t import_read(struct fid_cq *fid, void *buf, size_t count)
{
	(void)buf;
	(void)count;
	tdm_import_progress(tdm_cq_from_fid(fid)->engine);
	return 0;
}

static const char *import_strerror(struct fid_cq *fid, int prov_errno,
				   const void *err_data, char *buf, size_t len)
{
	static const struct tdm_errlast none;

	(void)fid;
	return tdm_errstr(&none, prov_errno, err_data, buf, len);
}

static struct fi_ops_cq import_ops = {
	.size = sizeof(import_ops),
	.read = import_read,
	.readfrom = tdm_no_cq_readfrom,
	.readerr = tdm_no_cq_readerr,
	.sread = tdm_no_cq_sread,
	.sreadfrom = tdm_no_cq_sreadfrom,
	.signal = tdm_no_cq_signal,
	.strerror = import_strerror,
};

static struct fi_ops cq_fid_ops = {
	.size = sizeof(cq_fid_ops),
	.close = cq_close,
	.bind = tdm_no_fi_bind,
	.control = cq_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

/* The export ends with its CQ; the peer has nothing to close. */
static struct fi_ops export_fid_ops = {
	.size = sizeof(export_fid_ops),
	.close = tdm_no_fi_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

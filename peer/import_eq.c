/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See import_eq.h. Lock: none.
 */
#include "peer/import_eq.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "peer/errstr.h"
#include "peer/import.h"
#include "tdm_nosys.h"
#include "tdm_provider.h"

struct tdm_import_eq {
	struct fid_eq fid;
	struct fid_eq *owner;
	size_t users; /* atomic */
	void (*closed)(void *arg);
	void *arg;
};

static int eq_close(struct fid *fid)
{
	struct tdm_import_eq *eq =
		tdm_container_of(fid, struct tdm_import_eq, fid.fid);

	if (__atomic_load_n(&eq->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	eq->closed(eq->arg);
	free(eq);
	return 0;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	static const struct tdm_errlast none;

	(void)fid;
	return tdm_errstr(&none, prov_errno, err_data, buf, len);
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(eq_fid_ops),
	.close = eq_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(eq_ops),
	.read = tdm_no_eq_read,
	.readerr = tdm_no_eq_readerr,
	.write = tdm_no_eq_write,
	.sread = tdm_no_eq_sread,
	.strerror = eq_strerror,
};

int tdm_import_eq_open(const void *context, void (*closed)(void *arg),
		       void *arg, struct tdm_import_eq **out)
{
	struct fid_eq *owner = tdm_import_eq(context);
	struct tdm_import_eq *eq;

	if (!owner)
		return -FI_EINVAL;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->owner = owner;
	eq->closed = closed;
	eq->arg = arg;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	*out = eq;
	return 0;
}

struct fid_eq *tdm_import_eq_fid(struct tdm_import_eq *eq)
{
	return &eq->fid;
}

struct tdm_import_eq *tdm_import_eq_of(struct fid *fid)
{
	return fid->ops == &eq_fid_ops ?
		       tdm_container_of(fid, struct tdm_import_eq, fid.fid) :
		       NULL;
}

void tdm_import_eq_get(struct tdm_import_eq *eq)
{
	__atomic_fetch_add(&eq->users, 1, __ATOMIC_RELAXED);
}

void tdm_import_eq_put(struct tdm_import_eq *eq)
{
	__atomic_fetch_sub(&eq->users, 1, __ATOMIC_RELEASE);
}

void tdm_import_eq_lost(struct tdm_import_eq *eq,
			const struct fi_eq_err_entry *e)
{
	struct tdm_peer_event event = {
		.entry.fid = e->fid,
		.entry.context = e->context,
		.entry.data = e->data,
		.type = TDM_PEER_LOST,
		.err = e->err,
		.addrlen =
			(uint32_t)tdm_min(e->err_data_size, sizeof(event.addr)),
	};
	ssize_t ret;

	memcpy(event.addr, e->err_data, event.addrlen);
	ret = fi_eq_write(eq->owner, FI_NOTIFY, &event, sizeof(event), 0);
	if (ret < 0)
		TDM_WARN(EQ, "the owner's event queue takes no event: %s",
			 fi_strerror((int)-ret));
}

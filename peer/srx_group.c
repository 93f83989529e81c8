/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several receive sides behind one export. See srx_group.h and tdm_ctx.h.
 *
 * Invariant: entry->srx is the port of the receive side that the entry came
 * from, never an export of the group, so that calls with an entry reach the
 * right receive side. The peer_ops that a transport writes to the group's
 * export are copied to a port each time srx() returns it.
 *
 * Lock: domain held.
 */
#include "peer/srx_group.h"

#include <stdlib.h>
#include <string.h>

#include "peer/srx_priv.h"
#include "tdm_nosys.h"

struct group_port {
	struct fid_peer_srx fid;
	struct tdm_srx_group *group;
	enum tdm_transport transport;
	int offers; /* tdm_source.h */
};

struct tdm_srx_group {
	struct group_port port[TDM_TRANSPORTS];
	unsigned int count;
	struct tdm_srx *srx[]; /* count */
};

static struct group_port *port_of(struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct group_port, fid);
}

static unsigned int group_count(struct fid_peer_srx *fid)
{
	return port_of(fid)->group->count;
}

static struct fid_peer_srx *group_srx(struct fid_peer_srx *fid,
				      unsigned int index)
{
	const struct group_port *port = port_of(fid);
	struct fid_peer_srx *srx =
		tdm_srx_export(port->group->srx[index], port->transport);

	srx->peer_ops = fid->peer_ops;
	if (port->offers &&
	    !tdm_container_of(srx, struct tdm_srx_port, fid)->offers)
		tdm_srx_source_ops.offers(srx);
	return srx;
}

static void group_recv(const struct fi_peer_rx_entry *e, size_t len)
{
	tdm_done_recv(tdm_srx_port_done(e->srx), e, len);
}

static void group_recv_err(const struct fi_peer_rx_entry *e,
			   const struct tdm_result *result)
{
	tdm_done_recv_err(tdm_srx_port_done(e->srx), e, *result);
}

struct tdm_ctx_ops tdm_srx_group_ops = {
	.size = sizeof(tdm_srx_group_ops),
	.count = group_count,
	.srx = group_srx,
	.recv = group_recv,
	.recv_err = group_recv_err,
};

static int get_msg(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	struct fid_peer_srx *srx = group_srx(fid, 0);

	return srx->owner_ops->get_msg(srx, attr, entry);
}

static int get_tag(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	struct fid_peer_srx *srx = group_srx(fid, 0);

	return srx->owner_ops->get_tag(srx, attr, entry);
}

static int queue_msg(struct fi_peer_rx_entry *entry)
{
	return entry->srx->owner_ops->queue_msg(entry);
}

static int queue_tag(struct fi_peer_rx_entry *entry)
{
	return entry->srx->owner_ops->queue_tag(entry);
}

static void free_entry(struct fi_peer_rx_entry *entry)
{
	entry->srx->owner_ops->free_entry(entry);
}

static void
foreach_unspec_addr(struct fid_peer_srx *fid,
		    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	unsigned int i;

	for (i = 0; i < port_of(fid)->group->count; i++) {
		struct fid_peer_srx *srx = group_srx(fid, i);

		srx->owner_ops->foreach_unspec_addr(srx, get_addr);
	}
}

static void group_offers(struct fid_peer_srx *fid)
{
	port_of(fid)->offers = 1;
}

static struct tdm_source_ops group_source_ops = {
	.size = sizeof(group_source_ops),
	.offers = group_offers,
};

static int export_close(struct fid *fid)
{
	return -FI_ENOSYS;
}

/* All contexts share one account of unexpected messages. */
static struct tdm_held *group_held(struct fid *fid)
{
	struct fid_peer_srx *srx =
		tdm_container_of(fid, struct fid_peer_srx, ep_fid.fid);

	return &port_of(srx)->group->srx[0]->held;
}

static int export_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (!strcmp(name, TDM_CTX_OPS))
		*ops = &tdm_srx_group_ops;
	else if (!strcmp(name, TDM_SOURCE_OPS))
		*ops = &group_source_ops;
	else if (!strcmp(name, TDM_HELD_OPS))
		*ops = group_held(fid);
	else
		return -FI_ENOSYS;
	return 0;
}

static struct fi_ops_srx_owner owner_ops = {
	.size = sizeof(owner_ops),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue_msg,
	.queue_tag = queue_tag,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

static struct fi_ops export_ops = {
	.size = sizeof(export_ops),
	.close = export_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = export_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep export_ep_ops = {
	.size = sizeof(export_ep_ops),
	.cancel = tdm_no_ep_cancel,
	.getopt = tdm_no_ep_getopt,
	.setopt = tdm_no_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

static void port_init(struct tdm_srx_group *group, enum tdm_transport t)
{
	struct group_port *port = &group->port[t];

	port->group = group;
	port->transport = t;
	port->fid.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
	port->fid.ep_fid.fid.context = group;
	port->fid.ep_fid.fid.ops = &export_ops;
	port->fid.ep_fid.ops = &export_ep_ops;
	port->fid.owner_ops = &owner_ops;
}

int tdm_srx_group_open(const struct tdm_srx_attr *attr, unsigned int count,
		       struct tdm_srx_group **out)
{
	struct tdm_srx_group *group = (struct tdm_srx_group *)calloc(
		1, sizeof(*group) + count * sizeof(group->srx[0]));
	unsigned int i;
	int ret;

	if (!group)
		return -FI_ENOMEM;
	group->count = count;
	for (i = 0; i < TDM_TRANSPORTS; i++)
		port_init(group, (enum tdm_transport)i);
	for (i = 0; i < count; i++) {
		ret = tdm_srx_open(attr, &group->srx[i]);
		if (ret)
			goto err;
	}
	*out = group;
	return 0;
err:
	tdm_srx_group_close(group);
	return ret;
}

struct tdm_srx *tdm_srx_group_srx(struct tdm_srx_group *group,
				  unsigned int index)
{
	return group->srx[index];
}

struct fid_peer_srx *tdm_srx_group_export(struct tdm_srx_group *group,
					  enum tdm_transport t)
{
	return &group->port[t].fid;
}

void tdm_srx_group_forget(struct tdm_srx_group *group, fi_addr_t addr)
{
	unsigned int i;

	for (i = 0; i < group->count; i++)
		tdm_srx_forget(group->srx[i], addr);
}

void tdm_srx_group_flush(struct tdm_srx_group *group)
{
	unsigned int i;

	for (i = 0; i < group->count; i++)
		tdm_srx_flush(group->srx[i]);
}

void tdm_srx_group_close(struct tdm_srx_group *group)
{
	unsigned int i;

	if (!group)
		return;
	for (i = 0; i < group->count; i++)
		tdm_srx_close(group->srx[i]);
	free(group);
}

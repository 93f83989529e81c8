/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of fi_msg(3), fi_tagged(3) and fi_rma(3) of the peer's endpoint.
 * The calls are those of tdm_send.inc.h and tdm_rma.inc.h, each of which becomes one
 * struct tdm_xfer, and of inject.h. Receives are posted to the owner's SRX, never
 * here. The owner has checked flags and capabilities.
 *
 * Locking: domain lock held.
 */
#include <rdma/fi_errno.h>

#include "shm/inject.h"
#include "shm/rma.h"
#include "tdm_nosys.h"

static ssize_t post_send(struct fid_ep *fid, struct tdm_xfer *x)
{
	return tdm_shm_tx_send(tdm_shm_ep_from_fid(fid), x);
}

static ssize_t post_rma(struct fid_ep *fid, struct tdm_xfer *x)
{
	return tdm_shm_rma_send(tdm_shm_ep_from_fid(fid), x);
}

static uint64_t default_flags(struct fid_ep *fid)
{
	const struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);

	return ep->tx_flags | ep->tx_comp;
}

/* As tdm_shm_inject(): the defaults say nothing about injects. */
static uint64_t inject_flags(struct fid_ep *fid)
{
	return FI_INJECT;
}

static int message_flags(struct fid_ep *fid, uint64_t op, uint64_t given,
			 uint64_t *flags)
{
	*flags = op | given | tdm_shm_ep_from_fid(fid)->tx_comp;
	return 0;
}

#include "tdm_rma.inc.h"
#include "tdm_send.inc.h"
#include "shm/tx.h"

struct fi_ops_msg tdm_shm_msg_ops = {
	.size = sizeof(tdm_shm_msg_ops),
	.recv = tdm_no_msg_recv,
	.recvv = tdm_no_msg_recvv,
	.recvmsg = tdm_no_msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = tdm_shm_inject,
	.senddata = msg_senddata,
	.injectdata = tdm_shm_injectdata,
};

struct fi_ops_tagged tdm_shm_tagged_ops = {
	.size = sizeof(tdm_shm_tagged_ops),
	.recv = tdm_no_tagged_recv,
	.recvv = tdm_no_tagged_recvv,
	.recvmsg = tdm_no_tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tdm_shm_tinject,
	.senddata = tagged_senddata,
	.injectdata = tdm_shm_tinjectdata,
};

struct fi_ops_rma tdm_shm_rma_ops = TDM_RMA_CALLS;

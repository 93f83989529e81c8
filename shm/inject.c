/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_inject(3) and its like: most are written to the ring without building a struct
 * tdm_xfer.
 *
 * Locking: domain lock held. Spec: fi_msg(3), fi_tagged(3).
 */
#include "shm/inject.h"

#include <rdma/fi_errno.h>

#include "shm/ep.h"
#include "shm/small.h"

/* Send an inject that has to wait, is long, or is the first to its peer. */
static tdm_noinline ssize_t inject_other(struct tdm_shm_ep *ep, uint64_t op,
					 uint64_t tag, uint64_t data,
					 const void *buf, size_t len,
					 fi_addr_t addr)
{
	struct tdm_xfer x;

	x.flags = op | FI_SEND | FI_INJECT;
	x.addr = addr;
	x.tag = tag;
	x.data = data;
	x.context = NULL;
	tdm_xfer_buf(&x, buf, len);
	return tdm_shm_tx_send(ep, &x);
}

static tdm_noinline ssize_t inject_full(struct tdm_shm_pair *pair, uint64_t op)
{
	struct tdm_xfer x;

	x.flags = op | FI_SEND | FI_INJECT;
	x.context = NULL;
	return tdm_shm_tx_full(pair, &x);
}

/* Send an inject. @op: FI_MSG or FI_TAGGED, and FI_REMOTE_CQ_DATA or not. */
static tdm_always_inline ssize_t inject(struct fid_ep *fid, uint64_t op,
					uint64_t tag, uint64_t data,
					const void *buf, size_t len,
					fi_addr_t addr)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);
	struct tdm_shm_pair *pair = tdm_shm_pair_at(ep, addr);

	if (tdm_unlikely(!pair || pair->state != TDM_SHM_PAIR_UP ||
			 (pair->broken | pair->send_waits) || pair->grow_in ||
			 len > tdm_shm_small_bytes(op) ||
			 tdm_a32_load_relaxed(&pair->peer->hold)))
		return inject_other(ep, op, tag, data, buf, len, addr);
	if (tdm_unlikely(tdm_shm_small_put(pair, op, tag, data, buf, len)))
		return inject_full(pair, op);
	tdm_done_send(&ep->done, NULL, FI_SEND);
	return 0;
}

ssize_t tdm_shm_inject(struct fid_ep *ep, const void *buf, size_t len,
		       fi_addr_t addr)
{
	return inject(ep, FI_MSG, 0, 0, buf, len, addr);
}

ssize_t tdm_shm_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			   uint64_t data, fi_addr_t addr)
{
	return inject(ep, FI_MSG | FI_REMOTE_CQ_DATA, 0, data, buf, len, addr);
}

ssize_t tdm_shm_tinject(struct fid_ep *ep, const void *buf, size_t len,
			fi_addr_t addr, uint64_t tag)
{
	return inject(ep, FI_TAGGED, tag, 0, buf, len, addr);
}

ssize_t tdm_shm_tinjectdata(struct fid_ep *ep, const void *buf, size_t len,
			    uint64_t data, fi_addr_t addr, uint64_t tag)
{
	return inject(ep, FI_TAGGED | FI_REMOTE_CQ_DATA, tag, data, buf, len,
		      addr);
}

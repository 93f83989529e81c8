/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Announced messages, at the receiver: read from the sender's memory with
 * process_vm_readv where the kernel allows it, asked for in chunks where not.
 *
 * Invariants:
 *  1. The process read from is the one the kernel named when the socket was
 *     connected; before a read message is delivered the kernel is asked that
 *     it still lives, so that no other process can have had its number.
 *  2. A refusal (EPERM, ENOSYS, ...) at any call moves the pair to chunks and
 *     goes on with the same message where it stood.
 *  3. An announced message ends by one ACK, or with its session.
 * Locking: domain lock held. Spec: process_vm_readv(2),
 * doc/PROTOCOL-shm.md "Large messages".
 */
#include <errno.h>

#include <rdma/fi_errno.h>

#include "shm/path.h"
#include "shm/rma.h"
#include "tdm_log.h"
#include "tdm_os.h"

enum { CMA_SLICE_BYTES = 512 * 1024, CMA_LOCAL_MOST = 8 };

/* The receive, or write to a region, that @pull fills. */
static void entry_end(struct tdm_shm_pull *pull, int err)
{
	struct tdm_shm_pair *pair = pull->pair;
	struct tdm_shm_ep *ep = pair->ep;
	uint64_t len = pull->rts.len;

	if (!err) {
		pair->rx_msgs++;
		pair->rx_bytes += len;
	}
	if (err)
		tdm_done_recv_err(&ep->done, pull->entry, pull->done, 0, err,
				  0);
	else if (pull->want < len)
		tdm_done_recv_err(&ep->done, pull->entry, pull->want,
				  len - pull->want, FI_ETRUNC, 0);
	else
		tdm_done_recv(&ep->done, pull->entry, len);
	if (ep->srx)
		ep->srx->owner_ops->free_entry(pull->entry);
}

void tdm_shm_pull_end(struct tdm_shm_pull *pull, int err, int status)
{
	struct tdm_shm_pair *pair = pull->pair;
	struct tdm_shm_ep *ep = pair->ep;

	tdm_list_del(&pull->node);
	if (pull->refused) {
		err = FI_EACCES;
		status = status < 0 ? status : TDM_SHM_STATUS_ACCESS;
	}
	if (pull->op)
		tdm_shm_read_pulled(pull->op, err, status < 0);
	else
		entry_end(pull, err);
	if (status < 0) {
		tdm_pool_free(&ep->pulls, pull);
		return;
	}
	pull->ctl.op = TDM_SHM_REC_ACK;
	pull->ctl.kind = TDM_SHM_CTL_PULL;
	pull->ctl.aux = (uint16_t)status;
	pull->ctl.tag = pull->rts.id;
	tdm_shm_ctl_send(pair, &pull->ctl);
}

/* Ask for the rest in chunks. */
static void pull_by_copy(struct tdm_shm_pull *pull)
{
	pull->copy = 1;
	pull->ctl.op = TDM_SHM_REC_PULL;
	pull->ctl.kind = TDM_SHM_CTL_KEEP;
	pull->ctl.aux = 0;
	pull->ctl.tag = pull->rts.id;
	pull->ctl.body.offset = pull->done;
	pull->ctl.body.bytes = pull->want - pull->done;
	tdm_shm_ctl_send(pull->pair, &pull->ctl);
	tdm_shm_busy(pull->pair);
}

static size_t remote_iov(struct iovec *out, const struct tdm_shm_rts *rts)
{
	uint32_t i;

	for (i = 0; i < rts->count; i++) {
		out[i].iov_base = (void *)(uintptr_t)rts->iov[i].addr;
		out[i].iov_len = rts->iov[i].len;
	}
	return rts->count;
}

/* One call of at most @bytes. Returns the bytes read, or -errno. */
static ssize_t read_slice(struct tdm_shm_pull *pull, size_t bytes)
{
	struct iovec all[TDM_SHM_IOV_MOST], remote[TDM_SHM_IOV_MOST];
	struct iovec local[CMA_LOCAL_MOST];
	size_t nremote, nlocal;
	ssize_t n;

	nremote = remote_iov(all, &pull->rts);
	nremote = tdm_iov_slice(remote, TDM_SHM_IOV_MOST, all, nremote,
				pull->done, bytes);
	nlocal = tdm_iov_slice(local, CMA_LOCAL_MOST, pull->iov, pull->count,
			       pull->done, bytes);
	do {
		n = tdm_os.process_vm_readv(pull->pair->sess->pid, local,
					    nlocal, remote, nremote, 0);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n ? n : -EFAULT;
}

/* The sender is this process. Its iov is our own record: trusted. */
static void copy_self(struct tdm_shm_pull *pull)
{
	struct iovec from[TDM_SHM_IOV_MOST];
	size_t count = remote_iov(from, &pull->rts), i;

	for (i = 0; i < count && pull->done < pull->want; i++)
		pull->done += tdm_iov_copy_to(
			pull->iov, pull->count, pull->done, from[i].iov_base,
			tdm_min(from[i].iov_len, pull->want - pull->done));
	tdm_shm_pull_end(pull, 0, TDM_SHM_STATUS_OK);
}

static void read_failed(struct tdm_shm_pull *pull, int err)
{
	switch (err) {
	case EFAULT:
		tdm_shm_pull_end(pull, FI_EIO, TDM_SHM_STATUS_FAULT);
		break;
	case ESRCH:
		tdm_shm_pair_break(pull->pair, FI_ECONNRESET);
		break;
	default:
		if (pull->pair->cma)
			TDM_INFO(
				EP_DATA,
				"reading a peer's memory is refused (%s), large messages are copied",
				fi_strerror(err));
		pull->pair->cma = 0;
		pull_by_copy(pull);
		break;
	}
}

void tdm_shm_pull_run(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;
	ssize_t n;

	if (tdm_unlikely(tdm_shm_revoked(pair->ep, pull->entry))) {
		tdm_shm_pull_end(pull, FI_EACCES, TDM_SHM_STATUS_ACCESS);
		return;
	}
	if (pair->self) {
		copy_self(pull);
		return;
	}
	n = read_slice(pull, tdm_min(pull->want - pull->done, CMA_SLICE_BYTES));
	if (n < 0) {
		read_failed(pull, (int)-n);
		return;
	}
	pull->done += (uint64_t)n;
	if (pull->done < pull->want)
		return;
	if (tdm_shm_session_alive(pair->sess))
		tdm_shm_pull_end(pull, 0, TDM_SHM_STATUS_OK);
	else
		tdm_shm_pair_break(pair, FI_ECONNRESET);
}

void tdm_shm_pull_start(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;

	pull->iov = pull->op ? pull->op->iov : pull->entry->iov;
	pull->count = pull->op ? pull->op->count : pull->entry->count;
	pull->want =
		tdm_min(pull->rts.len, tdm_iov_len(pull->iov, pull->count));
	pull->done = 0;
	pull->copy = 0;
	tdm_list_append(&pair->pulls, &pull->node);
	if (!pull->want) {
		tdm_shm_pull_end(pull, 0, TDM_SHM_STATUS_OK);
		return;
	}
	tdm_shm_busy(pair);
	if (pair->self || pair->cma)
		tdm_shm_pull_run(pull);
	else
		pull_by_copy(pull);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Announced messages, at the receiver: it reads them from the sender's memory
 * with process_vm_readv(2) where the kernel allows it (CMA), else it asks the
 * sender for chunks.
 *
 * Invariants:
 *  1. The process read from is the one the kernel named when the socket was
 *     connected. Before the receiver delivers the message, it asks the kernel
 *     whether that process is still alive, unless it did so a moment ago
 *     (sender_gone()): so no other process can have had its pid meanwhile. It
 *     also looks whether the sender has reported the message as aborted while
 *     its memory was read (recalled()).
 *  2. A refusal (EPERM, ENOSYS, ...) at any call moves the pair to chunks; the
 *     same message goes on at its next byte.
 *  3. An announced message ends by one ACK, or with its session.
 *  4. While the receiver reads a message, the sender may help with chunks.
 *     Chunks fill the message from the front, reads from the back. Chunks that
 *     come when it is complete are dropped.
 *  5. The bytes of a one-sided write that belong in the last cache line of the
 *     target wait in pull->line, whether read or in chunks, until all others
 *     are placed: tdm_shm_pull_start() finds out how many (tdm_place_last()),
 *     complete() stores them (tdm_place_end()).
 * Locking: domain lock held. Spec: process_vm_readv(2),
 * doc/PROTOCOL-shm.md "Large messages".
 */
#include "shm/cma.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/advice.h"
#include "base/log.h"
#include "base/os.h"
#include "shm/bounce.h"
#include "shm/ctl.h"
#include "shm/ep.h"
#include "shm/lifeline.h"
#include "shm/progress.h"
#include "shm/rma.h"

enum {
	CMA_SHARE_BYTES = 128 * 1024, /* slice while the sender helps */
	/* large messages between tries with a peer that did not help */
	CMA_HELP_EVERY = 16,
	CMA_LOCAL_MOST = 8,
	CMA_LOOK = 16, /* messages that first_of() looks at */
};

/*
 * How long the receiver waits for the first chunk of a sender that makes
 * progress, and for the next chunk of one that has sent some.
 */
static const uint64_t cma_grace_ns = 4000;
static const uint64_t cma_patience_ns = 64000;
static const uint64_t cma_alive_ns = 50000;
/*
 * While a process waits for its next message it asks again when the last answer is so
 * old, and so long after the last message that it has read.
 */
static const uint64_t cma_fresh_ns = 15000;
static const uint64_t cma_talk_ns = 100000;

/* End the receive, or the write to a region, that @pull fills. */
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
		tdm_done_recv_err(
			&ep->done, pull->entry,
			tdm_result_of(tdm_failed(err, 0, pull->placed),
				      pair->addr.sa));
	else if (pull->want < len)
		tdm_done_recv_err(&ep->done, pull->entry,
				  tdm_result_of(tdm_truncated(pull->want,
							      len - pull->want),
						pair->addr.sa));
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
	/* Take back a PULL that still waits for a slot. */
	tdm_list_del(&pull->ctl.node);
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

/*
 * Ask the sender for chunks. @may 1: they only help, and the sender may ignore
 * the PULL; 0: there is no other way. A second PULL for a message can only
 * change 1 to 0.
 */
static void ask(struct tdm_shm_pull *pull, int may)
{
	pull->ctl.aux = (uint16_t)may;
	if (tdm_list_linked(&pull->ctl.node))
		return;
	pull->ctl.op = TDM_SHM_REC_PULL;
	pull->ctl.kind = TDM_SHM_CTL_KEEP;
	pull->ctl.tag = pull->rts.id;
	pull->ctl.body.offset = pull->placed;
	pull->ctl.body.bytes = pull->want - pull->placed;
	tdm_shm_ctl_send(pull->pair, &pull->ctl);
}

static void pull_by_copy(struct tdm_shm_pull *pull)
{
	pull->copy = 1;
	ask(pull, 0);
	tdm_shm_busy(pull->pair);
}

/*
 * Choose the way of @pull (way.h), and ask the sender for chunks if they are
 * part of it. A sender that sleeps cannot help and is not asked; one that did
 * not answer lately is asked only now and then.
 */
static void choose_way(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;
	enum tdm_shm_way way;

	if (pull->want < TDM_SHM_WAY_LEAST_BYTES)
		return;
	if (!pair->ways)
		pair->ways = calloc(1, sizeof(*pair->ways));
	if (!pair->ways)
		return;
	pull->started = tdm_os.now_ns();
	way = tdm_shm_way_choose(pair->ways, pull->want);
	if (way == TDM_SHM_WAY_READ ||
	    tdm_a32_load_relaxed(&pair->peer->bell) & TDM_SHM_BELL_ASLEEP ||
	    (!pair->help && ++pair->help_turn % CMA_HELP_EVERY))
		return;
	pull->way = way;
	pull->help = pair->help ? TDM_SHM_HELP_ASKED : TDM_SHM_HELP_KNOWN;
	ask(pull, 1);
}

/*
 * Returns the first message of @pair that is read, or NULL: there is none, or many that
 * are copied come before it.
 */
static const struct tdm_shm_pull *first_of(const struct tdm_shm_pair *pair)
{
	struct tdm_list *pos;
	int look = CMA_LOOK;

	tdm_list_for_each(pos, &pair->pulls) {
		const struct tdm_shm_pull *pull =
			tdm_list_entry(pos, struct tdm_shm_pull, node);

		if (!pull->copy)
			return pull;
		if (!--look)
			break;
	}
	return NULL;
}

static uint64_t slice_bytes(const struct tdm_shm_pull *pull)
{
	return pull->help == TDM_SHM_HELP_NONE ? TDM_SHM_SLICE_BYTES :
						 CMA_SHARE_BYTES;
}

/*
 * Not 0 when @pull has more than a slice left and another message is read before it.
 * Long messages are read one after another: so each ends early, and learn() knows what
 * it has cost.
 */
static int is_behind(const struct tdm_shm_pull *pull)
{
	const struct tdm_shm_pull *first = first_of(pull->pair);

	return first && first != pull &&
	       pull->tail - pull->placed > slice_bytes(pull);
}

/*
 * Record what the way of @pull, which is complete at @now, has cost. One that passed another has
 * taken time of both, and says nothing.
 */
static void learn(const struct tdm_shm_pull *pull, uint64_t now)
{
	struct tdm_shm_pair *pair = pull->pair;
	uint64_t from;

	if (!pull->started || pull->copy || pull != first_of(pair))
		return;
	from = tdm_max(pull->started, pair->pulled_ns);
	pair->pulled_ns = now;
	tdm_shm_way_took(pair->ways, pull->want, pull->way, now - from, now);
}

int tdm_shm_pull_waits(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;
	uint64_t now;

	if (is_behind(pull))
		return 1;
	if (pull->help == TDM_SHM_HELP_NONE)
		return 0;
	if (tdm_shm_bounce_there(pair))
		return 1;
	if (pull->help == TDM_SHM_HELP_KNOWN && pull->way != TDM_SHM_WAY_CHUNKS)
		return 0;
	now = tdm_os.now_ns();
	if (pull->way == TDM_SHM_WAY_CHUNKS &&
	    now - pair->chunk_ns < cma_patience_ns)
		return 1;
	if (pull->help == TDM_SHM_HELP_KNOWN)
		return 0;
	if (now - tdm_max(pull->started, pair->pulled_ns) < cma_grace_ns)
		return 1;
	pull->help = TDM_SHM_HELP_KNOWN;
	if (pair->help)
		pair->help--;
	return 0;
}

int tdm_shm_pull_fits(const struct tdm_shm_pull *pull, uint64_t bytes)
{
	return !bytes ||
	       bytes + pull->tail - pull->placed <= TDM_SHM_SLICE_BYTES;
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

/*
 * Describe where the next @bytes of the slice go, or the first of them. Returns
 * how many elements of @out that takes.
 */
static size_t local_iov(struct iovec *out, struct tdm_shm_pull *pull,
			size_t bytes)
{
	uint64_t body = pull->want - pull->last;
	size_t first = 0, n = 0;

	if (pull->at < body) {
		first = tdm_min(bytes, body - pull->at);
		n = tdm_iov_slice(out, CMA_LOCAL_MOST, pull->iov, pull->count,
				  pull->at, first);
	}
	if (first == bytes || tdm_iov_len(out, n) < first)
		return n;
	out[n].iov_base = pull->line + (pull->at + first - body);
	out[n].iov_len = bytes - first;
	return n + 1;
}

/* Read once from the remaining slice. Returns the bytes read, or -errno. */
static ssize_t read_slice(struct tdm_shm_pull *pull)
{
	struct iovec all[TDM_SHM_IOV_MOST], remote[TDM_SHM_IOV_MOST];
	size_t nremote, nlocal, bytes = pull->end - pull->at;
	struct iovec local[CMA_LOCAL_MOST + 1];
	ssize_t n;

	nremote = remote_iov(all, &pull->rts);
	nremote = tdm_iov_slice(remote, TDM_SHM_IOV_MOST, all, nremote,
				pull->at, bytes);
	nlocal = local_iov(local, pull, bytes);
	do {
		n = tdm_os.process_vm_readv(pull->pair->sess->pid, local,
					    nlocal, remote, nremote, 0);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n ? n : -EFAULT;
}

void tdm_shm_pull_put(struct tdm_shm_pull *pull, const void *src, size_t n)
{
	uint64_t body = pull->want - pull->last;
	size_t first = 0;

	if (pull->placed < body) {
		first = tdm_min(n, body - pull->placed);
		tdm_iov_copy_to(pull->iov, pull->count, pull->placed, src,
				first);
	}
	if (first < n)
		memcpy(pull->line + (pull->placed + first - body),
		       (const char *)src + first, n - first);
}

/*
 * Store the bytes of the last cache line and end the pull. The caller has made
 * sure that all bytes are valid: whatever process_vm_readv(2) read came from a
 * living sender.
 */
static void complete(struct tdm_shm_pull *pull, uint64_t now)
{
	if (pull->last && !pull->refused)
		tdm_place_end(pull->iov, pull->count, pull->line, pull->last);
	learn(pull, now);
	tdm_shm_pull_end(pull, 0, TDM_SHM_STATUS_OK);
}

/*
 * Copy the bytes of a message of the endpoint to itself: its operation exists
 * until the ACK.
 */
static void copy_self(struct tdm_shm_pull *pull)
{
	struct tdm_shm_op *op = tdm_shm_op_find(pull->pair, pull->rts.id);
	const struct iovec *from = tdm_shm_op_iov(op);
	size_t i;

	for (i = 0; i < op->count && pull->placed < pull->want; i++) {
		size_t n = tdm_min(from[i].iov_len, pull->want - pull->placed);

		tdm_shm_pull_put(pull, from[i].iov_base, n);
		pull->placed += n;
	}
	complete(pull, tdm_os.now_ns());
}

/*
 * Not 0 when the sender has closed or died: its memory may then have contained
 * anything when it was read. The kernel is not asked again within cma_alive_ns:
 * in so short a time no other process can have got the number of one that died,
 * since the kernel first gives out all others, and no process that called
 * execve(2) can have loaded a program.
 */
static int sender_gone(struct tdm_shm_pair *pair, uint64_t now)
{
	pair->ep->read_from = pair;
	pair->ep->read_ns = now;
	if (tdm_a32_load_acquire(&pair->peer->hold) & TDM_SHM_HOLD_GONE)
		return 1;
	if (pair->alive_ns && now - pair->alive_ns < cma_alive_ns)
		return 0;
	if (!tdm_shm_session_alive(pair->sess))
		return 1;
	pair->alive_ns = now;
	return 0;
}

void tdm_shm_pull_idle(struct tdm_shm_ep *ep, uint64_t now)
{
	struct tdm_shm_pair *pair = ep->read_from;

	if (now - ep->read_ns > cma_talk_ns)
		ep->read_from = NULL;
	else if (now - pair->alive_ns > cma_fresh_ns &&
		 tdm_shm_session_alive(pair->sess))
		pair->alive_ns = now;
}

/*
 * Not 0 when the sender may have reported the message of @pull as aborted: the
 * memory may then have contained anything when it was read. A sender that has
 * sent a chunk of the message has not, and does not before it ends.
 */
static int recalled(const struct tdm_shm_pull *pull)
{
	const struct tdm_shm_pair *pair = pull->pair;

	return pull->turn && !pull->placed &&
	       tdm_a64_load_acquire(&pair->peer->recalled) >= pull->turn;
}

void tdm_shm_pull_refused(struct tdm_shm_pull *pull)
{
	tdm_shm_pull_end(pull, recalled(pull) ? FI_ECONNABORTED : FI_EIO, -1);
}

/*
 * Forget what was read, and have the sender send the bytes: it answers FAIL if
 * it has reported the message, and chunks if it keeps a copy.
 */
static void again_by_copy(struct tdm_shm_pull *pull)
{
	pull->tail = pull->want;
	pull->at = 0;
	pull->end = 0;
	pull_by_copy(pull);
}

static void read_failed(struct tdm_shm_pull *pull, int err)
{
	switch (err) {
	case EFAULT:
		if (sender_gone(pull->pair, tdm_os.now_ns()))
			tdm_shm_pair_break(pull->pair, FI_ECONNRESET);
		else if (recalled(pull))
			again_by_copy(pull);
		else
			tdm_shm_pull_end(pull, FI_EIO, TDM_SHM_STATUS_FAULT);
		break;
	case ESRCH:
		tdm_shm_pair_break(pull->pair, FI_ECONNRESET);
		break;
	default:
		if (pull->pair->cma)
			TDM_INFO(
				EP_DATA,
				"reading a peer's memory is refused (%s), large messages are copied: %s",
				fi_strerror(err), tdm_advice_cma());
		pull->pair->cma = 0;
		pull_by_copy(pull);
		break;
	}
}

void tdm_shm_pull_finish(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;
	uint64_t now = tdm_os.now_ns();

	if (pull->tail == pull->want)
		complete(pull, now);
	else if (sender_gone(pair, now))
		tdm_shm_pair_break(pair, FI_ECONNRESET);
	else if (tdm_unlikely(recalled(pull)))
		again_by_copy(pull);
	else
		complete(pull, now);
}

void tdm_shm_pull_left(struct tdm_shm_pull *pull, const void *data)
{
	if (tdm_shm_revoked(pull->pair->ep, pull->entry))
		pull->refused = 1;
	pull->placed = 0;
	if (!pull->refused)
		tdm_shm_pull_put(pull, data, pull->want);
	pull->placed = pull->want;
	complete(pull, tdm_os.now_ns());
}

static void next_slice(struct tdm_shm_pull *pull)
{
	pull->end = pull->tail;
	pull->from = pull->end -
		     tdm_min(pull->tail - pull->placed, slice_bytes(pull));
	pull->at = pull->from;
}

uint64_t tdm_shm_pull_run(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;
	uint64_t bytes;
	ssize_t n;

	if (tdm_unlikely(tdm_shm_revoked(pair->ep, pull->entry))) {
		tdm_shm_pull_end(pull, FI_EACCES, TDM_SHM_STATUS_ACCESS);
		return 0;
	}
	if (pair->self) {
		copy_self(pull);
		return 0;
	}
	if (pull->at == pull->end)
		next_slice(pull);
	bytes = pull->end - pull->at;
	n = read_slice(pull);
	if (n < 0) {
		read_failed(pull, (int)-n);
		return 0;
	}
	pull->at += (uint64_t)n;
	if (pull->at < pull->end)
		return bytes;
	pull->tail = pull->from;
	if (pull->placed >= pull->tail)
		tdm_shm_pull_finish(pull);
	return bytes;
}

/*
 * Not 0 when the first slice of @pull is read at once. The application that posts its
 * receive waits for nobody else; a pass serves the other peers, too: there, messages
 * whose records it takes begin at once until they have so many bytes in all.
 */
static int begins_now(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;

	if (tdm_shm_pull_waits(pull))
		return 0;
	if (!pair->ep->in_progress)
		return 1;
	if (pair->begun_pass != pair->ep->ticks) {
		pair->begun_pass = pair->ep->ticks;
		pair->begun_bytes = 0;
	}
	if (!tdm_shm_pull_fits(pull, pair->begun_bytes))
		return 0;
	pair->begun_bytes +=
		(uint32_t)tdm_min(pull->want, (uint64_t)TDM_SHM_SLICE_BYTES);
	return 1;
}

void tdm_shm_pull_start(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;

	pull->iov = pull->op ? pull->op->iov : pull->entry->iov;
	pull->count = pull->op ? pull->op->count : pull->entry->count;
	pull->want =
		tdm_min(pull->rts.len, tdm_iov_len(pull->iov, pull->count));
	/*
	 * Applications poll the target of a write only, and a write is never
	 * cut.
	 */
	pull->last = pull->entry && (pull->entry->flags & FI_RMA) ?
			     (uint32_t)tdm_place_last(pull->iov, pull->count) :
			     0;
	pull->placed = 0;
	pull->tail = pull->want;
	pull->end = 0;
	pull->at = 0;
	pull->copy = 0;
	pull->help = TDM_SHM_HELP_NONE;
	pull->way = TDM_SHM_WAY_READ;
	pull->started = 0;
	tdm_list_append(&pair->pulls, &pull->node);
	if (!pull->want) {
		tdm_shm_pull_end(pull, 0, TDM_SHM_STATUS_OK);
		return;
	}
	/*
	 * The sender is gone. In the next pass tdm_shm_pair_lose() finds the
	 * bytes among those that the sender left, or ends the receive.
	 */
	if (pair->ending || pair->broken)
		return;
	tdm_shm_busy(pair);
	if (!pair->self && (!pair->cma || !pull->rts.count)) {
		pull_by_copy(pull);
		return;
	}
	if (!pair->self)
		choose_way(pull);
	if (begins_now(pull))
		(void)tdm_shm_pull_run(pull);
}

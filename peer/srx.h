/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side of the owner: posted receives and unexpected messages of
 * one endpoint or of one shared receive context, and its exports to the
 * transports, fi_peer(3) "PEER SRX". It treats all transports alike: it calls
 * the one that holds a message through entry->srx->peer_ops.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_PEER_SRX_H
#define TDM_PEER_SRX_H

#include <rdma/providers/fi_peer.h>

#include "peer/cq.h"
#include "tdm_done.h"
#include "tdm_engine.h"
#include "tdm_xfer.h"

struct tdm_srx;

/*
 * The kinds of receives whose source counts. FI_DIRECTED_RECV sets both bits,
 * FI_TAGGED_DIRECTED_RECV the second.
 */
enum { TDM_SRX_DIRECTED_MSG = 1, TDM_SRX_DIRECTED_TAG = 2 };

struct tdm_srx_attr {
	struct tdm_engine *engine;
	/* how many receives are promised to fit; see tdm_srx_left() */
	size_t size;
	size_t min_multi_recv; /* bytes, FI_OPT_MIN_MULTI_RECV */
	/* kinds whose source counts: TDM_SRX_DIRECTED_* */
	int directed;
	/*
	 * Groups or keys: addresses in tdm_xfer.addr of receives (always with
	 * TDM_IN_SPACE) and in fi_peer_match_attr.addr are match addresses of
	 * tdm_space.h, whatever @directed; FI_ADDR_UNSPEC is any source in
	 * group 0. Sources are reported without their group. @key_of returns
	 * the key of an address without group, or 0; NULL: there are no keys.
	 */
	int spaces;
	uint32_t (*key_of)(void *arg, fi_addr_t addr);
	void *key_arg;
	/*
	 * Called with each entry that has FI_RMA in its flags (tdm_rma.h) when
	 * a transport gives it back.
	 */
	void (*free_rma)(struct fi_peer_rx_entry *entry);
};

/* Allocate a receive side. Out: *@srx. Errors: -FI_ENOMEM. */
int tdm_srx_open(const struct tdm_srx_attr *attr,
		 struct tdm_srx **srx) tdm_must_check;

/*
 * Set where receives are reported: @done, which is copied. Call it before the
 * endpoint is enabled. With done->user_ids, which may change later, sources are
 * reported by their user ids; matching always uses addresses.
 */
void tdm_srx_set_done(struct tdm_srx *srx, const struct tdm_done *done);

/*
 * Set the minimum of later multi-recv buffers, in bytes; receives posted
 * earlier keep theirs.
 */
void tdm_srx_set_min_multi_recv(struct tdm_srx *srx, size_t bytes);

/*
 * Returns the export for transport @t; valid as long as @srx. The transport
 * sets ->peer_ops before the first message. ep_fid.ops has cancel, getopt,
 * setopt.
 *
 * Points that fi_peer(3) leaves open:
 *  - get_*() returns 0 or -FI_ENOENT, both with an entry, or -FI_ENOMEM without
 *    one: then the transport must keep the message and offer it again.
 *  - entry->msg_size is min(message, posted bytes) once a receive has been
 *    found, by get_*() or start_*(); the message's own size before that. The
 *    entry of a message in a multi-recv buffer has only that message's part of
 *    the buffer.
 *  - start_*() may be called from within foreach_unspec_addr(). Its result is
 *    ignored: failures are reported through the CQ. discard_*() ends the
 *    entry; the transport does not give it back.
 *  - free_entry() also takes entries that are queued, matched or not.
 */
struct fid_peer_srx *tdm_srx_export(struct tdm_srx *srx, enum tdm_transport t);

/*
 * Returns the source that completions report for @addr when the message came
 * through the export @fid.
 */
fi_addr_t tdm_srx_id(struct fid_peer_srx *fid, fi_addr_t addr);

/*
 * Returns which of FI_REMOTE_READ and FI_REMOTE_WRITE the endpoint of the
 * export @fid was not granted: a peer may not do these operations there
 * (tdm_done.refused).
 */
uint64_t tdm_srx_refused(const struct fid_peer_srx *fid);

/*
 * A shared receive context, fi_endpoint(3): each endpoint bound to it has a
 * *seat*, a set of exports that its transports use instead of tdm_srx_export().
 * The seat names the queue for completions of the endpoint's messages.
 * Completions without an endpoint (a cancelled receive, the result of a peek)
 * go to the queue of the oldest seat.
 */
struct tdm_srx_seat;

/* Open a seat for one endpoint. Out: *@seat. Errors: -FI_ENOMEM. */
int tdm_srx_seat_open(struct tdm_srx *srx,
		      struct tdm_srx_seat **seat) tdm_must_check;
struct fid_peer_srx *tdm_srx_seat_export(struct tdm_srx_seat *seat,
					 enum tdm_transport t);
void tdm_srx_seat_set_done(struct tdm_srx_seat *seat,
			   const struct tdm_done *done);

/*
 * As tdm_srx_flush(), but only for the messages that arrived through @seat;
 * posted receives stay. Call it before the transports of the endpoint close.
 */
void tdm_srx_seat_flush(struct tdm_srx_seat *seat);

/*
 * Free @seat; NULL is fine. Call it after the transports of the endpoint have
 * closed.
 */
void tdm_srx_seat_close(struct tdm_srx_seat *seat);

/*
 * Post a receive: fi_recvmsg(3) and fi_trecvmsg(3), FI_PEEK, FI_CLAIM and
 * FI_DISCARD included (tagged only). @x->flags has FI_MSG or FI_TAGGED, and
 * FI_COMPLETION when a CQ entry is wanted; the result of a peek and the release
 * of a multi-recv buffer are always written. If a waiting message matches, its
 * transport begins to deliver it, and may complete it, before the call returns.
 * More receives than tdm_srx_attr.size may be posted, as memory allows. Errors:
 * -FI_ENOMEM, -FI_EINVAL for too many elements, FI_MULTI_RECV without exactly
 * one, flags that do not go together, and FI_CLAIM with a context that has
 * claimed nothing.
 */
ssize_t tdm_srx_recv(struct tdm_srx *srx, const struct tdm_xfer *x);

/*
 * fi_cancel(3): ends the oldest posted receive with @context by one error entry
 * FI_ECANCELED. A cancelled multi-recv buffer takes no more messages; its error
 * entry, with FI_MULTI_RECV, is written when the messages being received into
 * it have ended. Returns 0, or -FI_ENOENT: there is no such receive.
 */
ssize_t tdm_srx_cancel(struct tdm_srx *srx, void *context);

/*
 * Report @x, a receive that was not posted, as failed with @err, a positive
 * fi_errno.
 */
void tdm_srx_refuse(struct tdm_srx *srx, const struct tdm_xfer *x, int err);

/*
 * Called before @addr leaves the AV. Waiting messages from @addr get an unknown
 * source, so that a receive from the peer that gets the same index next does
 * not match them. If the transport finds another index of that peer in the AV,
 * foreach_unspec_addr() sets it as the source.
 */
void tdm_srx_forget(struct tdm_srx *srx, fi_addr_t addr);

/*
 * Drop everything: discards the waiting messages through their transports, and
 * frees posted receives without an entry in a CQ (fi_close(3) of an endpoint).
 * Call it before the transports close; they may give back entries by
 * free_entry() until tdm_srx_close().
 */
void tdm_srx_flush(struct tdm_srx *srx);

/* Free @srx; NULL is fine. Call it after the transports have closed. */
void tdm_srx_close(struct tdm_srx *srx);

/*
 * Returns how much of tdm_srx_attr.size is unused (fi_rx_size_left). At 0 more
 * receives can still be posted, as memory allows.
 */
size_t tdm_srx_left(const struct tdm_srx *srx);

/*
 * Count the receives that wait for a message, and the messages that wait for a
 * receive, those claimed by a peek not included. Out: *@posted, *@waiting.
 */
void tdm_srx_depth(const struct tdm_srx *srx, size_t *posted, size_t *waiting);

/* Not 0 while a transport writes to the buffers of receives. */
int tdm_srx_filling(const struct tdm_srx *srx);

/* Free all posted receives without an entry in a CQ; waiting messages stay. */
void tdm_srx_unpost(struct tdm_srx *srx);

#endif /* TDM_PEER_SRX_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side of the owner: posted receives and unexpected messages of
 * one endpoint or of one shared receive context, and its exports to the
 * transports, fi_peer(3) "PEER SRX". It does not distinguish transports: it
 * calls the one that holds the data through entry->srx->peer_ops.
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

/* FI_DIRECTED_RECV sets both bits, FI_TAGGED_DIRECTED_RECV the second. */
enum { TDM_SRX_DIRECTED_MSG = 1, TDM_SRX_DIRECTED_TAG = 2 };

struct tdm_srx_attr {
	struct tdm_engine *engine;
	/* receives promised; tdm_srx_left() tells the unused part */
	size_t size;
	size_t min_multi_recv; /* bytes, FI_OPT_MIN_MULTI_RECV */
	/* kinds whose source counts: TDM_SRX_DIRECTED_* */
	int directed;
	/*
	 * Groups or keys: addresses in tdm_xfer.addr of receives (always with
	 * TDM_IN_SPACE) and in fi_peer_match_attr.addr are names of
	 * tdm_space.h, whatever @directed; FI_ADDR_UNSPEC is any source in
	 * group 0. Sources are reported without their group. @key_of returns
	 * the key of an address without group, or 0; NULL: there are no keys.
	 */
	int spaces;
	uint32_t (*key_of)(void *arg, fi_addr_t addr);
	void *key_arg;
	/* Takes back entries with FI_RMA in their flags (tdm_rma.h). */
	void (*free_rma)(struct fi_peer_rx_entry *entry);
};

/* Out: *@srx. Errors: -FI_ENOMEM. */
int tdm_srx_open(const struct tdm_srx_attr *attr,
		 struct tdm_srx **srx) tdm_must_check;

/*
 * Where receives are reported; set before the endpoint is enabled. Copied. With
 * done->ids, which may change later, sources are reported by their user ids;
 * matching uses addresses in any case.
 */
void tdm_srx_set_done(struct tdm_srx *srx, const struct tdm_done *done);

/* Bytes; receives posted earlier keep their value. */
void tdm_srx_set_min_multi_recv(struct tdm_srx *srx, size_t bytes);

/*
 * The export for one transport; valid as long as @srx. The transport sets
 * ->peer_ops before the first message. ep_fid.ops has cancel, getopt, setopt.
 *
 * Points that fi_peer(3) leaves open:
 *  - get_*() gives 0 or -FI_ENOENT, both with an entry, or -FI_ENOMEM without
 *    one: then the message must be kept and offered again.
 *  - entry->msg_size is min(message, posted bytes) once a receive has been
 *    found, by get_*() or start_*(); the message's own size before that. The
 *    entry of a message in a multi-recv buffer has exactly its part as buffer.
 *  - start_*() may be called from within foreach_unspec_addr(). Its result is
 *    ignored: failures are reported through the CQ. discard_*() ends the
 *    entry; the transport does not give it back.
 *  - free_entry() also takes entries that are queued, matched or not.
 */
struct fid_peer_srx *tdm_srx_export(struct tdm_srx *srx, enum tdm_transport t);

/* The source that completions by the export @fid report for @addr. */
fi_addr_t tdm_srx_id(struct fid_peer_srx *fid, fi_addr_t addr);

/*
 * The rights among FI_REMOTE_READ and FI_REMOTE_WRITE that the endpoint of the
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

/* Out: *@seat. Errors: -FI_ENOMEM. */
int tdm_srx_seat_open(struct tdm_srx *srx,
		      struct tdm_srx_seat **seat) tdm_must_check;
struct fid_peer_srx *tdm_srx_seat_export(struct tdm_srx_seat *seat,
					 enum tdm_transport t);
void tdm_srx_seat_set_done(struct tdm_srx_seat *seat,
			   const struct tdm_done *done);

/*
 * As tdm_srx_flush(), for the messages that arrived through @seat; posted
 * receives stay. Called before the transports of the endpoint close.
 */
void tdm_srx_seat_flush(struct tdm_srx_seat *seat);

/* Called after the transports of the endpoint have closed. NULL is fine. */
void tdm_srx_seat_close(struct tdm_srx_seat *seat);

/*
 * Post a receive: fi_recvmsg(3) and fi_trecvmsg(3), FI_PEEK, FI_CLAIM and
 * FI_DISCARD included (tagged only). @x->flags has FI_MSG or FI_TAGGED, and
 * FI_COMPLETION when a CQ entry is wanted; the result of a peek and the
 * release of a multi-recv buffer are always written. A waiting message is
 * started at once, which may complete it before the call returns.
 * More receives than tdm_srx_attr.size may be posted, as memory allows.
 * Errors: -FI_ENOMEM, -FI_EINVAL for too many elements, FI_MULTI_RECV without exactly one, flags that do not go
 * together, and FI_CLAIM with a context that has claimed nothing.
 */
ssize_t tdm_srx_recv(struct tdm_srx *srx, const struct tdm_xfer *x);

/*
 * fi_cancel(3): ends the oldest posted receive with @context by one error entry
 * FI_ECANCELED. A cancelled multi-recv buffer takes no more messages; its
 * entry, with FI_MULTI_RECV, follows when the messages being received have
 * ended. 0 when one was found, else -FI_ENOENT.
 */
ssize_t tdm_srx_cancel(struct tdm_srx *srx, void *context);

/* End the receive @x, which was never posted, with @err, a positive fi_errno. */
void tdm_srx_refuse(struct tdm_srx *srx, const struct tdm_xfer *x, int err);

/*
 * @addr is about to leave the AV: the source of waiting messages from it
 * becomes unknown, so that a receive from the peer that is given the same
 * address next does not get them. If the transport knows another address of
 * that peer in the AV, foreach_unspec_addr() sets that one.
 */
void tdm_srx_forget(struct tdm_srx *srx, fi_addr_t addr);

/*
 * Drop all: waiting messages are discarded with their transport, posted
 * receives vanish without an entry (fi_close(3) of an endpoint). Called
 * before the transports close; a transport may give back entries by
 * free_entry() until tdm_srx_close().
 */
void tdm_srx_flush(struct tdm_srx *srx);

/* Free @srx, after the transports have closed. NULL is fine. */
void tdm_srx_close(struct tdm_srx *srx);

/*
 * The unused part of tdm_srx_attr.size (fi_rx_size_left). At 0 more receives
 * can be posted, as memory allows.
 */
size_t tdm_srx_left(const struct tdm_srx *srx);

/* Not 0 while a transport writes to the buffers of receives. */
int tdm_srx_filling(const struct tdm_srx *srx);

/* Drop posted receives without an entry; waiting messages stay. */
void tdm_srx_unpost(struct tdm_srx *srx);

#endif /* TDM_PEER_SRX_H */

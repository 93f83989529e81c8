/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side of the owner: posted receives and unexpected messages of
 * one endpoint or of one shared receive context, and its exports to the
 * transports, fi_peer(3) "PEER SRX". It never asks which transport it talks
 * to: entry->srx->peer_ops says who holds the data.
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

/* FI_DIRECTED_RECV is both, FI_TAGGED_DIRECTED_RECV one of them. */
enum { TDM_SRX_DIRECTED_MSG = 1, TDM_SRX_DIRECTED_TAG = 2 };

struct tdm_srx_attr {
	struct tdm_engine *engine;
	size_t size; /* receives that tdm_srx_left() counts down from */
	size_t min_multi_recv; /* bytes, FI_OPT_MIN_MULTI_RECV */
	int directed;	       /* sources count: TDM_SRX_DIRECTED_*, by kind */
	/*
	 * Groups or keys: addresses in tdm_xfer.addr of receives (always with
	 * TDM_IN_SPACE) and in fi_peer_match_attr.addr are names of
	 * tdm_space.h, whatever @directed; FI_ADDR_UNSPEC is anybody of group
	 * 0. Sources are reported without their group. @key_of: the key of
	 * an address without group, 0: none; NULL: there are no keys.
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
 * Where receives end; set before the endpoint is enabled. Copied. With
 * done->ids, which may change later, sources are reported by their user ids;
 * they are matched by their addresses as ever.
 */
void tdm_srx_set_done(struct tdm_srx *srx, const struct tdm_done *done);

/* Bytes; receives posted earlier keep the value they were posted with. */
void tdm_srx_set_min_multi_recv(struct tdm_srx *srx, size_t bytes);

/*
 * The export for one transport; lives as long as @srx. The transport sets
 * ->peer_ops before the first message. ep_fid.ops has cancel, getopt, setopt.
 *
 * Points that fi_peer(3) leaves open:
 *  - get_*() gives 0 or -FI_ENOENT, both with an entry, or -FI_ENOMEM without
 *    one: then the message must be kept and offered again.
 *  - entry->msg_size is min(message, posted bytes) once a receive has been
 *    found, by get_*() or start_*(); the message's own size before that. The
 *    buffers of a part of a multi-recv buffer are exactly its part.
 *  - start_*() may be called from within foreach_unspec_addr(). Its result is
 *    ignored: failures are reported through the CQ. discard_*() ends the
 *    entry; the transport does not give it back.
 *  - free_entry() also takes entries that are queued, matched or not.
 */
struct fid_peer_srx *tdm_srx_export(struct tdm_srx *srx, enum tdm_transport t);

/* The source that completions by the export @fid report for @addr. */
fi_addr_t tdm_srx_id(struct fid_peer_srx *fid, fi_addr_t addr);

/*
 * FI_REMOTE_READ, FI_REMOTE_WRITE: what the endpoint that @fid was exported
 * for was not granted, so that no peer may do it there (tdm_done.refused).
 */
uint64_t tdm_srx_refused(const struct fid_peer_srx *fid);

/*
 * A shared receive context, fi_endpoint(3): each endpoint bound to it takes a
 * seat, whose exports its transports use in the place of tdm_srx_export().
 * The seat names the queue for completions of the endpoint's messages.
 * Completions without an endpoint (a cancelled receive, the result of a peek)
 * go to the queue of the seat that was taken first.
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
 * As tdm_srx_flush(), for the messages that came by @seat; posted receives
 * stay. Called before the transports of the endpoint close.
 */
void tdm_srx_seat_flush(struct tdm_srx_seat *seat);

/* The transports of the endpoint have closed. NULL is fine. */
void tdm_srx_seat_close(struct tdm_srx_seat *seat);

/*
 * Post a receive: fi_recvmsg(3) and fi_trecvmsg(3), FI_PEEK, FI_CLAIM and
 * FI_DISCARD included (tagged only). @x->flags has FI_MSG or FI_TAGGED, and
 * FI_COMPLETION when a CQ entry is wanted; the result of a peek and the
 * release of a multi-recv buffer are always written. A waiting message is
 * started at once, which may complete it before the call returns.
 * There may be more receives than tdm_srx_attr.size, while there is memory.
 * Errors: -FI_ENOMEM, -FI_EINVAL for too many elements, FI_MULTI_RECV without exactly one, flags that do not go
 * together, and FI_CLAIM with a context that has claimed nothing.
 */
ssize_t tdm_srx_recv(struct tdm_srx *srx, const struct tdm_xfer *x);

/*
 * fi_cancel(3): ends the oldest posted receive with @context by one error
 * entry FI_ECANCELED; a multi-recv buffer takes no more messages at once and
 * ends when the parts in use have ended, its entry has FI_MULTI_RECV.
 * 0 when one was found, else -FI_ENOENT.
 */
ssize_t tdm_srx_cancel(struct tdm_srx *srx, void *context);

/* End the receive @x, which was never posted, with @err, a positive fi_errno. */
void tdm_srx_refuse(struct tdm_srx *srx, const struct tdm_xfer *x, int err);

/*
 * @addr is about to leave the AV: messages that wait and came from it have no
 * known source any more, so that a receive from whoever is given the same
 * address next does not get them. A transport that still knows an address of
 * theirs names it by foreach_unspec_addr().
 */
void tdm_srx_forget(struct tdm_srx *srx, fi_addr_t addr);

/*
 * Drop all: waiting messages are discarded with their transport, posted
 * receives vanish without an entry (fi_close(3) of an endpoint). Called
 * before the transports close; entries still held by a transport may be
 * given back by free_entry until tdm_srx_close().
 */
void tdm_srx_flush(struct tdm_srx *srx);

/* Free @srx. The transports have closed. NULL is fine. */
void tdm_srx_close(struct tdm_srx *srx);

/* Unused part of tdm_srx_attr.size (fi_rx_size_left); 0: only memory counts. */
size_t tdm_srx_left(const struct tdm_srx *srx);

/* Not 0 while a transport writes to the buffers of receives. */
int tdm_srx_filling(const struct tdm_srx *srx);

/* Posted receives vanish without an entry; waiting messages stay. */
void tdm_srx_unpost(struct tdm_srx *srx);

#endif /* TDM_PEER_SRX_H */

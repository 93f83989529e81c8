/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer provider that knows nothing of tandem: any installed provider that
 * imports queues, fi_peer(3), carries the messages of pairs on one host in place
 * of the embedded peer. It gets no private interface, so what the embedded peer
 * does by one is done here, between the owner's exports and the provider:
 * sources are converted to addresses of the owner, completions to those of the
 * operations, and what waits for a dead remote endpoint ends.
 *
 * Which remote endpoints the provider reaches, and their names in it, is agreed
 * by the owner over TCP (tcp/tier_foreign.c), which carries everything else.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_PEER_FOREIGN_H
#define TDM_PEER_FOREIGN_H

#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_peer.h>

#include "base/base.h"
#include "tdm_done.h"
#include "tdm_engine.h"
#include "tdm_xfer.h"

struct sockaddr;
struct tdm_foreign;
struct tdm_foreign_ep;
struct tdm_foreign_peer;

/* Messages that the provider has carried, and their payload. */
struct tdm_foreign_counts {
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes;
};

/* Longest address of an endpoint of the provider, bytes. */
enum { TDM_FOREIGN_NAME_BYTES = 256 };

/*
 * Open fabric and domain of the provider @name for a domain whose info is @app.
 * Out: *@out. Errors: -FI_ENODATA: it is not installed, or does not import
 * queues or carry all messages of the domain; -FI_ENOSYS: FI_HOOK is set, with
 * which no provider can be a peer; -FI_EOPNOTSUPP: the domain has automatic
 * progress, or no messages; its own. Lock: not needed.
 */
int tdm_foreign_open(const char *name, const struct fi_info *app,
		     struct tdm_foreign **out) tdm_must_check;

/* NULL is fine. Its endpoints must be closed. */
void tdm_foreign_close(struct tdm_foreign *f);

/* Make one pass of progress. */
void tdm_foreign_progress(struct tdm_foreign *f);

/* Not 0 when it reports sources as user ids. */
int tdm_foreign_takes_ids(const struct tdm_foreign *f);

/* Not 0 when the provider has broken fi_peer(3): it gets no new peers. */
int tdm_foreign_is_broken(const struct tdm_foreign *f);

/* Not 0 when it can have messages, and so has to be polled. */
int tdm_foreign_busy(const struct tdm_foreign *f);

/*
 * Open an endpoint of the provider, which imports @srx and reports at @done,
 * which is copied. Out: *@out. Errors: those of the provider.
 */
int tdm_foreign_ep_open(struct tdm_foreign *f, const struct fi_info *info,
			struct fid_peer_srx *srx, const struct tdm_done *done,
			struct tdm_foreign_ep **out) tdm_must_check;

/* The messages that wait there must have been discarded. NULL is fine. */
void tdm_foreign_ep_close(struct tdm_foreign_ep *ep);

/* Report operations that end from now on at @done. */
void tdm_foreign_ep_set_done(struct tdm_foreign_ep *ep,
			     const struct tdm_done *done);

/* Returns the address of @ep in the provider's format, *@len bytes. */
const void *tdm_foreign_ep_name(const struct tdm_foreign_ep *ep, size_t *len);

/*
 * Ask the owner's receive side again for the messages whose source was unknown.
 * Call it after tdm_foreign_peer_source().
 */
void tdm_foreign_resolve(struct tdm_foreign_ep *ep);

/* The identity of a remote endpoint, for tdm_foreign_peer_open(). */
struct tdm_foreign_peer_attr {
	const void *name; /* in the provider's format */
	size_t namelen;	  /* bytes */
	fi_addr_t addr;	  /* in the owner's AV, or FI_ADDR_UNSPEC */
	/* its address as the owner's AV has it; copied */
	const struct sockaddr *from;
	const void *key; /* what tdm_foreign_peer_find() looks for */
};

/*
 * Make the remote endpoint @attr known to @ep: from now on its messages are
 * taken. Out: *@out. Errors: those of the provider's AV; -FI_ENOMEM.
 */
int tdm_foreign_peer_open(struct tdm_foreign_ep *ep,
			  const struct tdm_foreign_peer_attr *attr,
			  struct tdm_foreign_peer **out) tdm_must_check;

/* Returns the live remote endpoint opened with @key, or NULL. */
struct tdm_foreign_peer *tdm_foreign_peer_find(const struct tdm_foreign_ep *ep,
					       const void *key);

/*
 * Call @call for each live remote endpoint of @ep with its key, to set its
 * source.
 */
void tdm_foreign_each(struct tdm_foreign_ep *ep,
		      void (*call)(void *arg, struct tdm_foreign_peer *peer,
				   const void *key),
		      void *arg);

/* Its messages come from @addr of the owner's AV, or FI_ADDR_UNSPEC. */
void tdm_foreign_peer_source(struct tdm_foreign_peer *peer, fi_addr_t addr);

/*
 * Counts of successful messages with all remote endpoints that are, or were, at
 * @addr of the owner's AV. forget: none of them is any more; counting begins
 * anew.
 */
struct tdm_foreign_counts tdm_foreign_count(const struct tdm_foreign_ep *ep,
					    fi_addr_t addr);
void tdm_foreign_forget(struct tdm_foreign_ep *ep, fi_addr_t addr);

/*
 * The remote endpoint is gone: what it had sent is still delivered in the next
 * passes; then all operations with it that have not ended fail with @err.
 */
void tdm_foreign_peer_lost(struct tdm_foreign_peer *peer, int err);

/*
 * End the sends to @peer with @err; their messages may arrive all the same.
 */
void tdm_foreign_abandon(struct tdm_foreign_peer *peer, int err);

/*
 * Send @x, a message, to @peer. Returns 0, or -FI_EAGAIN: the provider takes it
 * later; -FI_ENOMEM; others of the provider.
 */
ssize_t tdm_foreign_send(struct tdm_foreign_peer *peer,
			 const struct tdm_xfer *x);

#endif /* TDM_PEER_FOREIGN_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a foreign peer: foreign.c opens the provider and is its pass,
 * foreign_ep.c has endpoints and remote endpoints, foreign_tx.c sends,
 * foreign_rx.c receives.
 *
 * Invariants:
 *  1. The provider sees records of this folder only, as contexts and receive
 *     entries; each leads to what the owner has. A record is freed when the
 *     provider gives it back, or with the endpoint, not when the operation ends:
 *     the provider may come back to it.
 *  2. An operation of the owner ends once: when the provider reports it, or when
 *     its remote endpoint is gone. Then the record has no operation.
 *  3. A remote endpoint is known by its *slot*, which the provider gets as user
 *     id where it takes one. Slots are not used again while the endpoint is open:
 *     a message of an old one cannot be taken for that of its successor.
 *
 * Lock: domain held.
 */
#ifndef TDM_PEER_FOREIGN_PRIV_H
#define TDM_PEER_FOREIGN_PRIV_H

#include <netinet/in.h>

#include "base/list.h"
#include "base/pool.h"
#include "peer/foreign.h"
#include "peer/foreign_record.h"

struct tdm_foreign {
	const char *name;
	struct fi_info *info; /* of the provider, owned */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct tdm_list eps; /* struct tdm_foreign_ep */
	size_t users;	     /* the owner's domain, and all endpoints; atomic */
	size_t peers;	     /* remote endpoints that may send */
	/* 1: its AV takes user ids: it reports slots as sources */
	int user_ids;
	/* struct tdm_foreign_tx, _rx, _port; freed with the domain */
	struct tdm_pool txs, rxs, ports;
	uint32_t serial;   /* of the last record */
	unsigned breaches; /* of fi_peer(3), by the provider */
	unsigned outside;  /* foreign_guard.c: calls that were logged */
	/* foreign_here.c */
	int closed;	      /* the owner's domain is gone */
	struct tdm_list gone; /* endpoints to be freed; struct tdm_foreign_ep */
	int any_gone;	      /* atomic */
};

/* The exports of an endpoint, which the provider imports. */
struct tdm_foreign_port {
	struct fid_peer_srx lent;
	struct fid_peer_cq tx_end, rx_end;
	struct tdm_foreign_ep *ep; /* NULL: it has closed */
};

struct tdm_foreign_ep {
	struct tdm_list node;
	struct tdm_foreign *f;
	struct fid_peer_srx *own; /* the owner's export */
	struct tdm_foreign_port *port;
	struct fid_ep *ep, *srx; /* the provider's */
	struct fid_av *av;
	struct fid_cq *tx_cq, *rx_cq;
	struct tdm_done done;
	struct tdm_foreign_peer **peer; /* by slot: peer[count] */
	size_t count, room;
	/* by address in the provider's AV, if that takes no user ids */
	struct tdm_foreign_peer **at;
	size_t at_count;
	struct tdm_list strays; /* struct tdm_foreign_rx of unknown source */
	size_t dying;		/* peers with passes left */
	/* foreign_here.c: node in its list, and peers in this process */
	struct tdm_list here;
	size_t referred;
	int closing;
	size_t namelen; /* bytes of name */
	char name[TDM_FOREIGN_NAME_BYTES];
};

struct tdm_foreign_peer {
	struct tdm_foreign_ep *ep;
	fi_addr_t to;		     /* in the provider's AV */
	fi_addr_t addr;		     /* in the owner's AV, or FI_ADDR_UNSPEC */
	const void *key;	     /* NULL: it is gone */
	int err;		     /* why it is gone */
	unsigned int left;	     /* passes until its operations fail */
	struct tdm_foreign_ep *same; /* in this process; or NULL */
	struct sockaddr_in6 from;
	struct tdm_foreign_counts counts;
	struct tdm_list txs, rxs;
};

/* foreign.c: @f has one more user, or one fewer; the last one frees it. */
void tdm_foreign_use(struct tdm_foreign *f);
void tdm_foreign_unuse(struct tdm_foreign *f);

/* foreign.c: close @fid, a @what of the provider; only logs a failure. */
void tdm_foreign_close_fid(const struct tdm_foreign *f, struct fid *fid,
			   const char *what);

/* foreign_ep.c: close the provider's objects, and free @ep. */
void tdm_foreign_ep_free(struct tdm_foreign_ep *ep);

/*
 * foreign_here.c. reap: free the endpoints that nobody refers to any more.
 * close_all: the owner's domain closes. open and close: @ep is, or is no more,
 * used by the owner; it is freed at once, or when no endpoint of this process
 * refers to it. refer: @peer, whose name is @name[len], may be an endpoint of this
 * process (-FI_EOPNOTSUPP: then the provider cannot reach it); unrefer: its
 * endpoint closes.
 */
void tdm_foreign_reap(struct tdm_foreign *f);
void tdm_foreign_close_all(struct tdm_foreign *f);
void tdm_foreign_here_open(struct tdm_foreign_ep *ep);
void tdm_foreign_here_close(struct tdm_foreign_ep *ep);
int tdm_foreign_refer(struct tdm_foreign_peer *peer, const void *name,
		      size_t len) tdm_must_check;
void tdm_foreign_unrefer(struct tdm_foreign_peer *peer);

/* foreign_tx.c, foreign_rx.c: the queues that the provider imports. */
extern struct fi_ops_cq_owner tdm_foreign_tx_ops, tdm_foreign_rx_ops;

/* Fill in the receive context that the provider imports. */
void tdm_foreign_lend(struct tdm_foreign_ep *ep);

/* End the receives of @rxs that are being filled. */
void tdm_foreign_rx_fail(struct tdm_list *rxs, int err);

/* Free the records of all sends of @peer, and of the receives in @rxs. */
void tdm_foreign_tx_free(struct tdm_foreign_peer *peer);
void tdm_foreign_rx_free(struct tdm_list *rxs);

/* Returns who has the address @addr of the provider, or NULL. */
static inline struct tdm_foreign_peer *
tdm_foreign_peer_at(const struct tdm_foreign_ep *ep, fi_addr_t addr)
{
	if (ep->f->user_ids)
		return addr < ep->count ? ep->peer[addr] : NULL;
	return addr < ep->at_count ? ep->at[addr] : NULL;
}

/*
 * Passes in which the last messages of a remote endpoint that is gone are taken,
 * and after which its operations fail.
 */
enum { TDM_FOREIGN_LAST_PASSES = 8 };

/* Let @peer, which is gone, be looked at in the next passes. */
static inline void tdm_foreign_peer_linger(struct tdm_foreign_peer *peer)
{
	if (!peer->left) {
		peer->ep->dying++;
		peer->ep->f->peers++;
	}
	peer->left = TDM_FOREIGN_LAST_PASSES;
}

/* Mark a record of @f as in use. */
static inline void tdm_foreign_mark(struct tdm_foreign *f,
				    struct tdm_foreign_mark *mark)
{
	mark->serial = ++f->serial;
	mark->check = ~mark->serial;
}

#endif /* TDM_PEER_FOREIGN_PRIV_H */

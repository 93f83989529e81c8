/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "liar", a peer provider of the tests that breaks fi_peer(3) in the one way that
 * TANDEM_LIE names, and else keeps to it: endpoints of one process that copy
 * messages in memory. foreign_lie_test.cc has the list of lies. liar.c has the
 * objects, liar_msg.c the messages.
 *
 * Lock: none; one thread, and one more that it waits for.
 */
#ifndef TDT_LIAR_H
#define TDT_LIAR_H

#include <stdint.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_peer.h>

enum { LIAR_ADDRS_MOST = 64 };

struct liar_msg {
	struct liar_msg *next;
	struct liar_ep *to;
	uint64_t from;
	uint64_t tag, data;
	uint64_t flags; /* FI_MSG or FI_TAGGED, FI_REMOTE_CQ_DATA */
	size_t len;
	unsigned char bytes[];
};

struct liar_cq {
	struct fid_cq fid;
	struct fid_peer_cq *owner;
};

struct liar_srx {
	struct fid_ep fid;
	struct fid_peer_srx *owner;
};

struct liar_av {
	struct fid_av fid;
	size_t count;
	uint64_t name[LIAR_ADDRS_MOST];
	fi_addr_t user_id[LIAR_ADDRS_MOST];
};

struct liar_ep {
	struct fid_ep fid;
	struct liar_ep *next;
	uint64_t name;
	struct liar_av *av;
	struct liar_cq *tx, *rx;
	struct liar_srx *srx;
	struct liar_msg *arrived;
};

/* Pointers that the provider keeps from the endpoint that closed last. */
struct liar_late {
	struct fid_peer_srx *srx;
	struct fid_peer_cq *tx, *rx;
	struct fi_peer_rx_entry *entry;
	void *context;
};

extern struct liar_ep *liar_endpoints;
extern struct liar_late liar_late;
extern struct fi_ops_msg liar_msg_ops;
extern struct fi_ops_tagged liar_tagged_ops;
extern struct fi_ops_srx_peer liar_srx_ops;

/* Returns whether @what is the lie to tell. */
int liar_lies(const char *what);

/* Offer @m to the owner. Errors: @m stays the caller's. */
int liar_arrive(struct liar_ep *ep, struct liar_msg *m);

/* For foreach_unspec_addr(): the source of a message that waits. */
fi_addr_t liar_source(struct fi_peer_rx_entry *rx);

/* Call the owner for an endpoint that has closed. */
void liar_call_late(void);

#endif /* TDT_LIAR_H */

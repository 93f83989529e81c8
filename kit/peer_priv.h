/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the peer provider of the kit; see peer.h.
 *
 * Lock: none; see peer.h.
 */
#ifndef KIT_PEER_PRIV_H
#define KIT_PEER_PRIV_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_peer.h>

#include "kit/peer.h"

enum { KIT_PEER_ADDRS_MOST = 64, KIT_PEER_NAME_BYTES = 16 };

enum kit_peer_state {
	KIT_ARRIVED,  /* nobody was asked for a receive yet */
	KIT_WAITS,    /* queued at the owner */
	KIT_STARTING, /* the owner has started it; it ends at the next pass */
	KIT_GONE,     /* ended or discarded */
};

struct kit_peer_ep;

struct kit_peer_msg {
	struct kit_peer_msg *next;
	struct kit_peer_ep *to;
	uint64_t from;
	uint64_t tag, data;
	uint64_t flags; /* FI_MSG or FI_TAGGED, FI_REMOTE_CQ_DATA */
	enum kit_peer_state state;
	int hidden; /* its source was not told to the owner */
	void *entry;
	size_t len;
	unsigned char bytes[];
};

struct kit_peer_cq {
	struct fid_cq fid;
	struct fid_peer_cq *lent, copy;
};

struct kit_peer_cntr {
	struct fid_cntr fid;
	struct fid_peer_cntr *lent, copy;
};

struct kit_peer_srx {
	struct fid_ep fid;
	struct fid_peer_srx *lent, copy;
};

struct kit_peer_eq {
	struct fid_eq fid;
	struct fid_eq *lent, copy;
};

struct kit_peer_domain {
	struct fid_domain fid;
	struct fid_domain *lent, copy;
};

struct kit_peer_av {
	struct fid_av fid;
	size_t count;
	uint64_t name[KIT_PEER_ADDRS_MOST];
	fi_addr_t user_id[KIT_PEER_ADDRS_MOST];
};

struct kit_peer_ep {
	struct fid_ep fid;
	struct kit_peer_ep *next;
	uint64_t name;
	int enabled;
	struct kit_peer_av *av;
	struct kit_peer_cq *tx, *rx;
	struct kit_peer_cntr *tx_cntr, *rx_cntr;
	struct kit_peer_srx *srx;
	uint64_t tx_flags;	      /* of fi_ep_bind */
	uint64_t op_flags;	      /* of the info */
	struct kit_peer_msg *arrived; /* also those that are started */
};

/* Those that are enabled. */
extern struct kit_peer_ep *kit_peer_eps;

/*
 * A new object of @bytes, which begins with its fid, into the pointer *@out.
 * Returns -FI_EINVAL if a rule wants it refused.
 */
int kit_peer_make(size_t bytes, size_t fclass, void *context, void *out);

/* Calls of objects that have nothing but a close. */
int kit_peer_close(struct fid *fid);
int kit_peer_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int kit_peer_no_control(struct fid *fid, int command, void *arg);
int kit_peer_no_ops(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);
extern struct fi_ops kit_peer_plain_ops;
extern struct fi_ops_domain kit_peer_domain_ops;

/* ---- peer_look.c ---------------------------------------------------------- */

void kit_look_cq(const struct fi_peer_cq_context *context);
void kit_look_cntr(const struct fi_peer_cntr_context *context);
void kit_look_srx(const struct fi_peer_srx_context *context);
void kit_look_eq(const struct fi_peer_eq_context *context);
void kit_look_domain(const struct fi_peer_domain_context *context);

/* An entry that has a receive for @m; @call is get_* or start_*. */
void kit_look_match(const char *call, const struct kit_peer_msg *m,
		    const struct fi_peer_rx_entry *rx);

/* An entry for @m, which has none. */
void kit_look_entry(const struct kit_peer_msg *m,
		    const struct fi_peer_rx_entry *rx);

/* @entry of the owner, in the layout that this program was built with. */
struct fi_peer_rx_entry *kit_peer_rx(void *entry);

/* ---- peer_msg.c, peer_send.c --------------------------------------------------------- */

extern struct fi_ops_msg kit_peer_msg_ops;
extern struct fi_ops_tagged kit_peer_tagged_ops;
extern struct fi_ops_srx_peer kit_peer_srx_ops;

/* Offer what has arrived at the endpoints that @cq or @cntr drives. */
void kit_peer_pass(const struct kit_peer_cq *cq,
		   const struct kit_peer_cntr *cntr);

/* @m is on its way to @to. */
void kit_peer_arrive(struct kit_peer_ep *to, struct kit_peer_msg *m);

/* Addresses have changed: the owner is told for each endpoint of @av. */
void kit_peer_resolve(const struct kit_peer_av *av);

/* The endpoint closes; its messages that the owner has not queued are freed. */
void kit_peer_drop(struct kit_peer_ep *ep);

#endif /* KIT_PEER_PRIV_H */

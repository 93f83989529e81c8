/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "liarowner", an owner of the tests: it links the provider of
 * tandem-peer-check, carries all messages by it, and breaks fi_peer(3) in the one
 * way that TANDEM_LIE names. tests/kit.owner-lies has the list of lies.
 * liar_owner.c has the objects, liar_owner_recv.c the receive side,
 * liar_owner_queue.c queues and counters.
 *
 * Lock: none; one thread.
 */
#ifndef TDT_LIAR_OWNER_H
#define TDT_LIAR_OWNER_H

#include <stdint.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_peer.h>

enum { LO_ADDRS_MOST = 16 };

struct lo_domain {
	struct fid_domain fid;
	struct fi_info *info; /* of the peer */
	struct fid_fabric *fabric;
	struct fid_domain *peer;
	struct fid_eq own_eq, *peer_eq;
};

struct lo_end {
	struct lo_end *next;
	struct fi_cq_err_entry entry;
};

struct lo_cq {
	struct fid_cq fid;
	struct fid_peer_cq lent;
	struct fid_cq *peer;
	struct lo_end *ends;
};

struct lo_cntr {
	struct fid_cntr fid;
	struct fid_peer_cntr lent;
	struct fid_cntr *peer;
	uint64_t value, errors;
};

struct lo_av {
	struct fid_av fid;
	struct fid_av *peer;
	size_t count;
	fi_addr_t to[LO_ADDRS_MOST]; /* in the peer's vector */
};

/* A receive, or a message that waits. */
struct lo_entry {
	struct fi_peer_rx_entry rx;
	struct lo_entry *next;
	struct lo_ep *ep;
	struct iovec iov;
	void *desc;
	int is_many;	       /* a receive of many messages */
	struct lo_entry *many; /* it is used up by this part of it */
};

struct lo_ep {
	struct fid_ep fid;
	struct lo_domain *domain;
	struct lo_cq *cq;
	struct lo_cntr *cntr[2];
	struct lo_av *av;
	struct fid_peer_srx lent;
	struct fid_ep *peer, *peer_srx;
	struct lo_entry *posted, *queued;
	size_t entries;
};

/* Returns whether @what is the lie to tell. */
int lo_lies(const char *what);

/* Returns @ret; aborts for an error if that is the lie. */
int lo_refused(int ret);

/* Not 0 when an endpoint has closed. */
extern int lo_closed;

extern struct fi_ops_msg lo_msg_ops;
extern struct fi_ops_tagged lo_tagged_ops;
extern struct fi_ops_ep lo_ep_ops;

/* liar_owner_queue.c */
int lo_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	       struct fid_cq **out, void *context);
int lo_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		 struct fid_cntr **out, void *context);
void lo_cq_add(struct lo_cq *cq, const struct fi_cq_err_entry *entry);

/* liar_owner_recv.c: lend the receive side; discard all that waits. */
int lo_lend(struct lo_ep *ep);
void lo_flush(struct lo_ep *ep);

#endif /* TDT_LIAR_OWNER_H */

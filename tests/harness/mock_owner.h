/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The smallest owner a peer provider can be driven by: a domain, an EQ, a CQ,
 * two counters and an SRX that remember everything, exported through
 * fi_peer(3) and nothing else. Matching is a list searched from the front.
 *
 * One owner has one endpoint of the peer. Everything runs in the caller's
 * thread. A failure that a test cannot have meant (no memory, a broken rule
 * of the peer contract) is counted in `broken`.
 */
#ifndef TDT_MOCK_OWNER_H
#define TDT_MOCK_OWNER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_peer.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "tdm_provider.h"

/* One completion or error entry. */
struct tdt_done {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	int err; /* 0: success */
	int prov_errno;
	size_t olen;
};

struct tdt_region; /* mock_rma.c */

/* A counter of one-sided operations. */
struct tdt_rma_cntr {
	struct fid_peer_cntr fid; /* exported */
	struct fid_cntr *local;	  /* the peer's */
	uint64_t value, errs;
};

struct tdt_owner;

/* What an owner was compiled with, and what it offers beyond fi_peer(3). */
enum tdt_owner_kind {
	TDT_OWNER_OURS,	 /* as tandem, and regions for one-sided operations */
	TDT_OWNER_OLDER, /* libfabric 2.2, nothing */
	TDT_OWNER_NEWER, /* libfabric 2.3, nothing */
	/* the libfabric that runs, nothing, not even srx in entries: as lnx */
	TDT_OWNER_SILENT,
};

/* A posted receive or a queued message. */
struct tdt_entry {
	void *before[2]; /* an older entry may begin here */
	struct fi_peer_rx_entry rx;
	struct tdt_entry *link;
	struct tdt_owner *owner;
	int tagged;
	int in_list;
	uint64_t ignore;
	struct iovec iov[4];
	void *desc[4];
};

struct tdt_owner {
	/* the peer's objects */
	struct fi_provider *prov;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *peer_eq;
	struct fid_cq *cq;
	struct fid_cntr *send_local;
	struct fid_cntr *recv_local;
	struct fid_av *av;
	struct fid_ep *srx;
	struct fid_ep *ep;

	/* exported to it */
	struct fid_domain own_domain;
	struct fid_eq own_eq;
	struct fid_peer_cq own_cq;
	struct fid_peer_cntr own_send;
	struct fid_peer_cntr own_recv;
	struct fid_peer_srx own_srx;

	/* what came of it */
	struct tdt_done *done;
	size_t dones;
	size_t resolved; /* calls of foreach_unspec_addr() */
	struct tdm_peer_event *events;
	size_t nevents;
	uint64_t sends, send_errs; /* counter values */
	uint64_t recvs, recv_errs;
	size_t entries;	 /* alive */
	size_t mr_calls; /* registrations that reached the owner's domain */
	unsigned broken;
	int refuse_entries; /* get_* answers -FI_ENOMEM so many times */
	int driving;	    /* 1: a call to the peer that may call the SRX */
	size_t unasked;	    /* calls to the SRX outside of these */

	struct tdt_rma_cntr rma[4];
	struct tdt_region *regions;
	size_t rma_opens; /* how often the peer asked for regions */

	struct tdt_entry *posted; /* oldest first */
	struct tdt_entry *queued;
};

struct tdt_owner_attr {
	const struct fi_info *hints; /* of fi_getinfo(3), or NULL */
	const void *name; /* sockaddr of the endpoint; NULL: it chooses one */
	size_t namelen;
	size_t tx_size;	   /* 0: the peer's default */
	uint64_t op_flags; /* transmit defaults */
	int selective;	   /* 1: bind with FI_SELECTIVE_COMPLETION */
	int no_enable;	   /* 1: everything but fi_enable */
	int plain_domain;  /* 1: fi_domain, nothing is imported by it */
	/* the same for all owners that are open */
	enum tdt_owner_kind kind;
};

/* Open all of it. Errors: what the peer gave; *@owner is NULL then. */
int tdt_owner_open(struct fi_provider *prov, const struct tdt_owner_attr *attr,
		   struct tdt_owner **owner);

/*
 * Close all of it. @srx_first: the SRX goes before the endpoint. Messages
 * still queued are discarded first, unless @late_discard.
 */
void tdt_owner_close(struct tdt_owner *o, int srx_first, int late_discard);

/* Insert with FI_AV_USER_ID. Returns the peer's address, or NOTAVAIL. */
fi_addr_t tdt_owner_insert(struct tdt_owner *o, const void *addr, size_t len,
			   fi_addr_t user_id);

/* One progress call of the peer. */
void tdt_owner_progress(struct tdt_owner *o);

struct tdt_recv {
	int tagged;
	const struct iovec *iov;
	size_t count;
	fi_addr_t addr; /* FI_ADDR_UNSPEC: any */
	uint64_t tag;
	uint64_t ignore;
	void *context;
};

/* Post a receive; a queued message that matches is started at once. */
void tdt_owner_recv(struct tdt_owner *o, const struct tdt_recv *r);

/* As above for one buffer and an exact tag from any source. */
void tdt_owner_trecv(struct tdt_owner *o, void *buf, size_t len, uint64_t tag,
		     void *context);

/* Discard the oldest queued message; -1 when there is none. */
int tdt_owner_discard(struct tdt_owner *o);

/* Queued messages, and the source of the oldest. */
size_t tdt_owner_queued(const struct tdt_owner *o);
fi_addr_t tdt_owner_queued_source(const struct tdt_owner *o);
size_t tdt_owner_posted(const struct tdt_owner *o);

/* The completion with @context, or NULL. */
const struct tdt_done *tdt_owner_find(const struct tdt_owner *o,
				      const void *context);

/* The last event of @type (enum tdm_peer_event_type), or NULL. */
const struct tdm_peer_event *tdt_owner_event(const struct tdt_owner *o,
					     uint32_t type);

#ifdef __cplusplus
}
#endif

#endif /* TDT_MOCK_OWNER_H */

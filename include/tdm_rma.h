/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations at their target. fi_peer(3) lets a peer use the owner's
 * domain; a transport gets these functions from the domain by
 * fi_open_ops(&domain->fid, TDM_RMA_OPS, 0, &ops, NULL).
 *
 * A transport treats an arriving write as a message whose receive entry comes
 * from a memory region instead of the matching queues: get() returns the entry,
 * the transport fills entry->iov and ends it with tdm_done_recv() and
 * free_entry() like any other. For a read, the transport sends the bytes of
 * entry->iov. An atomic operation is carried out by the owner, in atomic().
 */
#ifndef TDM_RMA_H
#define TDM_RMA_H

#include <sys/socket.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_peer.h>

#include "base/base.h"
#include "tdm_amo.h"

#define TDM_RMA_OPS "tandem_rma_1"

struct tdm_auth_key;

/* The request of an initiator; no member of it is trusted. */
struct tdm_rma_request {
	uint64_t key;
	uint64_t addr;	 /* offset, or virtual address with FI_MR_BASIC */
	uint64_t len;	 /* bytes, of all ranges */
	uint64_t access; /* FI_REMOTE_READ or FI_REMOTE_WRITE, or both */
	uint64_t data;	 /* remote CQ data, with FI_REMOTE_CQ_DATA in flags */
	uint64_t flags;	 /* 0 or FI_REMOTE_CQ_DATA */
	fi_addr_t src;	 /* the initiator, or FI_ADDR_UNSPEC */
	const struct sockaddr *from;	 /* its address, IPv4 or IPv6 */
	const struct tdm_auth_key *auth; /* proved by its session, or NULL */
	/*
	 * Further ranges, more[more_count], fewer than TDM_RMA_IOV_LIMIT. The
	 * first range has the bytes of len that the further ones do not have.
	 */
	const struct fi_rma_iov *more;
	size_t more_count;
};

/* An atomic operation that tdm_amo_fits() accepts. */
struct tdm_rma_atomic {
	struct tdm_rma_request rma; /* access and data are not read */
	struct tdm_amo amo;
	const void *operands;
	void *result; /* rma.len bytes; NULL: no result */
};

struct tdm_rma_ops {
	size_t size;
	/*
	 * Makes the receive entry of @req. Its iov covers exactly the requested
	 * bytes, in the order of the ranges, in as many elements as that takes;
	 * its flags are FI_RMA | access (| FI_REMOTE_CQ_DATA), its srx is @srx,
	 * the transport's. Its owner_context is NULL or the counter (struct
	 * fid_peer_cntr) of the regions, on which tdm_done_recv() counts. The
	 * transport gives the entry back through srx->owner_ops->free_entry().
	 * Out: *@entry.
	 * Errors: -FI_EACCES for an unknown key, wrong access, bytes outside
	 * the region in any range, an endpoint (@srx) that was not granted the
	 * right, or an initiator that may not use the region; -FI_ENOMEM. Lock:
	 * domain held.
	 */
	int (*get)(struct fid_domain *domain, struct fid_peer_srx *srx,
		   const struct tdm_rma_request *req,
		   struct fi_peer_rx_entry **entry);
	/*
	 * Not 0 when a region of @entry has been closed: its memory must not be
	 * accessed any more. A transport asks before each access to entry->iov.
	 */
	int (*revoked)(const struct fi_peer_rx_entry *entry);
	/*
	 * Carries out @a, atomically with all other atomic operations on the
	 * same memory; the counters of the regions have counted it at return.
	 * Out: *@entry, memory of the caller, filled as by get(); the caller
	 * passes it to tdm_done_recv() but not to free_entry().
	 * Errors: as get(), but never -FI_ENOMEM; -FI_EOPNOTSUPP: there is no
	 * such operation. After an error nothing has changed. Lock: domain
	 * held.
	 */
	int (*atomic)(struct fid_domain *domain, struct fid_peer_srx *srx,
		      const struct tdm_rma_atomic *a,
		      struct fi_peer_rx_entry *entry);
	/*
	 * Let @closing be called before a region of @entry, of get(), closes.
	 * @closing copies the bytes that it still needs, and gives the entry
	 * back; it may give back others of the region, too. Lock: domain held,
	 * in either. NULL where the owner does not offer it.
	 */
	void (*watch)(struct fi_peer_rx_entry *entry,
		      void (*closing)(struct fi_peer_rx_entry *entry));
};

#endif /* TDM_RMA_H */

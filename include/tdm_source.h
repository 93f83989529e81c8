/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources that are not in the address vector, fi_getinfo(3) FI_SOURCE_ERR: a
 * message from one ends in an error entry with FI_EADDRNOTAVAIL and its
 * address.
 *
 * fi_peer(3) has no place for the source address of a message. A transport that
 * can tell it calls fi_open_ops(&srx->ep_fid.fid, TDM_SOURCE_OPS, 0, &ops,
 * NULL) and offers() once. From then on the attr that it passes to each
 * get_msg() and get_tag() of that SRX is the first member of a struct
 * tdm_offer. The owner marks an entry whose source is not in its AV with
 * FI_SOURCE_ERR in entry->flags, a bit that no completion uses;
 * entry->owner_context is then tdm_offer.from, and tdm_done_recv() writes the
 * error entry. With other transports such messages end in usual completions
 * with source FI_ADDR_NOTAVAIL.
 */
#ifndef TDM_SOURCE_H
#define TDM_SOURCE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include <rdma/fi_eq.h>
#include <rdma/providers/fi_peer.h>

#include "tdm_open.h"

#define TDM_SOURCE_OPS "tandem_source_1"

struct tdm_source_ops {
	size_t size;
	/*
	 * Tells the owner that the caller offers messages to @srx in a struct
	 * tdm_offer. Lock: held.
	 */
	void (*offers)(struct fid_peer_srx *srx);
};

struct tdm_offer {
	struct fi_peer_match_attr attr;
	/* IPv4 or IPv6; valid until the entry has been given back. */
	const struct sockaddr *from;
};

/* Returns the size of @sa, which is IPv4 or IPv6. */
static inline size_t tdm_source_bytes(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
					  sizeof(struct sockaddr_in6);
}

/*
 * Give *@e, an error entry, the address of the remote endpoint: @peer, IPv4 or
 * IPv6, which the caller keeps until the entry is written, or NULL.
 */
static inline void tdm_source_name(struct fi_cq_err_entry *e,
				   const struct sockaddr *peer)
{
	if (!peer)
		return;
	e->err_data = (void *)(uintptr_t)peer;
	e->err_data_size = tdm_source_bytes(peer);
}

/*
 * A transport calls this before it offers messages to @srx in a struct
 * tdm_offer. Lock: held.
 */
static inline void tdm_source_offer(struct fid_peer_srx *srx)
{
	const struct tdm_source_ops *ops =
		(const struct tdm_source_ops *)tdm_open_ops(&srx->ep_fid.fid,
							    TDM_SOURCE_OPS);

	if (ops)
		ops->offers(srx);
}

#endif /* TDM_SOURCE_H */

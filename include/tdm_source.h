/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources that nobody inserted, fi_getinfo(3) FI_SOURCE_ERR: what is received
 * from one ends in an error entry with FI_EADDRNOTAVAIL and its address.
 *
 * fi_peer(3) has no place for the address of a message. A transport that can
 * tell says so once, by fi_open_ops(&srx->ep_fid.fid, TDM_SOURCE_OPS, 0, &ops,
 * NULL) and offers(), and from then on the attr of each get_msg() and get_tag()
 * on that SRX is the first member of a struct tdm_offer. The owner marks an
 * entry whose source it misses with FI_SOURCE_ERR in entry->flags, a bit no
 * completion has; entry->owner_context is then tdm_offer.from, and
 * tdm_done_recv() does the rest. Of transports that cannot tell, such sources
 * are FI_ADDR_NOTAVAIL in usual completions.
 */
#ifndef TDM_SOURCE_H
#define TDM_SOURCE_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_peer.h>

#define TDM_SOURCE_OPS "tandem_source_1"

struct tdm_source_ops {
	size_t size;
	/* What is offered by @srx is in a struct tdm_offer. Lock: held. */
	void (*offers)(struct fid_peer_srx *srx);
};

struct tdm_offer {
	struct fi_peer_match_attr attr;
	/* IPv4 or IPv6; stays until the entry has been given back. */
	const struct sockaddr *from;
};

/* Bytes of @sa, which is IPv4 or IPv6. */
static inline size_t tdm_source_bytes(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
					  sizeof(struct sockaddr_in6);
}

/*
 * The receive of the marked entry @e ended well, @len bytes: fi_cq(3),
 * FI_EADDRNOTAVAIL. e->addr: what src_addr is to be. @flags: of the entry
 * written to @cq. Lock: held.
 */
static inline void tdm_source_report(struct fid_peer_cq *cq,
				     const struct fi_peer_rx_entry *e,
				     uint64_t flags, size_t len)
{
	struct sockaddr *from = (struct sockaddr *)e->owner_context;
	struct fi_cq_err_entry x;

	memset(&x, 0, sizeof(x));
	x.op_context = e->context;
	x.flags = flags;
	x.len = len;
	x.buf = e->iov[0].iov_base;
	x.data = e->cq_data;
	x.tag = e->tag;
	x.err = FI_EADDRNOTAVAIL;
	x.err_data = from;
	x.err_data_size = tdm_source_bytes(from);
	x.src_addr = e->addr;
	cq->owner_ops->writeerr(cq, &x);
}

/* For a transport: from now on it offers to @srx. Lock: held. */
static inline void tdm_source_offer(struct fid_peer_srx *srx)
{
	struct fid *fid = &srx->ep_fid.fid;
	void *ops = NULL;

	/* An owner without such endpoints need not have the call. */
	if (fid->ops && fid->ops->size >= sizeof(struct fi_ops) &&
	    fid->ops->ops_open &&
	    !fid->ops->ops_open(fid, TDM_SOURCE_OPS, 0, &ops, NULL) && ops)
		((const struct tdm_source_ops *)ops)->offers(srx);
}

#endif /* TDM_SOURCE_H */

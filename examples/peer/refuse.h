/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that a peer refuses: its queues and its SRX have nothing to read or to
 * post to, and the toy does not import counters, events and address vectors.
 */
#ifndef EXAMPLES_PEER_REFUSE_H
#define EXAMPLES_PEER_REFUSE_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

/* The owner's queue has the completions; there is nothing to read from here. */
static inline ssize_t no_readfrom(struct fid_cq *cq, void *buf, size_t count,
				  fi_addr_t *source)
{
	return -FI_ENOSYS;
}

static inline ssize_t no_readerr(struct fid_cq *cq,
				 struct fi_cq_err_entry *entry, uint64_t flags)
{
	return -FI_ENOSYS;
}

static inline ssize_t no_sread(struct fid_cq *cq, void *buf, size_t count,
			       const void *cond, int timeout)
{
	return -FI_ENOSYS;
}

static inline ssize_t no_sreadfrom(struct fid_cq *cq, void *buf, size_t count,
				   fi_addr_t *source, const void *cond,
				   int timeout)
{
	return -FI_ENOSYS;
}

/* Receives are posted to the owner. */
static inline ssize_t no_recv(struct fid_ep *srx, void *buf, size_t len,
			      void *desc, fi_addr_t source, uint64_t tag,
			      uint64_t ignore, void *context)
{
	return -FI_ENOSYS;
}

static inline int no_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
			    size_t *len)
{
	return -FI_ENOSYS;
}

static inline const char *no_straddr(struct fid_av *av, const void *addr,
				     char *buf, size_t *len)
{
	return NULL;
}

/* Counters are not shared. */
static inline int no_cntr(struct fid_domain *domain, struct fi_cntr_attr *attr,
			  struct fid_cntr **out, void *context)
{
	return -FI_EINVAL;
}

/* Events are not shared. */
static inline int no_eq(struct fid_fabric *fabric, struct fi_eq_attr *attr,
			struct fid_eq **out, void *context)
{
	return -FI_EINVAL;
}

#endif /* EXAMPLES_PEER_REFUSE_H */

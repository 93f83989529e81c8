/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of fi_cq(3) that reports an operation. */
#ifndef TDM_ENTRY_H
#define TDM_ENTRY_H

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_peer.h>

/* The flags of fi_cq(3) that describe an operation in a completion. */
#define TDM_CQ_FLAGS                                                           \
	(FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |         \
	 FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE |               \
	 FI_REMOTE_CQ_DATA | FI_MULTI_RECV | FI_CLAIM)

/* The flags among them that an initiator's completion has. */
#define TDM_CQ_TX_FLAGS                                                        \
	(FI_SEND | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)

/*
 * Fill @x with the error entry for the receive of @e: error @err, @len bytes
 * were placed in the buffer.
 */
static inline void tdm_entry_of_error(struct fi_cq_err_entry *x,
				      const struct fi_peer_rx_entry *e,
				      size_t len, int err)
{
	memset(x, 0, sizeof(*x));
	x->op_context = e->context;
	x->flags = e->flags & TDM_CQ_FLAGS;
	x->len = len;
	x->buf = e->iov[0].iov_base;
	x->data = e->cq_data;
	x->tag = e->tag;
	x->err = err;
	x->src_addr = e->addr;
}

/* Fill @x with the error entry of a send; the caller sets src_addr. */
static inline void tdm_entry_of_send_error(struct fi_cq_err_entry *x,
					   void *context, uint64_t flags,
					   int err, int prov_errno)
{
	memset(x, 0, sizeof(*x));
	x->op_context = context;
	x->flags = flags & TDM_CQ_TX_FLAGS;
	x->err = err;
	x->prov_errno = prov_errno;
}

#endif /* TDM_ENTRY_H */

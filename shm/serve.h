/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads that this endpoint answers for its peers; serve.c. */
#ifndef TDM_SHM_SERVE_H
#define TDM_SHM_SERVE_H

#include "shm/op.h"

struct tdm_shm_pair;

/*
 * Greatest number of reads of one peer, and of results of its atomic
 * operations, that may be unanswered at once.
 */
enum { TDM_SHM_SERVES_MOST = 1 << 20 };

/* A bit in the low half of an id: the operation is a tdm_shm_serve. */
#define TDM_SHM_ID_SERVED 0x80000000u

/* A read by the peer that this process answers with RTS_READ. */
struct tdm_shm_serve {
	struct tdm_shm_ctl ctl; /* sends RTS_READ, later ACK; first member */
	struct tdm_shm_op op;	/* FI_REMOTE_READ; op.node: pair->serves */
	struct fi_peer_rx_entry *entry;
	uint64_t peer_id; /* id of the operation at the initiator */
};

static inline struct tdm_shm_serve *tdm_shm_serve_of(struct tdm_shm_op *op)
{
	return tdm_container_of(op, struct tdm_shm_serve, op);
}

/*
 * Returns the buffers of @op: those of the region's entry if there are more
 * than TDM_IOV_LIMIT.
 */
static inline const struct iovec *tdm_shm_op_iov(struct tdm_shm_op *op)
{
	return tdm_likely(op->count <= TDM_IOV_LIMIT) ?
		       op->iov :
		       tdm_shm_serve_of(op)->entry->iov;
}

/* Returns the served operation of @pair with id @id, or NULL. */
struct tdm_shm_op *tdm_shm_serve_find(struct tdm_shm_pair *pair, uint64_t id);

/* Write the body of @ctl, an RTS_READ, to @body. */
void tdm_shm_serve_write(const struct tdm_shm_ctl *ctl, uint8_t *body);

/* Free @op, a served operation, without an answer. */
void tdm_shm_serve_drop(struct tdm_shm_op *op);

/* Handle an ACK with @status for @op: the initiator has the bytes. */
void tdm_shm_serve_confirm(struct tdm_shm_op *op, unsigned status);

/* Handle the READ at @slot; as tdm_shm_rma_rx(). */
int tdm_shm_serve_rx(struct tdm_shm_pair *pair, const uint8_t *slot);

#endif /* TDM_SHM_SERVE_H */

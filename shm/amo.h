/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations of the shared-memory peer: the initiator sends a record
 * with the operands; the target carries out the operation when it consumes the
 * record, and sends a record that answers. See doc/PROTOCOL-shm.md, "Atomic
 * operations".
 */
#ifndef TDM_SHM_AMO_H
#define TDM_SHM_AMO_H

#include "shm/record.h"
#include "tdm_amo.h"

struct tdm_shm_pair;
struct tdm_xfer;

/* Body of an ATOMIC, in front of the operands. */
struct tdm_shm_amo {
	struct tdm_shm_where where;
	uint32_t bytes; /* at the target */
	struct tdm_amo amo;
};

tdm_static_assert(sizeof(struct tdm_shm_amo) == 24, "ATOMIC layout");

/*
 * In record.c. Returns 0, or -1 when @len is not the size of the operands of
 * @amo.
 */
int tdm_shm_amo_check(const struct tdm_shm_amo *amo,
		      uint16_t len) tdm_must_check;

/*
 * fi_atomic(3) at the initiator: as tdm_shm_rma_send(), for FI_ATOMIC, on a
 * pair that is up. One more error: -FI_EOPNOTSUPP when the peer has no atomics.
 */
ssize_t tdm_shm_amo_send(struct tdm_shm_pair *pair, const struct tdm_xfer *x);

/* Handle the ATOMIC at @slot; as tdm_shm_rma_rx(). */
int tdm_shm_amo_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		   const uint8_t *slot);

struct tdm_shm_ctl;

/*
 * Allocates a READ_DATA record that answers with @n bytes, at most
 * TDM_AMO_BYTES. The caller writes the bytes to *@bytes and sets op, aux and
 * tag. NULL: out of memory.
 */
struct tdm_shm_ctl *tdm_shm_result_new(struct tdm_shm_pair *pair, size_t n,
				       uint8_t **bytes);

/* Copy the bytes that @ctl, a READ_DATA, carries to @body. */
void tdm_shm_amo_write(const struct tdm_shm_ctl *ctl, uint8_t *body);

/* Free @ctl of kind TDM_SHM_CTL_RESULT. */
void tdm_shm_amo_drop(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl);

#endif /* TDM_SHM_AMO_H */

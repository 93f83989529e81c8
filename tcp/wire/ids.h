/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers for operations that are sent to a peer in place of pointers, so that
 * no value from the peer is used as a pointer. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_IDS_H
#define TDM_TCP_WIRE_IDS_H

#include <stdint.h>

#include "base/base.h"

/* The pointers of one connection, by number. */
struct tdm_ids {
	uintptr_t *slot; /* pointer, or next free index * 2 + 1 */
	uint32_t size;
	uint32_t free; /* first free index; == size: none */
	uint32_t used;
};

/*
 * Give @ptr (4-aligned) a number. Out: *@id. Errors: -FI_ENOMEM: out of memory,
 * or @max numbers are in use.
 */
int tdm_ids_get(struct tdm_ids *, void *ptr, uint32_t max,
		uint32_t *id) tdm_must_check;
/*
 * Make room for @n more numbers, so that they need no memory later. Errors:
 * -FI_ENOMEM.
 */
int tdm_ids_ready(struct tdm_ids *ids, uint32_t n) tdm_must_check;
void tdm_ids_put(struct tdm_ids *ids, uint32_t id);
/* Returns the pointer with number @id, or NULL when @id is not in use. */
void *tdm_ids_find(const struct tdm_ids *ids, uint32_t id);
void tdm_ids_fini(struct tdm_ids *ids);

#endif /* TDM_TCP_WIRE_IDS_H */

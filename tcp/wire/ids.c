/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small dense numbers for the operations of one connection. Numbers that the
 * peer sends are looked up here; one that is out of range or not in use gives
 * NULL.
 *
 * Invariant: a slot in use holds a pointer (even); a free one holds the index
 * of the next free slot, doubled, plus one (odd). The free list ends at size.
 */

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/tcp.h"

enum { FIRST_SLOTS = 16 };

/*
 * Grow to at least @least slots. The new ones follow at the end of the free
 * list.
 */
static int grow(struct tdm_ids *ids, uint64_t least, uint32_t max)
{
	uint64_t want = tdm_max(least, (uint64_t)ids->size * 2);
	uint32_t size, i;
	uintptr_t *slot;

	size = (uint32_t)tdm_clamp(want, FIRST_SLOTS, max);
	if (size < least)
		return -FI_EAGAIN;
	slot = realloc(ids->slot, size * sizeof(*slot));
	if (!slot)
		return -FI_ENOMEM;
	for (i = ids->size; i < size; i++)
		slot[i] = ((uintptr_t)i + 1) * 2 + 1;
	ids->slot = slot;
	ids->size = size;
	return 0;
}

int tdm_ids_get(struct tdm_ids *ids, void *ptr, uint32_t max, uint32_t *id)
{
	int ret;

	if (ids->free == ids->size) {
		ret = grow(ids, (uint64_t)ids->size + 1, max);
		if (ret)
			return ret;
	}
	ids->used++;
	*id = ids->free;
	ids->free = (uint32_t)(ids->slot[*id] >> 1);
	ids->slot[*id] = (uintptr_t)ptr;
	return 0;
}

int tdm_ids_ready(struct tdm_ids *ids, uint32_t n)
{
	uint64_t least = (uint64_t)ids->used + n;

	return tdm_likely(least <= ids->size) ? 0 :
						grow(ids, least, UINT32_MAX);
}

void tdm_ids_put(struct tdm_ids *ids, uint32_t id)
{
	ids->used--;
	ids->slot[id] = (uintptr_t)ids->free * 2 + 1;
	ids->free = id;
}

void *tdm_ids_find(const struct tdm_ids *ids, uint32_t id)
{
	if (id >= ids->size || (ids->slot[id] & 1))
		return NULL;
	return (void *)ids->slot[id];
}

void tdm_ids_fini(struct tdm_ids *ids)
{
	free(ids->slot);
	ids->slot = NULL;
	ids->size = 0;
	ids->free = 0;
	ids->used = 0;
}

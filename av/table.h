/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table behind an AV: dense indices, lowest free first, and a reverse
 * lookup. A pure data structure: no locks, no fids, no system calls.
 *
 * An entry is 16 bytes; IPv6 addresses live in a side array. Equal addresses
 * are chained in ascending order of index (aliases), and the reverse lookup
 * holds the chain's head.
 */
#ifndef TDM_AV_TABLE_H
#define TDM_AV_TABLE_H

#include "av/addr.h"

/* No index; also "no peer address" in tdm_table_local(). */
#define TDM_TABLE_NONE UINT32_MAX

struct tdm_table_entry {
	uint32_t ip;   /* IPv4 address, network order; or index into v6[] */
	uint16_t port; /* network order */
	uint8_t kind;  /* enum in table.c: free, IPv4, IPv6 */
	uint8_t unused;
	uint32_t alias; /* next higher index of the same address, or NONE */
	uint32_t local; /* address in the peer's AV, or NONE */
};

tdm_static_assert(sizeof(struct tdm_table_entry) == 16,
		  "memory per address is a promise of fi_tandem(7)");

struct tdm_table {
	struct tdm_table_entry *entry; /* entry[entries_max] */
	uint64_t *used;		       /* bitmap over entry[] */
	uint32_t entries_max;	       /* allocated, multiple of 64 */
	uint32_t entries_end;	       /* one past the highest index ever set */
	uint32_t free_hint;	       /* no free index below this word * 64 */
	uint32_t live;		       /* set entries */
	struct tdm_addr *v6;
	uint32_t v6_max, v6_free, v6_end;
	uint64_t *slot; /* {hash high 32, index + 1 low 32}; 0 is empty */
	uint32_t slots; /* power of two, or 0 */
	uint32_t slots_used;
};

/* Prepare; @count is a size hint, 0 when unknown. Errors: -FI_ENOMEM. */
int tdm_table_init(struct tdm_table *t, size_t count) tdm_must_check;
void tdm_table_fini(struct tdm_table *t);

/*
 * Add @a at the lowest free index. Out: *@index. Errors: -FI_ENOMEM, with
 * nothing changed.
 */
int tdm_table_add(struct tdm_table *t, const struct tdm_addr *a,
		  uint32_t *index) tdm_must_check;

/* Take @index, which is set, out. */
void tdm_table_remove(struct tdm_table *t, uint32_t index);

/* Not 0 when @index is set. */
int tdm_table_has(const struct tdm_table *t, uint64_t index);

/* The address of @index, which is set. */
void tdm_table_get(const struct tdm_table *t, uint32_t index,
		   struct tdm_addr *a);

/* The lowest index of @a, or TDM_TABLE_NONE. */
uint32_t tdm_table_find(const struct tdm_table *t, const struct tdm_addr *a);

#endif /* TDM_AV_TABLE_H */

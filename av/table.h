/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table behind an AV: dense indices, lowest free first, and a reverse
 * lookup. A pure data structure: no locks, no fids, no system calls.
 *
 * An entry is 16 bytes; IPv6 addresses live in a side array. Equal addresses
 * are chained in ascending order of index (aliases), and the reverse lookup
 * holds the chain's head.
 *
 * Memory of n IPv4 addresses, n being large: entries 16 to 20 bytes each (they
 * grow by a quarter), the reverse lookup 12 to 24 (slots of 8 bytes, a third
 * to two thirds of them full). Never more than 48 in all.
 */
#ifndef TDM_AV_TABLE_H
#define TDM_AV_TABLE_H

#include "av/addr.h"

/* No index; also "no peer address" in tdm_table_local(). */
#define TDM_TABLE_NONE UINT32_MAX

struct tdm_table_entry {
	uint32_t ip;	/* IPv4 address, network order; or index into v6[] */
	uint16_t port;	/* network order */
	uint8_t kind;	/* enum in table.c: free, IPv4, IPv6 */
	uint8_t key;	/* of the address */
	uint32_t alias; /* next higher index of the same address, or NONE */
	uint32_t local; /* address in the peer's AV, or NONE */
};

tdm_static_assert(sizeof(struct tdm_table_entry) == 16,
		  "memory per address is a promise of fi_tandem(7)");

/* Bits of tdm_table.ips. */
enum { TDM_TABLE_IP_BITS = 8192 };

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
	uint32_t grown_head, grown_end; /* chain that grew last, or NONE */
	/* A bit for the hash of each IP since the table was empty. */
	uint64_t ips[TDM_TABLE_IP_BITS / 64];
};

/* Most addresses; larger numbers are reserved, for TDM_TABLE_NONE. */
#define TDM_TABLE_MOST (1u << 30)

/* Prepare; @count is a size hint, 0 when unknown. Errors: -FI_ENOMEM. */
int tdm_table_init(struct tdm_table *t, size_t count) tdm_must_check;
void tdm_table_fini(struct tdm_table *t);

/*
 * Make room for @more addresses, for a caller that knows how many will come:
 * the reverse lookup is then built once. A hint; without memory it does
 * nothing.
 */
void tdm_table_reserve(struct tdm_table *t, size_t more);

/*
 * Add @a, whose tdm_addr_hash() is @hash, at the lowest free index. Out:
 * *@index; *@low, the lowest index @a had before, or TDM_TABLE_NONE.
 * Errors: -FI_ENOMEM, with nothing changed.
 */
int tdm_table_add(struct tdm_table *t, const struct tdm_addr *a, uint64_t hash,
		  uint32_t *index, uint32_t *low) tdm_must_check;

/* The same at @index, which is not set and below TDM_TABLE_MOST. */
int tdm_table_add_at(struct tdm_table *t, const struct tdm_addr *a,
		     uint64_t hash, uint32_t index,
		     uint32_t *low) tdm_must_check;

/*
 * Load the memory that tdm_table_add() and _find() of @hash use into the cache.
 */
static inline void tdm_table_prefetch(const struct tdm_table *t, uint64_t hash)
{
	if (t->slots)
		__builtin_prefetch(
			&t->slot[(uint32_t)(hash >> 32) & (t->slots - 1)], 1);
}

/* Remove @index, which is set. */
void tdm_table_remove(struct tdm_table *t, uint32_t index);

/* Not 0 when @index is set. */
int tdm_table_has(const struct tdm_table *t, uint64_t index);

/* The address of @index, which is set. */
void tdm_table_get(const struct tdm_table *t, uint32_t index,
		   struct tdm_addr *a);

/* 0 when no address here has the IP of @a; else one may have it. */
int tdm_table_may_have_ip(const struct tdm_table *t, const struct tdm_addr *a);

/* The lowest index of @a, or TDM_TABLE_NONE. */
uint32_t tdm_table_find(const struct tdm_table *t, const struct tdm_addr *a);

#endif /* TDM_AV_TABLE_H */

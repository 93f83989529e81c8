/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table behind an AV: it gives out the lowest free index, and finds the
 * index of an address. A pure data structure: no locks, no fids, no system
 * calls.
 *
 * An entry is 16 bytes; IPv6 addresses live in a side array. Equal addresses
 * are chained in ascending order of index (duplicates), and the reverse table
 * has the lowest index, the head of the chain.
 *
 * Memory of n IPv4 addresses, n being large: entries 16 to 20 bytes each (they
 * grow by a quarter), the reverse lookup 12 to 24 (slots of 8 bytes, a third
 * to two thirds of them full). Never more than 48 in all.
 */
#ifndef TDM_AV_TABLE_H
#define TDM_AV_TABLE_H

#include "av/addr.h"

/* No index; as tdm_table_entry.local: not in the peer provider's AV. */
#define TDM_TABLE_NONE UINT32_MAX

struct tdm_table_entry {
	uint32_t ip;   /* IPv4 address, network order; or index into v6[] */
	uint16_t port; /* network order */
	uint8_t kind;  /* enum in table.c: free, IPv4, IPv6 */
	uint8_t key;   /* number of the address's key */
	uint32_t next_same; /* next higher index of the same address, or NONE */
	uint32_t local;	    /* address in the peer's AV, or NONE */
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
	/*
	 * Bits for the hashes of all IPs inserted since the table was last
	 * empty.
	 */
	uint64_t ips[TDM_TABLE_IP_BITS / 64];
};

/* Greatest number of addresses; TDM_TABLE_NONE is larger than any index. */
#define TDM_TABLE_MOST (1u << 30)

/*
 * Prepare an empty table; @count is a size hint, 0 when unknown. Errors:
 * -FI_ENOMEM.
 */
int tdm_table_init(struct tdm_table *t, size_t count) tdm_must_check;
void tdm_table_fini(struct tdm_table *t);

/*
 * Make room for @more addresses, for a caller that knows how many will come, so
 * that the reverse table grows only once. It is a hint: without memory the
 * function does nothing.
 */
void tdm_table_reserve(struct tdm_table *t, size_t more);

/*
 * Add @a, whose tdm_addr_hash() is @hash, at the lowest free index. Out:
 * *@index; *@low, the lowest index @a had before, or TDM_TABLE_NONE.
 * Errors: -FI_ENOMEM, with nothing changed.
 */
int tdm_table_add(struct tdm_table *t, const struct tdm_addr *a, uint64_t hash,
		  uint32_t *index, uint32_t *low) tdm_must_check;

/*
 * As tdm_table_add(), but at @index, which must be free and below
 * TDM_TABLE_MOST.
 */
int tdm_table_add_at(struct tdm_table *t, const struct tdm_addr *a,
		     uint64_t hash, uint32_t index,
		     uint32_t *low) tdm_must_check;

/*
 * Fetch into the cache the memory that tdm_table_add() and tdm_table_find() use
 * for an address with @hash.
 */
static inline void tdm_table_prefetch(const struct tdm_table *t, uint64_t hash)
{
	if (t->slots)
		__builtin_prefetch(
			&t->slot[(uint32_t)(hash >> 32) & (t->slots - 1)], 1);
}

/* Remove @index, which must be set. */
void tdm_table_remove(struct tdm_table *t, uint32_t index);

/* Not 0 when @index is set. */
int tdm_table_has(const struct tdm_table *t, uint64_t index);

/* Set *@a to the address of @index, which must be set. */
void tdm_table_get(const struct tdm_table *t, uint32_t index,
		   struct tdm_addr *a);

/* 0 when no address in the table has the IP of @a; else one may have it. */
int tdm_table_may_have_ip(const struct tdm_table *t, const struct tdm_addr *a);

/* Returns the lowest index of @a, or TDM_TABLE_NONE. */
uint32_t tdm_table_find(const struct tdm_table *t, const struct tdm_addr *a);

#endif /* TDM_AV_TABLE_H */

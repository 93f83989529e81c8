/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table behind an AV. See table.h.
 *
 * Invariants:
 *  1. used[] has bit i set exactly when entry[i].kind is not FREE, and every
 *     word of used[] below free_hint is full.
 *  2. For each distinct live address exactly one slot of the reverse table has
 *     its lowest index; the higher ones are chained to it by `next_same`.
 *  3. The reverse table is at most two thirds full, so probing ends at an
 *     empty slot. Removal moves later slots of the cluster back instead of
 *     leaving tombstones, so lookups do not become slower with time.
 *  4. A slot's place is the low end of the hash bits it keeps. So a table that
 *     doubles is read once from end to end and written in two runs.
 */
#include "av/table.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

enum { FREE, IPV4, IPV6 };
enum { FIRST_ENTRIES = 64, FIRST_SLOTS = 128, FIRST_V6 = 16 };

/* Grow to @want entries, by at least a quarter, so that copying is rare. */
static int entries_reserve(struct tdm_table *t, size_t want)
{
	size_t max = t->entries_max;
	struct tdm_table_entry *entry;
	uint64_t *used;

	if (want <= max)
		return 0;
	if (want > TDM_TABLE_MOST)
		return -FI_ENOMEM;
	max = tdm_max(want, tdm_max((size_t)FIRST_ENTRIES, max + max / 4));
	max = (max + 63) & ~(size_t)63;
	entry = realloc(t->entry, max * sizeof(*entry));
	if (!entry)
		return -FI_ENOMEM;
	t->entry = entry;
	used = realloc(t->used, max / 64 * sizeof(*used));
	if (!used)
		return -FI_ENOMEM;
	t->used = used;
	memset(used + t->entries_max / 64, 0,
	       (max - t->entries_max) / 64 * sizeof(*used));
	t->entries_max = (uint32_t)max;
	return 0;
}

static uint64_t slot_make(uint64_t hash, uint32_t index)
{
	return (hash & 0xffffffff00000000ull) | (index + 1u);
}

static uint32_t slot_index(uint64_t slot)
{
	return (uint32_t)slot - 1u;
}

/*
 * Returns where the search for @slot begins: a slot stores the high half of the
 * hash, which determines it.
 */
static uint32_t slot_home(const struct tdm_table *t, uint64_t slot)
{
	return (uint32_t)(slot >> 32) & (t->slots - 1);
}

static void slot_put(struct tdm_table *t, uint64_t slot)
{
	uint32_t i = slot_home(t, slot);

	while (t->slot[i])
		i = (i + 1) & (t->slots - 1);
	t->slot[i] = slot;
}

/* Grow the reverse table for @want addresses, as invariant 3 demands. */
static int slots_reserve(struct tdm_table *t, size_t want)
{
	size_t max = t->slots ? t->slots : FIRST_SLOTS, i;
	size_t old_slots = t->slots;
	uint64_t *old = t->slot, *slot;

	if (want > TDM_TABLE_MOST)
		return -FI_ENOMEM;
	while (2 * max < 3 * want)
		max *= 2;
	if (max == t->slots)
		return 0;
	slot = calloc(max, sizeof(*slot));
	if (!slot)
		return -FI_ENOMEM;
	t->slot = slot;
	t->slots = (uint32_t)max;
	for (i = 0; i < old_slots; i++) {
		if (old[i])
			slot_put(t, old[i]);
	}
	free(old);
	return 0;
}

int tdm_table_init(struct tdm_table *t, size_t count)
{
	memset(t, 0, sizeof(*t));
	t->v6_free = TDM_TABLE_NONE;
	t->grown_head = TDM_TABLE_NONE;
	/* A hint, not a limit: an absurd one must not cost memory. */
	count = tdm_min(count, (size_t)1 << 20);
	if (entries_reserve(t, count) || slots_reserve(t, count)) {
		tdm_table_fini(t);
		return -FI_ENOMEM;
	}
	return 0;
}

void tdm_table_reserve(struct tdm_table *t, size_t more)
{
	if (more > TDM_TABLE_MOST)
		return;
	/*
	 * Without memory nothing is reserved; the insert then fails and reports
	 * it.
	 */
	if (!entries_reserve(t, t->live + more))
		(void)slots_reserve(t, t->slots_used + more);
}

void tdm_table_fini(struct tdm_table *t)
{
	free(t->entry);
	free(t->used);
	free(t->v6);
	free(t->slot);
	memset(t, 0, sizeof(*t));
}

/*
 * Store @a in a free element of v6[], whose number becomes *@out. Free elements
 * are chained.
 */
static int v6_take(struct tdm_table *t, const struct tdm_addr *a, uint32_t *out)
{
	struct tdm_addr *v6;
	uint32_t max;

	if (t->v6_free != TDM_TABLE_NONE) {
		*out = t->v6_free;
		t->v6_free = t->v6[*out].u.in6.sin6_scope_id;
	} else {
		if (t->v6_end == t->v6_max) {
			max = t->v6_max ? 2 * t->v6_max : FIRST_V6;
			v6 = realloc(t->v6, max * sizeof(*v6));
			if (!v6)
				return -FI_ENOMEM;
			t->v6 = v6;
			t->v6_max = max;
		}
		*out = t->v6_end++;
	}
	t->v6[*out] = *a;
	return 0;
}

static void v6_give(struct tdm_table *t, uint32_t i)
{
	t->v6[i].u.in6.sin6_scope_id = t->v6_free;
	t->v6_free = i;
}

static uint32_t lowest_free(struct tdm_table *t)
{
	uint32_t words = t->entries_max / 64, w = t->free_hint;

	while (w < words && t->used[w] == UINT64_MAX)
		w++;
	t->free_hint = w;
	return w < words ? w * 64 + (uint32_t)__builtin_ctzll(~t->used[w]) :
			   t->entries_max;
}

static int is_at(const struct tdm_table *t, uint32_t index,
		 const struct tdm_addr *a)
{
	const struct tdm_table_entry *e = &t->entry[index];

	if (a->u.sa.sa_family == AF_INET)
		return e->ip == a->u.in.sin_addr.s_addr &&
		       e->port == a->u.in.sin_port && e->kind == IPV4 &&
		       e->key == a->key;
	return e->kind == IPV6 && tdm_addr_equal(a, &t->v6[e->ip]);
}

/*
 * Search the slots for @a. Out: *@at, its slot, or the empty one that ends the
 * search. Returns whether it was found.
 */
static int probe(const struct tdm_table *t, const struct tdm_addr *a,
		 uint64_t hash, uint32_t *at)
{
	uint32_t i = slot_home(t, hash);

	for (; t->slot[i]; i = (i + 1) & (t->slots - 1)) {
		if (!((t->slot[i] ^ hash) >> 32) &&
		    is_at(t, slot_index(t->slot[i]), a)) {
			*at = i;
			return 1;
		}
	}
	*at = i;
	return 0;
}

/* Returns the number of the slot of @a in the reverse table, or NONE. */
static uint32_t slot_of(const struct tdm_table *t, const struct tdm_addr *a)
{
	uint32_t i = 0;

	if (!t->slots || !probe(t, a, tdm_addr_hash(a), &i))
		return TDM_TABLE_NONE;
	return i;
}

/*
 * Add @index to the chain of the address whose slot is @s. The end of the chain
 * that grew last is remembered, so that inserting one address many times takes
 * no quadratic time.
 */
static void chain_add(struct tdm_table *t, uint32_t s, uint32_t index)
{
	uint32_t head = slot_index(t->slot[s]), at = head;

	if (index < head) {
		t->entry[index].next_same = head;
		t->slot[s] = slot_make(t->slot[s], index);
		return;
	}
	if (t->grown_head == head && t->grown_end < index)
		at = t->grown_end;
	while (t->entry[at].next_same < index) /* NONE is higher than any */
		at = t->entry[at].next_same;
	t->entry[index].next_same = t->entry[at].next_same;
	t->entry[at].next_same = index;
	t->grown_head = head;
	t->grown_end = index;
}

static uint32_t ip_bit(const struct tdm_addr *a)
{
	return (uint32_t)tdm_addr_ip_hash(a) & (TDM_TABLE_IP_BITS - 1);
}

int tdm_table_may_have_ip(const struct tdm_table *t, const struct tdm_addr *a)
{
	uint32_t bit = ip_bit(a);

	return t->live && t->ips[bit / 64] >> (bit % 64) & 1;
}

int tdm_table_add_at(struct tdm_table *t, const struct tdm_addr *a,
		     uint64_t hash, uint32_t i, uint32_t *low)
{
	struct tdm_table_entry *e;
	uint32_t s;
	int ret, found;

	ret = entries_reserve(t, (size_t)i + 1);
	if (!ret)
		ret = slots_reserve(t, (size_t)t->slots_used + 1);
	if (ret)
		return ret;
	e = &t->entry[i];
	if (a->u.sa.sa_family == AF_INET) {
		e->ip = a->u.in.sin_addr.s_addr;
		e->port = a->u.in.sin_port;
		e->kind = IPV4;
	} else {
		ret = v6_take(t, a, &e->ip);
		if (ret)
			return ret;
		e->kind = IPV6;
	}
	e->key = (uint8_t)a->key;
	e->next_same = TDM_TABLE_NONE;
	e->local = TDM_TABLE_NONE;
	found = probe(t, a, hash, &s);
	*low = found ? slot_index(t->slot[s]) : TDM_TABLE_NONE;
	if (found) {
		chain_add(t, s, i);
	} else {
		t->slot[s] = slot_make(hash, i);
		t->slots_used++;
	}
	t->used[i / 64] |= 1ull << (i % 64);
	if (!t->live++)
		memset(t->ips, 0, sizeof(t->ips));
	s = ip_bit(a);
	t->ips[s / 64] |= 1ull << (s % 64);
	if (i >= t->entries_end) {
		/* Entries between the old end and @i were never set. */
		for (s = t->entries_end; s < i; s++)
			t->entry[s].kind = FREE;
		t->entries_end = i + 1;
	}
	return 0;
}

int tdm_table_add(struct tdm_table *t, const struct tdm_addr *a, uint64_t hash,
		  uint32_t *index, uint32_t *low)
{
	uint32_t i = lowest_free(t);
	int ret = tdm_table_add_at(t, a, hash, i, low);

	if (!ret)
		*index = i;
	return ret;
}

/* Empty slot @i and move back later slots whose search went past it. */
static void slot_clear(struct tdm_table *t, uint32_t i)
{
	uint32_t mask = t->slots - 1, j = i;

	t->slot[i] = 0;
	t->slots_used--;
	for (;;) {
		uint32_t home;

		j = (j + 1) & mask;
		if (!t->slot[j])
			return;
		home = slot_home(t, t->slot[j]);
		/* Slot j may move to i unless its home lies in (i, j]. */
		if (((j - home) & mask) < ((j - i) & mask))
			continue;
		t->slot[i] = t->slot[j];
		t->slot[j] = 0;
		i = j;
	}
}

void tdm_table_remove(struct tdm_table *t, uint32_t index)
{
	struct tdm_table_entry *e = &t->entry[index];
	uint32_t s, at;
	struct tdm_addr a;

	t->grown_head = TDM_TABLE_NONE;
	tdm_table_get(t, index, &a);
	s = slot_of(t, &a);
	at = slot_index(t->slot[s]);
	if (at != index) {
		while (t->entry[at].next_same != index)
			at = t->entry[at].next_same;
		t->entry[at].next_same = e->next_same;
	} else if (e->next_same != TDM_TABLE_NONE) {
		t->slot[s] = slot_make(t->slot[s], e->next_same);
	} else {
		slot_clear(t, s);
	}
	if (e->kind == IPV6)
		v6_give(t, e->ip);
	e->kind = FREE;
	t->used[index / 64] &= ~(1ull << (index % 64));
	t->live--;
	if (index / 64 < t->free_hint)
		t->free_hint = index / 64;
}

int tdm_table_has(const struct tdm_table *t, uint64_t index)
{
	return index < t->entries_end && t->entry[index].kind != FREE;
}

void tdm_table_get(const struct tdm_table *t, uint32_t index,
		   struct tdm_addr *a)
{
	const struct tdm_table_entry *e = &t->entry[index];

	if (e->kind == IPV6) {
		*a = t->v6[e->ip];
		return;
	}
	memset(a, 0, sizeof(*a));
	a->u.in.sin_family = AF_INET;
	a->u.in.sin_addr.s_addr = e->ip;
	a->u.in.sin_port = e->port;
	a->key = e->key;
}

uint32_t tdm_table_find(const struct tdm_table *t, const struct tdm_addr *a)
{
	uint32_t s = slot_of(t, a);

	return s == TDM_TABLE_NONE ? s : slot_index(t->slot[s]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pool of fixed-size objects. Objects are cut from slabs, which are freed only
 * when the pool ends, so that steady traffic allocates nothing. Each slab holds
 * twice as many objects as the one before, up to TDM_POOL_MOST_OBJECTS. An
 * object carries no header while it is in use; objects whose size is a multiple
 * of a cache line begin on one. Freed objects are overwritten in debug builds.
 * No lock: callers serialise their calls for one pool.
 */
#ifndef TDM_BASE_POOL_H
#define TDM_BASE_POOL_H

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct tdm_pool_slab {
	struct tdm_pool_slab *next;
	size_t objects; /* that are cut from it */
};

struct tdm_pool_node {
	struct tdm_pool_node *next;
};

struct tdm_pool {
	struct tdm_pool_node *free;
	struct tdm_pool_slab *slabs;
	size_t object_bytes; /* rounded up to 16 */
	size_t next_objects; /* how many the next slab gets */
	size_t in_use;	     /* objects that callers have */
	size_t limit;	     /* greatest value of in_use; 0: no limit */
};

enum { TDM_POOL_FIRST_OBJECTS = 16, TDM_POOL_MOST_OBJECTS = 4096 };

/*
 * Prepare an empty pool of objects of @bytes each; nothing is allocated until
 * the first object is asked for. At most @limit objects can be in use at once;
 * 0: no limit.
 */
static inline void tdm_pool_init(struct tdm_pool *p, size_t bytes, size_t limit)
{
	memset(p, 0, sizeof(*p));
	p->object_bytes = (tdm_max(bytes, sizeof(void *)) + 15) & ~(size_t)15;
	p->next_objects = TDM_POOL_FIRST_OBJECTS;
	p->limit = limit;
}

/* Returns the first object of @slab. */
static inline char *tdm_pool_base(struct tdm_pool_slab *slab)
{
	return (char *)(((uintptr_t)(slab + 1) + TDM_CACHE_LINE_BYTES - 1) &
			~(uintptr_t)(TDM_CACHE_LINE_BYTES - 1));
}

static inline int tdm_pool_grow(struct tdm_pool *p)
{
	size_t n = p->next_objects, i;
	struct tdm_pool_slab *slab;
	char *base;

	slab = (struct tdm_pool_slab *)malloc(
		TDM_CACHE_LINE_BYTES + sizeof(*slab) + n * p->object_bytes);
	if (!slab)
		return -1;
	slab->next = p->slabs;
	slab->objects = n;
	p->slabs = slab;
	base = tdm_pool_base(slab);
	for (i = n; i-- > 0;) {
		struct tdm_pool_node *f =
			(struct tdm_pool_node *)(void *)(base +
							 i * p->object_bytes);

		f->next = p->free;
		p->free = f;
	}
	if (p->next_objects < TDM_POOL_MOST_OBJECTS)
		p->next_objects *= 2;
	return 0;
}

/*
 * Returns a free object, uninitialised, or NULL when there is none; then call
 * tdm_pool_alloc().
 */
static inline void *tdm_pool_take(struct tdm_pool *p)
{
	struct tdm_pool_node *f = p->free;

	if (tdm_unlikely(!f || (p->limit && p->in_use >= p->limit)))
		return NULL;
	p->free = f->next;
	p->in_use++;
	return f;
}

/*
 * Makes sure that a free object is there. Returns 0: the next tdm_pool_alloc()
 * succeeds; else out of memory. For pools without a limit.
 */
static inline int tdm_pool_ready(struct tdm_pool *p)
{
	return tdm_likely(p->free != NULL) ? 0 : tdm_pool_grow(p);
}

/*
 * Returns an uninitialised object, or NULL when memory or the limit is
 * exhausted.
 */
static inline void *tdm_pool_alloc(struct tdm_pool *p)
{
	void *obj = tdm_pool_take(p);

	if (tdm_likely(obj != NULL))
		return obj;
	if ((p->limit && p->in_use >= p->limit) || tdm_pool_grow(p))
		return NULL;
	return tdm_pool_take(p);
}

/* Give back @obj, which must come from this pool. */
static inline void tdm_pool_free(struct tdm_pool *p, void *obj)
{
	struct tdm_pool_node *f = (struct tdm_pool_node *)obj;

#ifdef TDM_DEBUG
	memset(obj, 0xdb, p->object_bytes);
#endif
	f->next = p->free;
	p->free = f;
	p->in_use--;
}

/*
 * Not 0 when @obj, any value, is the address of an object of this pool, in use or
 * free. It looks at each slab, of which there are a few.
 */
static inline int tdm_pool_owns(const struct tdm_pool *p, const void *obj)
{
	struct tdm_pool_slab *slab;
	uintptr_t at;

	for (slab = p->slabs; slab; slab = slab->next) {
		at = (uintptr_t)obj - (uintptr_t)tdm_pool_base(slab);
		if (at < slab->objects * p->object_bytes)
			return at % p->object_bytes == 0;
	}
	return 0;
}

/* Release all memory, objects still in use included. Zero-safe. */
static inline void tdm_pool_fini(struct tdm_pool *p)
{
	while (p->slabs) {
		struct tdm_pool_slab *next = p->slabs->next;

		free(p->slabs);
		p->slabs = next;
	}
	p->free = NULL;
	p->in_use = 0;
}

#endif /* TDM_BASE_POOL_H */

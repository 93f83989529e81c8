/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file behind a named address vector: opened, created or taken over, locked
 * for writing, and closed; with its last user it goes. It knows nothing of the
 * vector: follow.c joins the two.
 *
 * All functions: domain lock held, unless they say otherwise. Errors are
 * negative fi_errno values.
 */
#ifndef TDM_AV_SHARED_H
#define TDM_AV_SHARED_H

#include <rdma/fabric.h>

#include "av/shared_format.h"

struct tdm_shared_attr {
	const char *domain; /* name of the domain */
	const char *name;   /* of the vector */
	uint32_t format;    /* of its addresses */
	int reader;	    /* FI_READ: it must exist, and is not changed */
	void *map_addr;	    /* where the array is wanted, or NULL */
};

struct tdm_shared {
	int fd;			      /* -1: none */
	int reader;		      /* opened with FI_READ */
	int failed;		      /* the table is damaged; was logged */
	struct tdm_shared_head *head; /* mapped; readers must not write */
	fi_addr_t *array;	      /* mapped, to be read only */
	uint64_t seen;		      /* change that the user has taken */
	uint64_t block[TDM_SHARED_BLOCKS];		/* the same per block */
	struct tdm_shared_entry copy[TDM_SHARED_BLOCK]; /* the block at hand */
	char path[TDM_SHARED_PATH_BYTES];
};

/*
 * Open the file; who finds it without users makes it anew. Out: *@shared.
 * Errors: -FI_EINVAL for a name that is empty or too long, or a table of
 * another format; -FI_ENOENT for a reader when nobody uses the vector;
 * -FI_EACCES for a file that is not this user's alone; -FI_EIO and
 * -FI_ENOPROTOOPT of tdm_shared_fixed_check(); -FI_ENOMEM; what the system says.
 * Lock: not needed.
 */
int tdm_shared_open(const struct tdm_shared_attr *attr,
		    struct tdm_shared **shared) tdm_must_check;

/* Close it, and remove it when nobody else uses it. NULL is fine. */
void tdm_shared_close(struct tdm_shared *shared);

/* Not 0 when there are changes that were not taken. */
static inline int tdm_shared_changed(const struct tdm_shared *shared)
{
	return tdm_a64_load_acquire(&shared->head->gen) != shared->seen;
}

/* Not 0 when a change was begun and is not complete. */
static inline int tdm_shared_torn(const struct tdm_shared *shared)
{
	return tdm_a64_load_relaxed(&shared->head->begun) !=
	       tdm_a64_load_relaxed(&shared->head->gen);
}

/*
 * Keep all writers out but this one (F_WRLCK) or altogether (F_RDLCK). Waits
 * for them when @wait, else -FI_EAGAIN. The lock goes with its holder.
 */
int tdm_shared_hold(struct tdm_shared *shared, short type,
		    int wait) tdm_must_check;
void tdm_shared_release(struct tdm_shared *shared);

/* Copy the entries of @block to shared->copy. Errors: -FI_EIO. */
int tdm_shared_read(struct tdm_shared *shared, uint32_t block) tdm_must_check;

/*
 * Set the elements of the array for @count addresses at least. Held for
 * writing. Errors: -FI_ENOSPC, -FI_EIO.
 */
int tdm_shared_reserve(struct tdm_shared *shared, size_t count) tdm_must_check;

/*
 * Set @index to @a, or free it when @a is NULL, and have all others see it.
 * Held for writing; all changes were taken. Errors: -FI_ENOSPC: no room in the
 * table or the file system; -FI_EIO. Nothing is changed then.
 */
int tdm_shared_put(struct tdm_shared *shared, uint32_t index,
		   const struct tdm_addr *a) tdm_must_check;

/*
 * After a writer died in the middle: what is whole stays, the rest is free, and
 * all blocks count as changed. Held for writing. Errors: -FI_EIO.
 */
int tdm_shared_repair(struct tdm_shared *shared) tdm_must_check;

#endif /* TDM_AV_SHARED_H */

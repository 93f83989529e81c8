/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file behind a named address vector: opening, creating or taking it over,
 * locking it for writing, and closing it; its last user removes it. The code
 * here knows nothing of vectors: follow.c connects the two.
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
	uint32_t format;    /* address format of the vector */
	int reader;	    /* FI_READ: it must exist, and is not changed */
	void *map_addr;	    /* address for the array, or NULL */
};

struct tdm_shared {
	int fd;			      /* -1: none */
	int reader;		      /* opened with FI_READ */
	int failed;		      /* the table is damaged; was logged */
	struct tdm_shared_head *head; /* mapped; readers must not write */
	fi_addr_t *array;	      /* mapped, to be read only */
	/* number of the last change that the view contains */
	uint64_t seen;
	/* the same of each block */
	uint64_t block[TDM_SHARED_BLOCKS];
	/* what tdm_shared_read() read */
	struct tdm_shared_entry copy[TDM_SHARED_BLOCK];
	char pathname[TDM_SHARED_PATHNAME_BYTES];
};

/*
 * Open the file; if it has no users, it is made again. Out: *@shared.
 * Errors: -FI_EINVAL for a name that is empty or too long, or a file with
 * another address format; -FI_ENOENT for a reader when no process uses the
 * vector; -FI_EACCES for a file of another user, or one that others may access;
 * -FI_EIO and -FI_ENOPROTOOPT of tdm_shared_fixed_check(); -FI_ENOMEM; errors
 * of the system. Lock: not needed.
 */
int tdm_shared_open(const struct tdm_shared_attr *attr,
		    struct tdm_shared **shared) tdm_must_check;

/* Close the file, and remove it if it has no other users. NULL is fine. */
void tdm_shared_close(struct tdm_shared *shared);

/* Not 0 when the file has changes that the view does not contain. */
static inline int tdm_shared_changed(const struct tdm_shared *shared)
{
	return tdm_a64_load_acquire(&shared->head->gen) != shared->seen;
}

/*
 * Not 0 when a change was begun and is not complete: a process is writing, or
 * died doing so.
 */
static inline int tdm_shared_torn(const struct tdm_shared *shared)
{
	return tdm_a64_load_relaxed(&shared->head->begun) !=
	       tdm_a64_load_relaxed(&shared->head->gen);
}

/*
 * Lock the file: keeps out other writers (F_WRLCK) or all writers (F_RDLCK). If
 * the lock is taken, waits with @wait, else returns -FI_EAGAIN. The kernel
 * releases the lock if its holder dies.
 */
int tdm_shared_hold(struct tdm_shared *shared, short type,
		    int wait) tdm_must_check;
void tdm_shared_release(struct tdm_shared *shared);

/* Copy the entries of @block to shared->copy. Errors: -FI_EIO. */
int tdm_shared_read(struct tdm_shared *shared, uint32_t block) tdm_must_check;

/*
 * Initialise the array's elements for at least @count addresses. The caller
 * holds the file for writing. Errors: -FI_ENOSPC, -FI_EIO.
 */
int tdm_shared_reserve(struct tdm_shared *shared, size_t count) tdm_must_check;

/*
 * Set @index to @a, or free it when @a is NULL, for all processes. The caller
 * holds the file for writing, and its view must be up to date. Errors:
 * -FI_ENOSPC: no room in the table or the file system; -FI_EIO. Nothing is
 * changed then.
 */
int tdm_shared_put(struct tdm_shared *shared, uint32_t index,
		   const struct tdm_addr *a) tdm_must_check;

/*
 * Repair the table after a writer died during a change: valid entries stay, all
 * others become free, and every block in use counts as changed. The caller
 * holds the file for writing. Errors: -FI_EIO.
 */
int tdm_shared_repair(struct tdm_shared *shared) tdm_must_check;

#endif /* TDM_AV_SHARED_H */

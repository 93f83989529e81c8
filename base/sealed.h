/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that this process makes for others: sealed memfds.
 *
 * Invariants:
 *  1. Memory is allocated (fallocate) before it is mapped, and seals prevent
 *     that it shrinks or gets holes: no access to a mapping can fail.
 *  2. A single-writer region has one writable mapping, made before the seal; no
 *     process, not even its maker, can make another.
 *
 * No state: no lock.
 */
#ifndef TDM_BASE_SEALED_H
#define TDM_BASE_SEALED_H

#include <stddef.h>

#include "base/base.h"

/* Memory in a memfd; all 0: none. */
struct tdm_sealed {
	void *base; /* the mapping, of `bytes` */
	size_t bytes;
	int fd_plus1; /* descriptor + 1; 0: none */
};

/*
 * Not 0 when this process may make a region of @bytes. 0: RLIMIT_FSIZE is
 * lower, and the attempt would raise SIGXFSZ, setrlimit(2).
 */
int tdm_sealed_allowed(size_t bytes);

/*
 * Make @bytes of zeroed memory in a memfd called @name, mapped writable, then
 * sealed against shrinking and growing and, with @single_writer, against every
 * later writable mapping and hole. Out: *@m. Errors: -errno of the call that
 * failed, -EFBIG when tdm_sealed_allowed() forbids it; there is no region then.
 */
int tdm_sealed_create(struct tdm_sealed *m, const char *name, size_t bytes,
		      int single_writer) tdm_must_check;

/* Returns the seals that such a region must have: those but F_SEAL_SEAL. */
int tdm_sealed_seals(int single_writer);

/* Unmap and close. Accepts a zeroed @m, and leaves it so. */
void tdm_sealed_fini(struct tdm_sealed *m);

#endif /* TDM_BASE_SEALED_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the parts of mpi_check share. Each part is one way in which
 * MPI programs communicate; it ends the job by mpi_fail() when a byte, a count
 * or an order is wrong. All ranks call a part together.
 */
#ifndef TDM_MPI_CHECK_H
#define TDM_MPI_CHECK_H

#include <stddef.h>

struct mpi_world {
	int rank, size;
	int next, prev; /* neighbours on a ring of all ranks */
	int posted;	/* requests that the parts keep posted at once */
};

/* Print the place and what was found, and end the job. Does not return. */
void mpi_fail(const char *part, const char *what, long got, long want);

/* Fill @len bytes with a pattern of @seed, or check that they have it. */
void mpi_fill(void *buf, size_t len, unsigned seed);
void mpi_expect(const char *part, const void *buf, size_t len, unsigned seed);

/* mpi_messages.c */
void mpi_sizes(const struct mpi_world *w);
void mpi_many_receives(const struct mpi_world *w);
void mpi_many_unexpected(const struct mpi_world *w);
void mpi_any_source(const struct mpi_world *w);
void mpi_probes(const struct mpi_world *w);
void mpi_modes(const struct mpi_world *w);

/* mpi_groups.c */
void mpi_collectives(const struct mpi_world *w);
void mpi_nonblocking_collectives(const struct mpi_world *w);

/* mpi_windows.c */
void mpi_fence(const struct mpi_world *w);
void mpi_locks(const struct mpi_world *w);
void mpi_atomics(const struct mpi_world *w);

#endif /* TDM_MPI_CHECK_H */

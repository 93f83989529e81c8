/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpi_check [-n POSTED] [PART...]: communicates as MPI programs do and checks
 * every byte. Started by mpirun on any number of ranks, one included. POSTED is
 * how many requests a rank keeps posted before it waits, 3000 unless told.
 *
 * Exit status 0 and one line of rank 0 when all was right.
 */
#include "tests/consumers/mpi_check.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct part {
	const char *name;
	void (*run)(const struct mpi_world *w);
} parts[] = {
	{ "sizes", mpi_sizes },
	{ "receives", mpi_many_receives },
	{ "unexpected", mpi_many_unexpected },
	{ "any-source", mpi_any_source },
	{ "probes", mpi_probes },
	{ "modes", mpi_modes },
	{ "collectives", mpi_collectives },
	{ "nonblocking", mpi_nonblocking_collectives },
	{ "fence", mpi_fence },
	{ "locks", mpi_locks },
	{ "atomics", mpi_atomics },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

void mpi_fail(const char *part, const char *what, long got, long want)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fprintf(stderr, "mpi_check: rank %d, %s: %s is %ld, not %ld\n", rank,
		part, what, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char pattern(size_t at, unsigned seed)
{
	return (unsigned char)((at * 131 + at / 251 + seed * 29) & 255);
}

void mpi_fill(void *buf, size_t len, unsigned seed)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = pattern(i, seed);
}

void mpi_expect(const char *part, const void *buf, size_t len, unsigned seed)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] != pattern(i, seed))
			mpi_fail(part, "a byte", p[i], pattern(i, seed));
	}
}

static int wanted(const char *name, int argc, char **argv, int first)
{
	int i;

	for (i = first; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return 1;
	}
	return first == argc;
}

int main(int argc, char **argv)
{
	struct mpi_world w = { .posted = 3000 };
	int first = 1, ran = 0, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &w.size);
	w.next = (w.rank + 1) % w.size;
	w.prev = (w.rank + w.size - 1) % w.size;
	if (argc > 2 && !strcmp(argv[1], "-n")) {
		w.posted = atoi(argv[2]);
		first = 3;
	}
	for (i = 0; i < PARTS; i++) {
		if (!wanted(parts[i].name, argc, argv, first))
			continue;
		parts[i].run(&w);
		MPI_Barrier(MPI_COMM_WORLD);
		ran++;
	}
	if (!ran)
		mpi_fail("arguments", "the number of parts", 0, PARTS);
	if (!w.rank)
		printf("mpi_check: %d parts right on %d ranks\n", ran, w.size);
	MPI_Finalize();
	return 0;
}

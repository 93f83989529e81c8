/* SPDX-License-Identifier: BSD-2-Clause */
/* Collective operations over all ranks, blocking and not. */
#include "tests/consumers/mpi_check.h"

#include <mpi.h>
#include <stdlib.h>

static int *ints(size_t count)
{
	int *p = calloc(count, sizeof(int));

	if (!p)
		mpi_fail("memory", "ints of calloc", 0, (long)count);
	return p;
}

static void check_alltoall(const struct mpi_world *w, const int *in, int each)
{
	int i, j;

	for (i = 0; i < w->size; i++) {
		for (j = 0; j < each; j++) {
			if (in[i * each + j] != i * 1000 + w->rank + j)
				mpi_fail("collectives", "an int of alltoall",
					 in[i * each + j],
					 i * 1000 + w->rank + j);
		}
	}
}

static void alltoall(const struct mpi_world *w, int each)
{
	size_t count = (size_t)w->size * (size_t)each;
	int *out = ints(count), *in = ints(count), i, j;

	for (i = 0; i < w->size; i++) {
		for (j = 0; j < each; j++)
			out[i * each + j] = w->rank * 1000 + i + j;
	}
	MPI_Alltoall(out, each, MPI_INT, in, each, MPI_INT, MPI_COMM_WORLD);
	check_alltoall(w, in, each);
	free(out);
	free(in);
}

static void allreduce(const struct mpi_world *w, int count)
{
	int *out = ints((size_t)count), *in = ints((size_t)count), i;
	int ranks = w->size * (w->size - 1) / 2;

	for (i = 0; i < count; i++)
		out[i] = w->rank + i;
	MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < count; i++) {
		if (in[i] != ranks + i * w->size)
			mpi_fail("collectives", "a sum", in[i],
				 ranks + i * w->size);
	}
	free(out);
	free(in);
}

void mpi_collectives(const struct mpi_world *w)
{
	static const int counts[] = { 1, 100, 1024, 16384, 100000 };
	size_t i;
	int n;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (n = 0; n < 10; n++) {
			allreduce(w, counts[i]);
			alltoall(w, counts[i] / 4 + 1);
		}
	}
}

/* Two operations at once, in the same order on all ranks. */
void mpi_nonblocking_collectives(const struct mpi_world *w)
{
	int round, root, value, sum, want;
	MPI_Request req[2];

	for (round = 0; round < 100; round++) {
		root = round % w->size;
		value = w->rank == root ? round : -1;
		want = w->size * round;
		MPI_Ibcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD, &req[0]);
		MPI_Iallreduce(&round, &sum, 1, MPI_INT, MPI_SUM,
			       MPI_COMM_WORLD, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		if (value != round || sum != want)
			mpi_fail("nonblocking", "a sum", sum, want);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided communication through windows of memory. */
#include "tests/consumers/mpi_check.h"

#include <mpi.h>
#include <stdlib.h>

enum { BYTES = 1 << 20 };

/* Put to one neighbour, get from the other, between fences. */
void mpi_fence(const struct mpi_world *w)
{
	char *mem, *buf = malloc(BYTES);
	MPI_Win win;
	int len;

	if (!buf)
		mpi_fail("memory", "bytes of malloc", 0, BYTES);
	MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	for (len = 1; len <= BYTES; len *= 4) {
		mpi_fill(buf, (size_t)len, (unsigned)w->rank);
		MPI_Win_fence(0, win);
		MPI_Put(buf, len, MPI_BYTE, w->next, 0, len, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		mpi_expect("fence, put", mem, (size_t)len, (unsigned)w->prev);
		MPI_Get(buf, len, MPI_BYTE, w->prev, 0, len, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		mpi_expect("fence, get", buf, (size_t)len,
			   (unsigned)((w->prev + w->size - 1) % w->size));
	}
	MPI_Win_free(&win);
	free(buf);
}

/* Each rank adds to one counter of rank 0 under an exclusive lock. */
void mpi_locks(const struct mpi_world *w)
{
	enum { EACH = 20 };
	long *mem, value, i;
	MPI_Win win;

	MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &mem, &win);
	*mem = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < EACH; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
		MPI_Win_flush(0, win);
		value++;
		MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
	MPI_Win_unlock(0, win);
	if (value != (long)EACH * w->size)
		mpi_fail("locks", "the counter", value, (long)EACH * w->size);
	MPI_Win_free(&win);
}

/* Every value between 0 and the end is fetched by exactly one rank. */
static void count_up(const struct mpi_world *w, MPI_Win win, long each)
{
	long one = 1, got, sum = 0, all = 0, n = each * w->size, i;

	for (i = 0; i < each; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		sum += got;
	}
	MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (all != n * (n - 1) / 2)
		mpi_fail("atomics", "the sum of counts", all, n * (n - 1) / 2);
}

void mpi_atomics(const struct mpi_world *w)
{
	long *mem, mine = w->rank + 1, none = 0, got, want;
	MPI_Win win;

	MPI_Win_allocate(3 * sizeof(long), sizeof(long), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &mem, &win);
	mem[0] = mem[1] = mem[2] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	count_up(w, win, 100);
	MPI_Accumulate(&mine, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win);
	MPI_Compare_and_swap(&mine, &none, &got, MPI_LONG, 0, 2, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&got, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
	MPI_Get(&none, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win);
	MPI_Win_unlock(0, win);
	want = (long)w->size * (w->size + 1) / 2;
	if (got != want)
		mpi_fail("atomics", "the accumulated sum", got, want);
	if (none < 1 || none > w->size)
		mpi_fail("atomics", "the swapped value", none, 1);
	MPI_Win_free(&win);
}

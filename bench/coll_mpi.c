/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member that is an MPI process, of the MPI library's own collective
 * operations: see coll.h. Built with mpicc where there is one (coll.sh).
 *
 *   coll_mpi PAGE SEAT
 */
#include <mpi.h>
#include <stdlib.h>

#include "bench/coll.h"

static int run(struct coll_member *m)
{
	int n = (int)m->seat->bytes / 8, block = n / COLL_MEMBERS;

	switch (m->seat->kind) {
	case COLL_BARRIER:
		MPI_Barrier(MPI_COMM_WORLD);
		break;
	case COLL_BROADCAST:
		MPI_Bcast(m->out, n, MPI_UINT64_T, 0, MPI_COMM_WORLD);
		break;
	case COLL_ALLREDUCE:
		MPI_Allreduce(m->in, m->out, n, MPI_UINT64_T, MPI_SUM,
			      MPI_COMM_WORLD);
		break;
	case COLL_ALLGATHER:
		MPI_Allgather(m->in, block, MPI_UINT64_T, m->out, block,
			      MPI_UINT64_T, MPI_COMM_WORLD);
		break;
	default:
		MPI_Alltoall(m->in, block, MPI_UINT64_T, m->out, block,
			     MPI_UINT64_T, MPI_COMM_WORLD);
		break;
	}
	return 0;
}

static void progress(struct coll_member *m)
{
	int there;

	(void)m;
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there,
		   MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	struct coll_member m = { .run = run, .poll = progress };
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 3 || size != COLL_MEMBERS)
		return 2;
	m.rank = (uint32_t)rank;
	m.seat = &coll_map(argv[1])->seat[atoi(argv[2])];
	MPI_Barrier(MPI_COMM_WORLD);
	__atomic_add_fetch(&m.seat->known, 1, __ATOMIC_ACQ_REL);
	coll_serve(&m);
	MPI_Finalize();
	return 0;
}

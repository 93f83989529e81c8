/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subject that is an MPI library: started by mpirun as two ranks, each of
 * which is a side. Built with mpicc where there is one (run.sh).
 *
 *   bench_mpi CONTROL-PAGE CONTROL-PAGE-OF-THE-FIRST-PAIR
 */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

#include "bench/subject.h"

struct requests {
	MPI_Request under_way[BENCH_SLOTS];
	int count;
};

struct mpi {
	struct requests recvs, sends;
};

static void finish(struct requests *r, unsigned left)
{
	int which;

	if (!left) {
		MPI_Waitall(r->count, r->under_way, MPI_STATUSES_IGNORE);
		r->count = 0;
	}
	while (r->count > (int)left) {
		MPI_Waitany(r->count, r->under_way, &which, MPI_STATUS_IGNORE);
		r->under_way[which] = r->under_way[--r->count];
	}
}

static void mpi_recv(struct bench_subject *s, void *buf, size_t len,
		     uint64_t tag, unsigned slot)
{
	struct mpi *m = s->priv;

	(void)slot;
	MPI_Irecv(buf, (int)len, MPI_BYTE, !s->side, (int)tag, MPI_COMM_WORLD,
		  &m->recvs.under_way[m->recvs.count++]);
}

static void mpi_send(struct bench_subject *s, const void *buf, size_t len,
		     uint64_t tag, unsigned slot)
{
	struct mpi *m = s->priv;

	(void)slot;
	MPI_Isend(buf, (int)len, MPI_BYTE, !s->side, (int)tag, MPI_COMM_WORLD,
		  &m->sends.under_way[m->sends.count++]);
}

static void mpi_inject(struct bench_subject *s, const void *buf, size_t len,
		       uint64_t tag)
{
	MPI_Send(buf, (int)len, MPI_BYTE, !s->side, (int)tag, MPI_COMM_WORLD);
}

static void mpi_wait_recv(struct bench_subject *s, unsigned left)
{
	finish(&((struct mpi *)s->priv)->recvs, left);
}

static void mpi_wait_send(struct bench_subject *s)
{
	finish(&((struct mpi *)s->priv)->sends, 0);
}

static void mpi_poll(struct bench_subject *s)
{
	int there;

	(void)s;
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there,
		   MPI_STATUS_IGNORE);
}

static void mpi_close(struct bench_subject *s)
{
	free(s->priv);
}

static const struct bench_ops mpi_ops = {
	.recv = mpi_recv,
	.send = mpi_send,
	.inject = mpi_inject,
	.wait_recv = mpi_wait_recv,
	.wait_send = mpi_wait_send,
	.poll = mpi_poll,
	.close = mpi_close,
};

int main(int argc, char **argv)
{
	struct bench_subject s = { .ops = &mpi_ops, .inject_most = 64 };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &s.side);
	if (argc != 3)
		return 2;
	s.priv = calloc(1, sizeof(struct mpi));
	bench_side_init(&s, argv[1], argv[2]);
	bench_side(&s);
	MPI_Finalize();
	return 0;
}

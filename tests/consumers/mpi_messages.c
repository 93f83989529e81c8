/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between two ranks: the neighbours on a ring, or all to rank 0. */
#include "tests/consumers/mpi_check.h"

#include <mpi.h>
#include <stdlib.h>

static void *get(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p)
		mpi_fail("memory", "bytes of malloc", 0, (long)bytes);
	return p;
}

static void exchange(const struct mpi_world *w, char *out, char *in, size_t len)
{
	MPI_Status st;
	int got;

	mpi_fill(out, len, (unsigned)w->rank + (unsigned)len);
	MPI_Sendrecv(out, (int)len, MPI_BYTE, w->next, 1, in, (int)len,
		     MPI_BYTE, w->prev, 1, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, MPI_BYTE, &got);
	if (got != (int)len || st.MPI_SOURCE != w->prev)
		mpi_fail("sizes", "the length", got, (long)len);
	mpi_expect("sizes", in, len, (unsigned)w->prev + (unsigned)len);
}

/* Lengths around the powers of two, where protocols change. */
void mpi_sizes(const struct mpi_world *w)
{
	static const size_t most = 4u << 20;
	char *out = get(most + 1), *in = get(most + 1);
	size_t len;

	exchange(w, out, in, 0);
	for (len = 1; len <= most; len *= 2) {
		exchange(w, out, in, len - 1);
		exchange(w, out, in, len);
		exchange(w, out, in, len + 1);
	}
	free(out);
	free(in);
}

/*
 * All receives are posted before any message is sent, then all sends before
 * anybody waits: a program may post as many as it has memory for.
 */
void mpi_many_receives(const struct mpi_world *w)
{
	size_t n = (size_t)w->posted, i;
	MPI_Request *req = get(2 * n * sizeof(MPI_Request));
	int *in = get(n * sizeof(int)), *out = get(n * sizeof(int));

	for (i = 0; i < n; i++) {
		in[i] = -1;
		out[i] = (int)i * w->size + w->rank;
		MPI_Irecv(&in[i], 1, MPI_INT, w->prev, (int)(i % 1000),
			  MPI_COMM_WORLD, &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		MPI_Isend(&out[i], 1, MPI_INT, w->next, (int)(i % 1000),
			  MPI_COMM_WORLD, &req[n + i]);
	MPI_Waitall((int)(2 * n), req, MPI_STATUSES_IGNORE);
	for (i = 0; i < n; i++) {
		if (in[i] != (int)i * w->size + w->prev)
			mpi_fail("receives", "a value", in[i],
				 (long)i * w->size + w->prev);
	}
	free(req);
	free(in);
	free(out);
}

/* The message that is waited for first was sent last. */
static void unexpected(const struct mpi_world *w, size_t n, size_t len)
{
	MPI_Request *req = get((n + 1) * sizeof(MPI_Request));
	char *out = get(n * len), *in = get(len);
	size_t i;

	for (i = 0; i < n; i++) {
		mpi_fill(out + i * len, len, (unsigned)(i + len));
		MPI_Isend(out + i * len, (int)len, MPI_BYTE, w->next,
			  10 + (int)i, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Isend(out, 0, MPI_BYTE, w->next, 7, MPI_COMM_WORLD, &req[n]);
	MPI_Recv(in, 0, MPI_BYTE, w->prev, 7, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	for (i = n; i-- > 0;) {
		MPI_Recv(in, (int)len, MPI_BYTE, w->prev, 10 + (int)i,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		mpi_expect("unexpected", in, len, (unsigned)(i + len));
	}
	MPI_Waitall((int)n + 1, req, MPI_STATUSES_IGNORE);
	free(req);
	free(out);
	free(in);
}

void mpi_many_unexpected(const struct mpi_world *w)
{
	unexpected(w, (size_t)w->posted * 2, 8);
	unexpected(w, (size_t)w->posted / 4 + 1, 5000);
	unexpected(w, 20, 300000);
}

void mpi_any_source(const struct mpi_world *w)
{
	enum { EACH = 50 };
	int i, value, *next;
	MPI_Status st;

	if (w->rank) {
		for (i = 0; i < EACH; i++)
			MPI_Send(&i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
		return;
	}
	next = get((size_t)w->size * sizeof(*next));
	for (i = 0; i < w->size; i++)
		next[i] = 0;
	for (i = 0; i < EACH * (w->size - 1); i++) {
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
			 MPI_COMM_WORLD, &st);
		if (value != next[st.MPI_SOURCE]++)
			mpi_fail("any-source", "a value of one rank", value,
				 next[st.MPI_SOURCE] - 1);
	}
	free(next);
}

/* A message of a length that only a probe tells, taken as matched. */
static void probed(const struct mpi_world *w, int len)
{
	MPI_Message message;
	MPI_Request req;
	MPI_Status st;
	char *out = get((size_t)len + 1), *in;
	int got;

	mpi_fill(out, (size_t)len, (unsigned)w->rank);
	MPI_Isend(out, len, MPI_BYTE, w->next, 4, MPI_COMM_WORLD, &req);
	MPI_Mprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &message, &st);
	MPI_Get_count(&st, MPI_BYTE, &got);
	if (got != len)
		mpi_fail("probes", "the length", got, len);
	in = get((size_t)got + 1);
	MPI_Mrecv(in, got, MPI_BYTE, &message, MPI_STATUS_IGNORE);
	mpi_expect("probes", in, (size_t)got, (unsigned)w->prev);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	free(out);
	free(in);
	MPI_Barrier(MPI_COMM_WORLD);
}

void mpi_probes(const struct mpi_world *w)
{
	static const int lengths[] = { 0, 8, 3000, 70000, 1 << 20 };
	size_t i;
	int flag;

	MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag,
		   MPI_STATUS_IGNORE);
	if (flag)
		mpi_fail("probes", "a message nobody sent", flag, 0);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		probed(w, lengths[i]);
}

/* Synchronous, persistent and cancelled requests. */
void mpi_modes(const struct mpi_world *w)
{
	int in = -1, out = w->rank, i, gone;
	MPI_Request req[2];
	MPI_Status st;

	MPI_Irecv(&in, 1, MPI_INT, w->prev, 5, MPI_COMM_WORLD, &req[0]);
	MPI_Issend(&out, 1, MPI_INT, w->next, 5, MPI_COMM_WORLD, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	if (in != w->prev)
		mpi_fail("modes", "a value", in, w->prev);
	MPI_Recv_init(&in, 1, MPI_INT, w->prev, 6, MPI_COMM_WORLD, &req[0]);
	MPI_Send_init(&out, 1, MPI_INT, w->next, 6, MPI_COMM_WORLD, &req[1]);
	for (i = 0; i < 100; i++) {
		out = i;
		MPI_Startall(2, req);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		if (in != i)
			mpi_fail("modes", "a persistent value", in, i);
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
	MPI_Irecv(&in, 1, MPI_INT, w->prev, 98, MPI_COMM_WORLD, &req[0]);
	MPI_Cancel(&req[0]);
	MPI_Wait(&req[0], &st);
	MPI_Test_cancelled(&st, &gone);
	if (!gone)
		mpi_fail("modes", "a cancelled receive", gone, 1);
}

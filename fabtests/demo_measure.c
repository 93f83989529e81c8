/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measurements of the demo. Both are taken in batches, and the 25th
 * percentile of the batches is reported: on a busy machine whole batches are
 * delayed, and those fall out by themselves.
 *
 * Receives name their source and the exact tag. Each message carries its
 * number at its start and at its end, and both are checked.
 */
#include "fabtests/demo_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "fabtests/demo_message.h"
#include "fabtests/demo_util.h"

enum {
	PING_BATCH = 64, /* round trips */
	PING_BATCHES = 100,
	PING_BYTES = 8,
	BULK_BATCH = 8, /* messages in flight */
	BULK_BATCHES = 16,
	BULK_BYTES = 1 << 20,
	NSLOTS = BULK_BATCH
};

/* A buffer and its operation. */
struct mslot {
	struct demo_op op; /* first: demo_op pointers are cast to mslots */
	uint8_t *buf;
	uint64_t tag;
	size_t len;
	int busy;
};

struct measure {
	struct demo *d;
	int peer;
	int first; /* this rank starts, and takes the time */
	struct mslot tx[NSLOTS];
	struct mslot rx[NSLOTS];
};

static void sent(struct demo_op *op, const struct fi_cq_tagged_entry *e,
		 fi_addr_t from)
{
	((struct mslot *)op)->busy = 0;
}

static void received(struct demo_op *op, const struct fi_cq_tagged_entry *e,
		     fi_addr_t from)
{
	struct mslot *slot = (struct mslot *)op;

	/* Another message does not carry the right number: see below. */
	slot->busy = 0;
	slot->tag = e->tag;
	slot->len = e->len;
}

static void make_slot(struct mslot *slot, demo_done_fn done)
{
	slot->op.done = done;
	slot->buf = demo_alloc(BULK_BYTES);
	/* Written pages: the zero page would make copies look faster. */
	demo_pattern_fill(slot->buf, BULK_BYTES, 1);
}

static struct measure *measure_open(struct demo *d, int peer)
{
	struct measure *m = demo_alloc(sizeof(*m));
	int i;

	m->d = d;
	m->peer = peer;
	m->first = d->opt.rank < peer;
	for (i = 0; i < NSLOTS; i++) {
		make_slot(&m->tx[i], sent);
		make_slot(&m->rx[i], received);
	}
	return m;
}

static void measure_close(struct measure *m)
{
	int i;

	for (i = 0; i < NSLOTS; i++) {
		free(m->tx[i].buf);
		free(m->rx[i].buf);
	}
	free(m);
}

static int wait_slot(struct measure *m, const struct mslot *slot)
{
	while (slot->busy)
		if (demo_turn(m->d))
			return -1;
	return 0;
}

static int post_recv(struct measure *m, enum demo_kind kind, uint32_t number,
		     size_t len)
{
	struct mslot *slot = &m->rx[number % NSLOTS];
	uint64_t tag = demo_tag(kind, m->peer, m->d->opt.rank, number);
	long ret;

	slot->busy = 1;
	while ((ret = fi_trecv(m->d->fab.ep, slot->buf, len, NULL,
			       m->d->fab.addr[m->peer], tag, 0, &slot->op)))
		if (demo_again(m->d, "fi_trecv", ret) || demo_turn(m->d))
			return -1;
	return 0;
}

static int post_send(struct measure *m, enum demo_kind kind, uint32_t number,
		     size_t len)
{
	struct mslot *slot = &m->tx[number % NSLOTS];
	uint64_t tag = demo_tag(kind, m->d->opt.rank, m->peer, number);
	long ret;

	if (wait_slot(m, slot))
		return -1;
	memcpy(slot->buf, &tag, sizeof(tag));
	memcpy(slot->buf + len - sizeof(tag), &tag, sizeof(tag));
	slot->busy = 1;
	while ((ret = fi_tsend(m->d->fab.ep, slot->buf, len, NULL,
			       m->d->fab.addr[m->peer], tag, &slot->op)))
		if (demo_again(m->d, "fi_tsend", ret) || demo_turn(m->d))
			return -1;
	m->d->row->cell[m->peer].all_tx_msgs++;
	return 0;
}

static int wait_recv(struct measure *m, enum demo_kind kind, uint32_t number,
		     size_t len)
{
	struct mslot *slot = &m->rx[number % NSLOTS];
	uint64_t tag = demo_tag(kind, m->peer, m->d->opt.rank, number);

	if (wait_slot(m, slot))
		return -1;
	if (slot->tag != tag || slot->len != len ||
	    memcmp(slot->buf, &tag, sizeof(tag)) ||
	    memcmp(slot->buf + len - sizeof(tag), &tag, sizeof(tag)))
		demo_bad(m->d,
			 "measurement: message %u of %zu bytes from "
			 "rank %d is wrong",
			 number, len, m->peer);
	m->d->row->cell[m->peer].all_rx_msgs++;
	return 0;
}

static int wait_sends(struct measure *m)
{
	int i;

	for (i = 0; i < NSLOTS; i++)
		if (wait_slot(m, &m->tx[i]))
			return -1;
	return 0;
}

/* One batch of round trips; the receive of message @number is posted. */
static int ping_batch(struct measure *m, uint32_t number)
{
	uint32_t end = number + PING_BATCH;

	for (; number < end; number++) {
		if (m->first && post_send(m, DEMO_PING, number, PING_BYTES))
			return -1;
		if (wait_recv(m, DEMO_PING, number, PING_BYTES) ||
		    post_recv(m, DEMO_PING, number + 1, PING_BYTES))
			return -1;
		if (!m->first && post_send(m, DEMO_PING, number, PING_BYTES))
			return -1;
	}
	return 0;
}

static int measure_ping(struct measure *m)
{
	struct demo_cell *cell = &m->d->row->cell[m->peer];
	uint64_t ns[PING_BATCHES], start;
	uint32_t i;

	if (post_recv(m, DEMO_PING, 0, PING_BYTES) || ping_batch(m, 0))
		return -1;
	for (i = 0; i < PING_BATCHES; i++) {
		start = demo_now_ns();
		if (ping_batch(m, (i + 1) * PING_BATCH))
			return -1;
		ns[i] = demo_now_ns() - start;
	}
	/* The last receive was posted for nothing: one message more. */
	i = (PING_BATCHES + 1) * PING_BATCH;
	if (post_send(m, DEMO_PING, i, PING_BYTES) ||
	    wait_recv(m, DEMO_PING, i, PING_BYTES) || wait_sends(m))
		return -1;
	if (m->first)
		cell->half_ps = demo_quartile(ns, PING_BATCHES) * 1000 /
				(2 * PING_BATCH);
	return 0;
}

/* The receives of the next batch are posted before this one is confirmed. */
static int bulk_receive(struct measure *m)
{
	uint32_t i, j, at;

	for (i = 0; i < BULK_BATCH; i++)
		if (post_recv(m, DEMO_BULK, i, BULK_BYTES))
			return -1;
	for (i = 0; i <= BULK_BATCHES; i++) {
		for (j = 0; j < BULK_BATCH; j++) {
			at = i * BULK_BATCH + j;
			if (wait_recv(m, DEMO_BULK, at, BULK_BYTES) ||
			    (i < BULK_BATCHES &&
			     post_recv(m, DEMO_BULK, at + BULK_BATCH,
				       BULK_BYTES)))
				return -1;
		}
		if (post_send(m, DEMO_BULK_ACK, i, PING_BYTES))
			return -1;
	}
	return wait_sends(m);
}

static int bulk_batch(struct measure *m, uint32_t batch)
{
	uint32_t j;

	if (post_recv(m, DEMO_BULK_ACK, batch, PING_BYTES))
		return -1;
	for (j = 0; j < BULK_BATCH; j++)
		if (post_send(m, DEMO_BULK, batch * BULK_BATCH + j, BULK_BYTES))
			return -1;
	return wait_recv(m, DEMO_BULK_ACK, batch, PING_BYTES);
}

static int measure_bulk(struct measure *m)
{
	struct demo_cell *cell = &m->d->row->cell[m->peer];
	uint64_t ns[BULK_BATCHES], start;
	uint32_t i;

	if (!m->first)
		return bulk_receive(m);
	if (bulk_batch(m, 0))
		return -1;
	for (i = 0; i < BULK_BATCHES; i++) {
		start = demo_now_ns();
		if (bulk_batch(m, i + 1))
			return -1;
		ns[i] = demo_now_ns() - start;
	}
	if (wait_sends(m))
		return -1;
	cell->bandwidth = (uint64_t)BULK_BATCH * BULK_BYTES * 1000000000u /
			  demo_quartile(ns, BULK_BATCHES);
	return 0;
}

static int measure_pair(struct demo *d, int peer)
{
	struct measure *m = measure_open(d, peer);

	if (measure_ping(m) || measure_bulk(m))
		return -1; /* buffers may still be in use: left to exit */
	measure_close(m);
	return 0;
}

int demo_measure_run(struct demo *d)
{
	char name[64];
	int a, b;

	for (a = 0; a < d->opt.nranks; a++) {
		for (b = a + 1; b < d->opt.nranks; b++) {
			snprintf(name, sizeof(name), "measuring %d - %d", a, b);
			demo_phase(d, name, 0);
			if (d->opt.rank == a && measure_pair(d, b))
				return -1;
			if (d->opt.rank == b && measure_pair(d, a))
				return -1;
			if (demo_barrier(d))
				return -1;
		}
	}
	demo_phase(d, NULL, 0);
	return 0;
}

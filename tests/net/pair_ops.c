/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of tests/net/pair.c and what becomes of them: see pair.h.
 *
 * Invariants:
 *  1. Receive N of a stream is posted after receive N - 1, so that it gets
 *     message N.
 *  2. Operations are posted in the order of their numbers, but for the reads
 *     that follow writes.
 * No lock: one thread.
 */
#include "tests/net/pair.h"

#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "tests/harness/seeded.h"

enum { READ_MOST = 8 };

/* ---- receives ------------------------------------------------------------- */

/* The next message of @r's stream that the other side sends. */
static void expect_next(struct receive *r)
{
	uint64_t *next = &pair.expected[r->stream];

	while (*next < pair.count) {
		r->plan = pair_plan(3 - pair.side, (*next)++);
		if (r->plan.kind == r->stream)
			return;
	}
	r->is_beyond = 1;
}

static void post_receive(struct receive *r)
{
	ssize_t ret;

	if (r->stream == MESSAGE)
		ret = fi_recv(pair.at.ep, r->buf, pair.largest, pair.desc,
			      FI_ADDR_UNSPEC, r);
	else
		ret = fi_trecv(pair.at.ep, r->buf, pair.largest, pair.desc,
			       FI_ADDR_UNSPEC, r->stream, 0, r);
	if (ret == -FI_EAGAIN)
		return;
	pair_need(ret, "a receive was refused");
	r->posted = 1;
	expect_next(r);
}

/*
 * Those of a stream are posted in the order in which they end, so that receive N
 * is of message N: all that have ended since the last time, the oldest first.
 */
void pair_post_receives(void)
{
	static size_t oldest[STREAMS];
	size_t s, *i;

	for (s = 0; s < STREAMS; s++) {
		i = &oldest[s];
		while (!pair.receives[s][*i].posted) {
			pair.receives[s][*i].stream = (enum kind)s;
			post_receive(&pair.receives[s][*i]);
			if (!pair.receives[s][*i].posted)
				break;
			*i = (*i + 1) % RECEIVES;
		}
	}
}

static void take_message(struct receive *r, size_t len)
{
	if (r->is_beyond)
		pair_die("stream %d: a message too many", r->stream);
	if (len != r->plan.len)
		pair_die(
			"stream %d: wrong data: %zu bytes came for a message of "
			"%zu",
			r->stream, len, r->plan.len);
	if (!tdt_seeded_same(r->buf, len, r->plan.key))
		pair_die("stream %d: wrong data in a message of %zu bytes",
			 r->stream, len);
	r->posted = 0;
	pair.received++;
	pair.bytes += len;
}

/* ---- operations ----------------------------------------------------------- */

static ssize_t post_message(struct op *op)
{
	struct iovec iov = { op->buf, op->plan.len };
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = &pair.desc,
			      .iov_count = 1,
			      .addr = pair.peer,
			      .context = op };
	struct fi_msg_tagged tagged = { .msg_iov = &iov,
					.desc = &pair.desc,
					.iov_count = 1,
					.addr = pair.peer,
					.tag = op->plan.kind,
					.context = op };
	uint64_t flags = op->plan.delivery ? FI_DELIVERY_COMPLETE : 0;

	flags |= FI_COMPLETION;
	return op->plan.kind == MESSAGE ?
		       fi_sendmsg(pair.at.ep, &msg, flags) :
		       fi_tsendmsg(pair.at.ep, &tagged, flags);
}

static uint64_t target_of(const struct op *op)
{
	return pair.peer_base + (uint64_t)(pair.m.target - pair.m.base) +
	       op->place;
}

/* The write ends when it is in the memory, so that the read finds it there. */
static ssize_t post_write(struct op *op)
{
	struct iovec iov = { op->buf, op->plan.len };
	struct fi_rma_iov to = { target_of(op), op->plan.len, pair.peer_key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &pair.desc,
				  .iov_count = 1,
				  .addr = pair.peer,
				  .rma_iov = &to,
				  .rma_iov_count = 1,
				  .context = op };

	return fi_writemsg(pair.at.ep, &msg,
			   FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

static ssize_t post_read(struct op *op)
{
	memset(op->back, 0, op->plan.len);
	return fi_read(pair.at.ep, op->back, op->plan.len, pair.desc, pair.peer,
		       target_of(op), pair.peer_key, op);
}

static ssize_t post_add(struct op *op)
{
	uint64_t at = (uint64_t)((unsigned char *)pair.m.word - pair.m.base);

	return fi_fetch_atomic(pair.at.ep, pair.m.one, 1, pair.desc, op->back,
			       pair.desc, pair.peer, pair.peer_base + at,
			       pair.peer_key, FI_UINT64, FI_SUM, op);
}

/* Post the next operation. Returns 0 or -FI_EAGAIN. */
static ssize_t start(struct op *op)
{
	ssize_t ret;

	op->plan = pair_plan(pair.side, pair.next);
	tdt_seeded_fill(op->buf, op->plan.len, op->plan.key);
	ret = op->plan.kind == WRITE ? post_write(op) :
	      op->plan.kind == ADD   ? post_add(op) :
				       post_message(op);
	if (ret == -FI_EAGAIN)
		return ret;
	pair_need(ret, "an operation was refused");
	op->state = UNDER_WAY;
	pair.next++;
	return 0;
}

void pair_post_operations(void)
{
	ssize_t ret = 0;
	size_t i;

	for (i = 0; i < SLOTS; i++) {
		struct op *op = &pair.ops[i];

		if (op->state == WRITTEN) {
			ssize_t read = post_read(op);

			if (read == -FI_EAGAIN)
				continue;
			pair_need(read, "a read was refused");
			op->state = READING;
		} else if (op->state == FREE && pair.next < pair.count &&
			   !ret) {
			ret = start(op);
		}
	}
}

static void take_fetched(const struct op *op)
{
	uint64_t value;

	memcpy(&value, op->back, sizeof(value));
	if (value >= pair.adds || pair.fetched[value]++)
		pair_die("a fetch-add gave %ju, of %ju adds", (uintmax_t)value,
			 (uintmax_t)pair.adds);
	pair.added++;
}

static void take_operation(struct op *op)
{
	if (op->state == UNDER_WAY && op->plan.kind == WRITE) {
		op->state = WRITTEN;
		return;
	}
	if (op->state == READING) {
		if (!tdt_seeded_same(op->back, op->plan.len, op->plan.key))
			pair_die(
				"wrong data: a write of %zu bytes is read back "
				"otherwise",
				op->plan.len);
		pair.read_back++;
	} else if (op->state != UNDER_WAY) {
		pair_die("an operation has ended twice");
	} else if (op->plan.kind == ADD) {
		take_fetched(op);
	} else {
		pair.sent++;
	}
	op->state = FREE;
	pair.ended++;
}

/* ---- the loop ------------------------------------------------------------- */

static void take(const struct fi_cq_tagged_entry *e)
{
	char *at = e->op_context;

	if (at >= (char *)pair.ops && at < (char *)(pair.ops + SLOTS))
		take_operation(e->op_context);
	else if (at >= (char *)pair.receives &&
		 at < (char *)(pair.receives + STREAMS))
		take_message(e->op_context, e->len);
	else
		pair_die("a completion of nobody");
}

void pair_look(int wait_ms)
{
	struct fi_cq_tagged_entry e[READ_MOST];
	struct fi_cq_err_entry failed = { 0 };
	ssize_t n = fi_cq_sread(pair.at.cq, e, READ_MOST, NULL, wait_ms), i;

	if (n == -FI_EAVAIL && fi_cq_readerr(pair.at.cq, &failed, 0) > 0)
		pair_die("an operation failed: %s", fi_strerror(failed.err));
	if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR)
		pair_need(n, "fi_cq_sread");
	for (i = 0; i < n; i++)
		take(&e[i]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between nodes: see node.h.
 *
 * No lock: one thread.
 */
#include <sched.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "kit/node.h"
#include "kit/rule.h"

enum { SETTLE_PASSES = 300, PASSES_PER_LOOK = 16 };

static void read_queue(struct fid_cq *cq)
{
	ssize_t ret = cq ? fi_cq_read(cq, NULL, 0) : 0;

	if (ret && ret != -FI_EAGAIN)
		kit_breach("fi_cq_read without a buffer, for progress, "
			   "returned %zd",
			   ret);
}

void kit_progress(void)
{
	size_t i;

	for (i = 0; i < KIT_NODES_MOST; i++) {
		if (!kit_nodes[i])
			continue;
		read_queue(kit_nodes[i]->cq[KIT_TX]);
		read_queue(kit_nodes[i]->cq[KIT_RX]);
	}
}

void kit_settle(void)
{
	int i;

	kit_step("progress");
	for (i = 0; i < SETTLE_PASSES; i++)
		kit_progress();
	kit_no_breach();
}

static ssize_t post(struct kit_op *op, fi_addr_t to,
		    const struct kit_message *m)
{
	size_t split = m->split ? m->split : m->len;
	struct iovec iov[] = { { op->bytes, split },
			       { op->bytes + split, m->len - split } };
	struct fi_msg_tagged tagged = { .msg_iov = iov,
					.iov_count = m->split ? 2 : 1,
					.addr = to,
					.tag = m->tag,
					.context = op,
					.data = m->data };
	struct fi_msg msg = { .msg_iov = iov,
			      .iov_count = tagged.iov_count,
			      .addr = to,
			      .context = op,
			      .data = m->data };

	kit_step("a send of %zu bytes", m->len);
	return m->kind == KIT_TAG ?
		       fi_tsendmsg(op->node->ep, &tagged, m->flags) :
		       fi_sendmsg(op->node->ep, &msg, m->flags);
}

static struct kit_op *send_op(struct kit_node *from,
			      const struct kit_message *m)
{
	return kit_op_new(from, m->kind, m->len, (uint32_t)m->tag * 7 + 1);
}

ssize_t kit_try_send(struct kit_node *from, fi_addr_t to,
		     const struct kit_message *m, struct kit_op **op)
{
	*op = send_op(from, m);
	return post(*op, to, m);
}

struct kit_op *kit_send(struct kit_node *from, fi_addr_t to,
			const struct kit_message *m)
{
	int64_t until = kit_now_ms() + kit_patience_ms();
	struct kit_op *op = send_op(from, m);
	ssize_t ret = post(op, to, m);

	while (ret == -FI_EAGAIN && kit_now_ms() < until) {
		kit_settle();
		ret = post(op, to, m);
	}
	if (ret)
		kit_broken("a send of %zu bytes returned %zd, %s", m->len, ret,
			   fi_strerror((int)-ret));
	return op;
}

struct kit_op *kit_recv(struct kit_node *at, const struct kit_message *m,
			size_t room, fi_addr_t source)
{
	struct kit_op *op = kit_op_new(at, m->kind, room, 0);
	size_t i;

	op->is_recv = 1;
	op->what = "receive";
	for (i = 0; i < room; i++)
		op->bytes[i] = 0;
	kit_srx_post(&at->own_srx, op, source, m->tag, m->split);
	return op;
}

/* Returns whether @met() before the patience ends. */
static int until(int (*met)(const void *, size_t), const void *what, size_t n)
{
	int64_t end = kit_now_ms() + kit_patience_ms();
	int i;

	while (kit_now_ms() < end) {
		for (i = 0; i < PASSES_PER_LOOK; i++) {
			kit_no_breach();
			if (met(what, n))
				return 1;
			kit_progress();
		}
		sched_yield();
	}
	return 0;
}

static int has_ended(const void *op, size_t n)
{
	return ((const struct kit_op *)op)->ended >= n;
}

void kit_wait_ends(const struct kit_op *op, size_t n)
{
	kit_step("progress for the %s of %zu bytes", op->what, op->room);
	if (!until(has_ended, op, n))
		kit_broken("no completion of a %s of %zu bytes", op->what,
			   op->room);
	kit_op_guards(op);
}

void kit_wait(const struct kit_op *op)
{
	kit_wait_ends(op, 1);
}

static int has_counted(const void *count, size_t n)
{
	return ((const struct kit_count *)count)->value >= n;
}

void kit_wait_count(const struct kit_count *count, size_t n)
{
	kit_step("progress for a counter");
	if (!until(has_counted, count, n))
		kit_broken("a counter of %zu operations has the value %llu", n,
			   (unsigned long long)count->value);
}

static int has_queued(const void *srx, size_t n)
{
	return kit_srx_waiting(srx) >= n;
}

void kit_wait_queued(const struct kit_node *at, size_t n)
{
	kit_step("progress for a message without a receive");
	if (!until(has_queued, &at->own_srx, n))
		kit_broken("%zu of %zu messages without a receive were queued",
			   kit_srx_waiting(&at->own_srx), n);
}

void kit_check(const struct kit_op *recv, const struct kit_op *send,
	       const struct kit_message *m)
{
	size_t i;

	if (recv->err)
		kit_broken("a receive of %zu bytes failed: %s", m->len,
			   fi_strerror(recv->err));
	if (recv->len != m->len)
		kit_broken("the completion reports %zu bytes of %zu", recv->len,
			   m->len);
	if (m->kind == KIT_TAG && recv->tag != m->tag)
		kit_broken("the completion has the tag %#llx, not %#llx",
			   (unsigned long long)recv->tag,
			   (unsigned long long)m->tag);
	for (i = 0; i < m->len; i++) {
		if (recv->bytes[i] != kit_byte(send->seed, i))
			kit_broken("byte %zu of %zu is wrong", i, m->len);
	}
}

void kit_check_source(const struct kit_op *recv, fi_addr_t source)
{
	if (recv->node->world->info->caps & FI_SOURCE && recv->source != source)
		kit_broken("the completion has the source %#llx, not %#llx",
			   (unsigned long long)recv->source,
			   (unsigned long long)source);
}

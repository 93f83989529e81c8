/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of a rule.
 *
 * Invariant: an operation stays where it is until the process ends, so that a
 * context that the provider keeps for too long is recognized.
 *
 * No lock: one thread.
 */
#include "kit/op.h"

#include <stdlib.h>
#include <string.h>

#include "kit/node.h"
#include "kit/rule.h"

enum { OPS_MOST = 8192, GUARD_BYTES = 64, GUARD = 0xa5 };

static struct kit_op ops[OPS_MOST];
static size_t used;

unsigned char kit_byte(uint32_t seed, size_t at)
{
	return (unsigned char)((at + seed) * 2654435761u >> 13);
}

struct kit_op *kit_op_new(struct kit_node *node, enum kit_kind kind,
			  size_t room, uint32_t seed)
{
	struct kit_op *op;
	size_t i;

	if (used == OPS_MOST)
		abort();
	op = &ops[used++];
	op->bytes = malloc(room + 2 * GUARD_BYTES);
	if (!op->bytes)
		abort();
	memset(op->bytes, GUARD, room + 2 * GUARD_BYTES);
	op->bytes += GUARD_BYTES;
	for (i = 0; i < room; i++)
		op->bytes[i] = kit_byte(seed, i);
	op->node = node;
	op->kind = kind;
	op->what = "send";
	op->room = room;
	op->seed = seed;
	return op;
}

struct kit_op *kit_op_of(const void *context)
{
	const char *at = context, *first = (const char *)ops;

	if (at < first || at >= (const char *)&ops[used] ||
	    (size_t)(at - first) % sizeof(*ops))
		return NULL;
	return &ops[(size_t)(at - first) / sizeof(*ops)];
}

void kit_op_guards(const struct kit_op *op)
{
	const unsigned char *before = op->bytes - GUARD_BYTES;
	const unsigned char *behind = op->bytes + op->room;
	size_t i;

	for (i = 0; i < GUARD_BYTES; i++) {
		if (before[i] != GUARD || behind[i] != GUARD)
			kit_broken("bytes outside of a buffer of %zu bytes "
				   "were written",
				   op->room);
	}
}

void kit_op_note(struct kit_op *op, const struct fi_cq_err_entry *end)
{
	if (op->ended < KIT_PARTS_MOST)
		op->part[op->ended] = (struct kit_part){ end->buf, end->len };
	op->ended++;
	op->data = end->data;
	op->tag = end->tag;
	op->len = end->len;
	op->olen = end->olen;
	op->buf = end->buf;
	op->source = end->src_addr;
	op->err = end->err;
}

void kit_op_end(const struct kit_queue *queue,
		const struct fi_cq_err_entry *end)
{
	struct kit_op *op = kit_op_of(end->op_context);

	if (!op) {
		kit_breach("a completion (flags %#llx, error %d) has the "
			   "context %p, which is of no operation",
			   (unsigned long long)end->flags, end->err,
			   end->op_context);
		return;
	}
	if (op->ended && !op->is_multi)
		kit_breach("a second completion of one %s", op->what);
	if (queue != kit_queue_of(op))
		kit_breach("the completion of a %s came to the queue of %s",
			   op->what, op->is_recv ? "sends" : "receives");
	op->queue = queue;
	op->flags = end->flags;
	kit_op_note(op, end);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of a rule: each send and receive, its bytes, and how it ended. */
#ifndef KIT_OP_H
#define KIT_OP_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

struct kit_node;
struct kit_queue;

enum kit_kind { KIT_MSG, KIT_TAG, KIT_KINDS };

enum { KIT_PARTS_MOST = 8 };

/* What a message of a receive of many brought. */
struct kit_part {
	void *buf;
	size_t len;
};

struct kit_op {
	struct fi_context2 context; /* first member: what the provider gets */
	struct kit_node *node;
	enum kit_kind kind;
	const char *what; /* "send", "receive" or "read" */
	int is_recv;
	int is_multi; /* a receive of many messages */
	uint32_t seed;
	size_t room;	      /* of bytes */
	unsigned char *bytes; /* between two guards; freed never */
	/* the completion */
	unsigned ended; /* how many; may be more than 1 if is_multi */
	const struct kit_queue *queue;
	uint64_t flags, data, tag;
	size_t len, olen;
	void *buf;
	fi_addr_t source;
	int err;
	struct kit_part part[KIT_PARTS_MOST];
};

/* Returns a new operation with @room bytes, which have the pattern of @seed. */
struct kit_op *kit_op_new(struct kit_node *node, enum kit_kind kind,
			  size_t room, uint32_t seed);

/* Returns the operation whose context is @context, or NULL. */
struct kit_op *kit_op_of(const void *context);

/* Returns the byte at @at of the pattern of @seed. */
unsigned char kit_byte(uint32_t seed, size_t at);

/* Breaks the rule if bytes around those of @op were written. */
void kit_op_guards(const struct kit_op *op);

/* Note in @op one completion: all of @end but its flags. */
void kit_op_note(struct kit_op *op, const struct fi_cq_err_entry *end);

/*
 * Note a completion, which came to @queue. What cannot be one of @context is a
 * breach.
 */
void kit_op_end(const struct kit_queue *queue,
		const struct fi_cq_err_entry *end);

#endif /* KIT_OP_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subject as the works see it: two-sided messages between two processes, and
 * what else it can do. The calls never fail: a subject that cannot go on tells
 * the runner and ends (bench_die()).
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include "bench/ctl.h"

enum {
	BENCH_SLOTS = 1 << 14, /* operations under way */
	/*
	 * Of each direction, each side: the largest message with a header, and
	 * larger than caches. Some 46 processes have two of them each.
	 */
	BENCH_BUFFER_BYTES = (1 << 26) + (1 << 12),
};

struct bench_subject {
	struct bench_ctl *ctl;
	struct bench_ctl *first; /* the page of the first pair, may be ctl */
	int side;
	/* BENCH_BUFFER_BYTES each, the region that @read and @write name */
	unsigned char *tx, *rx;
	const struct bench_ops *ops;
	void *priv;
	size_t inject_most; /* bytes */
	const char *provider;
};

/* Kinds of write; each but the first has one request more than a completion. */
enum bench_write {
	BENCH_WRITE_PLAIN,
	BENCH_WRITE_TO_PLACE, /* FI_DELIVERY_COMPLETE */
	BENCH_WRITE_TELL,     /* remote CQ data; injected where it is short */
};

/*
 * @slot: 0 to BENCH_SLOTS - 1, one operation at a time of each direction.
 * NULL: the subject cannot do this.
 */
struct bench_ops {
	void (*recv)(struct bench_subject *s, void *buf, size_t len,
		     uint64_t tag, unsigned slot);
	void (*send)(struct bench_subject *s, const void *buf, size_t len,
		     uint64_t tag, unsigned slot);
	void (*inject)(struct bench_subject *s, const void *buf, size_t len,
		       uint64_t tag);
	/* Until @left posted receives, until no sends are under way. */
	void (*wait_recv)(struct bench_subject *s, unsigned left);
	void (*wait_send)(struct bench_subject *s);
	/* Until no receives are under way; sleeps meanwhile. */
	void (*sleep_recv)(struct bench_subject *s);
	/* Make progress once; nothing is expected. */
	void (*poll)(struct bench_subject *s);
	/* One-sided, to and from offset @at of the other side's @rx or @tx. */
	void (*write)(struct bench_subject *s, const void *buf, size_t len,
		      size_t at, unsigned slot, enum bench_write how);
	void (*read)(struct bench_subject *s, void *buf, size_t len, size_t at,
		     unsigned slot);
	void (*fetch_add)(struct bench_subject *s, size_t at, unsigned slot);
	/* Until the other side has told of a write that was not waited for yet. */
	void (*wait_written)(struct bench_subject *s);
	/*
	 * For a work with objects of its own: an order comes, a batch is
	 * prepared, is done.
	 */
	void (*begin)(struct bench_subject *s, const struct bench_order *o);
	void (*prepare)(struct bench_subject *s, const struct bench_order *o);
	void (*work)(struct bench_subject *s, const struct bench_order *o);
	void (*close)(struct bench_subject *s);
};

/* Not 0 when a half round trip of @len bytes is injected. */
static inline int bench_short(const struct bench_subject *s, size_t len)
{
	return len <= s->inject_most && len <= 64;
}

/*
 * Make the process side @s->side: pin it to a core of its own, map the control
 * page at @path, and the buffers. In the first pair, that of the page at @first,
 * all pages of the buffers are written.
 */
void bench_side_init(struct bench_subject *s, const char *path,
		     const char *first);

/* Both sides, or those of all pairs that @o is for: wait for one another. */
void bench_meet(struct bench_subject *s, const struct bench_order *o);

/* Open libfabric's @provider on loopback. */
void bench_fab_open(struct bench_subject *s, const char *provider);

/* Carry out orders until BENCH_QUIT. */
void bench_side(struct bench_subject *s);

#endif /* BENCH_SUBJECT_H */

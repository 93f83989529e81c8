/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control channel of the demo: a star of plain TCP connections to rank 0,
 * by which the ranks find each other, wait for each other and exchange
 * results. It has nothing to do with what is shown; no message of the workload
 * goes over it. All ranks must run the same binary on the same kind of
 * machine: structures travel as they are in memory.
 */
#ifndef DEMO_CTL_H
#define DEMO_CTL_H

#include <stddef.h>
#include <stdint.h>

struct demo_ctl;

/* How far a rank, or all of them, have come. */
struct demo_beat {
	uint64_t msgs;	/* messages received and checked */
	uint64_t bytes; /* payload of these */
	uint64_t steps; /* anything that counts as progress, grows */
};

/*
 * Connect the @n ranks: rank 0 listens on @where ("ip:port" or "[ip]:port"),
 * the others try to connect for @timeout_ms. Returns NULL after a message.
 */
struct demo_ctl *demo_ctl_open(int rank, int n, const char *where,
			       int timeout_ms);
void demo_ctl_close(struct demo_ctl *ctl);

/*
 * Give @len bytes to all. Every rank must call it, with the same @len, and
 * then call demo_ctl_gathered() until that says 1. One at a time. 0 or -1.
 */
int demo_ctl_give(struct demo_ctl *ctl, const void *data, size_t len);

/*
 * 1: all ranks gave; n * @len bytes in rank order are in @out. 0: not yet.
 * -1: the channel is broken or a rank failed, demo_ctl_error() says which.
 */
int demo_ctl_gathered(struct demo_ctl *ctl, void *out);

/* Sleep until something arrives, at most @timeout_ms. */
void demo_ctl_sleep(struct demo_ctl *ctl, int timeout_ms);

/*
 * Tell how far this rank is and learn how far all are: rank 0 knows the sum,
 * the others get it from rank 0 with some delay. 0, or -1 as above.
 */
int demo_ctl_beat(struct demo_ctl *ctl, const struct demo_beat *mine,
		  struct demo_beat *all);

/* This rank gives up: tell the others why. */
void demo_ctl_fail(struct demo_ctl *ctl, const char *why);

/* Why the channel is broken; "" when it is not. */
const char *demo_ctl_error(const struct demo_ctl *ctl);

#endif /* DEMO_CTL_H */

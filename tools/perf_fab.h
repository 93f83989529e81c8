/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoint of tandem-perf and its operations. What returns an int returns 0, or
 * -1 with p->c.error set, where nothing else is said.
 */
#ifndef TANDEM_PERF_FAB_H
#define TANDEM_PERF_FAB_H

#include "tools/perf.h"

/*
 * Open an endpoint for @p->job. Returns 1, with the reason in p->c.error, if the
 * provider does not offer that.
 */
int perf_fab_open(struct perf *p);
void perf_fab_close(struct perf *p);

/* Tell and take what the other side needs: "NAME KEY BASE" in hexadecimal. */
int perf_fab_describe(struct perf *p, char *text, size_t bytes);
int perf_fab_meet(struct perf *p, const char *text);

/*
 * Divide the buffers for operations of @bytes, of which @window are under way.
 * Returns 0, or -1 if they have no room.
 */
int perf_fab_divide(struct perf *p, uint64_t bytes, unsigned window);

/*
 * Post a receive, or what the pattern says, of @len bytes. @slot: 0 to the window
 * less 1, one operation at a time of each. The payload is that of @seed, and is
 * checked when the operation ends; 0: any bytes. perf_post() of an operation that
 * reads expects it, of others writes it.
 */
int perf_post_receive(struct perf *p, unsigned slot, uint64_t len,
		      uint64_t seed);
int perf_post(struct perf *p, unsigned slot, uint64_t len, uint64_t seed);

/* Is @len bytes at @slot of @p->rx the payload of @seed? */
int perf_is_right(struct perf *p, unsigned slot, uint64_t len, uint64_t seed);

/* Until at most @left are under way. */
int perf_wait_sent(struct perf *p, unsigned left);
int perf_wait_received(struct perf *p, unsigned left);

/* Read the queue once. Returns 0 or -1. */
int perf_progress(struct perf *p);

/* For perf_control: perf_progress() when an endpoint is open. */
int perf_idle_progress(void *p);

/*
 * Write how messages reach the peer to @text of @bytes, as tandem says; empty
 * for another provider.
 */
void perf_fab_path(const struct perf *p, char *text, size_t bytes);

#endif /* TANDEM_PERF_FAB_H */

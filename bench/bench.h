/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the measuring programs: one libfabric endpoint per process,
 * joined to one other, and bare sockets as its limit. Every failure ends the
 * process with a message: a benchmark has nobody to report to.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>

/* Bytes a provider adds to a small tagged message: record header and tag. */
enum { BENCH_HEADER_BYTES = 16 };

struct bench_ep;

/* Two connected TCP sockets over loopback: NODELAY, non-blocking. */
void bench_socket_pair(int fds[2]);

/* Two connected local sockets for exchanging names. */
void bench_name_pair(int fds[2]);

/* @count round trips of @bytes; @leader sends first. Busy-polls. */
void bench_socket_batch(int fd, size_t bytes, int count, int leader);

/*
 * Open @prov (FI_EP_RDM, FI_TAGGED, FI_THREAD_DOMAIN) on loopback, exchange
 * names over @name_fd with the process at its other end, post two receives, so
 * that there is always one ahead. @bytes: largest message.
 */
struct bench_ep *bench_open(const char *prov, int name_fd, size_t bytes);

/* @count tagged round trips of @bytes; @leader sends first. Busy-polls. */
void bench_tagged_batch(struct bench_ep *ep, size_t bytes, int count,
			int leader);

void bench_close(struct bench_ep *ep);

#endif /* BENCH_BENCH_H */

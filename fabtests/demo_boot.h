/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the ranks of the demo find each other: rank 0 listens, the others
 * connect and say who they are.
 */
#ifndef DEMO_BOOT_H
#define DEMO_BOOT_H

/*
 * Rank 0: listen on @where ("ip:port" or "[ip]:port") until ranks 1..@n-1 are
 * connected. Out: fds[1..n-1]. 0, or -1 after a message to stderr. Descriptors
 * in @fds belong to the caller in either case.
 */
int demo_boot_host(int n, const char *where, int timeout_ms, int *fds);

/* Another rank: connect, again and again until @timeout_ms. Out: fds[0]. */
int demo_boot_join(int rank, int n, const char *where, int timeout_ms,
		   int *fds);

#endif /* DEMO_BOOT_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resources that a process holds. Tests compare them before and after: a leak is
 * a difference.
 */
#ifndef TDT_HOLDINGS_H
#define TDT_HOLDINGS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tdt_holdings {
	size_t descriptors, segments, threads;
	size_t bytes; /* of malloc(3) in use */
};

/* Descriptors of this process, and three entries of the folder. */
size_t tdt_open_files(void);

/* Out: *@now, of this process. Threads that run on may change it meanwhile. */
void tdt_holdings(struct tdt_holdings *now);

#ifdef __cplusplus
}
#endif

#endif /* TDT_HOLDINGS_H */

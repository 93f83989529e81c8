/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breaks a TCP connection of another process, as a middlebox does that has
 * forgotten it.
 */
#ifndef TDT_SOAK_SEVER_H
#define TDT_SOAK_SEVER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reset a connection of process @pid, drawn by *@random: both ends read an error,
 * and what neither has read is lost. Returns 0, or -1: it has none, or this process
 * may not.
 */
int tdt_soak_sever(int pid, uint64_t *random);

#ifdef __cplusplus
}
#endif

#endif /* TDT_SOAK_SEVER_H */

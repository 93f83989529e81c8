/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record for which there is no memory waits in the staging buffer of its loop, which
 * all connections share: nothing is read from any of them meanwhile. Lock: held.
 */
#ifndef TDM_TCP_WIRE_STALL_H
#define TDM_TCP_WIRE_STALL_H

#include <stddef.h>
#include <stdint.h>

struct tdm_conn;
struct tdm_tcp;

/*
 * Called when there is no memory for the record at the start of @p[n], in the staging
 * buffer: keeps the bytes there, and has the next pass try again.
 */
void tdm_stall(struct tdm_conn *c, const uint8_t *p, size_t n);

/*
 * Called in each pass while a record of an endpoint waits for memory: if one or the
 * other has waited for 200 ms on end, ends the session of the stranger of this endpoint
 * that holds most. The caller does not walk the list of connections.
 */
void tdm_stall_relieve(struct tdm_tcp *tcp);

/* The bytes of @c that may wait are not needed any more. */
void tdm_stall_forget(struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_STALL_H */

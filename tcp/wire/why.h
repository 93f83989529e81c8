/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of the log for a greeting that was refused. Lock: none. */
#ifndef TDM_TCP_WIRE_WHY_H
#define TDM_TCP_WIRE_WHY_H

struct tdm_wire_greeting;

/*
 * Returns what the log says of a greeting, @g of the peer, that was not accepted
 * for @reason, enum tdm_wire_reason; 0: for what its versions and features say;
 * other values: who sent it did not prove to be the peer. Valid until the next
 * call of this thread.
 */
const char *tdm_wire_why(const struct tdm_wire_greeting *g, int reason);

#endif /* TDM_TCP_WIRE_WHY_H */

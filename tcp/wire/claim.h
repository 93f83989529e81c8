/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity that a guest claims, and whether it is believed. All functions:
 * domain lock held.
 */
#ifndef TDM_TCP_WIRE_CLAIM_H
#define TDM_TCP_WIRE_CLAIM_H

#include "tcp/wire/tcp.h"

/*
 * May the guest on @fd, from @from, have the session that its HELLO @g asks
 * for? The scope of g->addr is filled in. Returns 0, enum tdm_wire_reason for
 * a REJECT, or -1: close without an answer.
 */
int tdm_claim_check(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g);

#endif /* TDM_TCP_WIRE_CLAIM_H */

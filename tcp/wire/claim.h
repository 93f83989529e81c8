/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity that a guest claims, and whether it is believed. All functions:
 * domain lock held.
 */
#ifndef TDM_TCP_WIRE_CLAIM_H
#define TDM_TCP_WIRE_CLAIM_H

#include "tcp/wire/tcp.h"

/*
 * Not 0 when the address that the guest from @from claims in @g has its IP. Fills
 * in the scope of g->addr.
 */
int tdm_claim_same_ip(const struct tdm_addr *from, struct tdm_wire_greeting *g);

/*
 * Decide whether the guest on @fd, from @from, may have the session that its
 * HELLO @g asks for. Fills in the scope of g->addr. Returns 0: it may; an enum
 * tdm_wire_reason: answer with a REJECT; -1: close without an answer.
 */
int tdm_claim_check(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g);

#endif /* TDM_TCP_WIRE_CLAIM_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/* From a guest (listen.c) to a session; admit.c. Lock: held. */
#ifndef TDM_TCP_WIRE_ADMIT_H
#define TDM_TCP_WIRE_ADMIT_H

#include "tcp/wire/prove.h"
#include "tcp/wire/sock.h"

/*
 * Called when a guest on @s, from @from, has sent @g, a HELLO or RESUME. Returns
 * 0: @s now belongs to a connection. Else the caller drops @s: for a positive
 * value (enum tdm_wire_reason) after a REJECT, for -1 without an answer.
 */
int tdm_admit_guest(struct tdm_tcp *tcp, struct tdm_sock s,
		    const struct tdm_addr *from, struct tdm_wire_greeting *g);

/*
 * Called when a guest on @s, from @from, has sent ch->hello and keys are
 * required. Returns 0: it knows a key, or replays a peer that does, and was
 * answered; its proof has to follow. Else as tdm_admit_guest().
 */
int tdm_admit_challenge(struct tdm_tcp *tcp, struct tdm_sock s,
			const struct tdm_addr *from, struct tdm_challenge *ch);

/*
 * Called when the guest has sent ch->proof. Returns 0: @s belongs to a
 * connection; else the caller drops it.
 */
int tdm_admit_proven(struct tdm_tcp *tcp, struct tdm_sock s,
		     const struct tdm_addr *from,
		     const struct tdm_challenge *ch);

#endif /* TDM_TCP_WIRE_ADMIT_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The proofs in the greetings of endpoints with keys.
 *
 *	initiator				acceptor
 *	HELLO, nonce, proof H of it    ------>	which key is that? none: no answer
 *	is it S of both HELLOs?	       <------	HELLO, nonce, proof S of both
 *	proof C of both, whole	       ------>	is it? else no answer
 *	any byte: a session	       <------	a session: an ACK at once
 *
 * Without a valid H the acceptor does not answer. An attacker who replays a
 * HELLO gets an answer that he cannot use. S and C cover both nonces, both
 * incarnations, both addresses and all negotiated values. The letter is part of
 * a proof, so that no proof can be replayed as another.
 *
 * Lock: held. Spec: doc/PROTOCOL.md "Keys", doc/PROTOCOL-tcp.md "Keys".
 */
#include "tcp/wire/prove.h"

#include <rdma/fi_errno.h>

#include "tcp/wire/out.h"

enum {
	NONCE_AT = TDM_WIRE_PROVEN_BYTES - TDM_AUTH_NONCE_BYTES,
};

/*
 * Returns the bytes that the proof in the greeting @p covers; @first as in
 * tdm_prove_hello().
 */
static struct tdm_auth_text text_of(const uint8_t *p, const uint8_t *first)
{
	return tdm_auth_text(p, TDM_WIRE_PROVEN_BYTES, first,
			     TDM_WIRE_GREETING_BYTES);
}

int tdm_prove_hello(const struct tdm_auth_key *key, uint8_t *p,
		    const uint8_t *first)
{
	struct tdm_auth_text text = text_of(p, first);
	int ret = tdm_auth_nonce(p + NONCE_AT);

	return ret ? ret :
		     tdm_auth_prove(key,
				    first ? TDM_AUTH_TCP_SERVER :
					    TDM_AUTH_TCP_HELLO,
				    &text, p + TDM_WIRE_PROVEN_BYTES);
}

const struct tdm_auth_key *tdm_prove_guest(const struct tdm_auth_keys *keys,
					   const struct tdm_wire_greeting *g,
					   const uint8_t *p)
{
	struct tdm_auth_text text = text_of(p, NULL);

	if (g->kind == TDM_WIRE_REJECT ||
	    !(g->features & TDM_WIRE_FEATURE_AUTH))
		return NULL;
	return tdm_auth_which(keys, TDM_AUTH_TCP_HELLO, &text, g->proof);
}

int tdm_prove_check(const struct tdm_auth_key *key, const uint8_t *p,
		    const uint8_t *first)
{
	struct tdm_auth_text text = text_of(p, first);

	return tdm_auth_check(key, TDM_AUTH_TCP_SERVER, &text,
			      p + TDM_WIRE_PROVEN_BYTES);
}

int tdm_prove_end(const struct tdm_conn *c, const struct tdm_auth_key *key,
		  uint8_t *proof)
{
	const uint8_t *own = c->setup->greeting + TDM_WIRE_GREETING_BYTES;
	const struct tdm_auth_text text = { own, TDM_WIRE_GREETING_BYTES,
					    c->setup->greeting,
					    TDM_WIRE_GREETING_BYTES };

	return tdm_auth_prove(key, TDM_AUTH_TCP_CLIENT, &text, proof);
}

int tdm_prove_last(struct tdm_conn *c, const struct tdm_auth_key *key)
{
	struct tdm_out *out = tdm_out_room(c, TDM_AUTH_PROOF_BYTES);
	int ret;

	if (!out)
		return -FI_ENOMEM;
	ret = tdm_prove_end(c, key, out->bytes + out->tail);
	if (!ret)
		out->tail += TDM_AUTH_PROOF_BYTES;
	return ret;
}

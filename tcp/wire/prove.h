/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Greetings with keys: prove.c makes the proofs, hello.c and admit.c decide on them. For
 * the files of the TCP transport. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_PROVE_H
#define TDM_TCP_WIRE_PROVE_H

#include "tcp/wire/tcp.h"

/* The greetings exchanged with a guest when keys are required. */
struct tdm_challenge {
	uint8_t hello[TDM_WIRE_GREETING_BYTES];	 /* from the guest */
	uint8_t answer[TDM_WIRE_GREETING_BYTES]; /* our answer */
	/* the guest's answer to that */
	uint8_t proof[TDM_AUTH_PROOF_BYTES];
	/* the key that the guest has to prove */
	const struct tdm_auth_key *key;
	uint64_t credit; /* in our answer; of a RESUME: stream received */
};

/*
 * Add nonce and proof to @p, a HELLO that is about to be sent. @first: the
 * HELLO that it answers, or NULL if it opens the greeting. Errors: -FI_ENOMEM,
 * -FI_ENODATA.
 */
int tdm_prove_hello(const struct tdm_auth_key *key, uint8_t *p,
		    const uint8_t *first) tdm_must_check;

/*
 * Returns the key of @keys that @p proves, a HELLO that opens a greeting and
 * was decoded to @g; NULL: none.
 */
const struct tdm_auth_key *tdm_prove_guest(const struct tdm_auth_keys *keys,
					   const struct tdm_wire_greeting *g,
					   const uint8_t *p);

/* Not 0 when the answer @p to our HELLO @first proves @key. */
int tdm_prove_check(const struct tdm_auth_key *key, const uint8_t *p,
		    const uint8_t *first);

/*
 * Write the last proof of @c, whose greetings are in c->setup, to
 * @proof[TDM_AUTH_PROOF_BYTES]. Errors: -FI_ENOMEM.
 */
int tdm_prove_end(const struct tdm_conn *c, const struct tdm_auth_key *key,
		  uint8_t *proof) tdm_must_check;

/*
 * Append the last proof to the output of @c, which is GREETING. Errors:
 * -FI_ENOMEM.
 */
int tdm_prove_last(struct tdm_conn *c,
		   const struct tdm_auth_key *key) tdm_must_check;

#endif /* TDM_TCP_WIRE_PROVE_H */

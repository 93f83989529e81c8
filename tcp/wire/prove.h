/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Greetings with keys: prove.c has the proofs, hello.c what becomes of them.
 * For the files of the TCP transport. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_PROVE_H
#define TDM_TCP_WIRE_PROVE_H

#include "tcp/wire/tcp.h"

/* Greetings of a guest and to it, where keys are asked for. */
struct tdm_challenge {
	uint8_t hello[TDM_WIRE_GREETING_BYTES];	 /* what it said */
	uint8_t answer[TDM_WIRE_GREETING_BYTES]; /* what it was told */
	uint8_t proof[TDM_AUTH_PROOF_BYTES];	 /* what it said to that */
	const struct tdm_auth_key *key;		 /* that it is to prove */
	uint64_t credit;			 /* promised in the answer */
};

/*
 * A guest on @fd, from @from, has said ch->hello, where keys are asked for. 0:
 * it knows one, or repeats somebody who does, and was answered: its proof is to
 * follow. Else as tdm_hello_guest().
 */
int tdm_hello_challenge(struct tdm_tcp *tcp, int fd,
			const struct tdm_addr *from, struct tdm_challenge *ch);

/* It has said ch->proof. 0: @fd belongs to a connection. Else it is closed. */
int tdm_hello_proven(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		     const struct tdm_challenge *ch);

/*
 * Give the greeting at @p, a HELLO, nonce and proof: of @first, by which the
 * other side began, or (NULL) of a first one. Errors: -FI_ENOMEM, -FI_ENODATA.
 */
int tdm_prove_hello(const struct tdm_auth_key *key, uint8_t *p,
		    const uint8_t *first) tdm_must_check;

/* Which of @keys the first HELLO @p, decoded to @g, proves; NULL: none. */
const struct tdm_auth_key *tdm_prove_guest(const struct tdm_auth_keys *keys,
					   const struct tdm_wire_greeting *g,
					   const uint8_t *p);

/* Not 0 when the answer @p to our HELLO @first proves @key. */
int tdm_prove_check(const struct tdm_auth_key *key, const uint8_t *p,
		    const uint8_t *first);

/* Append the last proof to the output of @c, GREETING. Errors: -FI_ENOMEM. */
int tdm_prove_last(struct tdm_conn *c,
		   const struct tdm_auth_key *key) tdm_must_check;

#endif /* TDM_TCP_WIRE_PROVE_H */

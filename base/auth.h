/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys, fi_endpoint(3) auth_key: secrets of which only proofs
 * leave the process. Both tiers prove them in the handshake that makes a
 * session; doc/PROTOCOL.md "Keys" has the transcript. The definitions are in
 * base/auth.c, the only user of libcrypto.
 *
 * The calls keep no state and need no lock.
 */
#ifndef TDM_BASE_AUTH_H
#define TDM_BASE_AUTH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

enum {
	TDM_AUTH_LEAST_BYTES = 16, /* of a key */
	TDM_AUTH_MOST_BYTES = 64,
	TDM_AUTH_NONCE_BYTES = 16,
	TDM_AUTH_PROOF_BYTES = 32,
	TDM_AUTH_KEYS_MOST = 32, /* at most in one endpoint */
};

/* Role and purpose of a proof; the first byte that goes into it. */
enum tdm_auth_role {
	TDM_AUTH_TCP_HELLO = 'H',  /* the initiator, in its first words */
	TDM_AUTH_TCP_SERVER = 'S', /* the acceptor, in its answer */
	TDM_AUTH_TCP_CLIENT = 'C', /* the initiator, having read that */
	TDM_AUTH_SHM_HELLO = 'h',
	TDM_AUTH_SHM_SERVER = 's',
	TDM_AUTH_SHM_CLIENT = 'c',
};

struct tdm_auth_key {
	uint32_t id;   /* of the key's AV; 0: the endpoint's own key */
	uint32_t size; /* bytes */
	uint8_t bytes[TDM_AUTH_MOST_BYTES];
};

/* Is @k the key of @size bytes at @key? */
static inline int tdm_auth_is(const struct tdm_auth_key *k, const void *key,
			      size_t size)
{
	return k->size == size && !memcmp(k->bytes, key, size);
}

/* The keys of an endpoint, as they were when it was enabled. */
struct tdm_auth_keys {
	size_t count;
	struct tdm_auth_key key[];
};

/* Is @size that of a key? */
static inline int tdm_auth_size_ok(size_t size)
{
	return size >= TDM_AUTH_LEAST_BYTES && size <= TDM_AUTH_MOST_BYTES;
}

/*
 * Memory for @count keys, all bytes 0; NULL: out of memory. tdm_auth_free()
 * wipes it.
 */
struct tdm_auth_keys *tdm_auth_alloc(size_t count);
void tdm_auth_free(struct tdm_auth_keys *keys);

/*
 * A list with one key, the @size bytes at @key. tdm_auth_size_ok(@size) must
 * hold. NULL: out of memory.
 */
struct tdm_auth_keys *tdm_auth_one(const void *key, size_t size);

/* The key @id of @keys, or NULL. @keys may be NULL. */
const struct tdm_auth_key *tdm_auth_find(const struct tdm_auth_keys *keys,
					 uint32_t id);

/* The bytes that a proof covers: two ranges, one after the other. */
struct tdm_auth_text {
	const void *a;
	size_t a_len; /* bytes; both together at most 512 */
	const void *b;
	size_t b_len;
};

/*
 * The text that the proof in a message covers: the first @own bytes of the
 * message at @at; when it is an answer, also the @all bytes at @first that it
 * answers.
 */
static inline struct tdm_auth_text tdm_auth_text(const void *at, size_t own,
						 const void *first, size_t all)
{
	const struct tdm_auth_text alone = { at, own, NULL, 0 };
	const struct tdm_auth_text both = { first, all, at, own };

	return first ? both : alone;
}

/*
 * Write to @proof[TDM_AUTH_PROOF_BYTES] the proof that @role knows @key, for
 * @text. Errors: -FI_ENOMEM.
 */
int tdm_auth_prove(const struct tdm_auth_key *key, enum tdm_auth_role role,
		   const struct tdm_auth_text *text,
		   uint8_t *proof) tdm_must_check;

/*
 * Not 0 when @proof is the one that tdm_auth_prove() makes. The time taken does
 * not depend on where the two differ.
 */
int tdm_auth_check(const struct tdm_auth_key *key, enum tdm_auth_role role,
		   const struct tdm_auth_text *text, const uint8_t *proof);

/* The first of @keys whose proof is @proof, or NULL. */
const struct tdm_auth_key *tdm_auth_which(const struct tdm_auth_keys *keys,
					  enum tdm_auth_role role,
					  const struct tdm_auth_text *text,
					  const uint8_t *proof);

/* Fill @nonce[TDM_AUTH_NONCE_BYTES]. Errors: -FI_ENODATA. */
int tdm_auth_nonce(uint8_t *nonce) tdm_must_check;

/* Overwrite @n bytes of a secret. */
void tdm_auth_wipe(void *p, size_t n);

#endif /* TDM_BASE_AUTH_H */

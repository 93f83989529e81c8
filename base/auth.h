/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys, fi_endpoint(3) auth_key: secrets of which only proofs
 * leave the process. Both tiers prove them in the handshake that makes a
 * session; doc/PROTOCOL.md "Keys" has the transcript. The definitions are in
 * base/auth.c, the only user of libcrypto.
 *
 * Proofs, which arrive from outside, are compared in constant time
 * (tdm_auth_check()); tdm_auth_is() compares keys that this process already
 * has. The calls keep no state and need no lock.
 */
#ifndef TDM_BASE_AUTH_H
#define TDM_BASE_AUTH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

enum {
	TDM_AUTH_LEAST_BYTES = 16, /* shortest key */
	TDM_AUTH_MOST_BYTES = 64,
	TDM_AUTH_NONCE_BYTES = 16,
	TDM_AUTH_PROOF_BYTES = 32,
	TDM_AUTH_KEYS_MOST = 32, /* greatest number of keys of an endpoint */
};

/*
 * The maker of a proof and the message that carries it. The value is the first
 * byte that the proof covers after the protocol's label.
 */
enum tdm_auth_role {
	TDM_AUTH_TCP_HELLO = 'H',  /* the initiator, in its first message */
	TDM_AUTH_TCP_SERVER = 'S', /* the acceptor, in its answer */
	TDM_AUTH_TCP_CLIENT = 'C', /* the initiator, after that answer */
	TDM_AUTH_SHM_HELLO = 'h',
	TDM_AUTH_SHM_SERVER = 's',
	TDM_AUTH_SHM_CLIENT = 'c',
	/* tls_ctx.c: which key it is; what TLS takes as its secret */
	TDM_AUTH_TLS_IDENTITY = 'i',
	TDM_AUTH_TLS_SECRET = 't',
};

struct tdm_auth_key {
	uint32_t id;   /* of the key's AV; 0: the endpoint's own key */
	uint32_t size; /* bytes */
	uint8_t bytes[TDM_AUTH_MOST_BYTES];
};

/*
 * Not 0 when @k is the key of @size bytes at @key. Both are the process's own:
 * the time taken depends on where they differ.
 */
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

/* Not 0 when a key may have @size bytes. */
static inline int tdm_auth_size_ok(size_t size)
{
	return size >= TDM_AUTH_LEAST_BYTES && size <= TDM_AUTH_MOST_BYTES;
}

/*
 * Allocates an array of @count keys, all bytes 0. The caller frees it with
 * tdm_auth_free(), which wipes the keys. NULL: out of memory.
 */
struct tdm_auth_keys *tdm_auth_alloc(size_t count);
void tdm_auth_free(struct tdm_auth_keys *keys);

/*
 * Allocates an array with one key, a copy of the @size bytes at @key, and id 0.
 * tdm_auth_size_ok(@size) must hold. The caller frees it with tdm_auth_free().
 * NULL: out of memory.
 */
struct tdm_auth_keys *tdm_auth_one(const void *key, size_t size);

/* Returns the key of @keys whose id is @id, or NULL. @keys may be NULL. */
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
 * Returns the text that the proof in a message covers: the first @own bytes of
 * the message at @at; if it answers a message, also that message, the @all
 * bytes at @first, which come first. @first is NULL if it answers none.
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
 * not depend on where they differ.
 */
int tdm_auth_check(const struct tdm_auth_key *key, enum tdm_auth_role role,
		   const struct tdm_auth_text *text, const uint8_t *proof);

/*
 * Returns the first of @keys for which tdm_auth_check() accepts @proof, or
 * NULL. Checks all keys, so that the time taken does not tell which one
 * matched.
 */
const struct tdm_auth_key *tdm_auth_which(const struct tdm_auth_keys *keys,
					  enum tdm_auth_role role,
					  const struct tdm_auth_text *text,
					  const uint8_t *proof);

/*
 * Not 0 when @a and @b are equal in @n bytes; the time does not depend on where
 * they differ.
 */
int tdm_auth_equal(const void *a, const void *b, size_t n);

/* Fill @nonce[TDM_AUTH_NONCE_BYTES] with random bytes. Errors: -FI_ENODATA. */
int tdm_auth_nonce(uint8_t *nonce) tdm_must_check;

/* Overwrite @n bytes of a secret. */
void tdm_auth_wipe(void *p, size_t n);

#endif /* TDM_BASE_AUTH_H */

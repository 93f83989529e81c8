/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proofs of authorization keys: HMAC-SHA256 by libcrypto. See base/auth.h.
 *
 * A proof is the HMAC, under the key, of a label of this protocol, the role of
 * its maker, and the two ranges of the text with their lengths. So no proof is
 * good in another role, for another tier, or for a text cut elsewhere.
 *
 * Locking: none, no state. Spec: doc/PROTOCOL.md "Keys".
 */
#include "base/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"

enum { TEXT_MOST_BYTES = 512 };

static const char label[16] = "tandem key 1";

struct tdm_auth_keys *tdm_auth_alloc(size_t count)
{
	struct tdm_auth_keys *keys =
		calloc(1, sizeof(*keys) + count * sizeof(keys->key[0]));

	if (keys)
		keys->count = count;
	return keys;
}

struct tdm_auth_keys *tdm_auth_one(const void *key, size_t size)
{
	struct tdm_auth_keys *keys = tdm_auth_alloc(1);

	if (!keys)
		return NULL;
	keys->key[0].size = (uint32_t)size;
	memcpy(keys->key[0].bytes, key, size);
	return keys;
}

void tdm_auth_free(struct tdm_auth_keys *keys)
{
	if (!keys)
		return;
	tdm_auth_wipe(keys->key, keys->count * sizeof(keys->key[0]));
	free(keys);
}

const struct tdm_auth_key *tdm_auth_find(const struct tdm_auth_keys *keys,
					 uint32_t id)
{
	size_t i;

	for (i = 0; keys && i < keys->count; i++) {
		if (keys->key[i].id == id)
			return &keys->key[i];
	}
	return NULL;
}

static uint8_t *put_len(uint8_t *p, size_t n)
{
	p[0] = (uint8_t)n;
	p[1] = (uint8_t)(n >> 8);
	return p + 2;
}

int tdm_auth_prove(const struct tdm_auth_key *key, enum tdm_auth_role role,
		   const struct tdm_auth_text *text, uint8_t *proof)
{
	uint8_t m[sizeof(label) + 5 + TEXT_MOST_BYTES], *p = m;
	unsigned int len = TDM_AUTH_PROOF_BYTES;

	if (text->a_len + text->b_len > TEXT_MOST_BYTES)
		return -FI_EINVAL;
	memcpy(p, label, sizeof(label));
	p += sizeof(label);
	*p++ = (uint8_t)role;
	p = put_len(p, text->a_len);
	p = put_len(p, text->b_len);
	memcpy(p, text->a, text->a_len);
	p += text->a_len;
	if (text->b_len)
		memcpy(p, text->b, text->b_len);
	p += text->b_len;
	if (!HMAC(EVP_sha256(), key->bytes, (int)key->size, m, (size_t)(p - m),
		  proof, &len) ||
	    len != TDM_AUTH_PROOF_BYTES)
		return -FI_ENOMEM;
	return 0;
}

int tdm_auth_check(const struct tdm_auth_key *key, enum tdm_auth_role role,
		   const struct tdm_auth_text *text, const uint8_t *proof)
{
	uint8_t mine[TDM_AUTH_PROOF_BYTES];

	return !tdm_auth_prove(key, role, text, mine) &&
	       !CRYPTO_memcmp(mine, proof, sizeof(mine));
}

int tdm_auth_equal(const void *a, const void *b, size_t n)
{
	return !CRYPTO_memcmp(a, b, n);
}

const struct tdm_auth_key *tdm_auth_which(const struct tdm_auth_keys *keys,
					  enum tdm_auth_role role,
					  const struct tdm_auth_text *text,
					  const uint8_t *proof)
{
	const struct tdm_auth_key *found = NULL;
	size_t i;

	for (i = 0; i < keys->count; i++) {
		if (tdm_auth_check(&keys->key[i], role, text, proof) && !found)
			found = &keys->key[i];
	}
	return found;
}

int tdm_auth_nonce(uint8_t *nonce)
{
	if (!tdm_os_random(nonce, TDM_AUTH_NONCE_BYTES))
		return 0;
	TDM_WARN(EP_CTRL, "no random bytes for a handshake");
	return -FI_ENODATA;
}

void tdm_auth_wipe(void *p, size_t n)
{
	OPENSSL_cleanse(p, n);
}

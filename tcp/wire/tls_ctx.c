/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admission by TLS: the peers whose handshake succeeds. See tls.h.
 *
 * With keys: the key of a pair is an external pre-shared key (RFC 8446, 4.2.11)
 * with a Diffie-Hellman exchange, so traffic that was recorded stays closed if the
 * key becomes known. The identity that the initiator sends is a random number and
 * the proof of the key for it: it tells a stranger neither the key nor which
 * connections have the same one. Until the acceptor has found a key it sends
 * nothing (tdm_tls.quiet).
 *
 * With certificates: both sides have one and check that of the other. A key of the
 * endpoint is then proven in the greeting, as without TLS.
 *
 * There are no session tickets and no early data: both sides know what they need.
 *
 * Lock: held in all of this file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "tcp/wire/tls_priv.h"

/* The suites whose hash is that of the keys' secrets. */
static const char suites[] =
	"TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
static const unsigned char first_suite[] = { 0x13, 0x01 };

/* ---- keys ---------------------------------------------------------------- */

/* Returns the TLS session that a peer with @key has for @identity, or NULL. */
static SSL_SESSION *session_of(SSL *ssl, const struct tdm_auth_key *key,
			       const uint8_t *identity)
{
	const struct tdm_auth_text text =
		tdm_auth_text(identity, TDM_AUTH_NONCE_BYTES, NULL, 0);
	const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, first_suite);
	SSL_SESSION *s = SSL_SESSION_new();
	uint8_t secret[TDM_AUTH_PROOF_BYTES];
	int ok = s && suite &&
		 !tdm_auth_prove(key, TDM_AUTH_TLS_SECRET, &text, secret) &&
		 SSL_SESSION_set1_master_key(s, secret, sizeof(secret)) &&
		 SSL_SESSION_set_cipher(s, suite) &&
		 SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION);

	tdm_auth_wipe(secret, sizeof(secret));
	if (ok)
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

/* The initiator's: say which key is used. */
static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **identity,
		   size_t *len, SSL_SESSION **session)
{
	struct tdm_tls *t = SSL_get_app_data(ssl);
	const struct tdm_auth_text text =
		tdm_auth_text(t->identity, TDM_AUTH_NONCE_BYTES, NULL, 0);

	(void)md;
	*session = NULL;
	if (!t->key)
		return 0;
	/* A second ClientHello has the same: RFC 8446, 4.1.2. */
	if (!t->drawn && (tdm_auth_nonce(t->identity) ||
			  tdm_auth_prove(t->key, TDM_AUTH_TLS_IDENTITY, &text,
					 t->identity + TDM_AUTH_NONCE_BYTES)))
		return 0;
	t->drawn = 1;
	*identity = t->identity;
	*len = sizeof(t->identity);
	*session = session_of(ssl, t->key, t->identity);
	return *session != NULL;
}

/* The acceptor's: find the key. */
static int find_key(SSL *ssl, const unsigned char *identity, size_t len,
		    SSL_SESSION **session)
{
	struct tdm_tls *t = SSL_get_app_data(ssl);
	const struct tdm_auth_text text =
		tdm_auth_text(identity, TDM_AUTH_NONCE_BYTES, NULL, 0);
	const struct tdm_auth_key *key;

	*session = NULL;
	if (len != TDM_TLS_IDENTITY_BYTES)
		return 1;
	key = tdm_auth_which(t->ctx->keys, TDM_AUTH_TLS_IDENTITY, &text,
			     identity + TDM_AUTH_NONCE_BYTES);
	if (!key)
		return 1;
	*session = session_of(ssl, key, identity);
	if (*session)
		t->quiet = 0;
	return *session != NULL;
}

static int with_keys(struct tdm_tls_ctx *ctx)
{
	SSL_CTX_set_psk_use_session_callback(ctx->ssl, use_key);
	SSL_CTX_set_psk_find_session_callback(ctx->ssl, find_key);
	return 0;
}

/* The initiator's, for a certificate: with a key none is asked for. */
static int refuse(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 0;
}

void tdm_tls_insist(struct tdm_tls *t)
{
	/* On the context it would keep acceptors from using keys. */
	if (t->ctx->keys)
		SSL_set_verify(t->ssl, SSL_VERIFY_PEER, refuse);
}

/* ---- certificates -------------------------------------------------------- */

/* Tell the user that the file of @variable cannot be used. */
static int unusable(const char *variable, const char *file)
{
	const unsigned long err = ERR_peek_error();
	const char *why = ERR_reason_error_string(err);

#ifdef ERR_SYSTEM_ERROR
	if (ERR_SYSTEM_ERROR(err))
		why = strerror(ERR_GET_REASON(err));
#endif
	tdm_tell_user("%s=%s cannot be used: %s", variable, file ? file : "",
		      file ? why ? why : "unknown error" : "it is not set");
	ERR_clear_error();
	return -FI_ENOKEY;
}

/* Nobody is asked for the pass phrase of a private key. */
static int no_pass_phrase(char *buf, int size, int writes, void *arg)
{
	(void)buf;
	(void)size;
	(void)writes;
	(void)arg;
	return -1;
}

static int with_certificates(struct tdm_tls_ctx *ctx)
{
	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb(ctx->ssl, no_pass_phrase);
	if (!tdm_env.tls_cert ||
	    SSL_CTX_use_certificate_chain_file(ctx->ssl, tdm_env.tls_cert) != 1)
		return unusable("FI_TANDEM_TLS_CERT", tdm_env.tls_cert);
	if (!tdm_env.tls_key ||
	    SSL_CTX_use_PrivateKey_file(ctx->ssl, tdm_env.tls_key,
					SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx->ssl) != 1)
		return unusable("FI_TANDEM_TLS_KEY", tdm_env.tls_key);
	if (!tdm_env.tls_ca ||
	    SSL_CTX_load_verify_locations(ctx->ssl, tdm_env.tls_ca, NULL) != 1)
		return unusable("FI_TANDEM_TLS_CA", tdm_env.tls_ca);
	SSL_CTX_set_verify(ctx->ssl,
			   SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
			   NULL);
	ctx->keys = NULL;
	return 0;
}

/* ---- both ---------------------------------------------------------------- */

/* Not 0 when the user has set a file of certificates. */
static int certified(void)
{
	return tdm_env.tls_cert || tdm_env.tls_key || tdm_env.tls_ca;
}

static int set_up(SSL_CTX *ssl)
{
	SSL_CTX_set_options(ssl,
			    SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_ciphersuites(ssl, suites) == 1 &&
	       SSL_CTX_set_num_tickets(ssl, 0) == 1;
}

int tdm_tls_ctx_open(const struct tdm_auth_keys *keys, struct tdm_tls_ctx **out)
{
	struct tdm_tls_ctx *ctx;
	int ret = -FI_ENOMEM;

	*out = NULL;
	if (!tdm_env.tls)
		return 0;
	if (!keys && !certified()) {
		tdm_tell_user(
			"FI_TANDEM_TLS needs a key (FI_TANDEM_AUTH_KEY_FILE) "
			"or certificates (FI_TANDEM_TLS_CERT, _KEY, _CA)");
		return -FI_ENOKEY;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -FI_ENOMEM;
	ctx->keys = keys;
	ctx->ssl = SSL_CTX_new(TLS_method());
	ctx->method = tdm_tls_method();
	if (ctx->ssl && ctx->method && set_up(ctx->ssl))
		ret = certified() ? with_certificates(ctx) : with_keys(ctx);
	if (ret) {
		tdm_tls_ctx_close(ctx);
		return ret;
	}
	*out = ctx;
	return 0;
}

void tdm_tls_ctx_close(struct tdm_tls_ctx *ctx)
{
	if (!ctx)
		return;
	SSL_CTX_free(ctx->ssl);
	BIO_meth_free(ctx->method);
	free(ctx);
}

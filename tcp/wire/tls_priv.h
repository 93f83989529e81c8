/* SPDX-License-Identifier: BSD-2-Clause */
/* For tls.c and tls_ctx.c. Lock: held. */
#ifndef TDM_TCP_WIRE_TLS_PRIV_H
#define TDM_TCP_WIRE_TLS_PRIV_H

#include <openssl/ssl.h>

#include "tcp/wire/tls.h"

enum {
	/* of an external key: a random number, and the proof of the key for it */
	TDM_TLS_IDENTITY_BYTES = TDM_AUTH_NONCE_BYTES + TDM_AUTH_PROOF_BYTES,
	TDM_TLS_IN_BYTES = 32 << 10,
	/* room for four whole records, or the longest flight of a handshake */
	TDM_TLS_OUT_BYTES = 68 << 10,
	/*
	 * Records that one set of keys of the cipher protects: half of what RFC
	 * 8446, 5.5 allows for AES-GCM.
	 */
	TDM_TLS_SEALED_MOST = 1 << 23,
};

struct tdm_tls_ctx {
	SSL_CTX *ssl;
	BIO_METHOD *method;		  /* of tls.c */
	const struct tdm_auth_keys *keys; /* NULL: certificates */
};

struct tdm_tls {
	struct tdm_tls_ctx *ctx;
	SSL *ssl;
	const struct tdm_auth_key *key; /* the initiator's, or NULL */
	int fd;
	int err;	/* errno of the socket, or 0 */
	char why[80];	/* of a failure, or "" */
	uint8_t quiet;	/* 1: nothing is sent, no key has been proven yet */
	uint8_t drawn;	/* 1: identity[] is valid */
	uint8_t ready;	/* 1: the handshake is done */
	uint8_t eof;	/* 1: the peer has closed the connection */
	uint8_t broken; /* 1: no more input: eof, err, or a wrong record */
	uint8_t parted; /* 1: tdm_tls_stuck() saw a part of a record, no more came */
	uint32_t sealed; /* records sent with the present keys of the cipher */
	/* bytes [from, to) of the buffers are in use */
	uint32_t in_from, in_to, out_from, out_to;
	uint8_t identity[TDM_TLS_IDENTITY_BYTES];
	uint8_t in[TDM_TLS_IN_BYTES], out[TDM_TLS_OUT_BYTES];
};

/*
 * tls.c: the methods of the BIO between an SSL and the buffers of its struct
 * tdm_tls, which is the BIO's data. NULL: out of memory.
 */
BIO_METHOD *tdm_tls_method(void);

/*
 * tls_ctx.c: with keys let @t, an initiator's, fail if the acceptor does not use
 * the key: it could else be anybody, who answers with a certificate of his own.
 */
void tdm_tls_insist(struct tdm_tls *t);

#endif /* TDM_TCP_WIRE_TLS_PRIV_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 over the TCP connections of an endpoint (FI_TANDEM_TLS), by OpenSSL. It
 * begins with the first byte of a connection, so greetings are encrypted too, and
 * whoever is not admitted by it has no way to send one.
 *
 * Each connection has a TLS session of its own, from its handshake on; a session
 * of the protocol that is resumed goes on over a new one. tls.c moves the bytes,
 * tls_ctx.c decides who is admitted: with certificates a peer that has one of
 * FI_TANDEM_TLS_CA, else one that knows a key of the endpoint.
 *
 * Layout: doc/PROTOCOL-tcp.md, "TLS". All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_TLS_H
#define TDM_TCP_WIRE_TLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/auth.h"

struct tdm_tls;	    /* of a connection */
struct tdm_tls_ctx; /* of a transport */

/*
 * Prepare TLS for a transport. @keys: its keys, valid as long as the context; or
 * NULL. Out: *@ctx, NULL without FI_TANDEM_TLS. Errors: -FI_ENOKEY: there is
 * neither a key nor a certificate, or a file cannot be used, and the user was told;
 * -FI_ENOMEM.
 */
int tdm_tls_ctx_open(const struct tdm_auth_keys *keys,
		     struct tdm_tls_ctx **ctx) tdm_must_check;

/* No TLS session of it may be left. @ctx may be NULL. */
void tdm_tls_ctx_close(struct tdm_tls_ctx *ctx);

/*
 * Allocates the TLS session of the connected socket @fd, which stays the caller's.
 * The initiator proves @key, or its certificate if there is none; NULL with
 * @accepts: the acceptor. tdm_tls_free() frees it. NULL: out of memory.
 */
struct tdm_tls *tdm_tls_new(struct tdm_tls_ctx *ctx, int fd, int accepts,
			    const struct tdm_auth_key *key);

/* Does not close the socket. @t may be NULL. */
void tdm_tls_free(struct tdm_tls *t);

/*
 * Go on with the handshake. Returns 0: done; -FI_EAGAIN: the peer has to speak;
 * -FI_ECONNREFUSED: it has failed, tdm_tls_why() says why.
 */
int tdm_tls_shake(struct tdm_tls *t) tdm_must_check;

/* Not 0 when the handshake is done. */
int tdm_tls_ready(const struct tdm_tls *t);

/* Returns why TLS has failed, in words for a log, or "". Valid as long as @t. */
const char *tdm_tls_why(const struct tdm_tls *t);

/* Not 0 while bytes that may be sent are not in the kernel yet. */
int tdm_tls_pending(const struct tdm_tls *t);

/*
 * Like sendmsg(2): take bytes of iov[@n] and offer them to the kernel. Returns how
 * many were taken, perhaps not all of them sent: tdm_tls_pending(). With @n 0 only
 * bytes taken before are offered. -1, errno: none was taken; EAGAIN during the
 * handshake.
 */
ssize_t tdm_tls_send(struct tdm_tls *t, const struct iovec *iov, size_t n);

/*
 * Like recv(2): goes on with the handshake, if it is not done. -1, errno EBADMSG:
 * what came was not what the peer has sent, so the connection must be closed;
 * ECONNREFUSED: the handshake has failed.
 */
ssize_t tdm_tls_recv(struct tdm_tls *t, uint8_t *p, size_t room);

/* Like recv(2) of one byte with MSG_PEEK. */
ssize_t tdm_tls_peek(struct tdm_tls *t);

/*
 * Not 0 when tdm_tls_recv() may have something to return although the socket has
 * nothing to read.
 */
int tdm_tls_waiting(const struct tdm_tls *t);

/*
 * To be called now and then. Not 0 when a part of a record has been waiting for the
 * rest since the last call, and no byte has come: perhaps its length, which is not
 * protected before all of it is there, has changed on its way.
 */
int tdm_tls_stuck(struct tdm_tls *t);

#endif /* TDM_TCP_WIRE_TLS_H */

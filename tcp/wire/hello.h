/* SPDX-License-Identifier: BSD-2-Clause */
/* From an address to a session; hello.c. Lock: held. */
#ifndef TDM_TCP_WIRE_HELLO_H
#define TDM_TCP_WIRE_HELLO_H

#include "tcp/wire/tcp.h"

/*
 * Open a socket for @c and connect it. @c is CONNECTING or in BACKOFF
 * afterwards, or has failed.
 */
void tdm_hello_connect(struct tdm_conn *c);

/*
 * Send HELLO on the connected socket of @c, with TLS after its handshake. @c is
 * GREETING afterwards, or in BACKOFF, or has failed.
 */
void tdm_hello_greet(struct tdm_conn *c);

/* Called when the socket of @c, which is CONNECTING, is or may be writable. */
void tdm_hello_connected(struct tdm_conn *c);

/* Called when the socket of @c, which is GREETING, is readable. */
void tdm_hello_answer(struct tdm_conn *c);

/* Returns the key by which @c must be proven, or NULL. */
const struct tdm_auth_key *tdm_hello_key(const struct tdm_conn *c);

/*
 * Called when the socket of @c, which has sent its last proof, is readable: any
 * input says that the proof was accepted. Returns 0 and *@g, the greeting of the
 * peer; -FI_EAGAIN: no input yet; or another error.
 */
int tdm_hello_confirmed(const struct tdm_conn *c, struct tdm_wire_greeting *g);

/*
 * Begin a greeting of @tcp for the connection @fd: who we are, what we
 * understand. *@g is a HELLO without credit and proof.
 */
void tdm_hello_fill(const struct tdm_tcp *tcp, int fd,
		    struct tdm_wire_greeting *g);

/* Write the HELLO with which we accepted the session of @c once more, to @p. */
void tdm_hello_repeat(const struct tdm_conn *c,
		      uint8_t p[TDM_WIRE_GREETING_BYTES]);

/* Returns the features that this side understands. */
uint32_t tdm_hello_features(const struct tdm_tcp *tcp);

/*
 * Write our HELLO, without its proof, for the connection @fd to @p. @session:
 * the id of the session that we ask for, or NULL.
 */
void tdm_hello_put(const struct tdm_tcp *tcp, int fd, uint64_t credit,
		   uint32_t announced, const uint8_t *session, uint8_t *p);

/*
 * Append our HELLO to the output of @c; @g: the peer's HELLO, or NULL. Returns 0
 * or -FI_ENOMEM.
 */
int tdm_hello_write(struct tdm_conn *c,
		    const struct tdm_wire_greeting *g) tdm_must_check;

/*
 * Our HELLO has been sent, or is the first in c->out; @g is the peer's: begin
 * the session c->session.
 */
void tdm_hello_establish(struct tdm_conn *c, const struct tdm_wire_greeting *g);

#endif /* TDM_TCP_WIRE_HELLO_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/* From a descriptor to a session; hello.c. Lock: held. */
#ifndef TDM_TCP_WIRE_HELLO_H
#define TDM_TCP_WIRE_HELLO_H

#include "tcp/wire/tcp.h"

/*
 * Open a socket for @c and connect it. @c is CONNECTING or in BACKOFF
 * afterwards, or has failed.
 */
void tdm_hello_connect(struct tdm_conn *c);

/* Send HELLO on the connected socket of @c. */
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

/*
 * Called when a guest on @fd, from @from, has sent @g, a HELLO or RESUME. Returns
 * 0: @fd now belongs to a connection. Else the caller closes @fd: for a positive
 * value (enum tdm_wire_reason) after a REJECT, for -1 without an answer.
 */
int tdm_hello_guest(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g);

#endif /* TDM_TCP_WIRE_HELLO_H */

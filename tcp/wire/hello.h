/* SPDX-License-Identifier: BSD-2-Clause */
/* From a descriptor to a session; hello.c. Lock: held. */
#ifndef TDM_TCP_WIRE_HELLO_H
#define TDM_TCP_WIRE_HELLO_H

#include "tcp/wire/tcp.h"

/* Open a socket and connect; ends in CONNECTING or BACKOFF, or @c fails. */
void tdm_hello_connect(struct tdm_conn *c);

/* Send HELLO on the connected socket of @c. */
void tdm_hello_greet(struct tdm_conn *c);

/* The socket of @c, CONNECTING, is writable, or may be. */
void tdm_hello_connected(struct tdm_conn *c);

/* The socket of @c, GREETING, is readable. */
void tdm_hello_answer(struct tdm_conn *c);

/*
 * A guest on @fd, from @from, has sent the HELLO @g. Returns 0: @fd now belongs
 * to a connection. Else the caller closes @fd: after a REJECT for a positive
 * value (enum tdm_wire_reason), without an answer for -1.
 */
int tdm_hello_guest(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g);

#endif /* TDM_TCP_WIRE_HELLO_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of connections: made, bound to the endpoint's own IP, connected,
 * closed; sock.c. Lock: held.
 */
#ifndef TDM_TCP_WIRE_SOCK_H
#define TDM_TCP_WIRE_SOCK_H

#include "tcp/wire/tcp.h"

struct tdm_tls;

/* A socket connected to a peer, with what is between it and the greetings. */
struct tdm_sock {
	int fd;
	struct tdm_tls *tls; /* NULL: without TLS */
};

/* Returns the socket of @c, which stays its own. */
static inline struct tdm_sock tdm_sock_of(const struct tdm_conn *c)
{
	const struct tdm_sock s = { c->io.fd, c->tls };

	return s;
}

/* Read from @s as recv(2) does. With TLS, goes on with its handshake before. */
ssize_t tdm_sock_recv(struct tdm_sock s, void *p, size_t room);

/* Like recv(2) of one byte with MSG_PEEK. */
ssize_t tdm_sock_peek(struct tdm_sock s);

/*
 * Send the greeting @p[@n], in pieces if need be. The send buffer of a new socket is
 * empty, so it fits. Returns 0, or -1: the attempt to connect is over.
 */
int tdm_sock_put(struct tdm_sock s, const void *p, size_t n);

/*
 * Offer bytes [*@from, *@to) of @buf to the kernel. Returns 0: it has all of them,
 * and both are 0; -1, errno: *@from is the first that it has not.
 */
int tdm_sock_flush(int fd, const uint8_t *buf, uint32_t *from, uint32_t *to);

/* Returns the events (TDM_LOOP_*) for which @s waits during the greetings. */
int tdm_sock_events(struct tdm_sock s);

/* Log why the TLS of @c has failed, if it has. */
void tdm_sock_tell(const struct tdm_conn *c);

/* Close @s, which belongs to no connection. */
void tdm_sock_drop(struct tdm_sock s);

/*
 * With TLS: begin it on the connected socket of @c, which speaks first. Returns 0
 * or -FI_ENOMEM.
 */
int tdm_sock_encrypt(struct tdm_conn *c,
		     const struct tdm_auth_key *key) tdm_must_check;

/*
 * Go on with the TLS handshake of @c. Returns 0: done; -FI_EAGAIN: the peer or the
 * kernel has to go on, the socket is watched for that; -FI_ECONNREFUSED: it has
 * failed, a line of the log says why.
 */
int tdm_sock_shake(struct tdm_conn *c) tdm_must_check;

/* Not 0 when the IP of @a is the wildcard. */
int tdm_sock_is_any(const struct tdm_addr *a);

/*
 * Set the options of @fd, a connection to the peer of @c: they help, none is needed.
 */
void tdm_sock_prepare(const struct tdm_conn *c, int fd);

/*
 * Returns a socket for @c, or -errno of socket(2). If descriptors are scarce,
 * idle connections are asked for an idle close.
 */
int tdm_sock_open(const struct tdm_conn *c);

/*
 * Begin to connect @fd to the peer of @c from the endpoint's own IP: the peer
 * compares it with our greeting. Returns 0, or errno of bind(2) or connect(2).
 */
int tdm_sock_connect(const struct tdm_conn *c, int fd);

/*
 * Returns what became of the connect of @fd: 0, -FI_EAGAIN: not known yet, or a
 * positive fi_errno. One that TCP has connected to itself counts as refused.
 */
int tdm_sock_result(int fd);

/*
 * Close the socket of @c, if it has one, and forget what was read of a greeting;
 * what is to be sent stays.
 */
void tdm_sock_close(struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_SOCK_H */

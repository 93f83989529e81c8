/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layer between the stream of a connection and its socket: none, blocks
 * (blocks.h), or TLS (tls.h), which makes blocks needless. c->layered is the one
 * branch for the usual case of nothing. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_LAYER_H
#define TDM_TCP_WIRE_LAYER_H

#include "tcp/wire/blocks.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/tls.h"

/*
 * Not 0 when tdm_layer_recv() may have something to return although the socket of
 * @c has nothing to read.
 */
static inline int tdm_layer_waiting(const struct tdm_conn *c)
{
	if (tdm_likely(!c->layered))
		return 0;
	return c->tls ? tdm_tls_waiting(c->tls) : tdm_blocks_waiting(c);
}

/*
 * Called when a session of @c begins, or goes on over a new connection: its first
 * @plain bytes of output are a part of our greeting. The next pass handles records
 * that TLS has read behind the peer's greeting: the socket does not announce them.
 * Returns 0 or -FI_ENOMEM.
 */
static inline tdm_must_check int tdm_layer_begin(struct tdm_conn *c,
						 size_t plain)
{
	if (tdm_layer_waiting(c))
		tdm_conn_again(c);
	return tdm_blocks_begin(c, plain);
}

/* Not 0 while bytes that the layer of @c has taken are not in the kernel. */
static inline int tdm_layer_pending(const struct tdm_conn *c)
{
	if (tdm_likely(!c->layered))
		return 0;
	return c->tls ? tdm_tls_pending(c->tls) : tdm_blocks_pending(c);
}

/* Like sendmsg(2) to the socket of @c, which is layered: tdm_blocks_send(). */
static inline ssize_t tdm_layer_send(struct tdm_conn *c, struct iovec *iov,
				     size_t n)
{
	struct msghdr msg;

	if (c->tls)
		return tdm_tls_send(c->tls, iov, n);
	if (c->blocks)
		return tdm_blocks_send(c, iov, n);
	/* a greeting */
	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = iov;
	msg.msg_iovlen = n;
	return tdm_os.sendmsg(c->io.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Like recv(2) from the socket of @c, which is layered and has a session. */
static inline ssize_t tdm_layer_recv(struct tdm_conn *c, uint8_t *p,
				     size_t room)
{
	return c->tls ? tdm_tls_recv(c->tls, p, room) :
			tdm_blocks_recv(c, p, room);
}

#endif /* TDM_TCP_WIRE_LAYER_H */

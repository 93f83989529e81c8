/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks: between two sides of which one asks for it (FI_TANDEM_CRC), the bytes of
 * a connection are cut into blocks with a checksum each, since the 16 bits of
 * TCP's own find not every change. No byte of a block is handled before all of it
 * has been checked. A changed block ends the connection; a session that can be
 * resumed goes on over a new one, with the bytes that were not handled (resume.h).
 *
 * Blocks are below the stream: positions (keep.h) and credit count the bytes in
 * them. What is sent here is a copy, so the buffers of sends are free again.
 *
 * Layout: doc/PROTOCOL-tcp.md, "Blocks". blocks.c. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_BLOCKS_H
#define TDM_TCP_WIRE_BLOCKS_H

#include "tcp/wire/tcp.h"

enum {
	TDM_BLOCK_HEAD_BYTES = 12,
	TDM_BLOCK_MOST_BYTES = 16 << 10, /* with its head */
	TDM_BLOCKS_BYTES = 4 * TDM_BLOCK_MOST_BYTES,
};

/* The blocks of a connection. Bytes [from, to) of each buffer are in use. */
struct tdm_blocks {
	uint32_t plain; /* so many bytes to be sent, a greeting, come before */
	uint32_t out_from, out_to;
	uint32_t in_from, in_to;
	uint32_t left; /* checked bytes at in_from */
	uint8_t out[TDM_BLOCKS_BYTES], in[TDM_BLOCKS_BYTES];
};

/*
 * Called with a new connection of the session of @c, when both greetings are
 * known: its first @plain bytes of output are a part of ours. Returns 0 or
 * -FI_ENOMEM.
 */
int tdm_blocks_begin(struct tdm_conn *c, size_t plain) tdm_must_check;

/* Called when the connection of @c ends. */
void tdm_blocks_end(struct tdm_conn *c);

/* Not 0 while blocks of @c are not in the kernel. */
static inline int tdm_blocks_pending(const struct tdm_conn *c)
{
	return tdm_unlikely(c->blocks != NULL) &&
	       c->blocks->out_from < c->blocks->out_to;
}

/*
 * Like sendmsg(2): take bytes of iov[@n] and offer them to the kernel. Returns how
 * many were taken, perhaps not all of them sent: tdm_blocks_pending(). With @n 0
 * only blocks made before are offered. -1, errno: none was taken.
 */
ssize_t tdm_blocks_send(struct tdm_conn *c, const struct iovec *iov, size_t n);

/*
 * Like recv(2), for checked bytes to @p[@room]. -1, errno EBADMSG: a block has
 * changed, so this connection must be closed.
 */
ssize_t tdm_blocks_recv(struct tdm_conn *c, uint8_t *p, size_t room);

/*
 * Not 0 when tdm_blocks_recv() has something to return although the socket may
 * have nothing to read.
 */
int tdm_blocks_waiting(const struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_BLOCKS_H */

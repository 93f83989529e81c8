/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See blocks.h.
 *
 * Invariants:
 *  1. A block is made whole, and sent in any pieces.
 *  2. Nothing is read from the socket while a whole block waits: so input that
 *     cannot be handled stays in the kernel, which makes the socket readable.
 *  3. The length in a head is believed when the checksum of the head is right: a
 *     changed length is never waited for.
 *
 * Lock: held in all of this file.
 */
#include "tcp/wire/blocks.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/crc.h"
#include "base/log.h"
#include "tcp/wire/bytes.h"
#include "tcp/wire/sock.h"

/* Offsets in the head of a block. */
enum { B_LENGTH = 0, B_PAYLOAD_CRC = 4, B_HEAD_CRC = 8 };

enum { MOST_PAYLOAD = TDM_BLOCK_MOST_BYTES - TDM_BLOCK_HEAD_BYTES };

int tdm_blocks_begin(struct tdm_conn *c, size_t plain)
{
	struct tdm_blocks *b;

	if (!c->layered || c->tls)
		return 0;
	tdm_blocks_end(c);
	b = malloc(sizeof(*b));
	if (!b)
		return -FI_ENOMEM;
	memset(b, 0, offsetof(struct tdm_blocks, out));
	b->plain = (uint32_t)plain;
	c->blocks = b;
	return 0;
}

void tdm_blocks_end(struct tdm_conn *c)
{
	free(c->blocks);
	c->blocks = NULL;
}

/* ---- output -------------------------------------------------------------- */

/* Offer the blocks made to the kernel. 0: it has all of them; -1: errno. */
static int flush(const struct tdm_conn *c)
{
	struct tdm_blocks *b = c->blocks;

	return tdm_sock_flush(c->io.fd, b->out, &b->out_from, &b->out_to);
}

/* Make a block of the @len bytes from @off on in iov[@n]. */
static void make(struct tdm_blocks *b, const struct iovec *iov, size_t n,
		 size_t off, size_t len)
{
	uint8_t *head = b->out + b->out_to;
	uint8_t *payload = head + TDM_BLOCK_HEAD_BYTES;

	tdm_iov_copy_from(payload, iov, n, off, len);
	tdm_put32(head + B_LENGTH, (uint32_t)len);
	tdm_put32(head + B_PAYLOAD_CRC, tdm_crc(0, payload, len));
	tdm_put32(head + B_HEAD_CRC, tdm_crc(0, head, B_HEAD_CRC));
	b->out_to += (uint32_t)(TDM_BLOCK_HEAD_BYTES + len);
}

/* Send what is left of the greeting, the first bytes of @iov. */
static ssize_t send_plain(struct tdm_conn *c, const struct iovec *iov)
{
	struct tdm_blocks *b = c->blocks;
	ssize_t n = tdm_os.send(c->io.fd, iov->iov_base,
				tdm_min(iov->iov_len, (size_t)b->plain),
				MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		b->plain -= (uint32_t)n;
	return n;
}

ssize_t tdm_blocks_send(struct tdm_conn *c, const struct iovec *iov, size_t n)
{
	struct tdm_blocks *b = c->blocks;
	size_t all = tdm_iov_len(iov, n), off = 0;

	if (tdm_unlikely(b->plain))
		return send_plain(c, iov);
	if (flush(c))
		return -1;
	do {
		while (off < all &&
		       b->out_to + TDM_BLOCK_MOST_BYTES <= sizeof(b->out)) {
			size_t len = tdm_min(all - off, (size_t)MOST_PAYLOAD);

			make(b, iov, n, off, len);
			off += len;
		}
		/* Blocks that the kernel refuses are kept for the next call. */
	} while (!flush(c) && off < all);
	return (ssize_t)off;
}

/* ---- input --------------------------------------------------------------- */

/*
 * Check the block at in_from. Returns 1: b->left bytes of it are right; 0: it has
 * not arrived; -1: it has changed.
 */
static int check(struct tdm_blocks *b)
{
	const uint8_t *head = b->in + b->in_from;
	size_t have = b->in_to - b->in_from;
	uint32_t len;

	if (have < TDM_BLOCK_HEAD_BYTES)
		return 0;
	len = tdm_get32(head + B_LENGTH);
	if (tdm_get32(head + B_HEAD_CRC) != tdm_crc(0, head, B_HEAD_CRC) ||
	    !len || len > MOST_PAYLOAD)
		return -1;
	if (have - TDM_BLOCK_HEAD_BYTES < len)
		return 0;
	if (tdm_get32(head + B_PAYLOAD_CRC) !=
	    tdm_crc(0, head + TDM_BLOCK_HEAD_BYTES, len))
		return -1;
	b->in_from += TDM_BLOCK_HEAD_BYTES;
	b->left = len;
	return 1;
}

/* Read from the socket once, behind the beginning of a block. */
static ssize_t fill(const struct tdm_conn *c)
{
	struct tdm_blocks *b = c->blocks;
	ssize_t n;

	b->in_to -= b->in_from;
	memmove(b->in, b->in + b->in_from, b->in_to);
	b->in_from = 0;
	n = tdm_os.recv(c->io.fd, b->in + b->in_to, sizeof(b->in) - b->in_to,
			MSG_DONTWAIT);
	if (n > 0)
		b->in_to += (uint32_t)n;
	return n;
}

static size_t take(struct tdm_blocks *b, uint8_t *p, size_t room)
{
	uint32_t n = (uint32_t)tdm_min(room, (size_t)b->left);

	memcpy(p, b->in + b->in_from, n);
	b->in_from += n;
	b->left -= n;
	return n;
}

static ssize_t changed(const struct tdm_conn *c)
{
	TDM_CONN_INFO(c,
		      "a checksum is wrong: bytes have changed on their way");
	errno = EBADMSG;
	return -1;
}

ssize_t tdm_blocks_recv(struct tdm_conn *c, uint8_t *p, size_t room)
{
	struct tdm_blocks *b = c->blocks;
	size_t got = 0;
	int ret;

	if (tdm_unlikely(!b)) {
		errno = ECONNABORTED; /* no memory for it: c->tx_err */
		return -1;
	}
	for (;;) {
		got += take(b, p + got, room - got);
		if (got == room)
			return (ssize_t)got;
		ret = check(b);
		if (ret > 0)
			continue;
		if (got)
			return (ssize_t)got;
		if (ret < 0)
			return changed(c);
		ret = (int)fill(c);
		if (ret <= 0)
			return ret;
	}
}

int tdm_blocks_waiting(const struct tdm_conn *c)
{
	const struct tdm_blocks *b = c->blocks;

	return b && (b->left || check(c->blocks));
}

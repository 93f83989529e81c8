/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of a connection: hands the bytes that tx.c and rx_msg.c committed to
 * the kernel. To commit bytes is to fix their place in the stream.
 *
 * The committed stream is the transmit buffer (headers, short payloads) and
 * behind it at most one *borrowed* range: bytes that are sent from a user's
 * buffer without a copy (c->borrow). No bytes are committed behind a borrowed
 * range, so all are sent in the order of the commits. When a message is sent
 * (tdm_out_message()): the first one of a pass at once, later ones of the same
 * pass together, in the next pass or when enough have been held back
 * (TDM_TCP_FLUSH_BYTES, FLUSH_MSGS). A message with FI_MORE is held back; one
 * with a borrowed range, and an inject without FI_MORE, is sent at once.
 *
 * Invariants:
 *  1. A connection holds a transmit buffer only while it has bytes in it.
 *  2. blocked: the kernel refused bytes; the socket is watched for write or
 *     the timer runs, and no system call is made before either.
 *  3. A send that fails for good does not end the connection at once: bytes
 *     that the peer had sent before are read first (tx_err, tdm_conn_again()).
 */
#include "tcp/wire/out.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/conn.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/tx.h"

enum {
	/* Transmit buffers kept for reuse. */
	SPARES = 8,
	/* How long to wait when the kernel has no memory for a send. */
	NO_MEMORY_MS = 10,
	/* Greatest number of bytes given to the kernel in one pass. */
	PUSH_BYTES = 2 << 20,
	/* Messages held back are sent when there are so many. */
	FLUSH_MSGS = 64,
};

struct tdm_out *tdm_out_make_room(struct tdm_conn *c, size_t n)
{
	struct tdm_tcp *tcp = c->tcp;
	struct tdm_out *out = c->out;

	if (!out) {
		out = tcp->spare_out;
		if (out) {
			tcp->spare_out = out->next;
			tcp->spares--;
		} else {
			out = malloc(sizeof(*out));
			if (!out) {
				tdm_out_later(c);
				return NULL;
			}
		}
		out->head = 0;
		out->tail = 0;
		out->msgs = 0;
		c->out = out;
	}
	if (sizeof(out->bytes) - out->tail < n && out->head) {
		memmove(out->bytes, out->bytes + out->head,
			out->tail - out->head);
		out->tail -= out->head;
		out->head = 0;
	}
	return sizeof(out->bytes) - out->tail < n ? NULL : out;
}

void tdm_out_free(struct tdm_conn *c)
{
	struct tdm_tcp *tcp = c->tcp;

	if (!c->out)
		return;
	if (tcp->spares < SPARES) {
		c->out->next = tcp->spare_out;
		tcp->spare_out = c->out;
		tcp->spares++;
	} else {
		free(c->out);
	}
	c->out = NULL;
}

void tdm_out_later(struct tdm_conn *c)
{
	if (tdm_list_linked(&c->flush_node))
		return;
	tdm_list_append(&c->tcp->flush, &c->flush_node);
	tdm_tcp_nudge(c->tcp);
}

/*
 * Describe the borrowed bytes that have not been sent in out[@max]. Returns how
 * many elements that takes. If their region was closed meanwhile, zeros are
 * sent instead, since the header has promised that many bytes.
 */
static size_t borrowed(const struct tdm_conn *c, struct iovec *out, size_t max)
{
	static const uint8_t zeros[4096];
	const struct tdm_tx *op = c->borrow;
	size_t left = c->busy->borrow_end - c->busy->borrow_off, n = 0;

	if (tdm_likely(!op->entry || !c->tcp->rma->revoked(op->entry)))
		return tdm_iov_slice(out, max, tdm_tx_iov(op), op->count,
				     c->busy->borrow_off, left);
	for (; left && n < max; n++) {
		out[n].iov_base = (void *)(uintptr_t)zeros;
		out[n].iov_len = tdm_min(left, sizeof(zeros));
		left -= out[n].iov_len;
	}
	return n;
}

/* Offer all committed bytes to the kernel, by one system call. */
static ssize_t put(struct tdm_conn *c)
{
	struct iovec iov[1 + TDM_IOV_LIMIT];
	struct msghdr msg = { .msg_iov = iov };
	size_t n = 0;

	if (tdm_likely(!c->borrow))
		return tdm_os.send(c->io.fd, c->out->bytes + c->out->head,
				   c->out->tail - c->out->head,
				   MSG_NOSIGNAL | MSG_DONTWAIT);
	if (c->out) {
		iov[0].iov_base = c->out->bytes + c->out->head;
		iov[0].iov_len = c->out->tail - c->out->head;
		n = 1;
	}
	n += borrowed(c, iov + n, TDM_IOV_LIMIT);
	msg.msg_iovlen = n;
	return tdm_os.sendmsg(c->io.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Called when the kernel has taken @n bytes. */
static void advance(struct tdm_conn *c, size_t n)
{
	size_t k = tdm_min(n, tdm_out_bytes(c));

	if (c->out) {
		c->out->head += (uint32_t)k;
		if (c->out->head == c->out->tail)
			tdm_out_free(c);
	}
	n -= k;
	if (!c->borrow)
		return;
	c->busy->borrow_off += n;
	if (c->busy->borrow_off == c->busy->borrow_end)
		tdm_tx_borrowed_sent(c);
}

static void block(struct tdm_conn *c)
{
	c->blocked = 1;
	tdm_conn_watch(c, TDM_LOOP_READ | TDM_LOOP_WRITE);
}

static void refused(struct tdm_conn *c, int err)
{
	if (err == EAGAIN || err == EWOULDBLOCK) {
		block(c);
		return;
	}
	if ((err == ENOBUFS || err == ENOMEM) && tdm_setup_get(c) &&
	    !tdm_loop_timer_arm(c->tcp->a.loop, &c->setup->timer,
				NO_MEMORY_MS)) {
		c->blocked = 1;
		return;
	}
	c->tx_err = err == EPIPE ? FI_ECONNRESET : err;
	tdm_conn_again(c);
}

static int pending(const struct tdm_conn *c)
{
	return c->out || c->borrow;
}

void tdm_out_push(struct tdm_conn *c)
{
	size_t sent = 0;
	ssize_t n;

	tdm_list_del(&c->flush_node);
	if (c->blocked || c->tx_err || c->io.fd < 0)
		return;
	for (;;) {
		size_t all;

		if (c->state == TDM_CONN_READY && tdm_tx_has_more(c))
			tdm_tx_fill(c);
		if (!pending(c)) {
			if (tdm_unlikely(c->going))
				tdm_idle_close_now(c);
			return;
		}
		if (sent >= PUSH_BYTES) {
			tdm_out_later(c);
			return;
		}
		all = tdm_out_bytes(c) +
		      (c->borrow ? c->busy->borrow_end - c->busy->borrow_off :
				   0);
		n = put(c);
		if (tdm_unlikely(n < 0)) {
			if (errno == EINTR)
				continue;
			refused(c, errno);
			return;
		}
		sent += (size_t)n;
		c->used = c->tcp->pass;
		advance(c, (size_t)n);
		if (tdm_unlikely((size_t)n < all)) {
			block(c);
			return;
		}
	}
}

void tdm_out_kick(struct tdm_conn *c)
{
	if (c->tx_pass == (uint32_t)c->tcp->pass) {
		tdm_out_later(c);
		return;
	}
	c->tx_pass = (uint32_t)c->tcp->pass;
	tdm_out_push(c);
}

void tdm_out_message(struct tdm_conn *c, uint64_t flags)
{
	/*
	 * After an inject the application may not call again, so send it now.
	 */
	int last = !(flags & FI_MORE) &&
		   (flags & (FI_INJECT | FI_INJECT_COMPLETE));

	if (c->blocked)
		return;
	if (c->borrow || c->out->tail - c->out->head >= TDM_TCP_FLUSH_BYTES ||
	    c->out->msgs >= FLUSH_MSGS || last) {
		c->tx_pass = (uint32_t)c->tcp->pass;
		tdm_out_push(c);
	} else if (flags & FI_MORE) {
		tdm_out_later(c);
	} else {
		tdm_out_kick(c);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See keep.h. Short records stay in the transmit buffer in which they were
 * gathered. What was sent from a user's buffer is a piece that refers to the
 * send, which is not over; when it ends before the peer endpoint has said that
 * it has these bytes (the kernel of the peer's host did, or the level is
 * FI_INJECT_COMPLETE), they are copied. A reply to a read stays instead, unless
 * this side is told of the read: until the initiator has the bytes its read is not
 * over, and nobody may count on what they are.
 *
 * Invariants:
 *  1. The pieces, the buffer and the borrowed range are the stream from
 *     c->kept_pos on, without a gap.
 *  2. op->lent is the number of pieces that refer to op. One that is freed, or
 *     whose buffer goes back to the user, has none.
 *  3. While pieces are repeated, no byte of c->out or c->borrow is sent.
 *  4. A reply in OWNED is in no list, and is freed with its last piece, or before
 *     its region closes.
 *
 * Lock: held in all of this file.
 */
#include "tcp/wire/keep.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/tx_priv.h"

enum {
	/* Up to here a piece is copied rather than given the whole buffer. */
	COPY_BYTES = 1024,
	/*
	 * So many bytes are kept at most. The buffers of two kernels hold less, so
	 * only a peer that does not say what it has received reaches this.
	 */
	KEEP_MOST_BYTES = 64 << 20,
};

static size_t length(const struct tdm_piece *p)
{
	return p->to - p->from;
}

/* Values of tdm_tx.reply: the pieces own it; its region closes. */
enum { OWNED = 2, CLOSES = 3 };

static void piece_free(struct tdm_conn *c, struct tdm_piece *p)
{
	if (p->op && !--p->op->lent && p->op->reply == OWNED)
		tdm_tx_free(c, p->op);
	free(p->out);
	free(p);
}

static void pop(struct tdm_conn *c)
{
	struct tdm_keep *k = c->keep;
	struct tdm_piece *p = k->first;

	k->first = p->next;
	if (!k->first)
		k->last = NULL;
	piece_free(c, p);
}

void tdm_keep_end(struct tdm_conn *c)
{
	struct tdm_keep *k = c->keep;

	c->keeps = 0;
	if (!k)
		return;
	while (k->first)
		pop(c);
	free(k);
	c->keep = NULL;
}

/* From now on @c has what is still to be sent, and no more. */
static void keep_nothing(struct tdm_conn *c)
{
	tdm_keep_end(c);
	if (c->out && c->out->base < c->out->head)
		c->out->base = c->out->head;
	if (c->out && tdm_out_empty(c->out))
		tdm_out_free(c);
}

/* Keep nothing any more. A session that needs what is kept ends with @err. */
static void keep_stop(struct tdm_conn *c, int err)
{
	if (!c->keeps)
		return;
	TDM_CONN_INFO(c, "what was sent cannot be kept: the session cannot be "
			 "resumed");
	/* While RESUMING, is_ours() of resume.c then ends the session. */
	if (tdm_keep_repeats(c) && c->state != TDM_CONN_RESUMING) {
		c->tx_err = err;
		tdm_conn_again(c);
		return;
	}
	keep_nothing(c);
}

void tdm_keep_close(struct tdm_conn *c)
{
	if (c->keeps && tdm_conn_open(c) && !tdm_keep_repeats(c))
		keep_nothing(c);
}

struct tdm_keep *tdm_keep_get(struct tdm_conn *c)
{
	if (!c->keep)
		c->keep = calloc(1, sizeof(*c->keep));
	return c->keep;
}

/*
 * Append a piece of @len bytes, of which @own are its own. NULL: out of memory, or
 * too much is kept.
 */
static struct tdm_piece *append(struct tdm_conn *c, size_t len, size_t own)
{
	struct tdm_piece *p;

	if (!tdm_keep_get(c) || c->keep->bytes + len > KEEP_MOST_BYTES)
		return NULL;
	p = malloc(sizeof(*p) + own);
	if (!p)
		return NULL;
	c->keep->bytes += len;
	p->next = NULL;
	p->lost = 0;
	p->out = NULL;
	p->op = NULL;
	p->from = 0;
	p->to = own;
	if (c->keep->last)
		c->keep->last->next = p;
	else
		c->keep->first = p;
	c->keep->last = p;
	return p;
}

/* Make a piece of the bytes kept in c->out. @c has no buffer afterwards. */
static int seal(struct tdm_conn *c)
{
	struct tdm_out *out = c->out;
	size_t n = out->head - out->base;
	struct tdm_piece *p;

	if (!n) {
		tdm_out_free(c);
		return 0;
	}
	p = append(c, n, n <= COPY_BYTES ? n : 0);
	if (!p)
		return -1;
	if (n <= COPY_BYTES) {
		memcpy(p->own, out->bytes + out->base, n);
		tdm_out_free(c);
		return 0;
	}
	p->out = out;
	p->from = out->base;
	p->to = out->head;
	c->out = NULL;
	return 0;
}

struct tdm_out *tdm_keep_full(struct tdm_conn *c)
{
	struct tdm_out *old = c->out, *out;

	c->out = NULL;
	out = tdm_out_new(c);
	c->out = old;
	if (!out || seal(c)) {
		free(out);
		keep_stop(c, FI_ENOMEM);
		return c->out ? c->out : tdm_out_new(c);
	}
	c->out = out;
	out->tail = old->tail - old->head;
	out->msgs = old->msgs;
	out->held_ns = old->held_ns;
	memcpy(out->bytes, old->bytes + old->head, out->tail);
	return out;
}

void tdm_keep_borrowed(struct tdm_conn *c)
{
	struct tdm_piece *p;

	if (!c->keeps)
		return;
	if (c->out && seal(c)) {
		keep_stop(c, FI_ENOMEM);
		return;
	}
	if (c->busy->borrow_kept == c->busy->borrow_end)
		return;
	p = append(c, c->busy->borrow_end - c->busy->borrow_kept, 0);
	if (!p) {
		keep_stop(c, FI_ENOMEM);
		return;
	}
	p->op = c->borrow;
	p->from = c->busy->borrow_kept;
	p->to = c->busy->borrow_end;
	p->op->lent++;
}

/*
 * Forget the first @n bytes of the stream. Returns how many of these are beyond
 * what was sent.
 */
static uint64_t forget(struct tdm_conn *c, uint64_t n)
{
	struct tdm_keep *k = c->keep;
	uint64_t part;

	while (n && k && k->first) {
		struct tdm_piece *p = k->first;

		part = p == k->again ? k->again_from - p->from : length(p);
		part = tdm_min(part, n);
		p->from += part;
		k->bytes -= part;
		n -= part;
		if (p == k->again || p->from < p->to)
			return n;
		pop(c);
	}
	if (n && c->out && c->out->head > c->out->base) {
		part = tdm_min(n, (uint64_t)(c->out->head - c->out->base));
		c->out->base += (uint32_t)part;
		n -= part;
	}
	if (c->out && tdm_out_empty(c->out))
		tdm_out_free(c);
	if (n && c->borrow && !tdm_out_bytes(c)) {
		part = tdm_min(n, (uint64_t)(c->busy->borrow_off -
					     c->busy->borrow_kept));
		c->busy->borrow_kept += part;
		n -= part;
	}
	return n;
}

int tdm_keep_acked(struct tdm_conn *c, uint64_t pos)
{
	uint64_t n = pos - c->kept_pos;

	/* tdm_keep_passed() may know more than an ACK. */
	if (!c->keeps || pos < c->kept_pos)
		return 0;
	c->kept_pos = pos;
	return forget(c, n) ? -TDM_WIRE_E_ACK : 0;
}

void tdm_keep_passed(struct tdm_conn *c, const struct tdm_tx *op)
{
	const struct tdm_piece *p = c->keep ? c->keep->first : NULL;
	uint64_t n = 0, most = 0;

	for (; p; p = p->next) {
		n += length(p);
		if (p->op == op)
			most = n;
		if (p == c->keep->again)
			break;
	}
	c->kept_pos += most - forget(c, most);
}

/* Called when the bytes of @op cannot be kept any longer. */
static void give_up(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_piece *p;

	keep_stop(c, FI_ENOMEM);
	/* If the session ends only at the next pass, op may not be used there. */
	for (p = c->keep ? c->keep->first : NULL; p; p = p->next) {
		if (p->op != op)
			continue;
		p->op = NULL;
		c->keep->bytes -= length(p);
		p->to = p->from;
	}
	op->lent = 0;
}

/* Not 0 when the payload of @op was in a region that has been closed. */
static int revoked(const struct tdm_conn *c, const struct tdm_tx *op)
{
	return op->entry && c->tcp->rma->revoked(op->entry);
}

/*
 * Copy bytes [@from, @from + @n) of @op to @to, whose region the application closes:
 * it may have freed the memory before. Returns 0, or -1: the bytes are not there.
 */
static int copy_closing(void *to, const struct tdm_tx *op, size_t from,
			size_t n)
{
	struct iovec iov[TDM_IOV_LIMIT], local;
	size_t count, end = from + n, bytes;

	for (; from < end; from += bytes) {
		count = tdm_iov_slice(iov, TDM_IOV_LIMIT, tdm_tx_iov(op),
				      op->count, from, end - from);
		bytes = tdm_iov_len(iov, count);
		local.iov_base = (char *)to + (n - (end - from));
		local.iov_len = bytes;
		if (!bytes ||
		    tdm_os.process_vm_readv(getpid(), &local, 1, iov, count,
					    0) != (ssize_t)bytes)
			return -1;
	}
	return 0;
}

void tdm_keep_own(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_piece **at = c->keep ? &c->keep->first : NULL;

	for (; at && *at; at = &(*at)->next) {
		struct tdm_piece *old = *at, *p;

		if (old->op != op)
			continue;
		p = malloc(sizeof(*p) + length(old));
		if (!p) {
			give_up(c, op);
			return;
		}
		*p = (struct tdm_piece){ .next = old->next, .to = length(old) };
		if (tdm_unlikely(revoked(c, op)))
			memset(p->own, 0, p->to);
		else if (tdm_unlikely(op->reply == CLOSES))
			p->lost = !!copy_closing(p->own, op, old->from, p->to);
		else
			tdm_iov_copy_from(p->own, tdm_tx_iov(op), op->count,
					  old->from, p->to);
		*at = p;
		if (c->keep->last == old)
			c->keep->last = p;
		if (c->keep->again == old) {
			c->keep->again = p;
			c->keep->again_from -= old->from;
		}
		piece_free(c, old);
	}
}

/* Not 0 when the bytes of @p or of a piece behind it are lost. */
static int any_lost(const struct tdm_piece *p)
{
	while (p && !p->lost)
		p = p->next;
	return p != NULL;
}

/* Called before the region of @entry closes, whose bytes a reply has lent. */
static void region_closes(struct fi_peer_rx_entry *entry)
{
	struct tdm_tx *op = entry->peer_context;
	struct tdm_conn *c = op->context;

	op->reply = CLOSES;
	tdm_tx_free(c, op); /* copies them */
	if (tdm_keep_repeats(c) && any_lost(c->keep->again))
		keep_stop(c, FI_ECONNRESET);
}

/*
 * Not 0 when copy_closing() can tell memory from what is none: process_vm_readv(2) may be
 * forbidden. Asks the kernel once.
 */
static int reads_itself(struct tdm_tcp *tcp)
{
	char to, from = 0;
	struct iovec local = { &to, 1 }, own = { &from, 1 };
	ssize_t n = -1;

	if (!tcp->reads_itself) {
		if (tdm_env.cma)
			n = tdm_os.process_vm_readv(getpid(), &local, 1, &own,
						    1, 0);
		tcp->reads_itself = n == 1 ? 1 : -1;
	}
	return tcp->reads_itself > 0;
}

int tdm_keep_reply(struct tdm_conn *c, struct tdm_tx *op)
{
	const struct tdm_rma_ops *rma = c->tcp->rma;
	const struct tdm_done *done = &c->tcp->a.done;

	if (op->entry) {
		if (done->remote_read_cntr || done->ctx ||
		    rma->size < sizeof(*rma) || !rma->watch ||
		    !reads_itself(c->tcp))
			return 0;
		op->entry->peer_context = op;
		rma->watch(op->entry, region_closes);
	}
	tdm_list_del(&op->node);
	op->context = c;
	op->reply = OWNED;
	return 1;
}

int tdm_keep_rewind(struct tdm_conn *c, uint64_t pos)
{
	struct tdm_keep *k = c->keep;

	if (!c->keeps || pos < c->kept_pos)
		return -TDM_WIRE_E_ACK;
	/*
	 * After a RESUME that its sender had given up (resume.c, 3) less seems
	 * to have been sent than was: all that is committed may have been.
	 */
	if (k)
		k->again = NULL;
	if (c->out)
		c->out->head = c->out->tail;
	if (c->borrow)
		c->busy->borrow_off = c->busy->borrow_end;
	if (tdm_keep_acked(c, pos))
		return -TDM_WIRE_E_ACK;
	if (k && any_lost(k->first))
		return -TDM_WIRE_E_ACK;
	if (k && k->first) {
		k->again = k->first;
		k->again_from = k->first->from;
	}
	if (c->out)
		c->out->head = c->out->base;
	if (c->borrow)
		c->busy->borrow_off = c->busy->borrow_kept;
	return 0;
}

size_t tdm_keep_left(const struct tdm_conn *c)
{
	return c->keep->again->to - c->keep->again_from;
}

size_t tdm_keep_iov(const struct tdm_conn *c, const struct tdm_tx *op,
		    size_t off, size_t left, struct iovec *iov, size_t max)
{
	static const uint8_t zeros[4096];
	size_t n = 0;

	if (tdm_likely(!revoked(c, op)))
		return tdm_iov_slice(iov, max, tdm_tx_iov(op), op->count, off,
				     left);
	for (; left && n < max; n++) {
		iov[n].iov_base = (void *)(uintptr_t)zeros;
		iov[n].iov_len = tdm_min(left, sizeof(zeros));
		left -= iov[n].iov_len;
	}
	return n;
}

size_t tdm_keep_again(const struct tdm_conn *c, struct iovec *iov)
{
	struct tdm_piece *p = c->keep->again;
	size_t off = c->keep->again_from, left = tdm_keep_left(c);

	if (p->op)
		return tdm_keep_iov(c, p->op, off, left, iov, TDM_IOV_LIMIT);
	iov[0].iov_base = (p->out ? p->out->bytes : p->own) + off;
	iov[0].iov_len = left;
	return 1;
}

void tdm_keep_advance(struct tdm_conn *c, size_t n)
{
	struct tdm_keep *k = c->keep;

	k->again_from += n;
	if (k->again_from < k->again->to)
		return;
	k->again = k->again->next;
	k->again_from = k->again ? k->again->from : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A send from its call to the kernel, and when output of a connection is
 * written. tdm_tx_send() makes an operation of a request and has tx.c commit it
 * to the stream, which fixes its place; tdm_conn_push() has tx.c commit what is
 * queued, then gives all committed bytes to the kernel.
 *
 * Calls lead one way: from here to tx.c, from tx.c to out.c, which has the
 * transmit buffer.
 *
 * When a message is sent (message()): the first one of a pass at once, later
 * ones of the same pass together, in the next pass or when enough have been
 * held back (TDM_TCP_FLUSH_BYTES, FLUSH_MSGS). A message with FI_MORE is held
 * back; one with a borrowed range, and an inject without FI_MORE, is sent at
 * once. doc/adr/0037-sent-together.md.
 *
 * Invariants:
 *  1. blocked: the kernel refused bytes; the socket is watched for write or
 *     the timer runs, and no system call is made before either.
 *  2. A send that fails for good does not end the connection at once: bytes
 *     that the peer had sent before are read first (tx_err, tdm_conn_again()).
 *  3. An application that makes no pass soon after it has sent delays what is
 *     held back. When that was seen, at_once medium messages are sent one by
 *     one, before one is held back again.
 * Lock: held in all of this file.
 */
#include "tcp/wire/send.h"

#include <errno.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/conn.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/layer.h"
#include "tcp/wire/out.h"
#include "tcp/wire/prompt.h"
#include "tcp/wire/tx.h"
#include "tcp/wire/tx_priv.h"

enum {
	/* How long to wait when the kernel has no memory for a send. */
	NO_MEMORY_MS = 10,
	/*
	 * Number of bytes given to the kernel in one pass: 2 MiB with headers. The
	 * DONE of a reply leaves with its last bytes all the same.
	 */
	PUSH_BYTES = (2 << 20) + (4 << 10),
	/* Messages held back are sent when there are so many. */
	FLUSH_MSGS = 64,
	/* The next pass is late when a medium message has waited for so long. */
	HELD_LATE_NS = 100 * 1000,
	AT_ONCE = 64, /* medium messages sent one by one after that */
};

/* Describe the bytes that are to be sent next. Returns the elements used. */
static size_t next(const struct tdm_conn *c, struct iovec *iov)
{
	size_t n = 0;

	if (tdm_keep_repeats(c))
		return tdm_keep_again(c, iov);
	/* All of it may be kept, and sent. */
	if (c->out && c->out->head < c->out->tail) {
		iov[0].iov_base = c->out->bytes + c->out->head;
		iov[0].iov_len = c->out->tail - c->out->head;
		n = 1;
	}
	if (c->borrow)
		n += tdm_keep_iov(c, c->borrow, c->busy->borrow_off,
				  c->busy->borrow_end - c->busy->borrow_off,
				  iov + n, TDM_IOV_LIMIT);
	return n;
}

/*
 * Not 0 when the bytes to be sent are the last data of a reply: the DONE behind them is
 * written next, and leaves in the same segment.
 */
static int done_follows(const struct tdm_conn *c)
{
	const struct tdm_tx *op = c->borrow;

	return op && op->reply && op->state != TDM_TX_LEAVING &&
	       c->busy->borrow_end == op->wanted && !tdm_keep_repeats(c) &&
	       !c->closing;
}

/*
 * Offer all committed bytes, or those of a piece to be repeated, to the kernel,
 * by one system call; or, through a layer, by some. @more: others follow soon, and the
 * kernel may wait for them.
 */
static ssize_t put(struct tdm_conn *c, int more)
{
	struct iovec iov[1 + TDM_IOV_LIMIT];
	struct msghdr msg = { .msg_iov = iov };
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0);

	if (tdm_likely(!c->borrow && !tdm_keep_repeats(c) && !c->layered))
		return tdm_os.send(c->io.fd, c->out->bytes + c->out->head,
				   c->out->tail - c->out->head, flags);
	msg.msg_iovlen = next(c, iov);
	if (c->layered)
		return tdm_layer_send(c, iov, msg.msg_iovlen);
	return tdm_os.sendmsg(c->io.fd, &msg, flags);
}

/* Called when the kernel has taken @n bytes. */
static void advance(struct tdm_conn *c, size_t n)
{
	struct tdm_out *out = c->out;
	size_t k = tdm_min(n, tdm_out_bytes(c));

	if (tdm_keep_repeats(c)) {
		tdm_keep_advance(c, n);
		return;
	}
	if (out) {
		out->head += (uint32_t)k;
		if (!c->keeps)
			out->base = out->head;
		out->msgs = 0;
		if (tdm_out_empty(out))
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

/* Returns how many bytes put() offers. */
static size_t offered(const struct tdm_conn *c)
{
	if (tdm_keep_repeats(c))
		return tdm_keep_left(c);
	return tdm_out_bytes(c) +
	       (c->borrow ? c->busy->borrow_end - c->busy->borrow_off : 0);
}

/* Called when medium messages that were held back are about to be written. */
static void held_over(struct tdm_conn *c)
{
	if (tdm_os.now_ns() - c->out->held_ns > HELD_LATE_NS)
		c->at_once = AT_ONCE;
	c->out->held_ns = 0;
}

void tdm_conn_push(struct tdm_conn *c)
{
	size_t sent = 0;
	int more = 0;
	ssize_t n;

	tdm_list_del(&c->flush_node);
	if (c->blocked || c->tx_err || c->io.fd < 0 ||
	    c->state == TDM_CONN_RESUMING)
		return;
	for (;;) {
		size_t all;

		c->prompt.lingers = 0;
		if (c->state == TDM_CONN_READY && tdm_tx_has_more(c))
			tdm_tx_fill(c);
		if (!tdm_keep_pending(c)) {
			if (tdm_unlikely(c->going))
				tdm_idle_close_now(c);
			return;
		}
		all = offered(c);
		if (sent && !more && sent + all > PUSH_BYTES) {
			tdm_out_later(c);
			return;
		}
		if (c->out && tdm_unlikely(c->out->held_ns))
			held_over(c);
		more = done_follows(c) && sent + all <= PUSH_BYTES;
		n = put(c, more || c->prompt.lingers);
		if (tdm_unlikely(n < 0)) {
			if (errno == EINTR)
				continue;
			refused(c, errno);
			return;
		}
		sent += (size_t)n;
		c->used = c->tcp->pass;
		if (tdm_unlikely(c->prompt.lingers))
			tdm_prompt_corked(c);
		else
			c->prompt.corked = 0;
		advance(c, (size_t)n);
		if (tdm_unlikely((size_t)n < all)) {
			block(c);
			return;
		}
	}
}

void tdm_conn_kick(struct tdm_conn *c)
{
	if (c->tx_pass == (uint32_t)c->tcp->pass) {
		tdm_out_later(c);
		return;
	}
	c->tx_pass = (uint32_t)c->tcp->pass;
	tdm_conn_push(c);
}

/*
 * Called when a message with @flags, of a struct tdm_xfer, was committed: sends
 * it now, or holds it back to send it with later ones.
 */
static void message(struct tdm_conn *c, uint64_t flags)
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
		tdm_conn_push(c);
	} else if (flags & FI_MORE) {
		tdm_out_later(c);
	} else {
		tdm_conn_kick(c);
	}
}

static struct tdm_tx *tx_new(struct tdm_conn *c, const struct tdm_xfer *x)
{
	struct tdm_tx *op = tdm_pool_alloc(&c->tcp->tx_pool);
	const struct iovec *iov = x->iov;
	size_t count = x->count, i;

	if (!op)
		return NULL;
	tdm_list_init(&op->node);
	op->context = x->context;
	op->flags = x->flags;
	op->tag = x->tag;
	op->data = x->data;
	op->rma_addr = x->rma_addr;
	op->rma_key = x->rma_key;
	op->len = x->len;
	op->off = 0;
	op->wanted = 0;
	op->addr = x->addr;
	op->id = 0;
	op->rid = 0;
	op->state = TDM_TX_QUEUED;
	op->ended = 0;
	op->dead = 0;
	op->cancelled = 0;
	op->has_id = 0;
	op->reply = 0;
	op->slow = 0;
	op->counted = 1;
	op->spared = 0;
	op->lent = 0;
	op->copy = NULL;
	op->rx = NULL;
	op->entry = NULL;
	if (tdm_unlikely(x->flags & (TDM_TO_CTX | FI_ATOMIC | TDM_RANGES))) {
		if (x->flags & TDM_TO_CTX) {
			op->rx_ctx = x->rx_ctx;
			op->group = x->group;
		}
		if (tdm_tx_take_rest(op, x)) {
			tdm_pool_free(&c->tcp->tx_pool, op);
			return NULL;
		}
		if (x->flags & FI_ATOMIC) {
			iov = x->amo->result;
			count = x->amo->result_count;
		}
	}
	op->count = (uint8_t)count;
	for (i = 0; i < count; i++)
		op->iov[i] = iov[i];
	c->tcp->tx_used++;
	return op;
}

void tdm_send_begin(struct tdm_conn *c)
{
	if (c->state == TDM_CONN_SILENT) {
		tdm_hello_greet(c);
		return;
	}
	if (c->state != TDM_CONN_IDLE)
		return;
	if (c->setup) {
		c->setup->since_ns = 0;
		c->setup->refused_ns = 0;
	}
	tdm_hello_connect(c);
}

/* Queue @op, which cannot be sent now, and connect if need be. */
static ssize_t enqueue(struct tdm_conn *c, struct tdm_tx *op)
{
	int ret = (op->flags & FI_INJECT) ? tdm_tx_own(c, op) : 0;

	if (ret) {
		tdm_tx_free(c, op);
		return ret;
	}
	tdm_list_append(&c->sendq, &op->node);
	if (c->state != TDM_CONN_READY)
		tdm_send_begin(c);
	else if (!c->blocked)
		tdm_out_later(c);
	return 0;
}

ssize_t tdm_tx_send(struct tdm_conn *c, const struct tdm_xfer *x)
{
	struct tdm_tcp *tcp = c->tcp;
	struct tdm_tx *op;

	tdm_assert_held(tcp->a.engine->lock);
	if (tdm_unlikely(tcp->tx_used >= tcp->a.tx_size) &&
	    !tdm_tx_ends_copied(x->flags))
		return -FI_EAGAIN;
	if (tdm_unlikely(x->len > TDM_WIRE_MSG_MAX))
		return -FI_EMSGSIZE;
	if (tdm_unlikely(x->flags &
			 (TDM_TO_CTX | FI_FENCE | FI_ATOMIC | TDM_RANGES))) {
		int err = c->known ? tdm_tx_lacks(c, x->flags, x->rx_ctx,
						  x->group) :
				     0;

		if (err)
			return -err;
		if ((x->flags & FI_FENCE) && tdm_tx_outstanding(c))
			return -FI_EAGAIN;
	}
	op = tx_new(c, x);
	if (tdm_unlikely(!op))
		return -FI_ENOMEM;
	if (tdm_unlikely(c->state != TDM_CONN_READY ||
			 !tdm_list_empty(&c->sendq) || !tdm_tx_commit(c, op)))
		return enqueue(c, op);
	message(c, x->flags);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input of a connection: splits bytes into records and calls their handlers.
 *
 * A record is a header and its payload. Headers are decoded in the staging
 * buffer of the loop, or in c->busy->head when they arrive in pieces; payload
 * goes to its place as it arrives: from the staging buffer, or, when much is
 * missing, directly from the kernel, while the bytes after it go to the staging
 * buffer. So a connection buffers no input but a part of a header.
 *
 * Invariants:
 *  1. c->left bytes of payload are expected before the next header.
 *  2. All bytes read are handled before the call returns, and the staging
 *     buffer is free between calls; unless memory is out: then stage->stalled
 *     is the connection that has bytes there, from a header on, and no other
 *     of the loop reads before they are handled. So no message is lost for
 *     want of memory.
 *  3. No byte is trusted: record.c checks what bytes alone can tell, the
 *     handlers check them against the state. An error ends this connection
 *     only.
 *  4. Reading never stops; credit (EAGER) and counts (RTS, ATOMIC) bound
 *     memory.
 */
#include "tcp/wire/rx.h"

#include <errno.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/layer.h"
#include "tcp/wire/left.h"
#include "tcp/wire/meet.h"
#include "tcp/wire/prompt.h"
#include "tcp/wire/resume.h"
#include "tcp/wire/rma.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/stall.h"
#include "tcp/wire/tx.h"
#include "tdm_place.h"

enum {
	/* Greatest amount read from a peer in one pass. */
	PASS_RECORDS = 64,
	PASS_BYTES = 256 << 10,
	/* A read after one full of short records: bounds the time they take. */
	READ_BYTES = 16 << 10,
	/* Least missing payload that is read to its place directly. */
	DIRECT_BYTES = 8 << 10,
	/*
	 * With messages of this length a read is short, so that their payload
	 * stays in the kernel and can be read to its place.
	 */
	LONG_BYTES = 12 << 10,
	SHORT_READ_BYTES = 1 << 10,
};

static void protocol_error(struct tdm_conn *c, int why)
{
	TDM_CONN_INFO(c,
		      "the peer broke the protocol (%d): its connection is "
		      "closed",
		      why);
	tdm_conn_fail(c, FI_ECONNRESET, EPROTO);
}

/* Process @n bytes of payload of the current record. */
static void take(struct tdm_conn *c, const uint8_t *p, size_t n)
{
	const int reply = c->cur && c->cur->state == TDM_RX_READING;

	c->left -= n;
	c->rx_pos += n;
	tdm_rx_put(c, p, n);
	if (!c->left)
		tdm_prompt_received(c, c->cur_flags, c->cur_len, reply);
}

/*
 * Called when there is no room for the payload of @rec: discards it as it
 * arrives.
 */
static int pass_over(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	c->cur = NULL;
	c->left = rec->len;
	if (!c->left)
		tdm_prompt_received(c, rec->flags, rec->len, 0);
	return 0;
}

static int begin_eager(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		       const uint8_t *p, size_t n)
{
	uint64_t charge = tdm_credit_takes(c->features, rec->op, rec->len);
	uint64_t left = c->given - c->rx_charged;
	int k;

	if (tdm_unlikely(rec->flags & TDM_WIRE_F_LEFT)) {
		if (tdm_credit_left(c, rec))
			return pass_over(c, rec);
		left += charge;
	} else if (left < charge) {
		return -TDM_WIRE_E_CREDIT;
	}
	c->rx_charged += charge;
	if (tdm_unlikely(left - charge < TDM_CREDIT_LOW_BYTES))
		tdm_credit_low(c);
	c->stats.rx_msgs++;
	c->stats.rx_bytes += rec->len;
	c->cur = NULL;
	k = rec->op == TDM_WIRE_WRITE ? tdm_rx_write(c, rec) :
					tdm_rx_eager(c, rec, p, n);
	if (tdm_unlikely(k < 0)) {
		/* The record will be handled again. */
		c->rx_charged -= charge;
		if (rec->flags & TDM_WIRE_F_LEFT)
			c->given -= charge;
		c->stats.rx_msgs--;
		c->stats.rx_bytes -= rec->len;
		return k;
	}
	if (rec->len > TDM_TCP_HOLD_BYTES && c->cur && c->cur->waited)
		c->posted.waited = 1;
	c->left = rec->len - (uint32_t)k;
	if (!c->left)
		tdm_prompt_received(c, rec->flags, rec->len, 0);
	return k;
}

/*
 * Begin an ATOMIC. Like announced messages it is bounded by a count: no credit
 * is charged for it.
 */
static int begin_atomic(struct tdm_conn *c, const struct tdm_wire_rec *rec,
			const uint8_t *p, size_t n)
{
	int k;

	c->cur = NULL;
	k = tdm_rx_atomic(c, rec, p, n);
	if (k < 0)
		return k;
	c->left = rec->len - (uint32_t)k;
	if (!c->left)
		tdm_prompt_received(c, rec->flags, rec->len, 0);
	return k;
}

/*
 * Begin a LEFT: the payload of an announced message or write whose sender
 * closes.
 */
static int begin_left(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	int ret;

	c->cur = NULL;
	ret = tdm_rx_left(c, rec);
	if (ret < 0)
		return ret;
	c->left = rec->len;
	if (!c->left)
		tdm_prompt_received(c, rec->flags, rec->len, 0);
	return 0;
}

static int begin_data(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	int ret;

	c->cur = NULL;
	ret = tdm_rx_data(c, rec);
	if (ret < 0)
		return ret;
	/*
	 * An older peer cannot say whether it is urgent: it may wait for the
	 * delivery.
	 */
	if ((rec->flags & TDM_WIRE_F_ACK) &&
	    !(c->features & TDM_WIRE_FEATURE_NOW))
		c->cur_flags |= TDM_WIRE_F_NOW;
	c->left = rec->len;
	return 0;
}

/* Handle a CANCEL: drop the message, if no receive has matched it. */
static void withdrawn(struct tdm_conn *c, uint32_t id)
{
	struct tdm_list_ends ends;
	struct tdm_list *n;

	tdm_list_ends_init(&ends, &c->busy->rxs);
	while ((n = tdm_list_ends_next(&ends))) {
		struct tdm_rx *rx = tdm_list_entry(n, struct tdm_rx, node);

		if (rx->announced && rx->id == id &&
		    rx->state == TDM_RX_WAITING) {
			tdm_rx_withdraw(rx);
			return;
		}
	}
}

/* Handle a GROUP: the messages from here on belong to @group. */
static int group(struct tdm_conn *c, uint32_t group)
{
	if (!c->tcp->a.groups)
		return -TDM_WIRE_E_STATE;
	if (group > TDM_SPACE_GROUP_MOST)
		return -TDM_WIRE_E_VALUE;
	tdm_conn_set_source(c, c->fi_addr, group);
	return 0;
}

/* Handle a POSITION, which is not a part of the stream. */
static int position(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	if (!tdm_conn_resumes(c))
		return -TDM_WIRE_E_STATE;
	c->rx_pos -= TDM_WIRE_ACK_BYTES;
	return tdm_tx_acked(c, rec);
}

/*
 * Handle the record @rec; @n bytes after its header are at @p. Returns the
 * bytes used, or an error.
 */
static int handle(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		  const uint8_t *p, size_t n)
{
	if (tdm_unlikely(c->bye))
		return -TDM_WIRE_E_STATE;
	if (tdm_unlikely(rec->ctx >= c->tcp->contexts))
		return -TDM_WIRE_E_VALUE;
	c->cur_flags = rec->flags;
	c->cur_len = rec->len;
	switch (rec->op) {
	case TDM_WIRE_EAGER:
	case TDM_WIRE_WRITE:
		return begin_eager(c, rec, p, n);
	case TDM_WIRE_RTS:
		return tdm_rx_rts(c, rec);
	case TDM_WIRE_CTS:
		return tdm_tx_cts(c, rec);
	case TDM_WIRE_DATA:
		return begin_data(c, rec);
	case TDM_WIRE_LEFT:
		return begin_left(c, rec);
	case TDM_WIRE_DONE:
		return tdm_tx_done(c, rec);
	case TDM_WIRE_AWRITE:
		return tdm_rx_awrite(c, rec);
	case TDM_WIRE_READ:
		return tdm_tx_read(c, rec);
	case TDM_WIRE_ATOMIC:
		return begin_atomic(c, rec, p, n);
	case TDM_WIRE_CANCEL:
		withdrawn(c, rec->id);
		return 0;
	case TDM_WIRE_POSITION:
		return position(c, rec);
	case TDM_WIRE_ACK:
		if ((rec->flags & TDM_WIRE_F_DATA) && !tdm_conn_resumes(c))
			return -TDM_WIRE_E_STATE;
		return tdm_tx_acked(c, rec);
	case TDM_WIRE_RANGE:
		return tdm_rx_range(c, rec);
	case TDM_WIRE_LOCAL:
		return tdm_meet_heard(c, rec);
	case TDM_WIRE_GROUP:
		return group(c, rec->group);
	case TDM_WIRE_IDLE_CLOSE:
		return tdm_idle_close_heard(c, rec);
	default:
		c->bye = 1;
		return 0;
	}
}

/*
 * Complete the header in busy->head from @p[n]. Returns the bytes taken; *@head
 * is its length when it is complete, else 0.
 */
static int complete_head(struct tdm_conn *c, const uint8_t *p, size_t n,
			 int *head)
{
	size_t took = 0, k;
	int need = TDM_WIRE_PREFIX_BYTES;

	*head = 0;
	if (tdm_busy_need(c))
		return -TDM_RX_NO_MEMORY;
	if (c->head_len < TDM_WIRE_PREFIX_BYTES) {
		k = tdm_min(n, TDM_WIRE_PREFIX_BYTES - c->head_len);
		memcpy(c->busy->head + c->head_len, p, k);
		c->head_len += (uint8_t)k;
		took = k;
		if (c->head_len < TDM_WIRE_PREFIX_BYTES)
			return (int)took;
	}
	need = tdm_wire_head_bytes(c->busy->head);
	if (need < 0)
		return need;
	k = tdm_min(n - took, (size_t)need - c->head_len);
	memcpy(c->busy->head + c->head_len, p + took, k);
	c->head_len += (uint8_t)k;
	took += k;
	if (c->head_len == need)
		*head = need;
	return (int)took;
}

/*
 * Handle one header and the payload that has arrived. Returns bytes used, or an
 * error. With -TDM_RX_NO_MEMORY *@used bytes are used, the others come again.
 */
static int record(struct tdm_conn *c, const uint8_t *p, size_t n, int *used)
{
	struct tdm_wire_rec rec;
	const uint8_t *at = p;
	int took, head, ret;

	*used = 0;
	if (tdm_likely(!c->head_len && n >= TDM_WIRE_PREFIX_BYTES)) {
		head = tdm_wire_head_bytes(p);
		if (head < 0)
			return head;
		took = head;
		if ((size_t)head > n)
			took = complete_head(c, p, n, &head);
	} else {
		took = complete_head(c, p, n, &head);
		at = c->busy->head;
	}
	if (took < 0 || !head)
		return took;
	c->head_len = 0;
	ret = tdm_wire_decode(at, &rec);
	if (!ret)
		ret = handle(c, &rec, p + took, n - (size_t)took);
	if (tdm_unlikely(ret == -TDM_RX_NO_MEMORY && at == c->busy->head)) {
		c->head_len = (uint8_t)head;
		*used = took;
	}
	if (tdm_unlikely(ret < 0))
		return ret;
	c->rx_pos += (size_t)(head + ret);
	return took + ret;
}

/* Handle all of @p[n]. Returns the records begun. */
static unsigned consume(struct tdm_conn *c, const uint8_t *p, size_t n)
{
	unsigned records = 0;

	while (n && tdm_conn_open(c)) {
		int k, used;

		if (c->left) {
			size_t len = tdm_min(n, c->left);

			take(c, p, len);
			p += len;
			n -= len;
			continue;
		}
		k = record(c, p, n, &used);
		if (tdm_unlikely(k < 0)) {
			if (k == -TDM_RX_NO_MEMORY)
				tdm_stall(c, p + used, n - (size_t)used);
			else
				protocol_error(c, -k);
			break;
		}
		records++;
		p += k;
		n -= (size_t)k;
	}
	return records;
}

/*
 * Read by one system call. *@direct: how many bytes at most go directly to
 * their place, *@asked: how many bytes fit in all.
 */
static ssize_t read_some(struct tdm_conn *c, size_t *direct, size_t *asked)
{
	uint8_t *stage = c->tcp->stage->bytes;
	struct iovec iov[TDM_IOV_LIMIT + 1];
	size_t n = 0;

	*direct = 0;
	if (tdm_unlikely(c->layered)) {
		*asked = 0; /* the kernel may have more */
		return tdm_layer_recv(c, stage, TDM_STAGE_BYTES);
	}
	*asked = c->read_bytes;
	if (tdm_unlikely(c->left > DIRECT_BYTES))
		n = tdm_rx_target(c, iov);
	if (!n) {
		/* Many bytes to drop: read them in large pieces. */
		if (tdm_unlikely(c->left > DIRECT_BYTES))
			*asked = TDM_STAGE_BYTES;
		return tdm_os.recv(c->io.fd, stage, *asked, MSG_DONTWAIT);
	}
	*asked = *direct = tdm_iov_len(iov, n);
	/* The end of a write goes through the staging buffer. */
	if (c->left - *direct <= TDM_LINE_BYTES) {
		iov[n].iov_base = stage;
		iov[n].iov_len = READ_BYTES;
		*asked += READ_BYTES;
		n++;
	}
	return tdm_os.readv(c->io.fd, iov, (int)n);
}

/* The stream has ended: @err is 0, of the system, or EBADMSG: bytes changed. */
static void ended(struct tdm_conn *c, int err)
{
	int prov = err == EBADMSG ? EBADMSG : 0;

	tdm_sock_tell(c);
	if (c->tx_err)
		err = c->tx_err;
	else if (!err || err == EPIPE || err == EBADMSG)
		err = FI_ECONNRESET;
	if (tdm_resume_begin(c, err))
		tdm_conn_fail(c, err, prov);
}

/*
 * Choose how much to read into the staging buffer next, when the last @n bytes
 * held the beginnings of @records: headers only where long payload can be read
 * to its place; all there is where records are short, within the bounds of a
 * pass.
 */
static void adapt(struct tdm_conn *c, size_t n, unsigned records)
{
	if (c->left > DIRECT_BYTES || (records && n / records >= LONG_BYTES))
		c->read_bytes = SHORT_READ_BYTES;
	else if (records >= PASS_RECORDS)
		c->read_bytes = READ_BYTES;
	else if (records)
		c->read_bytes = TDM_STAGE_BYTES;
}

void tdm_rx_expect(struct tdm_conn *c, uint64_t len)
{
	if (len >= LONG_BYTES)
		c->read_bytes = SHORT_READ_BYTES;
}

/* Handle the complete header in c->busy->head, which alone is left. */
static void resume_head(struct tdm_conn *c)
{
	int used, k = record(c, c->tcp->stage->bytes, 0, &used);

	if (k == -TDM_RX_NO_MEMORY)
		tdm_stall(c, c->tcp->stage->bytes, 0);
	else if (k < 0)
		protocol_error(c, -k);
}

/*
 * Handle the bytes left in the staging buffer. Returns not 0 when it is free.
 */
static int resume(struct tdm_conn *c)
{
	struct tdm_stage *stage = c->tcp->stage;

	if (stage->stalled != c)
		return 0;
	stage->stalled = NULL;
	if (stage->at < stage->end)
		consume(c, stage->bytes + stage->at, stage->end - stage->at);
	else
		resume_head(c);
	if (!stage->stalled)
		stage->since_ns = 0;
	return !stage->stalled;
}

int tdm_rx_ready(struct tdm_conn *c)
{
	struct tdm_loop *loop = c->tcp->a.loop;
	size_t bytes = 0, direct, asked;
	unsigned records = 0, k;
	ssize_t n;
	int full;

	if (tdm_unlikely(c->tcp->stage->stalled != NULL) && !resume(c)) {
		tdm_loop_end(loop);
		/* The socket alone may not bring it back. */
		if (c->tx_err || tdm_layer_waiting(c))
			tdm_conn_again(c);
		return 0;
	}
	while (tdm_conn_open(c)) {
		n = read_some(c, &direct, &asked);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && tdm_os_later(errno)) {
			if (errno != EAGAIN)
				tdm_conn_again(c);
			else if (c->tx_err)
				ended(c, 0);
			return 0;
		}
		if (n <= 0) {
			ended(c, n < 0 ? errno : 0);
			return 0;
		}
		tdm_prompt_say(c);
		tdm_loop_heat(loop, &c->io);
		tdm_loop_active(loop, &c->io);
		c->used = c->tcp->pass;
		bytes += (size_t)n;
		direct = tdm_min(direct, (size_t)n);
		if (direct)
			take(c, NULL, direct);
		k = consume(c, c->tcp->stage->bytes, (size_t)n - direct);
		records += k;
		if (tdm_unlikely(c->tcp->stage->stalled != NULL))
			return 0;
		adapt(c, (size_t)n, k);
		full = records >= PASS_RECORDS || bytes >= PASS_BYTES;
		if (tdm_unlikely(tdm_layer_waiting(c))) {
			if (!full)
				continue;
			tdm_conn_again(c);
		}
		if ((size_t)n < asked && !c->tx_err)
			return 0;
		if (full)
			return tdm_conn_open(c);
	}
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of a play, drawn at random: see sim_play.h. A message says which one
 * it is by its tag, or its remote CQ data.
 *
 * Locking: none, one thread.
 */
#include <string.h>

#include "base/base.h"
#include "sim_check.h"

enum { READ_MOST = 8, INJECT_MOST = 64, MULTI_TIMES = 4, MULTI_MOST = 100000 };

#define ANY_TAG (~(3ull << 62))

static uint64_t id_of(const struct tds_play *p, const struct tds_op *op)
{
	return (uint64_t)op->cls << 62 | (uint64_t)(op - p->op);
}

/* Enter the result of the call that posted @op. Returns it. */
static int posted(struct tds_play *p, struct tds_ep *e, struct tds_op *op,
		  ssize_t ret)
{
	tds_trace("ep %d op %d kind %d class %d place %d len %zu: %zd",
		  (int)(e - p->ep), (int)(op - p->op), op->kind, op->cls,
		  op->place, op->len, ret);
	if (ret) {
		p->ops--; /* it is the last one */
		if (ret != -FI_EAGAIN &&
		    (op->kind == TDS_OP_RECV || op->kind == TDS_OP_MULTI ||
		     !tds_may_fail(e, op->place, (int)-ret)))
			tds_wrong(p, "a call of kind %d fails: %s", op->kind,
				  fi_strerror((int)-ret));
		return (int)ret;
	}
	op->posted = 1;
	if (op->kind == TDS_OP_INJECT)
		op->ended = 1;
	else
		e->outstanding++;
	return 0;
}

static ssize_t send_plain(struct tds_ep *e, struct tds_op *op, uint64_t id,
			  fi_addr_t to)
{
	if (op->kind == TDS_OP_INJECT)
		return fi_injectdata(e->ep, op->buf, op->len, id, to);
	return fi_senddata(e->ep, op->buf, op->len, NULL, id, to, op);
}

static ssize_t send_tagged(struct tds_ep *e, struct tds_op *op, uint64_t id,
			   fi_addr_t to)
{
	if (op->kind == TDS_OP_INJECT)
		return fi_tinject(e->ep, op->buf, op->len, to, id);
	return fi_tsend(e->ep, op->buf, op->len, NULL, to, id, op);
}

int tds_post_send(struct tds_play *p, struct tds_ep *e, int place, int cls,
		  size_t len)
{
	int inject = len <= INJECT_MOST && tds_one_of(3);
	struct tds_op *op =
		tds_op_new(p, e, inject ? TDS_OP_INJECT : TDS_OP_SEND, len);
	uint64_t id;
	int ret;

	if (!op)
		return -FI_EAGAIN;
	op->place = place;
	op->cls = cls;
	op->seq = e->sent[place][cls] + 1;
	id = id_of(p, op);
	tdt_seeded_fill(op->buf, len, (uint32_t)id);
	ret = posted(p, e, op,
		     cls ? send_tagged(e, op, id, e->addr[place]) :
			   send_plain(e, op, id, e->addr[place]));
	if (!ret)
		e->sent[place][cls]++;
	return ret;
}

static ssize_t recv_multi(struct tds_ep *e, struct tds_op *op)
{
	struct iovec iov = { op->buf, op->len };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC,
			      .context = op };

	return fi_recvmsg(e->ep, &msg, FI_MULTI_RECV);
}

int tds_post_recv(struct tds_play *p, struct tds_ep *e, int cls, int place)
{
	int multi = !cls && place < 0 && p->longest < MULTI_MOST &&
		    tds_one_of(4);
	int ret;
	size_t len = p->longest * (multi ? MULTI_TIMES : 1);
	struct tds_op *op =
		tds_op_new(p, e, multi ? TDS_OP_MULTI : TDS_OP_RECV, len);
	fi_addr_t from = place < 0 ? FI_ADDR_UNSPEC : e->addr[place];

	if (!op)
		return -FI_EAGAIN;
	op->place = place;
	op->cls = cls;
	op->seq = ++e->receives;
	if (multi)
		ret = posted(p, e, op, recv_multi(e, op));
	else if (cls)
		ret = posted(p, e, op,
			     fi_trecv(e->ep, op->buf, len, NULL, from,
				      (uint64_t)cls << 62, ANY_TAG, op));
	else
		ret = posted(p, e, op,
			     fi_recv(e->ep, op->buf, len, NULL, from, op));
	if (!ret && place < 0)
		e->open_any[cls]++;
	else if (!ret)
		e->open_directed[place]++;
	return ret;
}

/* ---- one-sided ----------------------------------------------------------- */

static uint64_t offset_of(const struct tds_play *p, const struct tds_ep *e,
			  int cell)
{
	return (uint64_t)((e - p->ep) * TDS_CELLS + cell) * TDS_CELL_BYTES;
}

static ssize_t onesided(struct tds_ep *e, struct tds_op *op, uint64_t at)
{
	fi_addr_t to = e->addr[op->place];

	switch (op->kind) {
	case TDS_OP_WRITE:
		return fi_write(e->ep, op->buf, op->len, NULL, to, at, 1, op);
	case TDS_OP_READ:
		return fi_read(e->ep, op->buf, op->len, NULL, to, at, 1, op);
	default:
		return fi_fetch_atomic(e->ep, op->buf, 1, NULL, op->buf + 8,
				       NULL, to, at, 1, FI_UINT64, FI_SUM, op);
	}
}

/* Cell 0 is a counter, the others are blocks; one operation of each at a time. */
static void post_onesided(struct tds_play *p, struct tds_ep *e, int place)
{
	int cell = (int)tds_random(TDS_CELLS);
	struct tds_cell *c = &e->cell[place][cell];
	enum tds_op_kind kind = !cell	      ? TDS_OP_ADD :
				tds_one_of(2) ? TDS_OP_READ :
						TDS_OP_WRITE;
	struct tds_op *op;

	if (c->busy)
		return;
	op = tds_op_new(p, e, kind, cell ? TDS_CELL_BYTES : 16);
	if (!op)
		return;
	op->place = place;
	op->cell = cell;
	op->epoch = p->life[place];
	if (kind == TDS_OP_WRITE)
		tdt_seeded_fill(op->buf, op->len, (uint32_t)(op - p->op));
	if (kind == TDS_OP_ADD)
		memcpy(op->buf, &(uint64_t){ 1 + tds_random(9) }, 8);
	if (!posted(p, e, op, onesided(e, op, offset_of(p, e, cell))))
		c->busy = 1;
}

/* ---- at random ----------------------------------------------------------- */

static size_t any_len(const struct tds_play *p)
{
	switch (tds_random(8)) {
	case 0:
		return 0;
	case 1:
		return tds_random(p->longest + 1);
	case 2:
		return tds_random(tdm_min(p->longest, (size_t)4096) + 1);
	default:
		return tds_random(tdm_min(p->longest, (size_t)200) + 1);
	}
}

void tds_cancel(struct tds_play *p, struct tds_op *op)
{
	struct tds_ep *e = &p->ep[op->ep];

	tds_trace("ep %d cancels op %d", op->ep, (int)(op - p->op));
	op->cancelled = 1;
	fi_cancel(&e->ep->fid, op);
}

static void cancel_any(struct tds_play *p, struct tds_ep *e)
{
	struct tds_op *op = &p->op[tds_random((uint64_t)p->ops)];

	if (p->ops && op->posted && !op->ended && op->ep == (int)(e - p->ep) &&
	    op->kind != TDS_OP_WRITE && op->kind != TDS_OP_READ &&
	    op->kind != TDS_OP_ADD)
		tds_cancel(p, op);
}

void tds_post_any(struct tds_play *p, struct tds_ep *e)
{
	int place = (int)tds_random((uint64_t)p->places);
	int cls = (int)tds_random(TDS_CLASSES);

	p->budget--;
	switch (tds_random(16)) {
	case 0:
	case 1:
	case 2:
		post_onesided(p, e, place);
		break;
	case 3:
		tds_post_recv(p, e, cls, place);
		break;
	case 4:
	case 5:
	case 6:
		tds_post_recv(p, e, cls, -1);
		break;
	case 7:
		cancel_any(p, e);
		break;
	default:
		tds_post_send(p, e, place, cls, any_len(p));
	}
}

/* ---- the queue ----------------------------------------------------------- */

static void read_events(struct tds_ep *e)
{
	struct fi_eq_err_entry err;
	char room[64];
	uint32_t event;

	while (fi_eq_read(e->eq, &event, room, sizeof(room), 0) == -FI_EAVAIL) {
		memset(&err, 0, sizeof(err)); /* err_data is the queue's */
		fi_eq_readerr(e->eq, &err, 0);
	}
}

int tds_poll(struct tds_play *p, struct tds_ep *e)
{
	struct fi_cq_tagged_entry entry[READ_MOST];
	fi_addr_t src[READ_MOST];
	struct fi_cq_err_entry err;
	ssize_t n =
		fi_cq_readfrom(e->cq, entry, 1 + tds_random(READ_MOST), src);
	ssize_t i;

	for (i = 0; i < n; i++)
		tds_op_done(p, e, &entry[i], src[i]);
	if (n == -FI_EAVAIL) {
		memset(&err, 0, sizeof(err));
		n = fi_cq_readerr(e->cq, &err, 0);
		if (n == 1)
			tds_op_failed(p, e, &err);
	}
	if (n < 0 && n != -FI_EAGAIN)
		tds_wrong(p, "fi_cq_readfrom: %s", fi_strerror((int)-n));
	if (tds_one_of(8))
		read_events(e);
	return n > 0 ? (int)n : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A schedule is some twenty steps: receives of all kinds are posted (masked,
 * exact, from one source or any, tagged, untagged, multi-receive), messages
 * arrive by two transports from sources that are known or not, receives are
 * cancelled, messages peeked at, claimed, discarded, lost; sources become
 * known and unknown again; transports finish what they fill at another time.
 *
 * The model is two lists in the order of posting and of arrival, searched from
 * the front. The test compares: whether each message finds a receive at once,
 * which message each receive ends with, that every receive ends exactly once
 * and every multi-receive buffer is released once and after its last part, the
 * room that is left, and that all entries come back.
 *
 * Plain C and without allocations, so that a million of them take seconds.
 */
#include "srx_schedule.h"

#include <string.h>

#include "peer/srx_priv.h"
#include "srx_model.h"

/* ---- the transports ------------------------------------------------------- */

static struct tdt_msg *msg_of(struct fi_peer_rx_entry *e)
{
	return (struct tdt_msg *)e->peer_context;
}

/* Copy, complete, give back. */
static void finish(struct fi_peer_rx_entry *e)
{
	struct tdt_msg *m = msg_of(e);
	size_t room = tdm_iov_len(e->iov, e->count);
	size_t n = tdm_min(room, m->size);

	if (e->msg_size != n)
		tdt_model_differs("msg_size of a matched entry");
	tdm_iov_copy_to(e->iov, e->count, 0, (const char *)&m->id,
			tdm_min(n, sizeof(m->id)));
	if (n < m->size)
		tdm_done_recv_err(&tdt_model.done, e,
				  tdm_truncated(n, m->size - n));
	else
		tdm_done_recv(&tdt_model.done, e, n);
	m->entry = NULL;
	e->srx->owner_ops->free_entry(e);
}

static void fill(struct fi_peer_rx_entry *e)
{
	struct tdt_msg *m = msg_of(e);

	if (tdt_model.hold[m->from])
		tdt_model.held[tdt_model.nheld++] = (int)(m - tdt_model.msg);
	else
		finish(e);
}

static int start(struct fi_peer_rx_entry *e)
{
	if (e->srx != tdt_model.port[msg_of(e)->from])
		tdt_model_differs("started with another transport");
	fill(e);
	return 0;
}

static int discard(struct fi_peer_rx_entry *e)
{
	struct tdt_msg *m = msg_of(e);

	if (m->state == DROPPED || !m->entry)
		tdt_model_differs("discarded twice");
	m->state = DROPPED;
	m->entry = NULL;
	tdt_model.stats->discards++;
	return 0;
}

static fi_addr_t get_addr(struct fi_peer_rx_entry *e)
{
	const struct tdt_msg *m = msg_of(e);

	return tdt_model.known >> m->real & 1 ? m->real : ANY;
}

static struct fi_ops_srx_peer peer_ops = {
	.size = sizeof(peer_ops),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};

/* ---- the queue ------------------------------------------------------------ */

/* A message ended in the buffer of @r, or was cut. */
static void ended_with(struct tdt_rx *r, const char *buf, size_t len, int cut)
{
	struct tdt_msg *m;
	uint64_t id;

	if (buf < r->buf || buf + len > r->buf + r->len || len < sizeof(id)) {
		tdt_model_differs("a buffer that was not posted");
		return;
	}
	memcpy(&id, buf, sizeof(id));
	m = &tdt_model.msg[id % STEPS];
	if (id / STEPS != 0x5eed || m->state != GIVEN ||
	    &tdt_model.rx[m->rx] != r) {
		tdt_model_differs("a receive got another message");
		return;
	}
	if (m->cut != cut)
		tdt_model_differs("cut, or not");
	m->state = DROPPED;
	r->owed--;
	if (!r->multi)
		r->ended++;
}

static struct tdt_rx *rx_of(void *context)
{
	size_t i = (size_t)((char *)context - (char *)tdt_model.rx) /
		   sizeof(tdt_model.rx[0]);

	if (i >= STEPS || context != (void *)&tdt_model.rx[i].ctx) {
		tdt_model_differs("a context nobody gave");
		return &tdt_model.rx[0];
	}
	return &tdt_model.rx[i];
}

static ssize_t cq_write(struct fid_peer_cq *cq, void *context, uint64_t flags,
			size_t len, void *buf, uint64_t data, uint64_t tag,
			fi_addr_t src)
{
	struct tdt_rx *r = rx_of(context);

	if (context == tdt_model.peeking) {
		tdt_model.peek_err = 0;
		tdt_model.peek_tag = tag;
		tdt_model.peek_src = src;
		tdt_model.peek_len = len;
	} else if (flags & FI_MULTI_RECV) {
		if (!r->multi || r->state != TAKEN || r->owed || r->ended)
			tdt_model_differs("released too early or twice");
		r->ended++;
		tdt_model.stats->releases++;
	} else {
		ended_with(r, (const char *)buf, len, 0);
	}
	return 0;
}

static ssize_t cq_writeerr(struct fid_peer_cq *cq,
			   const struct fi_cq_err_entry *e)
{
	struct tdt_rx *r = rx_of(e->op_context);

	if (e->op_context == tdt_model.peeking) {
		tdt_model.peek_err = e->err;
	} else if (e->err == FI_ECANCELED) {
		if (r->state != CANCELLED || r->owed || r->ended ||
		    !!(e->flags & FI_MULTI_RECV) != r->multi)
			tdt_model_differs("cancelled wrongly");
		r->ended++;
	} else if (e->err == FI_ETRUNC) {
		ended_with(r, (const char *)e->buf, e->len, 1);
	} else {
		tdt_model_differs("an error nobody made");
	}
	return 0;
}

static struct fi_ops_cq_owner cq_ops = { sizeof(cq_ops), cq_write,
					 cq_writeerr };
static struct fid_peer_cq cq = { .owner_ops = &cq_ops };

/* ---- steps ---------------------------------------------------------------- */

static struct tdt_rx *new_rx(int tagged)
{
	struct tdt_rx *r = &tdt_model.rx[tdt_model.nrx++];

	r->tagged = tagged;
	r->multi = !tdt_model_upto(4);
	r->src = tdt_model_upto(2) ? ANY : tdt_model_upto(SOURCES);
	r->tag = tagged ? tdt_model_upto(TAGS) : 0;
	r->ignore = tagged && tdt_model_upto(2) ? tdt_model_upto(TAGS + 1) : 0;
	r->len = r->multi ? 20 + tdt_model_upto(BUF - 20) :
			    8 + tdt_model_upto(10);
	r->used = 0;
	r->owed = r->ended = 0;
	r->state = UNUSED;
	return r;
}

static ssize_t call(struct tdt_rx *r, uint64_t flags)
{
	struct tdm_xfer x;

	tdm_xfer_init(&x,
		      FI_RECV | FI_COMPLETION | flags |
			      (r->tagged ? FI_TAGGED : FI_MSG),
		      r->src, &r->ctx);
	x.tag = r->tag;
	x.ignore = r->ignore;
	tdm_xfer_buf(&x, r->buf, r->len);
	return tdm_srx_recv(tdt_model.srx, &x);
}

static void do_post(void)
{
	struct tdt_rx *r = new_rx((int)tdt_model_upto(2));
	/* Before the call: completions may be written inside. */
	tdt_model.stats->posts++;
	tdt_model_post((int)(r - tdt_model.rx));
	if (call(r, r->multi ? FI_MULTI_RECV : 0))
		tdt_model_differs("a receive was refused");
}

static void do_arrive(void)
{
	struct tdt_msg *m = &tdt_model.msg[tdt_model.nmsg++];
	struct fi_peer_match_attr attr;
	struct fid_peer_srx *fid;
	int taken, ret;

	m->id = 0x5eed * (uint64_t)STEPS + (uint64_t)(m - tdt_model.msg);
	m->real = tdt_model_upto(SOURCES);
	m->from = (int)(m->real & 1);
	m->src = tdt_model.known >> m->real & 1 || tdt_model_upto(2) ? m->real :
								       ANY;
	m->tagged = (int)tdt_model_upto(2);
	m->tag = m->tagged ? tdt_model_upto(TAGS) : 0;
	m->size = 8 + tdt_model_upto(14);
	m->state = WAITING;
	tdt_model.hold[m->from] = (int)tdt_model_upto(2);
	fid = tdt_model.port[m->from];
	attr.addr = m->src;
	attr.msg_size = m->size;
	attr.tag = m->tag;
	taken = tdt_model_arrive((int)(m - tdt_model.msg));
	tdt_model.stats->arrivals++;
	ret = m->tagged ? fid->owner_ops->get_tag(fid, &attr, &m->entry) :
			  fid->owner_ops->get_msg(fid, &attr, &m->entry);
	if (ret != (taken ? 0 : -FI_ENOENT)) {
		tdt_model_differs(taken ? "a receive was overlooked" :
					  "a receive that does not fit");
		return;
	}
	m->entry->peer_context = m;
	if (taken) {
		fill(m->entry);
		return;
	}
	tdt_model.waiting[tdt_model.nwaiting++] = (int)(m - tdt_model.msg);
	tdt_model.stats->unexpected++;
	if (m->tagged ? fid->owner_ops->queue_tag(m->entry) :
			fid->owner_ops->queue_msg(m->entry))
		tdt_model_differs("a message was not kept");
}

static void do_cancel(void)
{
	struct tdt_rx *r;

	if (!tdt_model.nposted)
		return;
	r = &tdt_model.rx[tdt_model.posted[tdt_model_upto(
		(unsigned)tdt_model.nposted)]];
	tdt_model_list_remove(tdt_model.posted, &tdt_model.nposted,
			      (int)(r - tdt_model.rx));
	r->state = CANCELLED;
	tdt_model.stats->cancels++;
	if (tdm_srx_cancel(tdt_model.srx, &r->ctx))
		tdt_model_differs("a posted receive was not found");
}

static void finish_held(unsigned i)
{
	int m = tdt_model.held[i];

	tdt_model_list_remove(tdt_model.held, &tdt_model.nheld, m);
	finish(tdt_model.msg[m].entry);
}

static void do_finish(void)
{
	if (tdt_model.nheld)
		finish_held(tdt_model_upto((unsigned)tdt_model.nheld));
}

/* A transport takes back a message that waits. */
static void do_lose(void)
{
	struct fi_peer_rx_entry *e;
	struct tdt_msg *m;

	if (!tdt_model.nwaiting)
		return;
	m = &tdt_model.msg[tdt_model.waiting[tdt_model_upto(
		(unsigned)tdt_model.nwaiting)]];
	tdt_model_list_remove(tdt_model.waiting, &tdt_model.nwaiting,
			      (int)(m - tdt_model.msg));
	e = m->entry;
	m->entry = NULL;
	m->state = LOST;
	tdt_model.stats->lost++;
	e->srx->owner_ops->free_entry(e);
}

static void do_resolve(void)
{
	int from = (int)tdt_model_upto(2);

	tdt_model.known |= tdt_model_upto(1 << SOURCES);
	/* Completions are written inside of the call, so the model is first. */
	tdt_model_resolve(from);
	tdt_model.port[from]->owner_ops->foreach_unspec_addr(
		tdt_model.port[from], get_addr);
}

static void do_forget(void)
{
	fi_addr_t addr = tdt_model_upto(SOURCES);
	int i;

	tdt_model.known &= ~(1u << addr);
	tdm_srx_forget(tdt_model.srx, addr);
	for (i = 0; i < tdt_model.nwaiting; i++) {
		if (tdt_model.msg[tdt_model.waiting[i]].src == addr)
			tdt_model.msg[tdt_model.waiting[i]].src = ANY;
	}
	tdt_model.stats->forgotten++;
}

static void do_peek(void)
{
	static const uint64_t how[] = { 0, FI_DISCARD, FI_CLAIM };
	struct tdt_rx *r = new_rx(1);
	uint64_t flags = how[tdt_model_upto(3)];
	struct tdt_msg *m;
	int found;

	r->multi = 0;
	found = tdt_model_find(r);
	tdt_model.peeking = &r->ctx;
	tdt_model.peek_err = -1;
	if (call(r, FI_PEEK | flags))
		tdt_model_differs("a peek was refused");
	tdt_model.peeking = NULL;
	tdt_model.stats->peeks++;
	if (tdt_model.peek_err != (found < 0 ? FI_ENOMSG : 0)) {
		tdt_model_differs("a peek saw something else");
		return;
	}
	if (found < 0)
		return;
	m = &tdt_model.msg[found];
	if (tdt_model.peek_tag != m->tag || tdt_model.peek_len != m->size ||
	    tdt_model.peek_src != m->src)
		tdt_model_differs("a peek described another message");
	if (!flags)
		return;
	tdt_model_list_remove(tdt_model.waiting, &tdt_model.nwaiting, found);
	if (flags == FI_DISCARD) {
		if (m->state != DROPPED)
			tdt_model_differs(
				"a discard did not reach the transport");
		return;
	}
	m->state = CLAIMED;
	r->state = CLAIMING;
	r->msg = found;
}

/* Receive or discard a message that was claimed earlier. */
static void do_claim(void)
{
	struct tdt_rx *r = NULL;
	int i;

	for (i = 0; i < tdt_model.nrx && !r; i++) {
		if (tdt_model.rx[i].state == CLAIMING)
			r = &tdt_model.rx[i];
	}
	if (!r)
		return;
	tdt_model.stats->claims++;
	if (tdt_model_upto(2)) {
		r->state = UNUSED;
		tdt_model.peeking = &r->ctx;
		if (call(r, FI_CLAIM | FI_DISCARD))
			tdt_model_differs("a claim was refused");
		tdt_model.peeking = NULL;
		if (tdt_model.msg[r->msg].state != DROPPED)
			tdt_model_differs(
				"a discard did not reach the transport");
		return;
	}
	r->state = TAKEN;
	r->owed = 1;
	tdt_model.msg[r->msg].state = GIVEN;
	tdt_model.msg[r->msg].rx = (int)(r - tdt_model.rx);
	tdt_model.msg[r->msg].cut = tdt_model.msg[r->msg].size > r->len;
	if (call(r, FI_CLAIM))
		tdt_model_differs("a claim was refused");
}

static void step(unsigned bias)
{
	switch (tdt_model_upto(16)) {
	case 0:
		do_cancel();
		break;
	case 1:
		do_lose();
		break;
	case 2:
		do_resolve();
		break;
	case 3:
		if (!tdt_model_upto(3))
			do_forget();
		else
			do_resolve();
		break;
	case 4:
		do_peek();
		break;
	case 5:
		do_claim();
		break;
	case 6:
	case 7:
		do_finish();
		break;
	default:
		tdt_model.hold[0] = (int)tdt_model_upto(2);
		tdt_model.hold[1] = (int)tdt_model_upto(2);
		if (bias > tdt_model_upto(100))
			do_post();
		else
			do_arrive();
	}
	if (tdm_srx_left(tdt_model.srx) !=
	    (size_t)(tdt_model.nposted < SIZE ? SIZE - tdt_model.nposted : 0))
		tdt_model_differs("the room that is left");
}

/* End all operations that are left at the end. */
static void check_end(void)
{
	int i;

	while (!tdt_model.why && tdt_model.nheld)
		finish_held(0);
	for (i = 0; !tdt_model.why && i < tdt_model.nrx; i++) {
		const struct tdt_rx *r = &tdt_model.rx[i];
		int ends = r->state == TAKEN || r->state == CANCELLED;

		if (r->owed)
			tdt_model_differs("a message never ended");
		if (r->ended != ends)
			tdt_model_differs("a receive ended not exactly once");
	}
	tdt_model.hold[0] = tdt_model.hold[1] = 0;
	if (tdt_model.why)
		return;
	tdm_srx_flush(tdt_model.srx);
	for (i = 0; i < tdt_model.nmsg; i++) {
		if (tdt_model.msg[i].entry)
			tdt_model_differs(
				"a waiting message was not discarded");
	}
	if (tdt_model.srx->pool.in_use || tdt_model.srx->msgs.in_use ||
	    tdt_model.srx->sides.in_use)
		tdt_model_differs("entries did not come back");
}

const char *tdt_srx_schedule(uint64_t seed, struct tdt_schedule_stats *stats)
{
	static struct tdm_lock lock;
	static struct tdm_engine engine;
	struct tdm_srx_attr attr = { .engine = &engine,
				     .size = SIZE,
				     .min_multi_recv = MIN };
	unsigned kinds, bias;
	int i;

	memset(&tdt_model, 0, offsetof(struct tdt_model, rx));
	memset(tdt_model.msg, 0, sizeof(tdt_model.msg));
	tdt_model.nrx = tdt_model.nmsg = tdt_model.nheld = tdt_model.nposted =
		tdt_model.nwaiting = 0;
	tdt_model.stats = stats;
	tdt_model.peeking = NULL;
	tdt_model.dice = (seed + 1) * 0x9e3779b97f4a7c15ull | 1;
	(void)tdt_model_upto(1);
	kinds = tdt_model_upto(4) ? 3 : tdt_model_upto(4);
	tdt_model.directed[0] = kinds & TDM_SRX_DIRECTED_MSG;
	tdt_model.directed[1] = !!(kinds & TDM_SRX_DIRECTED_TAG);
	tdt_model.known = tdt_model_upto(1 << SOURCES);
	bias = 30 + tdt_model_upto(40);
	tdm_lock_init(&lock, 1);
	tdm_lock_acquire(&lock);
	engine.lock = &lock;
	attr.directed = (int)kinds;
	if (tdm_srx_open(&attr, &tdt_model.srx)) {
		tdm_lock_release(&lock);
		return "no memory";
	}
	tdt_model.done.rx_cq = &cq;
	tdm_srx_set_done(tdt_model.srx, &tdt_model.done);
	for (i = 0; i < 2; i++) {
		tdt_model.port[i] =
			tdm_srx_export(tdt_model.srx, i ? TDM_TRANSPORT_LOCAL :
							  TDM_TRANSPORT_TCP);
		tdt_model.port[i]->peer_ops = &peer_ops;
	}
	for (i = 0; i < STEPS && !tdt_model.why; i++)
		step(bias);
	if (!tdt_model.why)
		check_end();
	if (!tdt_model.why)
		tdm_srx_close(tdt_model.srx);
	tdm_lock_release(&lock);
	tdm_lock_fini(&lock);
	return tdt_model.why;
}

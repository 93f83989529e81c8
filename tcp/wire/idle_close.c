/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle close: when descriptors are scarce, both sides agree to close the least
 * recently used connections that have no operation under way. The pairs remain,
 * and connect again at the next send.
 *
 *   READY --ask()--> asked --YES--> CLOSING --GO is written--> IDLE
 *   READY --ASK----> CLOSING --GO--> IDLE | --STAY--> READY
 *
 * Descriptors are scarce when a new one has a number beyond 80 % of the limit
 * of the process (the system hands out the lowest free number, so about as many
 * are in use), or when there was none. This is checked only when a descriptor
 * is made.
 *
 * Invariants:
 *  1. A side sends YES only while no operation is under way, and commits
 *     nothing between it and the peer's GO or STAY.
 *  2. The side that asked sends GO only if no operation is under way and the
 *     counters in YES (records acknowledged, credit freed) equal its own. A
 *     record that either side sent after ASK makes them differ.
 *  3. If an operation has begun in the session when the agreement is complete,
 *     the peer broke it, and the session ends as lost.
 *  4. Each ASK has one answer and each YES has one, unless the session is lost.
 *     If both sides ask at once, only the one with the larger id answers.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Idle close"; doc/adr/0018-idle-close.md.
 */
#include "tcp/wire/idle_close.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/out.h"
#include "tcp/wire/send.h"
#include "tcp/wire/share.h"
#include "tcp/wire/tx.h"
#include "tcp/wire/tx_priv.h"

enum {
	/* Greatest number of connections asked at once. */
	ASK_MOST = 32,
	/*
	 * How many to ask for each descriptor above the mark, and for each
	 * failure.
	 */
	ASK_CROWDED = 2,
	ASK_NONE_LEFT = 4,
	/* Greatest credit of messages that are kept over an idle close. */
	KEPT_BYTES = 128 << 10,
};

/* The candidates, least recently used first. */
struct tdm_idle {
	unsigned want, count;
	struct {
		struct tdm_conn *conn;
		uint64_t passes; /* passes since it was last used */
	} found[ASK_MOST];
};

/*
 * Not 0 when @c has received only complete messages that wait, and few of them.
 */
static int keepable(const struct tdm_conn *c)
{
	uint64_t sum = 0;
	struct tdm_list *n;

	tdm_list_for_each(n, &c->busy->rxs) {
		struct tdm_rx *rx = tdm_list_entry(n, struct tdm_rx, node);

		sum += rx->charge + rx->kept;
		if (rx->state != TDM_RX_WAITING || rx->announced ||
		    rx->wants_done || rx->got != rx->len || sum > KEPT_BYTES)
			return 0;
	}
	return 1;
}

/* Not 0 when every operation over @c that either side began has ended. */
static int over(const struct tdm_conn *c)
{
	return c->tcp->stage->stalled != c && !c->borrow && !c->cur &&
	       !c->left && !c->head_len && !c->busy->rts &&
	       !c->busy->announced && tdm_list_empty(&c->ackq) &&
	       tdm_list_empty(&c->busy->waitq) &&
	       tdm_list_empty(&c->busy->dataq) &&
	       tdm_list_empty(&c->busy->ctlq) && keepable(c);
}

/*
 * Not 0 when no operation is under way over @c, as far as this side can tell.
 */
static int idle(const struct tdm_conn *c)
{
	if (c->state != TDM_CONN_READY || c->bye || c->closing || c->tx_err ||
	    c->blocked || c->say || c->meeting)
		return 0;
	/* A connection to ourselves has both of its ends here. */
	if (!memcmp(c->id, c->tcp->id, sizeof(c->id)))
		return 0;
	return tdm_list_empty(&c->sendq) && over(c);
}

/* As idle(), and the peer has acknowledged all records. */
static int settled(const struct tdm_conn *c)
{
	return idle(c) && c->acked == c->tx_seq;
}

/* Set the state of @c that belongs to a session back to its start. */
static void forget_session(struct tdm_conn *c)
{
	tdm_credit_end(c, 0);
	c->ack_now = 0;
	c->turn = 0;
	c->asked = 0;
	c->going = 0;
	c->say = 0;
	c->tx_seq = 0;
	c->acked = 0;
	c->charged = 0;
	c->freed = 0;
	c->leaving = 0;
	c->injected = 0;
	c->told = 0;
	c->heard = 0;
	c->rx_seq = 0;
	c->ack_seq = 0;
	c->thirsty = 0;
	c->rx_charged = 0;
	c->rx_freed = 0;
	c->ack_freed = 0;
	c->ack_bytes = 0;
	tdm_keep_end(c);
	tdm_busy_forget(c);
}

void tdm_idle_close_now(struct tdm_conn *c)
{
	/*
	 * The numbers of operations that the peer has begun belong to this
	 * session: it cannot be closed as agreed.
	 */
	if (!over(c)) {
		TDM_CONN_INFO(c, "the peer broke the agreed idle close");
		tdm_conn_fail(c, FI_ECONNRESET, EPROTO);
		return;
	}
	TDM_CONN_INFO(c, "idle close");
	tdm_setup_free(c);
	tdm_conn_close_fd(c);
	tdm_list_del(&c->flush_node);
	tdm_list_del(&c->ack_node);
	c->again = 0;
	tdm_list_del(&c->unacked_node);
	forget_session(c);
	tdm_conn_set_state(c, TDM_CONN_IDLE);
	if (!tdm_list_empty(&c->sendq))
		tdm_hello_connect(c);
}

int tdm_idle_close_reborn(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	if (!c->known || !memcmp(c->id, g->id, sizeof(c->id)))
		return 0;
	tdm_conn_fail(c, FI_ECONNRESET, 0);
	return 1;
}

/* Write @step after the committed bytes. Returns not 0: there is no room. */
static int say_now(struct tdm_conn *c, enum tdm_wire_step step)
{
	if (c->borrow || !tdm_out_room(c, TDM_WIRE_ACK_BYTES))
		return -1;
	c->say = (uint8_t)step;
	c->ack_now = 1;
	tdm_tx_put_ack(c);
	return 0;
}

/* Send @step, now or when there is room: it changes no state here. */
static void say(struct tdm_conn *c, enum tdm_wire_step step)
{
	c->say = (uint8_t)step;
	c->ack_now = 1;
	tdm_conn_push(c);
}

static void ask(struct tdm_conn *c)
{
	if (say_now(c, TDM_WIRE_ASK))
		return;
	c->asked = 1;
	tdm_conn_push(c);
}

/*
 * Write YES or GO, after which nothing is sent. Returns not 0: there is no
 * room.
 */
static int agree(struct tdm_conn *c, enum tdm_wire_step step)
{
	if (say_now(c, step))
		return -1;
	c->going = step == TDM_WIRE_GO;
	tdm_conn_set_state(c, TDM_CONN_CLOSING);
	tdm_conn_push(c);
	return 0;
}

static int heard_ask(struct tdm_conn *c)
{
	if (c->state == TDM_CONN_CLOSING || c->say)
		return -TDM_WIRE_E_STATE;
	if (c->asked && memcmp(c->tcp->id, c->id, sizeof(c->id)) < 0)
		return 0; /* our own ASK has precedence */
	c->asked = 0;
	if (!settled(c) || c->tcp->closing || agree(c, TDM_WIRE_YES))
		say(c, TDM_WIRE_NO);
	return 0;
}

static int heard_answer(struct tdm_conn *c, uint32_t step)
{
	if (!c->asked)
		return -TDM_WIRE_E_STATE;
	c->asked = 0;
	if (step == TDM_WIRE_YES &&
	    (!settled(c) || c->tcp->closing || agree(c, TDM_WIRE_GO)))
		say(c, TDM_WIRE_STAY);
	return 0;
}

/* Handle the peer's answer to our YES. */
static int heard_last(struct tdm_conn *c, uint32_t step)
{
	if (c->state != TDM_CONN_CLOSING || c->going)
		return -TDM_WIRE_E_STATE;
	if (step == TDM_WIRE_GO) {
		tdm_idle_close_now(c);
		return 0;
	}
	tdm_conn_set_state(c, TDM_CONN_READY);
	tdm_conn_push(c);
	return 0;
}

int tdm_idle_close_heard(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	int ret = tdm_tx_acked(c, rec);

	if (ret)
		return ret;
	switch (rec->step) {
	case TDM_WIRE_ASK:
		return heard_ask(c);
	case TDM_WIRE_YES:
	case TDM_WIRE_NO:
		return heard_answer(c, rec->step);
	default:
		return heard_last(c, rec->step);
	}
}

/*
 * Insert @c, unused for @passes, among the candidates if it is older than one
 * of them.
 */
static void consider(struct tdm_idle *l, struct tdm_conn *c, uint64_t passes)
{
	unsigned i = l->count;

	if (i == l->want) {
		if (passes <= l->found[i - 1].passes)
			return;
		i--;
	} else {
		l->count++;
	}
	for (; i && l->found[i - 1].passes < passes; i--)
		l->found[i] = l->found[i - 1];
	l->found[i].conn = c;
	l->found[i].passes = passes;
}

void tdm_tcp_idle(struct tdm_tcp *tcp, struct tdm_idle *found)
{
	struct tdm_list *pos;

	tdm_assert_held(tcp->a.engine->lock);
	tdm_list_for_each(pos, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if ((c->features & TDM_WIRE_FEATURE_IDLE_CLOSE) && !c->asked &&
		    idle(c))
			consider(found, c, tcp->pass - c->used);
	}
}

static void look(struct tdm_loop_timer *timer)
{
	struct tdm_tcp *tcp =
		tdm_container_of(timer, struct tdm_tcp, crowd_timer);
	struct tdm_idle found;
	unsigned i;

	found.want = (unsigned)tdm_min(tcp->crowd, (unsigned)ASK_MOST);
	found.count = 0;
	tcp->crowd = 0;
	if (tcp->a.crowded)
		tcp->a.crowded(tcp->a.arg, &found);
	else
		tdm_tcp_idle(tcp, &found);
	for (i = 0; i < found.count; i++)
		ask(found.found[i].conn);
	if (tcp->none_left)
		(void)tdm_share_evict(tcp, NULL);
	tcp->none_left = 0;
}

void tdm_idle_close_init(struct tdm_tcp *tcp)
{
	tcp->crowd_timer.fired = look;
}

/*
 * Not 0 when @fd is among the last fifth of the numbers that the process may
 * have.
 */
static int scarce(int fd)
{
	rlim_t most = tdm_os_fd_limit();

	return (rlim_t)fd >= most - most / 5;
}

void tdm_idle_close_crowd(struct tdm_tcp *tcp, int fd)
{
	if (fd >= 0 && !scarce(fd))
		return;
	tcp->crowd += fd < 0 ? ASK_NONE_LEFT : ASK_CROWDED;
	tcp->none_left |= fd < 0;
	/*
	 * The caller is at work on a connection, so leave it to a timer. If it
	 * cannot be armed for want of memory, the next descriptor tries again.
	 */
	if (!tcp->crowd_timer.ev && !tcp->closing)
		(void)tdm_loop_timer_arm(tcp->a.loop, &tcp->crowd_timer, 0);
}

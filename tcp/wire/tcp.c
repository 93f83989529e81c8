/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP transport of one endpoint as a whole: opening, the work of a progress
 * pass, preparing for sleep, checking silent peers, closing.
 *
 * A pass does in this order: it sends output that was held back, sends
 * acknowledgements that fell due in an earlier pass and could not go with other
 * output, and frees dead connections.
 *
 * Liveness: a peer is dead when the kernel reports an error, or says when asked
 * (TCP_INFO) that the peer's kernel has acknowledged no bytes for the peer
 * time-out. A process that sends nothing is not taken for dead.
 */
#include <netinet/tcp.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/env.h"
#include "base/log.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/left.h"
#include "tcp/wire/listen.h"
#include "tcp/wire/out.h"
#include "tcp/wire/prompt.h"
#include "tcp/wire/resume.h"
#include "tcp/wire/rx.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/send.h"
#include "tcp/wire/stall.h"
#include "tcp/wire/tls.h"
#include "tcp/wire/tx.h"
#include "tcp/wire/unacked.h"
#include "tdm_open.h"

enum {
	FIRST_BUCKETS = 16,
	/*
	 * How long a close waits for the kernel to take the remaining output.
	 */
	CLOSE_NS = 1000000000,
	CLOSE_STEP_MS = 1,
	LEFT_MS = 60000, /* greatest time for peers to take injects */
	WATCH_LEAST_MS = 1000,
	WATCH_MOST_MS = 15000,
	/* The precision of the kernel's time of the last acknowledgement. */
	ACK_SLACK_MS = 100,
};

static void watch_fired(struct tdm_loop_timer *timer);

static void tcp_free(struct tdm_tcp *tcp)
{
	while (tcp->spare_out) {
		struct tdm_out *next = tcp->spare_out->next;

		free(tcp->spare_out);
		tcp->spare_out = next;
	}
	tdm_pool_fini(&tcp->tx_pool);
	tdm_pool_fini(&tcp->rx_pool);
	tdm_spares_fini(&tcp->payloads);
	free(tcp->bucket);
	tdm_tls_ctx_close(tcp->tls);
	free(tcp);
}

int tdm_tcp_open(const struct tdm_tcp_attr *attr, struct tdm_tcp **out)
{
	struct tdm_tcp *tcp = calloc(1, sizeof(*tcp));
	int ret = -FI_ENOMEM;

	if (!tcp)
		return -FI_ENOMEM;
	tcp->bucket = calloc(FIRST_BUCKETS, sizeof(*tcp->bucket));
	if (!tcp->bucket)
		goto err;
	ret = tdm_os_random(tcp->id, sizeof(tcp->id));
	if (ret) {
		TDM_WARN(EP_CTRL, "no random bytes for an endpoint id: %s",
			 fi_strerror(-ret));
		goto err;
	}
	ret = tdm_tls_ctx_open(attr->keys, &tcp->tls);
	if (ret)
		goto err;
	tcp->id[0] |= 1; /* never all 0 */
	memcpy(&tcp->dice, tcp->id, sizeof(tcp->dice));
	tcp->a = *attr;
	tcp->stage = tdm_loop_stage(attr->loop);
	tcp->contexts = 1;
	if (attr->done.ctx)
		tcp->contexts = attr->done.ctx->count(attr->srx);
	tcp->listener.fd = -1;
	tcp->reserve_fd = -1;
	tcp->watch.fired = watch_fired;
	tcp->buckets = FIRST_BUCKETS;
	tdm_list_init(&tcp->flush);
	tdm_list_init(&tcp->acks);
	tdm_unacked_init(tcp);
	tdm_idle_close_init(tcp);
	tdm_list_init(&tcp->conns);
	tdm_list_init(&tcp->dead);
	tdm_list_init(&tcp->guests);
	tdm_pool_init(&tcp->tx_pool, sizeof(struct tdm_tx), 0);
	tdm_pool_init(&tcp->rx_pool, sizeof(struct tdm_rx), 0);
	/* Without these operations peers have no access to regions. */
	if (attr->domain)
		tcp->rma = tdm_open_ops(&attr->domain->fid, TDM_RMA_OPS);
	attr->srx->peer_ops = &tdm_rx_peer_ops;
	tdm_credit_init(tcp);
	tdm_source_offer(attr->srx);
	*out = tcp;
	return 0;
err:
	tcp_free(tcp);
	return ret;
}

void tdm_tcp_set_done(struct tdm_tcp *tcp, const struct tdm_done *done)
{
	tdm_assert_held(tcp->a.engine->lock);
	tcp->a.done = *done;
}

size_t tdm_tcp_tx_left(const struct tdm_tcp *tcp)
{
	return tcp->a.tx_size - tdm_min(tcp->tx_used, tcp->a.tx_size);
}

/*
 * Look up the sources of the connections in @list, of those only that have none
 * unless @all. Returns whether one was found.
 */
static int resolve(struct tdm_tcp *tcp, struct tdm_list *list, int all)
{
	struct tdm_list *pos;
	int found = 0;

	tdm_list_for_each(pos, list) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if (c->fi_addr != FI_ADDR_UNSPEC && !all)
			continue;
		tdm_conn_set_source(c, tdm_av_find(tcp->a.av, &c->addr),
				    c->rx_group);
		found |= c->fi_addr != FI_ADDR_UNSPEC;
	}
	return found;
}

void tdm_tcp_resolve(struct tdm_tcp *tcp, int moved)
{
	struct fid_peer_srx *srx = tcp->a.srx;
	int found;

	tdm_assert_held(tcp->a.engine->lock);
	found = resolve(tcp, &tcp->conns, moved);
	found |= resolve(tcp, &tcp->dead, moved);
	if (found)
		srx->owner_ops->foreach_unspec_addr(srx, tdm_rx_source);
}

void tdm_tcp_forget(struct tdm_tcp *tcp, fi_addr_t fi_addr)
{
	struct tdm_list *pos, *tmp;
	struct tdm_conn *c;

	tdm_assert_held(tcp->a.engine->lock);
	tdm_list_for_each_safe(pos, tmp, &tcp->conns) {
		c = tdm_list_entry(pos, struct tdm_conn, all);
		if (c->fi_addr != fi_addr)
			continue;
		tdm_conn_set_source(c, FI_ADDR_UNSPEC, c->rx_group);
		if (tdm_tx_abandon(c, FI_ECONNABORTED))
			tdm_conn_fail(c, FI_ENOMEM, 0);
		else
			tdm_conn_drop(c);
	}
}

/*
 * Read connections that cannot be sent to or watched any more, then fail them.
 * Of tcp->conns only the one that is read can end meanwhile.
 */
static void run_again(struct tdm_tcp *tcp)
{
	struct tdm_list *pos, *tmp;

	tcp->again = 0;
	tdm_list_for_each_safe(pos, tmp, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if (!c->again)
			continue;
		c->again = 0;
		if (tdm_conn_open(c)) {
			if (tdm_rx_ready(c))
				tdm_conn_again(c);
		} else if (tdm_conn_live(c)) {
			tdm_resume_hurry(c);
		} else if (c->io.fd >= 0) {
			tdm_conn_retry(c, c->tx_err);
		}
	}
	if (tdm_unlikely(tcp->stage->stalled && tcp->again))
		tdm_stall_relieve(tcp);
}

static void push_all(struct tdm_tcp *tcp)
{
	struct tdm_list todo, *n;

	tdm_list_init(&todo);
	tdm_list_splice(&todo, &tcp->flush);
	while ((n = tdm_list_pop(&todo)))
		tdm_conn_push(tdm_list_entry(n, struct tdm_conn, flush_node));
}

/*
 * Send due acknowledgements; with @all also those that other output may still
 * carry.
 */
static void send_acks(struct tdm_tcp *tcp, int all)
{
	struct tdm_list *n, *tmp;

	tdm_list_for_each_safe(n, tmp, &tcp->acks) {
		struct tdm_conn *c =
			tdm_list_entry(n, struct tdm_conn, ack_node);

		if (!all && tdm_prompt_waits(c))
			continue;
		if (tdm_prompt_uncorked(c) && !tdm_tx_owes_ack(c)) {
			tdm_list_del(&c->ack_node);
			continue;
		}
		if (!c->ack_now && (c->prompt.waits || tdm_prompt_keeps(c)))
			tdm_prompt_missed(c);
		c->ack_now = 1;
		tdm_conn_push(c);
	}
}

void tdm_tcp_progress(struct tdm_tcp *tcp)
{
	tdm_assert_held(tcp->a.engine->lock);
	if (tdm_unlikely(tcp->again))
		run_again(tcp);
	if (!tdm_list_empty(&tcp->flush))
		push_all(tcp);
	if (!tdm_list_empty(&tcp->acks))
		send_acks(tcp, 0);
	if (tdm_unlikely(!tdm_list_empty(&tcp->dead)))
		tdm_conn_reap(tcp);
	if (tdm_unlikely(tcp->open && !tcp->watch.ev))
		watch_fired(&tcp->watch);
	if (!tdm_list_empty(&tcp->unacked))
		tdm_unacked_pass(tcp);
	if (tdm_unlikely(tcp->spares > 1) && !(tcp->pass % TDM_OUT_PASSES))
		tdm_out_trim(tcp);
	tcp->pass++;
}

int tdm_tcp_busy(const struct tdm_tcp *tcp)
{
	return tcp->open || tcp->guest_count;
}

int tdm_tcp_arm(struct tdm_tcp *tcp)
{
	tdm_assert_held(tcp->a.engine->lock);
	push_all(tcp);
	send_acks(tcp, 1);
	if (!tdm_list_empty(&tcp->unacked))
		tdm_unacked_arm(tcp);
	return tdm_list_empty(&tcp->flush) && !tcp->again ? 0 : -FI_EAGAIN;
}

static int tcp_info(const struct tdm_conn *c, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return tdm_os.getsockopt(c->io.fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

/*
 * Not 0 when the peer's kernel has left questions unanswered for the peer
 * time-out. A question is a retransmission, or a probe, which Linux also sends
 * when the link of this host is down. A slow reader is not dead: its kernel
 * answers. The time counts from the first call that finds an open question,
 * since the last answer may be much older than the question.
 */
static int unreachable(struct tdm_conn *c, uint64_t now)
{
	struct tcp_info info;

	if (tcp_info(c, &info))
		return 0;
	if (!(info.tcpi_unacked && info.tcpi_retransmits) &&
	    !info.tcpi_probes) {
		c->unheard_ns = 0;
		return 0;
	}
	if (!c->unheard_ns ||
	    (info.tcpi_last_ack_recv + ACK_SLACK_MS) * 1000000ull <
		    now - c->unheard_ns)
		c->unheard_ns = now;
	return now - c->unheard_ns >= tdm_env.peer_timeout_ms * 1000000ull;
}

/* Time between two checks. */
static unsigned watch_ms(void)
{
	return tdm_env.peer_timeout_ms ?
		       (unsigned)tdm_clamp(tdm_env.peer_timeout_ms / 4,
					   WATCH_LEAST_MS, WATCH_MOST_MS) :
		       WATCH_MOST_MS;
}

/*
 * Called when a part of a TLS record has waited long: let @c connect again, unless
 * its session finds the rest now. A peer that was stopped in the middle of a record is not lost, so
 * a session that cannot be resumed waits.
 */
static void unstick(struct tdm_conn *c)
{
	tdm_rx_drain(c);
	if (!c->tls || c->tcp->stage->stalled || !tdm_tls_stuck(c->tls))
		return;
	TDM_CONN_INFO(c, "a part of a TLS record does not come");
	if (c->state == TDM_CONN_GREETING) {
		tdm_conn_retry(c, FI_ECONNRESET);
	} else if (c->state == TDM_CONN_RESUMING || c->keeps) {
		c->tx_err = FI_ECONNRESET;
		tdm_conn_again(c);
	}
}

static void tidy(struct tdm_conn *c)
{
	tdm_busy_trim(c);
	/* So the peer of an idle connection need not keep what it sent. */
	if (c->rx_said != c->rx_pos && tdm_conn_resumes(c)) {
		c->ack_now = 1;
		tdm_prompt_due(c);
	}
}

/* Called when the network to the peer of @c has been silent for too long. */
static void give_up(struct tdm_conn *c)
{
	switch (c->state) {
	case TDM_CONN_GREETING:
		tdm_conn_retry(c, FI_ETIMEDOUT);
		break;
	case TDM_CONN_RESUMING:
		tdm_resume_timer(c);
		break;
	default:
		tdm_rx_drain(c);
		if (tdm_conn_open(c))
			tdm_conn_fail(c, FI_ETIMEDOUT, 0);
	}
}

/* Not 0 while @c has a socket on which the peer's kernel has to answer. */
static int may_be_silent(const struct tdm_conn *c)
{
	return tdm_conn_open(c) ||
	       (c->io.fd >= 0 && (c->state == TDM_CONN_GREETING ||
				  c->state == TDM_CONN_RESUMING));
}

/* Find peers that are silent, and free what idle connections do not need. */
static void watch_fired(struct tdm_loop_timer *timer)
{
	struct tdm_tcp *tcp = tdm_container_of(timer, struct tdm_tcp, watch);
	uint64_t now = tdm_os.now_ns();
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if (tdm_unlikely(c->tls != NULL) && tdm_tls_stuck(c->tls))
			unstick(c);
		if (!may_be_silent(c))
			continue;
		if (tdm_conn_open(c))
			tidy(c);
		if (tdm_env.peer_timeout_ms && unreachable(c, now))
			give_up(c);
	}
	if (tcp->open)
		tdm_loop_timer_arm(tcp->a.loop, timer, watch_ms());
}

/* Append GOODBYE, the last record, to the output. Returns not 0: done. */
static int say_goodbye(struct tdm_conn *c)
{
	struct tdm_out *out = tdm_out_room(c, TDM_WIRE_HEAD_BYTES);
	struct tdm_wire_rec rec;

	if (!out)
		return 0;
	c->closing = 1;
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_GOODBYE;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	tdm_conn_push(c);
	return 1;
}

/*
 * Do one step of closing @c. Returns not 0 while the kernel has not taken all
 * output, or the peer's kernel has not acknowledged all of it: a close might
 * discard it.
 */
static int close_step(struct tdm_conn *c, int *said)
{
	struct tcp_info info;

	if (!tdm_conn_live(c))
		return c->state != TDM_CONN_DEAD && !tdm_list_empty(&c->sendq);
	c->blocked = 0;
	tdm_conn_push(c);
	tdm_rx_drain(c);
	/* dead, or sends took it from CLOSING to CONNECTING */
	if (!tdm_conn_live(c))
		return !tdm_list_empty(&c->sendq);
	if (c->tx_err)
		return 1; /* not before the input has been read */
	if (tdm_keep_pending(c) || tdm_tx_leaving(c))
		return 1;
	if (!c->closing) {
		*said |= say_goodbye(c);
		return 1;
	}
	if (c->closing == 1) {
		tdm_os.shutdown(c->io.fd, SHUT_WR);
		c->closing = 2;
	}
	if (c->leaving)
		return tdm_left_in_flight(c);
	return !tcp_info(c, &info) && info.tcpi_unacked;
}

/*
 * Release the lock for a moment, so that other threads can work on the domain.
 * That is safe: only the event loop still refers to this endpoint, and input of
 * its connections is discarded.
 */
static void nap(struct tdm_tcp *tcp) TDM_TSA(no_thread_safety_analysis)
{
	tdm_lock_release(tcp->a.engine->lock);
	tdm_os.poll(NULL, 0, CLOSE_STEP_MS);
	tdm_lock_acquire(tcp->a.engine->lock);
}

/* Returns how long to wait for living peers to take injected messages. */
static uint64_t left_ns(void)
{
	unsigned ms = tdm_env.peer_timeout_ms;

	return (ms ? tdm_min(ms, (unsigned)LEFT_MS) : LEFT_MS) * 1000000ull;
}

static void drain(struct tdm_tcp *tcp)
{
	uint64_t began = tdm_os.now_ns(), now, most;
	struct tdm_list *pos, *tmp;
	int waiting, said;

	do {
		waiting = 0;
		said = 0;
		most = CLOSE_NS;
		tdm_loop_progress(tcp->a.loop, 1);
		now = tdm_os.now_ns();
		tdm_list_for_each_safe(pos, tmp, &tcp->conns) {
			struct tdm_conn *c =
				tdm_list_entry(pos, struct tdm_conn, all);

			if (!close_step(c, &said))
				continue;
			waiting = 1;
			if (c->leaving)
				most = tdm_max(most, left_ns());
		}
		if (waiting && !said)
			nap(tcp);
	} while (waiting && now - began < most);
}

static void free_list(struct tdm_list *list)
{
	while (!tdm_list_empty(list))
		tdm_conn_free(tdm_list_entry(list->next, struct tdm_conn, all));
}

void tdm_tcp_close(struct tdm_tcp *tcp)
{
	struct tdm_list *pos, *tmp;

	tdm_assert_held(tcp->a.engine->lock);
	/*
	 * After this the kernel no longer confirms to peers that this process
	 * owns its address.
	 */
	tdm_listen_stop(tcp);
	tdm_loop_timer_disarm(&tcp->watch);
	tdm_loop_timer_disarm(&tcp->unacked_timer);
	tdm_loop_timer_disarm(&tcp->crowd_timer);
	tdm_list_for_each_safe(pos, tmp, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		tdm_rx_abandon(c);
		tdm_keep_close(c);
		c->ack_now = 1;
		if (tdm_tx_abandon(c, 0))
			tdm_conn_fail(c, FI_ENOMEM, 0);
		else
			tdm_left_begin(c);
	}
	drain(tcp);
	tdm_listen_close(tcp);
	free_list(&tcp->conns);
	free_list(&tcp->dead);
	tcp->a.srx->peer_ops = NULL;
	tcp_free(tcp);
}

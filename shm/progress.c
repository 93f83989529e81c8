/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One progress call first serves the pairs whose bits are set and those with
 * work under way, and from time to time sockets and timers; last it polls the
 * hot rings. With one hot ring and nothing to do it loads one word of the ring,
 * one of the hints page and a few of our own.
 *
 * A *conversation* is a ping-pong with one peer: polls have lately found one or
 * two records, and something was sent to the peer before each of them.
 *
 * Invariant: no loop frees the objects that it iterates over: broken pairs are
 * reaped, and sockets served, between the loops. A pair that breaks in the last
 * loop is reaped in the next call.
 * Locking: domain lock held.
 */
#include "shm/progress.h"

#include "base/os.h"
#include "shm/bell.h"
#include "shm/bounce.h"
#include "shm/cma.h"
#include "shm/ctl.h"
#include "shm/ep.h"
#include "shm/grow.h"
#include "shm/rx.h"
#include "shm/tx.h"

enum {
	PROGRESS_HOT_RECORDS = 32,   /* per ring and call */
	PROGRESS_TALK_RECORDS = 2,   /* most at once in a conversation */
	PROGRESS_TALK_POLLS = 64,    /* empty polls end a conversation */
	PROGRESS_TALK_LOOKS = 4,     /* loads per empty poll, until then */
	PROGRESS_WARM_LINES = 16,    /* fetched for writing per empty poll */
	PROGRESS_CONTROL_EVERY = 32, /* calls between readings of the clock */
	PROGRESS_EVENTS = 16,
	PROGRESS_PULLS = 64, /* announced messages that a call looks at */
};

/* The period of control calls. While messages arrive it is longer: each call delays them. */
static const uint64_t control_period_ns = 50 * 1000;
static const uint64_t control_traffic_ns = 400 * 1000;
static const uint64_t hot_period_ns = 10 * 1000 * 1000;

void tdm_shm_busy(struct tdm_shm_pair *pair)
{
	if (!tdm_list_linked(&pair->busy))
		tdm_list_append(&pair->ep->busy, &pair->busy);
	tdm_shm_bell_again(pair);
}

/* Not 0 when a pull of @pair can advance now. */
static int pulls_runnable(const struct tdm_shm_pair *pair)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &pair->pulls) {
		if (!tdm_list_entry(pos, struct tdm_shm_pull, node)->copy)
			return 1;
	}
	return !tdm_list_empty(&pair->pulls) && tdm_shm_bounce_there(pair);
}

int tdm_shm_runnable(struct tdm_shm_pair *pair)
{
	uint64_t word0;

	if (pair->state != TDM_SHM_PAIR_UP)
		return 0;
	if (pair->broken)
		return 1;
	word0 = tdm_shm_ring_peek(&pair->rx);
	if (tdm_shm_ring_there(&pair->rx, word0) ||
	    !tdm_shm_ring_sane(&pair->rx, word0) || pulls_runnable(pair))
		return 1;
	if (!tdm_list_empty(&pair->feeds) && tdm_shm_bounce_room(pair))
		return 1;
	if (!pair->want_space && tdm_list_empty(&pair->ctl))
		return 0;
	tdm_shm_tx_credit(pair);
	if (!pair->broken && tdm_shm_ring_free(&pair->tx) < pair->tx.count / 2)
		return 0;
	pair->want_space = 0;
	return 1;
}

static void work_pulls(struct tdm_shm_pair *pair)
{
	struct tdm_list *pos, *tmp;
	int look = PROGRESS_PULLS;
	uint64_t bytes = 0;

	tdm_shm_bounce_pop(pair);
	tdm_list_for_each_safe(pos, tmp, &pair->pulls) {
		struct tdm_shm_pull *pull =
			tdm_list_entry(pos, struct tdm_shm_pull, node);

		if (pair->broken || !tdm_shm_pull_fits(pull, bytes))
			break;
		if (pull->copy)
			continue;
		if (!look--)
			break;
		if (tdm_shm_pull_waits(pull))
			continue;
		bytes += tdm_shm_pull_run(pull);
	}
}

/*
 * Write the control records that wait. A pair with some in its first ring gets a
 * larger one: if it only receives, it sends nothing that would make the ring grow.
 */
static void work_ctl(struct tdm_shm_pair *pair)
{
	tdm_shm_ctl_flush(pair);
	if (tdm_list_empty(&pair->ctl) && !pair->tx.gen && !pair->broken)
		tdm_shm_grow_now(pair);
}

static void work_pair(struct tdm_shm_pair *pair)
{
	if (!tdm_list_empty(&pair->ctl))
		work_ctl(pair);
	if (pair->ready) {
		uint64_t word0;

		tdm_shm_rx_poll(pair, PROGRESS_HOT_RECORDS);
		word0 = tdm_shm_ring_peek(&pair->rx);
		pair->ready = tdm_shm_ring_there(&pair->rx, word0);
	}
	if (!pair->broken && !tdm_list_empty(&pair->pulls))
		work_pulls(pair);
	if (!pair->broken && !tdm_list_empty(&pair->feeds))
		tdm_shm_bounce_push(pair);
	if (!pair->ready && tdm_list_empty(&pair->ctl) &&
	    tdm_list_empty(&pair->pulls) && tdm_list_empty(&pair->feeds))
		tdm_list_del(&pair->busy);
}

static void work(struct tdm_shm_ep *ep)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &ep->busy) {
		struct tdm_shm_pair *pair =
			tdm_list_entry(pos, struct tdm_shm_pair, busy);

		if (!pair->broken)
			work_pair(pair);
	}
}

void tdm_shm_control(struct tdm_shm_ep *ep, int most)
{
	struct epoll_event ev;

	/* One event at a time: a handler may free the watch of a later one. */
	while (most-- > 0 && tdm_os.epoll_wait(ep->ctl_fd, &ev, 1, 0) == 1) {
		struct tdm_shm_watch *w = ev.data.ptr;

		w->ready(w, ev.events);
	}
	tdm_shm_attach_timers(ep, tdm_os.now_ns());
	tdm_shm_reap(ep);
}

static void now_and_then(struct tdm_shm_ep *ep)
{
	uint64_t now = tdm_os.now_ns();

	if (now >= ep->control_at || !tdm_list_empty(&ep->attaching)) {
		tdm_shm_control(ep, PROGRESS_EVENTS);
		ep->control_at = now + (ep->met ? control_traffic_ns :
						  control_period_ns);
		ep->met = 0;
	}
	if (ep->read_from)
		tdm_shm_pull_idle(ep, now);
	if (now >= ep->hot_at) {
		tdm_shm_bell_upkeep(ep);
		ep->hot_at = now + hot_period_ns;
	}
}

/*
 * The peer has read the lines where our next record will be, a lap ago, and its
 * cache keeps them: to store there takes as long as a message takes. In a
 * conversation our next record is likely to be as long as the last one. So an empty
 * poll fetches some lines of it for writing, while the peer prepares its answer;
 * talk() fetches the first line. Only lines that the peer has given back: in a ring that
 * two records fill, it may still be reading the last one there.
 */
static inline void warm(struct tdm_shm_pair *pair)
{
	uint32_t room = tdm_min(pair->tx.count - pair->tx.idx,
				tdm_shm_ring_free(&pair->tx));
	uint32_t end = tdm_min(pair->warm_end, room * TDM_SHM_SLOT_BYTES);
	uint32_t at = pair->warm_at;
	uint8_t *next =
		(uint8_t *)tdm_shm_slot_word(pair->tx.slots, pair->tx.idx);
	int lines = PROGRESS_WARM_LINES;

	while (lines-- && (at += TDM_CACHE_LINE_BYTES) < end)
		tdm_prefetch_write(next + at);
	pair->warm_at = at;
}

/*
 * In a conversation the next message may come at any moment. Each poll takes
 * the cache line away from the peer, which is about to write there, and slows
 * the peer down if it runs on the other thread of the same core. So an empty
 * poll loads the word a few more times, with a pause before each load, unless
 * there are several hot rings: the others would wait meanwhile.
 */
static tdm_always_inline uint64_t look_longer(struct tdm_shm_pair *pair,
					      uint64_t word0)
{
	int looks = PROGRESS_TALK_LOOKS;

	if (pair->ep->nhot > 1 || pair->self) {
		pair->rx_talk = 0;
		return word0;
	}
	pair->rx_talk--;
	if (pair->warm_at < pair->warm_end)
		warm(pair);
	while (looks-- && !tdm_shm_ring_there(&pair->rx, word0)) {
		tdm_cpu_relax();
		word0 = tdm_shm_ring_peek(&pair->rx);
	}
	return word0;
}

/*
 * Called when the poll of @pair has found a record, as few were found lately.
 * The record continues a conversation if something was sent to the peer since
 * the last one; the first of several that come in a row ends it with the second.
 *
 * A single message is likely to be answered. The peer has been polling the slot
 * of the answer, so its copy of that line must be invalidated before we can
 * store there, which takes as long as the message took. The prefetch starts the
 * invalidation now rather than when the application answers.
 */
static inline void talk(struct tdm_shm_pair *pair)
{
	uint32_t idx = pair->tx.idx;

	tdm_prefetch_write(tdm_shm_slot_word(pair->tx.slots, idx));
	pair->rx_talk = idx != pair->talk_idx ? PROGRESS_TALK_POLLS : 0;
	pair->talk_idx = idx;
}

/*
 * Polling the slot behind the last record fetches a line that the peer wrote a
 * lap ago, and our stores, such as an answer, wait in the store buffer until
 * that load returns. So a poll consumes no more records than the ring has
 * lately delivered at once: one in a ping-pong, many in a stream.
 */
static inline void poll_hot(struct tdm_shm_pair *pair)
{
	uint64_t word0 = tdm_shm_ring_peek(&pair->rx);
	uint32_t window = pair->rx_window;
	int n = 0;

	if (!tdm_shm_ring_there(&pair->rx, word0) && pair->rx_talk)
		word0 = look_longer(pair, word0);
	if (tdm_shm_ring_there(&pair->rx, word0)) {
		pair->ep->met = 1;
		if (window <= PROGRESS_TALK_RECORDS)
			talk(pair);
		n = tdm_shm_rx_take(pair, word0, (int)window);
	} else if (tdm_unlikely(!tdm_shm_ring_sane(&pair->rx, word0) ||
				pair->rx.tail != pair->rx.shown)) {
		tdm_shm_rx_idle(pair, word0);
	}
	if (n < (int)window)
		pair->rx_window = (window + 1) / 2;
	else if (window < PROGRESS_HOT_RECORDS)
		pair->rx_window = 2 * window;
}

/* Not 0 when a peer has set a bit in the hints page. */
static inline int rung(const struct tdm_shm_ep *ep)
{
	uint64_t any = tdm_a64_load_relaxed(&ep->hints->summary[0]);
	uint32_t i;

	for (i = 1; tdm_unlikely(i < ep->nsummary); i++)
		any |= tdm_a64_load_relaxed(&ep->hints->summary[i]);
	return any != 0;
}

/* Make the rarely needed part of a pass. */
static tdm_noinline void progress_more(struct tdm_shm_ep *ep)
{
	if (rung(ep))
		tdm_shm_bell_scan(ep);
	if (!tdm_list_empty(&ep->busy))
		work(ep);
	if (!(ep->ticks % PROGRESS_CONTROL_EVERY) ||
	    !tdm_list_empty(&ep->attaching))
		now_and_then(ep);
	if (!tdm_list_empty(&ep->reap))
		tdm_shm_reap(ep);
}

void tdm_shm_ep_progress(struct tdm_shm_ep *ep)
{
	uint32_t i;

	if (tdm_unlikely(ep->in_progress || !ep->enabled))
		return;
	ep->in_progress = 1;
	/*
	 * Before the hot rings, so that nothing delays the delivery of a
	 * message found there.
	 */
	if (tdm_unlikely(!(++ep->ticks % PROGRESS_CONTROL_EVERY) || rung(ep) ||
			 !tdm_list_empty(&ep->busy) ||
			 !tdm_list_empty(&ep->attaching) ||
			 !tdm_list_empty(&ep->reap)))
		progress_more(ep);
	for (i = 0; i < ep->nhot; i++)
		poll_hot(ep->hot[i]);
	ep->in_progress = 0;
}

int tdm_shm_ep_pass(struct tdm_shm_ep *ep)
{
	if (ep->srx_obj && ep->srx_obj->adapter)
		return 0;
	tdm_shm_ep_progress(ep);
	return 1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of rings that are polled, the wake-up by a peer, and sleeping.
 *
 * Each progress call polls a few *hot* rings. For every other pair this process
 * sets the bit COLD in the pair's bell word: a peer that sees it sets its bit
 * in our hints page after it has published a record. Before a sleep this
 * process also sets ASLEEP in all words, and a peer that sees that also writes
 * our eventfd.
 *
 * Store/load race: the peer publishes, then reads our bell word; we write the
 * bell word, then read the ring. One of the two must see the other's store.
 * If both processes are registered for it, we run membarrier between our store
 * and our load, which puts a full fence into every running thread of the
 * peer, so the peer needs none of its own. Otherwise (pair->fence) the peer
 * fences at each publish and we fence here.
 *
 * Invariants:
 *  1. A pair that is up is in the hot set (bell 0), or its word has COLD set.
 *     It is on ep->awake unless its word has ASLEEP set.
 *  2. After this process has set bits in a word and run the barrier, it polls
 *     the ring once.
 *  3. Garbage in the hints page causes needless polls at worst; a bit that a
 *     broken peer clears delays a cold ring until the next sweep.
 * Locking: domain lock held. Spec: membarrier(2), doc/PROTOCOL-shm.md.
 */
#include "shm/bell.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/os.h"
#include "shm/ep.h"
#include "shm/progress.h"

enum {
	BELL_BARRIER_CMD = 1 << 1, /* MEMBARRIER_CMD_GLOBAL_EXPEDITED */
	BELL_SWEEP = 64,	   /* cold rings polled per upkeep */
};

/* ---- ringing ------------------------------------------------------------- */

/*
 * Both read-modify-writes are unconditional: they order the published record
 * before the bit. The eventfd is the peer's object: it is written only when
 * that cannot block.
 */
void tdm_shm_bell_ring(struct tdm_shm_pair *pair, uint32_t bits)
{
	struct tdm_shm_session *s = pair->sess;
	struct tdm_shm_hints *hints;
	uint32_t bell, leaf;

	if (!s) {
		/*
		 * The pair of the endpoint with itself: the endpoint's own
		 * progress polls the ring.
		 */
		tdm_shm_bell_promote(pair);
		return;
	}
	hints = s->hints.base;
	bell = s->peer_bell;
	leaf = bell / 64;
	tdm_a64_fetch_or(&hints->leaf[leaf], 1ull << (bell % 64));
	tdm_a64_fetch_or(&hints->summary[leaf / 64], 1ull << (leaf % 64));
	if (bits & TDM_SHM_BELL_ASLEEP) {
		struct pollfd p = { .fd = s->bell_fd, .events = POLLOUT };
		uint64_t one = 1;

		if (tdm_os.poll(&p, 1, 0) == 1 && p.revents == POLLOUT)
			(void)!tdm_os.write(s->bell_fd, &one, sizeof(one));
	}
}

/* ---- bits ---------------------------------------------------------------- */

int tdm_shm_bell_assign(struct tdm_shm_ep *ep, struct tdm_shm_session *s)
{
	uint32_t size = ep->bells_size ? 2 * ep->bells_size : 64, i;
	struct tdm_shm_session **bells;

	for (i = 0; i < ep->bells_size && ep->bells[i]; i++)
		;
	if (i >= TDM_SHM_BELLS_MOST)
		return -FI_ENOSPC;
	if (i == ep->bells_size) {
		bells = realloc(ep->bells,
				size * sizeof(struct tdm_shm_session *));
		if (!bells)
			return -FI_ENOMEM;
		memset(bells + i, 0,
		       (size - i) * sizeof(struct tdm_shm_session *));
		ep->bells = bells;
		ep->bells_size = size;
	}
	ep->bells[i] = s;
	s->own_bell = i;
	if (ep->nsummary < i / 4096 + 1)
		ep->nsummary = i / 4096 + 1;
	return 0;
}

void tdm_shm_bell_release(struct tdm_shm_session *s)
{
	s->ep->bells[s->own_bell] = NULL;
	s->own_bell = -1;
}

/* ---- hot and cold -------------------------------------------------------- */

static void bell_set(struct tdm_shm_pair *pair, uint32_t bits)
{
	struct tdm_shm_ep *ep = pair->ep;

	if (!(bits & TDM_SHM_BELL_ASLEEP) && bits &&
	    !tdm_list_linked(&pair->awake))
		tdm_list_append(&ep->awake, &pair->awake);
	else if (bits & TDM_SHM_BELL_ASLEEP || !bits)
		tdm_list_del(&pair->awake);
	pair->bell = bits;
	tdm_a32_store_release(&pair->own->bell, bits);
}

/* Wake the threads of this process that sleep: they rely on the old words. */
static void wake_self(struct tdm_shm_ep *ep)
{
	uint64_t one = 1;

	if (!ep->armed)
		return;
	ep->armed = 0;
	(void)!tdm_os.write(ep->bell_fd, &one, sizeof(one));
}

void tdm_shm_bell_promote(struct tdm_shm_pair *pair)
{
	struct tdm_shm_ep *ep = pair->ep;

	if (pair->broken || !pair->own)
		return;
	if (pair->bell && ep->nhot < TDM_SHM_HOT_MOST) {
		wake_self(ep);
		ep->hot[ep->nhot++] = pair;
		bell_set(pair, 0);
	} else if (pair->bell) {
		pair->ready = 1;
		tdm_shm_busy(pair);
	}
}

void tdm_shm_bell_again(struct tdm_shm_pair *pair)
{
	wake_self(pair->ep);
	if (pair->bell & TDM_SHM_BELL_ASLEEP)
		bell_set(pair, TDM_SHM_BELL_COLD);
}

static void hot_remove(struct tdm_shm_ep *ep, uint32_t i)
{
	ep->hot[i] = ep->hot[--ep->nhot];
}

void tdm_shm_bell_forget(struct tdm_shm_pair *pair)
{
	struct tdm_shm_ep *ep = pair->ep;
	uint32_t i;

	for (i = 0; i < ep->nhot; i++) {
		if (ep->hot[i] == pair) {
			hot_remove(ep, i);
			break;
		}
	}
	tdm_list_del(&pair->awake);
	pair->ready = 0;
}

static void scan_leaf(struct tdm_shm_ep *ep, uint32_t leaf)
{
	uint64_t bits = tdm_a64_exchange(&ep->hints->leaf[leaf], 0);

	while (bits) {
		uint32_t bell = leaf * 64 + (uint32_t)__builtin_ctzll(bits);
		struct tdm_shm_session *s =
			bell < ep->bells_size ? ep->bells[bell] : NULL;

		bits &= bits - 1;
		if (s && s->state == TDM_SHM_SESSION_UP)
			tdm_shm_bell_promote(s->pair);
	}
}

tdm_noinline void tdm_shm_bell_scan(struct tdm_shm_ep *ep)
{
	uint32_t w;

	for (w = 0; w < ep->nsummary; w++) {
		uint64_t sum = tdm_a64_load_relaxed(&ep->hints->summary[w]);

		if (!sum)
			continue;
		sum = tdm_a64_exchange(&ep->hints->summary[w], 0);
		while (sum) {
			uint32_t leaf = w * 64 + (uint32_t)__builtin_ctzll(sum);

			sum &= sum - 1;
			if (leaf < TDM_SHM_HINT_LEAVES)
				scan_leaf(ep, leaf);
		}
	}
}

/*
 * Run a full fence here and, by membarrier, in the peers. If the kernel later
 * refuses the call (a new seccomp filter), the peers' stores still arrive while
 * the failing call runs, and cold rings are swept.
 */
static void barrier(struct tdm_shm_ep *ep)
{
	if (ep->barrier && tdm_os.membarrier(BELL_BARRIER_CMD, 0, 0))
		(void)!tdm_os.membarrier(BELL_BARRIER_CMD, 0, 0);
	tdm_fence_full();
}

/* Poll a few cold rings, whatever their bits are. */
static void sweep(struct tdm_shm_ep *ep)
{
	uint32_t n = BELL_SWEEP < ep->bells_size ? BELL_SWEEP : ep->bells_size;

	while (n--) {
		struct tdm_shm_session *s;

		if (ep->bell_cursor >= ep->bells_size)
			ep->bell_cursor = 0;
		s = ep->bells[ep->bell_cursor++];
		if (s && s->state == TDM_SHM_SESSION_UP && s->pair->bell &&
		    tdm_shm_runnable(s->pair))
			tdm_shm_bell_promote(s->pair);
	}
}

void tdm_shm_bell_upkeep(struct tdm_shm_ep *ep)
{
	struct tdm_shm_pair *cooled[TDM_SHM_HOT_MOST];
	uint32_t i = 0, n = 0;

	while (i < ep->nhot && ep->nhot > TDM_SHM_HOT_KEEP) {
		struct tdm_shm_pair *pair = ep->hot[i];

		if (pair->rx_since) {
			i++;
			continue;
		}
		hot_remove(ep, i);
		bell_set(pair, TDM_SHM_BELL_COLD);
		cooled[n++] = pair;
	}
	for (i = 0; i < ep->nhot; i++)
		ep->hot[i]->rx_since = 0;
	if (n)
		barrier(ep);
	while (n--) {
		if (tdm_shm_runnable(cooled[n]))
			tdm_shm_bell_promote(cooled[n]);
	}
	sweep(ep);
}

/* ---- sleep --------------------------------------------------------------- */

static uint32_t sleep_bits(const struct tdm_shm_pair *pair)
{
	uint32_t bits = TDM_SHM_BELL_COLD | TDM_SHM_BELL_ASLEEP;

	if (pair->want_space || !tdm_list_empty(&pair->ctl) ||
	    !tdm_list_empty(&pair->feeds))
		bits |= TDM_SHM_BELL_SPACE;
	return bits;
}

static int anything(struct tdm_shm_ep *ep)
{
	struct tdm_list *pos;
	uint32_t w;

	if (!tdm_list_empty(&ep->reap))
		return 1;
	for (w = 0; w < ep->nsummary; w++) {
		if (tdm_a64_load_relaxed(&ep->hints->summary[w]))
			return 1;
	}
	tdm_list_for_each(pos, &ep->busy) {
		if (tdm_shm_runnable(
			    tdm_list_entry(pos, struct tdm_shm_pair, busy)))
			return 1;
	}
	return 0;
}

int tdm_shm_bell_arm(struct tdm_shm_ep *ep)
{
	struct tdm_list *node, raised;
	int found = 0;
	uint64_t n;

	if (anything(ep))
		return -FI_EAGAIN;
	(void)!tdm_os.read(ep->bell_fd, &n, sizeof(n));
	ep->armed = 1;
	ep->control_at = 0; /* sockets wake sleepers, who then serve them */
	while (ep->nhot)
		bell_set(ep->hot[--ep->nhot], TDM_SHM_BELL_COLD);
	if (tdm_list_empty(&ep->awake))
		return anything(ep) ? -FI_EAGAIN : 0;
	tdm_list_init(&raised);
	while ((node = tdm_list_pop(&ep->awake))) {
		struct tdm_shm_pair *pair =
			tdm_list_entry(node, struct tdm_shm_pair, awake);

		pair->bell = sleep_bits(pair);
		tdm_a32_store_release(&pair->own->bell, pair->bell);
		tdm_list_append(&raised, node);
	}
	barrier(ep);
	while ((node = tdm_list_pop(&raised))) {
		struct tdm_shm_pair *pair =
			tdm_list_entry(node, struct tdm_shm_pair, awake);

		if (tdm_shm_runnable(pair)) {
			tdm_shm_bell_promote(pair);
			found = 1;
		}
	}
	return found || anything(ep) ? -FI_EAGAIN : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When sockets are polled; see due.h. Locking: domain lock.
 */
#include "tcp/wire/due.h"

#include "base/base.h"
#include "base/os.h"

enum {
	/* Polls after which a hot socket that had no data is not busy. */
	BUSY_POLLS = 16,
	/*
	 * Beside traffic that is not TCP, one pass of so many powers of two, at most,
	 * reads the clock.
	 */
	SKIPS_MOST = 4,
	/*
	 * With a hot socket and nothing but TCP in use, the cold sockets are
	 * polled with every n-th poll of the hot one.
	 */
	COLD_POLLS = 4,
	/* The hot socket becomes cold after so much silence and so many polls. */
	HOT_IDLE_NS = 80000,
	HOT_IDLE_POLLS = 32,
	/*
	 * From one poll to the next while nothing comes: this part of the silence,
	 * and at most so long for a hot socket.
	 */
	SILENCE_SHARE = 16,
	HOT_GAP_NS = 1500,
	/*
	 * Most time between polls of the cold sockets while other traffic goes
	 * on.
	 */
	COLD_GAP_NS = 20000,
	/* As COLD_GAP_NS, when only listeners are among them. */
	LAZY_GAP_NS = 200000,
	/*
	 * Most time between such polls while no socket is hot, once one has
	 * found nothing; and the time when only listeners are among them.
	 */
	QUIET_GAP_NS = 5000,
	LISTEN_GAP_NS = 10000,
	/*
	 * While no socket is hot and the application spins, as that many readings
	 * of the clock in a row have shown, each within SPIN_NS of the one before:
	 * number of passes between two readings, each of which takes longer than the
	 * rest of a pass.
	 */
	SPIN_READINGS = 16,
	SPIN_NS = 1000,
	SPIN_PASSES = 8,
};

/*
 * As tdm_due_hot(), in a pass that has found the socket silent before. A clock that
 * stands still counts as time that passed.
 */
static enum tdm_due_hot silent(struct tdm_due *due)
{
	uint64_t now = tdm_os.now_ns(), silence, since, gap;

	if (!due->hot_look_ns)
		due->hot_idle_ns = now;
	silence = now - due->hot_idle_ns;
	since = now - due->hot_look_ns;
	gap = silence / SILENCE_SHARE;
	if (silence > HOT_IDLE_NS && due->hot_misses >= HOT_IDLE_POLLS) {
		/* The silence may be that of the application. */
		due->all = 1;
		return TDM_DUE_COOL;
	}
	if (since && since < tdm_min(gap, HOT_GAP_NS) && !due->all)
		return TDM_DUE_NOT;
	due->hot_look_ns = now;
	due->hot_full = gap >= HOT_GAP_NS;
	return TDM_DUE_HOT;
}

enum tdm_due_hot tdm_due_hot(struct tdm_due *due)
{
	enum tdm_due_hot what = TDM_DUE_HOT;

	if (!due->hot_misses)
		due->hot_look_ns = 0;
	else
		what = silent(due);
	if (what != TDM_DUE_HOT)
		return what;
	due->hot_misses++;
	return ++due->hot_polls % COLD_POLLS ? TDM_DUE_HOT : TDM_DUE_HOT_COLD;
}

int tdm_due_hot_busy(const struct tdm_due *due)
{
	return due->hot_misses < BUSY_POLLS;
}

/* Returns for how long the cold sockets have been silent at @now, ns. */
static uint64_t silence_of_cold(struct tdm_due *due, uint64_t now)
{
	if (!due->quiet)
		due->quiet_ns = now;
	return now - due->quiet_ns;
}

/*
 * As tdm_due_cold(), while all sockets are cold and nothing but TCP is in use. While the
 * application spins, one pass of several reads the clock; an application whose passes
 * are rare has a poll in each. A clock that stands still counts as time that passed.
 */
static int quiet_due(struct tdm_due *due, int eager)
{
	uint64_t now, since, silence, gap = LISTEN_GAP_NS;

	if (due->quiet && due->spins == SPIN_READINGS &&
	    due->passes % SPIN_PASSES)
		return 0;
	now = tdm_os.now_ns();
	since = now - due->read_ns;
	due->read_ns = now;
	if (since >= SPIN_NS)
		due->spins = 0;
	else if (due->spins < SPIN_READINGS)
		due->spins++;
	silence = silence_of_cold(due, now);
	if (eager)
		gap = tdm_min(silence / SILENCE_SHARE, QUIET_GAP_NS);
	if (due->quiet && since && now - due->looked_ns < gap)
		return 0;
	due->looked_ns = now;
	due->cold_full = gap >= QUIET_GAP_NS;
	return 1;
}

/*
 * As tdm_due_cold(), while there is other traffic. How many passes go by from one reading
 * of the clock to the next follows how long they took: those of processes that share a core
 * are far apart.
 */
static int beside_due(struct tdm_due *due, int eager)
{
	uint64_t now, since, gap;

	if (tdm_likely(due->passes % (1u << due->skips)))
		return 0;
	now = tdm_os.now_ns();
	since = now - due->read_ns;
	due->read_ns = now;
	gap = tdm_min(silence_of_cold(due, now) / SILENCE_SHARE,
		      (uint64_t)(eager ? COLD_GAP_NS : LAZY_GAP_NS));
	if (due->skips < SKIPS_MOST && since < gap / 2)
		due->skips++;
	for (; due->skips && since > gap; since /= 2)
		due->skips--;
	if (due->quiet && now - due->looked_ns < gap)
		return 0;
	due->looked_ns = now;
	return 1;
}

int tdm_due_cold(struct tdm_due *due, enum tdm_due_hot hot, int only_tcp,
		 int eager)
{
	int cold;

	due->passes++;
	if (tdm_unlikely(due->all))
		cold = 1;
	else if (!only_tcp)
		cold = beside_due(due, eager);
	else if (hot == TDM_DUE_COOL)
		cold = quiet_due(due, eager);
	else
		cold = hot == TDM_DUE_HOT_COLD;
	if (cold) {
		due->all = 0;
		due->quiet = 1;
	}
	return cold;
}

void tdm_due_polled(struct tdm_due *due)
{
	uint64_t now;

	if (tdm_likely(!(due->hot_full | due->cold_full)))
		return;
	now = tdm_os.now_ns();
	if (due->hot_full)
		due->hot_look_ns = now;
	if (due->cold_full)
		due->looked_ns = now;
	due->hot_full = due->cold_full = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M1. The ring: one producer, one consumer, a store buffer for each, and death
 * of either side at any step.
 *
 * Models: tdm_shm_ring_reserve(), _publish(), _credit() of shm/ring.h;
 * tdm_shm_ring_peek(), _there(), _sane(), _step() of shm/ring_rx.h;
 * tdm_shm_rx_take() and rx_show() of shm/rx.c; drain() of shm/pair.c.
 * doc/PROTOCOL-shm.md "Ring"; ADR 3.
 *
 * Proves: no record is torn, lost, repeated, or overwritten before it was read;
 * payload is never taken for a lap; when the producer has died, the consumer
 * gets all records that were published, and no other; while the consumer is
 * slow or dead, the producer writes no slot that it has not got back.
 *
 * Bounds: N slots, records of 1 slot, with LONG also of 2; BUF entries in the
 * store buffer of the producer, 2 in that of the consumer. Laps are 1, 2, 1,
 * and positions and records are counted modulo: all go on for ever. Payload is
 * the number of its record; in word 0 of an inner slot it looks like the next
 * lap. With PSO a processor stores to different words in any order, but what
 * precedes a release.
 * Weakened: WEAK_DIRTY (with LONG), WEAK_RELEASE (with PSO), WEAK_SHOW.
 */
#ifndef N
#define N 3
#endif
#ifndef BUF
#define BUF 3
#endif
#define NEXT_LAP(l) (3 - (l))
#define POSITIONS (2 * N)
#define RECORDS (N + 1)
#define DIST(a, b) (((a) - (b) + POSITIONS) % POSITIONS)
/* Word 0 is LAP + KIND * 16. */
#define MSG 0
#define PAYLOAD 1
#define LONG_MSG 2
#define PAD 3

/* Memory: word 0 and body of each slot; the consumer's progress. */
byte word0[N], body[N], consumed;

/* The store buffer of the producer: address (body: N +), value, release? */
byte sb_at[BUF], sb_val[BUF], sb_n;
bit sb_rel[BUF];
chan sb_consumed = [2] of { byte };

bool dead;		 /* the producer */
byte published, handled; /* records, modulo RECORDS */

inline store(at, val, rel)
{
	d_step {
		sb_n < BUF ->
		sb_at[sb_n] = at; sb_val[sb_n] = val; sb_rel[sb_n] = rel;
		sb_n++
	}
}

/* The memory takes entry i of the store buffer. */
inline flush(i)
{
	if
	:: sb_at[i] < N -> word0[sb_at[i]] = sb_val[i]
	:: else -> body[sb_at[i] - N] = sb_val[i]
	fi;
	for (j : i .. BUF - 2) {
		sb_at[j] = sb_at[j + 1];
		sb_val[j] = sb_val[j + 1];
		sb_rel[j] = sb_rel[j + 1]
	}
	sb_n--;
	sb_at[sb_n] = 0; sb_val[sb_n] = 0; sb_rel[sb_n] = 0; j = 0
}

#define PASSES(i, k) (sb_at[i] != sb_at[k])

active proctype memory()
{
	byte j;
end:
	do
	:: d_step { sb_n > 0 -> flush(0) }
#ifdef PSO
	:: d_step { sb_n > 1 && !sb_rel[1] && PASSES(1, 0) -> flush(1) }
	:: d_step { sb_n > 2 && !sb_rel[2] && PASSES(2, 0) && PASSES(2, 1) ->
		    flush(2) }
#endif
	:: d_step { sb_consumed?j -> consumed = j; j = 0 }
	od
}

active proctype producer()
{
	byte idx, at, head, credit, n, need, lap = 1, seq, first;
	bool dirty[N];

	do
	:: atomic {
		n = 1;
#ifdef LONG
		if
		:: true
		:: n = 2
		fi;
#endif
		need = n + 1 + (n > N - idx -> N - idx : 0)
	};
	/* reserve */
		do
		:: d_step { N - DIST(head, credit) < need ->
			assert(DIST(consumed, credit) <= DIST(head, credit));
			credit = consumed }
		:: N - DIST(head, credit) >= need -> break
		od;
		first = lap + 16 * (n > N - idx -> PAD : (n - 1) * LONG_MSG);
		n = (n > N - idx -> N - idx : n);
		if
		:: first / 16 != PAD ->
			store(N + idx, seq, 0);
			if :: n == 2 ->
				store(idx + 1, NEXT_LAP(lap) + 16 * PAYLOAD, 0);
				store(N + idx + 1, seq, 0);
				dirty[idx + 1] = true
			   :: else fi
		:: else
		fi;
	/* publish */
		d_step {
			at = idx;
			lap = (idx + n == N -> NEXT_LAP(lap) : lap);
			idx = (idx + n) % N;
			head = (head + n) % POSITIONS;
			seq = (seq + (first / 16 != PAD)) % RECORDS
		};
#ifndef WEAK_DIRTY
		if :: dirty[idx] -> store(idx, 0, 0) :: else fi;
#endif
		dirty[idx] = false;
#ifdef WEAK_RELEASE
#define release 0
#else
#define release 1
#endif
		atomic { store(at, first, release);
			 published = seq; at = 0; first = 0; n = 0; need = 0 }
	od unless { dead }
}

inline give_back()
{
	sb_consumed!tail;
	shown = tail
}

active proctype consumer()
{
	byte idx, tail, shown, w, i, n, lap = 1;
	bool last;

	do
	:: last = (dead && sb_n == 0);
	w = word0[idx];
	if
	:: w % 16 == lap ->
		n = (w / 16 == LONG_MSG -> 2 : 1);
		assert(w / 16 != PAYLOAD && idx + n <= N);
		tail = (tail + n) % POSITIONS;
#ifdef WEAK_SHOW
		give_back();
#endif
		for (i : 1 .. n) {
			assert(w / 16 == PAD || body[idx + i - 1] == handled)
		}
		atomic {
			handled = (handled + (w / 16 != PAD)) % RECORDS;
			lap = (idx + n == N -> NEXT_LAP(lap) : lap);
			idx = (idx + n) % N;
			w = 0; i = 0; n = 0
		};
		if /* after a quarter of the ring; in a small one at any time */
		:: N < 4 || shown == tail
		:: shown != tail -> give_back()
		fi
	:: else ->
		assert(w == 0 || w % 16 == NEXT_LAP(lap)); /* and last */
		if
		:: last -> break
		:: !last && shown != tail -> give_back()
		:: !last && shown == tail
		fi
	fi
	od;
	assert(handled == published)
}

active proctype killer() { dead = true }

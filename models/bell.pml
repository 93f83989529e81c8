/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M2. Wake-up: a thread sleeps until a record comes, while another thread of
 * its process makes progress; a sender sleeps until the ring has room.
 *
 * Models: tdm_shm_bell(), _bell_space(), _bell_ring(), _bell_promote(),
 * _bell_again(), _bell_arm(), wake_self(), barrier() of shm/bell.c;
 * tdm_shm_runnable() of shm/progress.c; tdm_shm_tx_full() of shm/tx.c; arm(),
 * sleep_on(), tdm_wait_wake() of peer/wait.c. doc/PROTOCOL-shm.md "Doorbell";
 * ADR 4.
 *
 * Proves: nobody sleeps while there is work. When nothing more can happen, all
 * records have been sent and handled and all completions read (assertion); with
 * weak fairness that point is always reached (LTL).
 *
 * Bounds: SENDS records, CAP of them in the ring. A sends, and sleeps when the
 * ring is full. B has two threads that share the domain lock: one reads
 * completions and sleeps; the other one makes POLLS passes, in which it makes
 * progress, lets the ring cool, or completes an operation of its own.
 * Store buffers as on x86 (TSO). With FENCE, both sides fence; else the side
 * that raises a word empties both store buffers, by membarrier(2).
 * Weakened: WEAK_BARRIER, WEAK_LOOK, WEAK_WAKE_SELF, WEAK_SIGNAL, WEAK_SPACE.
 */
#ifndef SENDS
#define SENDS 3
#endif
#ifndef POLLS
#define POLLS 2
#endif
#define CAP 2
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi
#define COLD 1 /* bits of a bell word */
#define ASLEEP 2
#define SPACE 4

/* Words in shared memory. A writes the first two, B the others. */
#define HEAD 0 /* records written */
#define BELL_A 1
#define CONSUMED 2 /* records given back */
#define BELL_B 3
byte mem[4];
chan sb_a = [3] of { byte, byte };
chan sb_b = [3] of { byte, byte };

bit hint_a, hint_b;	 /* hints pages: locked instructions */
bit bell_fd_a, bell_fd_b; /* eventfds: 1 when readable */
byte sent;
bool note[SENDS];	 /* such a record gives no completion */

byte bell_b, tail, shown, entries; /* of B, under its lock */
bit lock, armed, cq_armed, cq_fd; /* ep->armed; struct tdm_wait; its eventfd */

#define MEMORY(sb) \
	byte at, v; \
end:	do :: atomic { sb?at,v -> mem[at] = v; at = 0; v = 0 } od
active proctype memory_a() { MEMORY(sb_a) }
active proctype memory_b() { MEMORY(sb_b) }

/* The side that publishes or gives back fences between store and load. */
#ifdef FENCE
#define fence(sb) empty(sb)
#else
#define fence(sb) skip
#endif

/* And so does the side that raises its bell word. */
inline barrier(sb) {
#if defined(WEAK_BARRIER)
	skip
#elif defined(FENCE)
	empty(sb)
#else
	d_step {
		do :: nempty(sb_a) -> sb_a?at,v; mem[at] = v
		   :: nempty(sb_b) -> sb_b?at,v; mem[at] = v
		   :: empty(sb_a) && empty(sb_b) -> break od;
		at = 0; v = 0
	}
#endif
}

active proctype a()
{
	byte at, v, head, bits;
	bit look;

	do
	:: sent == SENDS -> break
	:: sent < SENDS && head - mem[CONSUMED] < CAP ->
		atomic { if :: true :: note[head] = true fi;
			 head++; sb_a!HEAD,head };
		fence(sb_a);
		bits = mem[BELL_B];
		WHEN(bits, empty(sb_a); hint_b = 1 /* locked */);
		WHEN(bits & ASLEEP, bell_fd_b = 1);
		sent++
	:: sent < SENDS && head - mem[CONSUMED] >= CAP ->
		/* tdm_shm_tx_full(): a pass of progress; then arm */
		WHEN(hint_a, hint_a = 0; sb_a!BELL_A,0);
		bell_fd_a = 0;
		WHEN(hint_a, goto again);
#ifdef WEAK_SPACE
		sb_a!BELL_A,(COLD | ASLEEP);
#else
		sb_a!BELL_A,(COLD | ASLEEP | SPACE);
#endif
		barrier(sb_a);
		look = (CAP - (head - mem[CONSUMED]) >= CAP / 2) || hint_a;
		WHEN(!look, bell_fd_a); /* asleep */
again:		skip
	od
}

/* tdm_shm_bell_promote() */
inline promote()
{
#ifndef WEAK_WAKE_SELF
	WHEN(armed, armed = 0; bell_fd_b = 1);
#endif
	atomic { bell_b = 0; sb_b!BELL_B,0 }
}

/* A completion is written: tdm_wait_signal(). */
inline complete()
{
	entries++;
#ifndef WEAK_SIGNAL
	WHEN(cq_armed, cq_armed = 0; cq_fd = 1)
#endif
}

inline progress()
{
	WHEN(hint_b, atomic { empty(sb_b); hint_b = 0 }; promote());
	WHEN(!bell_b && mem[HEAD] != tail, atomic {
		WHEN(!note[tail], complete());
		tail++ });
	WHEN(!bell_b && tail != shown && mem[HEAD] == tail, /* give back */
		atomic { shown = tail; sb_b!CONSUMED,tail };
		fence(sb_b);
		bits = mem[BELL_A];
		WHEN(bits & SPACE, empty(sb_b); hint_a = 1);
		WHEN((bits & SPACE) && (bits & ASLEEP), bell_fd_a = 1))
}

/* Raise the word, then look at the ring. */
inline raise(bits_now)
{
	atomic { bell_b = bits_now; sb_b!BELL_B,bits_now };
	barrier(sb_b);
#ifndef WEAK_LOOK
	found = (mem[HEAD] != tail);
#endif
	WHEN(found, promote())
}

active proctype poller()
{
	byte at, v, bits, polls;
	bool found;

	for (polls : 1 .. POLLS) {
		atomic { !lock -> lock = 1 };
		if
		:: progress()
		:: !bell_b -> raise(COLD); found = false /* the ring cools */
		:: complete() /* of an operation of its own */
		fi;
		lock = 0
	}
}

active proctype sleeper()
{
	byte at, v, bits;
	bool found;

	do
	:: atomic { !lock -> lock = 1 };
		progress();
		if
		:: entries -> entries = 0
		:: else -> /* arm */
			atomic { cq_fd = 0; cq_armed = 1 };
			found = hint_b;
			WHEN(!found, atomic { bell_fd_b = 0; armed = 1 };
				WHEN(!(bell_b & ASLEEP), raise(COLD | ASLEEP));
				found = found || hint_b);
			WHEN(!found, lock = 0;
end_asleep:			bell_fd_b || cq_fd;
				atomic { !lock -> lock = 1; cq_armed = 0 })
		fi;
		lock = 0
	od
}

#define AT_REST (sent == SENDS && tail == SENDS && !entries)
active proctype idle() { timeout -> assert(AT_REST) }
ltl ends { <>[] AT_REST }

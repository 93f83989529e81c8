/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M5. The agreement on a path: attach, probe, attach again, TCP; both sides at
 * once, at any time of their start, and with attaches that are refused.
 *
 * Models: tdm_pair_agree(), attach(), probe(), settle_remote() of tcp/pair.c;
 * peer_up(), tdm_ep_accepted() of tcp/pairs.c; the queue of tcp/backlog.c;
 * tdm_shm_attach(), clear_way(), accept_answer(), sent_ready(), wait_ready() of
 * shm/attach.c; the order in tdm_tier_*.open and .listen; `taken` in
 * tcp/wire/claim.c. doc/PROTOCOL-shm.md "Attach", PROTOCOL.md; ADR 5, ADR 24.
 *
 * Proves: messages of a pair take one path and are delivered in order, each
 * once (assertions); in the end all are delivered, and both sides have the same
 * path (LTL, weak fairness).
 *
 * Bounds: MSGS messages of each side; shared memory forbidden on one side, the
 * other, or none; an acceptor that lacks a resource REFUSALS times; one attach
 * of each side at a time. A TCP session begins in one step (M3), and no session
 * ends. An acceptor without descriptors closes attaches at once, CLOSES times.
 * Weakened: WEAK_OPEN, WEAK_ONCE, WEAK_TIE, WEAK_SHUT.
 */
#define MSGS 2
#define REFUSALS 1
#define CLOSES 2
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi

mtype = { UNKNOWN, LOCAL, REMOTE, NONE, ATTACHING, ACCEPTING, UP, FAILED,
	  TRY_ATTACH, TRY_PROBE, TRY_AGAIN, HELLO, TIE, BUSY, OTHER, READY, SHUT };

mtype agreed[2] = UNKNOWN, search[2] = TRY_ATTACH; /* struct tdm_pair */
mtype state[2] = NONE;	  /* struct tdm_shm_pair */
bool off[2];		  /* FI_TANDEM_SHM=off */
bool attach_on[2], tcp_on[2]; /* these sockets listen */

/* The attach begun by a side: packets to the acceptor, and to the initiator. */
chan up[2] = [3] of { mtype };
chan down[2] = [3] of { mtype };
bool dialled[2], left_i[2], left_a[2]; /* open; closed by initiator, acceptor */

bool greeting[2], session; /* HELLO said over TCP; there is a TCP session */
chan ring[2] = [2] of { byte };
chan wire[2] = [2] of { byte };
byte sent[2], got[2];	   /* messages of a side: sent; delivered */
mtype via[2] = UNKNOWN;	   /* the path of its first message */
byte refusals, closes;

inline free_attach(s)
{
	if
	:: left_i[s] && left_a[s] ->
		do :: len(up[s]) > 0 -> up[s]?_ :: len(up[s]) == 0 -> break od;
		do :: len(down[s]) > 0 -> down[s]?_
		   :: len(down[s]) == 0 -> break od;
		dialled[s] = false; left_i[s] = false; left_a[s] = false
	:: else
	fi
}

/* The initiator s, or the acceptor of its attach, closes the socket. */
inline hang_up_i(s) { left_i[s] = true; up[s]!SHUT; free_attach(s) }
inline hang_up_a(s, why) { left_a[s] = true; down[s]!why; free_attach(s) }

inline pair_up(s)
{
	state[s] = UP;
	WHEN(agreed[s] == UNKNOWN, agreed[s] = LOCAL; search[s] = TRY_ATTACH)
}

inline settle_remote(s) { agreed[s] = REMOTE; search[s] = TRY_ATTACH }

inline refused(s)
{
	if
	:: search[s] == TRY_AGAIN -> settle_remote(s)
#ifdef WEAK_ONCE
	:: search[s] == TRY_ATTACH -> settle_remote(s)
#else
	:: search[s] == TRY_ATTACH -> search[s] = TRY_PROBE
#endif
	fi
}

/* A step of the agreement, for the first message that waits. */
inline agree(s)
{
	if
	:: off[s] -> settle_remote(s)
	:: !off[s] && search[s] == TRY_PROBE ->
		search[s] = (tcp_on[1 - s] -> TRY_AGAIN : TRY_ATTACH)
	:: !off[s] && search[s] != TRY_PROBE && state[s] == FAILED ->
		settle_remote(s)
	:: !off[s] && search[s] != TRY_PROBE && state[s] == NONE ->
		if
		:: !attach_on[1 - s] -> refused(s)
		:: attach_on[1 - s] && !dialled[s] ->
			dialled[s] = true; state[s] = ATTACHING; up[s]!HELLO
		:: attach_on[1 - s] && closes < CLOSES -> closes++;
#ifdef WEAK_SHUT
			refused(s)
#endif
		:: attach_on[1 - s] && dialled[s] /* the last one is not closed */
		fi
	:: else
	fi
}

/* The answer to the attach of s. */
inline answer(s)
{
	down[s]?what;
	if
	:: left_i[s]
	:: !left_i[s] && what == HELLO -> up[s]!READY; pair_up(s)
	:: !left_i[s] && what != HELLO ->
		hang_up_i(s);
		state[s] = (what == OTHER -> FAILED : NONE)
	fi;
	what = NONE
}

/* A packet of the attach of i, at the acceptor s. */
inline packet(s, i)
{
	up[i]?what;
	if
	:: left_a[i]
	:: !left_a[i] && what == READY -> assert(state[s] == ACCEPTING); pair_up(s)
	:: !left_a[i] && what == SHUT ->
		WHEN(state[s] == ACCEPTING, state[s] = NONE);
		hang_up_a(i, SHUT)
	:: !left_a[i] && what == HELLO ->
		if
		:: state[s] == FAILED -> hang_up_a(i, OTHER)
		:: state[s] == UP || state[s] == ACCEPTING -> hang_up_a(i, BUSY)
#ifndef WEAK_TIE
		:: state[s] == ATTACHING && s < i -> hang_up_a(i, TIE)
#endif
		:: else ->
			WHEN(state[s] == ATTACHING, hang_up_i(s));
			if
			:: state[s] = ACCEPTING; down[i]!HELLO
			:: refusals < REFUSALS -> refusals++;
				hang_up_a(i, OTHER); state[s] = FAILED
			fi
		fi
	fi;
	what = NONE
}

inline deliver(s, ch, path)
{
	ch?n;
	assert(n == got[s] && (via[s] == UNKNOWN || via[s] == path));
	via[s] = path; got[s]++; n = 0
}

proctype side(byte s)
{
	mtype what = NONE;
	byte n, i = 1 - s;
#ifdef WEAK_OPEN
	tcp_on[s] = true; attach_on[s] = !off[s];
#else
	attach_on[s] = !off[s]; tcp_on[s] = true;
#endif
	do
	:: atomic { WHEN(len(down[s]) > 0, answer(s)) };
	   atomic { WHEN(len(up[i]) > 0 && attach_on[s], packet(s, i)) };
	   atomic { /* the HELLO of the peer over TCP */
		if
		:: greeting[i] && state[s] == UP -> greeting[i] = false /* BUSY */
		:: greeting[i] && state[s] != UP ->
			greeting[i] = false; greeting[s] = false; session = true;
			assert(agreed[s] != LOCAL); agreed[s] = REMOTE
		:: else
		fi };
	   atomic {
		if
		:: sent[s] < MSGS && agreed[s] == UNKNOWN -> agree(s)
		:: sent[s] < MSGS && agreed[s] == LOCAL && len(ring[s]) < 2 ->
			ring[s]!sent[s]; sent[s]++
		:: agreed[s] == REMOTE && !session ->
			greeting[s] = tcp_on[i] && sent[s] < MSGS
		:: sent[s] < MSGS && session && len(wire[s]) < 2 ->
			wire[s]!sent[s]; sent[s]++
		:: else
		fi };
	   atomic { WHEN(state[s] == UP && len(ring[i]) > 0,
			 deliver(i, ring[i], LOCAL)) };
	   atomic { WHEN(session && len(wire[i]) > 0, deliver(i, wire[i], REMOTE)) }
	od
}

init { atomic { if :: true :: off[0] = true :: off[1] = true fi;
		run side(0); run side(1) } }

#define ALL (got[0] == MSGS && got[1] == MSGS && agreed[0] == agreed[1])
ltl arrives { <>[] ALL }

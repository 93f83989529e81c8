/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M4. How a session ends: by an idle close, after which the pair connects
 * again, or by a reset. Without the feature RESUME (M9, resume.pml): after a
 * reset the operations under way end with FI_ECONNRESET, and the next send begins
 * a new session.
 *
 * Models: tdm_tx_commit(), tdm_tx_acked() of tcp/wire/tx.c; tdm_tx_fail() of
 * tcp/wire/tx_end.c; tdm_rx_ready(), ended() of tcp/wire/rx.c; end_sent() of
 * tcp/wire/unacked.c; ask(), heard_ask(), heard_answer(), heard_last(),
 * tdm_idle_close_now() of tcp/wire/idle_close.c. doc/PROTOCOL-tcp.md "Idle
 * close", "Order and completion"; ADR 7, ADR 18.
 *
 * Proves: messages are delivered in order and at most once; each send ends
 * once; one that ended well was delivered, also when the kernel's word ended it
 * and the connection was reset; without a reset none fails, however often the
 * connection is closed; both sides agree about an idle close, and no byte is
 * unread then. No step of a correct peer is taken for a breach.
 *
 * Bounds: MSGS messages of each side, ASKS idle closes begun in all, RESETS
 * resets; 2 records in the network and 2 in the kernel of each side. The
 * greeting is one step (M3). A peer that dies with unread bytes is not modelled.
 * Weakened: WEAK_GO, WEAK_HOLD, WEAK_END.
 */
#define MSGS 2
#ifndef RESETS
#define RESETS 1
#endif
#ifndef ASKS
#define ASKS 2
#endif
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi

mtype = { MSG, ACK, ASK, YES, NO, GO, STAY, NONE, IDLE, READY, CLOSING };

/* On the way to each side, and in its kernel: type, number, records received. */
chan net[2] = [2] of { mtype, byte, byte };
chan kernel[2] = [2] of { mtype, byte, byte };
bool broken; /* the connection was reset */

mtype state[2] = IDLE, say[2] = NONE;
bool asked[2], ack_due[2];
byte posted[2], next[2]; /* messages: given to us, first of sendq */
byte ended[2];		 /* those before it have ended; the others are in ackq */
byte tx_seq[2], acked[2], rx_seq[2];
byte expect[2];		 /* the number behind that of the last one delivered */
bool well[4], here[4];	 /* ended well; delivered. 2 * side + number */
byte asks, resets;

#define SENDQ_EMPTY(s) (next[s] == posted[s])
#define IDLING(s) (state[s] == READY && say[s] == NONE && SENDQ_EMPTY(s))
#define SETTLED(s) (IDLING(s) && acked[s] == tx_seq[s])
#define ROOM(s) (len(net[1 - s]) < 2)
#ifdef WEAK_GO
#define MAY_GO(s) true
#else
#define MAY_GO(s) SETTLED(s)
#endif
#ifdef WEAK_HOLD
#define MAY_SEND(s) (state[s] != IDLE)
#else
#define MAY_SEND(s) (state[s] == READY)
#endif
#ifdef WEAK_END
#define AT_END(s) broken
#else
#define AT_END(s) (broken && len(kernel[s]) == 0)
#endif

inline put(s, type, n)
{
	WHEN(!broken, net[1 - s]!type,n,rx_seq[s]);
	ack_due[s] = false
}

/* Sends in ackq up to and without @most end well. */
inline end_sends(s, most)
{
	do
	:: ended[s] < most -> well[2 * s + ended[s]] = true; ended[s]++
	:: else -> break
	od
}

inline forget(s)
{
	state[s] = IDLE; say[s] = NONE; asked[s] = false; ack_due[s] = false;
	tx_seq[s] = 0; acked[s] = 0; rx_seq[s] = 0
}

/* The sums of an ACK: all sends but the last tx_seq - a ones have arrived. */
inline heard_ack(s, a)
{
	assert(acked[s] <= a && a <= tx_seq[s]);
	acked[s] = a;
	end_sends(s, next[s] - (tx_seq[s] - a))
}

inline heard_ask(s)
{
	assert(state[s] == READY && say[s] == NONE);
	if
	:: asked[s] && s == 0 /* ours has precedence */
	:: else ->
		asked[s] = false;
		if
		:: SETTLED(s) && ROOM(s) ->
			put(s, YES, 0);
			state[s] = CLOSING
		:: else -> say[s] = NO
		fi
	fi
}

inline heard_answer(s, what)
{
	assert(asked[s]);
	asked[s] = false;
	if
	:: what == YES && MAY_GO(s) && ROOM(s) ->
		put(s, GO, 0);
		assert(len(net[s]) == 0 && len(kernel[s]) == 0);
		assert(broken || acked[s] == tx_seq[s]);
		forget(s)
	:: else -> say[s] = (what == YES -> STAY : NONE)
	fi
}

inline handle(s)
{
	kernel[s]?what,n,a;
	if
	:: what == MSG ->
		assert(n >= expect[s] && n < MSGS && !here[2 * (1 - s) + n]);
		here[2 * (1 - s) + n] = true;
		expect[s] = n + 1;
		rx_seq[s]++;
		ack_due[s] = true
	:: what == ACK -> heard_ack(s, a)
	:: what == ASK -> heard_ack(s, a); heard_ask(s)
	:: what == YES || what == NO -> heard_ack(s, a); heard_answer(s, what)
	:: what == STAY || what == GO ->
		heard_ack(s, a);
		assert(state[s] == CLOSING);
		if :: what == STAY -> state[s] = READY
		   :: else -> assert(acked[s] == tx_seq[s]); forget(s) fi
	fi;
	what = NONE; n = 0; a = 0
}

proctype side(byte s)
{
	mtype what = NONE;
	byte n, a;
end:	do
	:: atomic { posted[s] < MSGS -> posted[s]++ }
	:: atomic { state[s] == IDLE && state[1 - s] == IDLE && !SENDQ_EMPTY(s) ->
		state[s] = READY; state[1 - s] = READY; broken = false }
	:: atomic { MAY_SEND(s) && !SENDQ_EMPTY(s) && ROOM(s) ->
		put(s, MSG, next[s]); next[s]++; tx_seq[s]++ }
	:: atomic { state[s] == READY && (ack_due[s] || say[s] != NONE) &&
		    ROOM(s) ->
		put(s, (say[s] == NONE -> ACK : say[s]), 0); say[s] = NONE }
	:: atomic { IDLING(s) && !asked[s] && asks < ASKS && ROOM(s) ->
		put(s, ASK, 0); asked[s] = true; asks++ }
	:: atomic { state[s] != IDLE && len(kernel[s]) > 0 -> handle(s) }
	:: atomic { len(net[s]) > 0 && nfull(kernel[s]) ->
		net[s]?what,n,a; kernel[s]!what,n,a; what = NONE; n = 0; a = 0 }
	/* The kernel's word: all bytes have reached the other host. */
	:: atomic { state[s] != IDLE && !broken && len(net[1 - s]) == 0 &&
		    ended[s] < next[s] -> end_sends(s, next[s]) }
	/* Lost: ackq and sendq fail. */
	:: atomic { state[s] != IDLE && AT_END(s) ->
		do :: len(kernel[s]) > 0 -> kernel[s]?_,_,_
		   :: else -> break od;
		ended[s] = posted[s]; next[s] = posted[s]; forget(s) }
	od
}

init { atomic { run side(0); run side(1) } }

active proctype world()
{
	byte i;
end:	do
	:: atomic { resets < RESETS && !broken &&
		    (state[0] != IDLE || state[1] != IDLE) ->
		resets++; broken = true;
		do :: len(net[0]) > 0 -> net[0]?_,_,_
		   :: len(net[1]) > 0 -> net[1]?_,_,_
		   :: else -> break od }
	:: atomic { timeout ->
		for (i : 0 .. 1) { assert(ended[i] == MSGS) }
		for (i : 0 .. 3) {
			assert(well[i] <= here[i] && (well[i] || resets))
		}
		break }
	od
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M3. The greeting: both sides connect at once, connections are reset anywhere,
 * and one process is started again with the same address.
 *
 * Models: tdm_hello_connect(), _greet(), _answer(), _guest(), adopt() of
 * tcp/wire/hello.c; tdm_claim_check(), gone(), crosses() of tcp/wire/claim.c; the
 * states of tcp/wire/conn.c, BACKOFF and SILENT as part of IDLE. doc/PROTOCOL-tcp.md
 * "Both sides connect", "Claims", "States".
 *
 * Proves: at most one connection has a session, on which both sides agree, and
 * which no claim displaces; a record is handled in READY only, and comes from
 * the incarnation that said HELLO there (assertions); when resets have stopped, both sides come to the
 * same session and stay (LTL, weak fairness).
 *
 * Bounds: two sides, two connections begun by each that are not closed by both
 * (closed ones are used again: attempts have no bound); RESETS resets; RESTARTS
 * of side 1, whose ids are smaller or greater than that of side 0. A side learns
 * of a reset at any time later, and each side for itself.
 * Weakened: WEAK_CLAIM, WEAK_TIE.
 */
#define RESETS 1
#define RESTARTS 1
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi

mtype = { HELLO, REJECT, MSG, FIN, IDLE, CONNECTING, GREETING, READY };

mtype state[2] = IDLE;
byte id[2], peer[2], conn[2]; /* incarnations; the connection of each side */
bool unsure[2]; /* may a HELLO of the side have been answered, unheard? */
byte last[2];   /* the other side in the last session; 0: there was none */

/* Connections 0 and 1 are begun by side 0, 2 and 3 by side 1. */
#define END(c, side) (2 * (c) + (side))
bool open[8];		      /* does the side have its end? */
bool told[8];		      /* does it know of the reset? */
bool reset[4], guest[4];      /* guest: the acceptor has not judged it yet */
chan to[8] = [2] of { mtype, byte }; /* what is on the way to a side */

#define ALIVE(c) (open[END(c, 0)] && open[END(c, 1)] && !reset[c])
#define AGREED (state[0] == READY && state[1] == READY && \
		conn[0] == conn[1] && ALIVE(conn[0]))

/* Side s writes; what it writes to a connection that was reset is lost. */
inline put(c, s, type, v) { WHEN(!reset[c], to[END(c, 1 - s)]!type,v) }

inline drain(e) { do :: len(to[e]) -> to[e]?_,_ :: !len(to[e]) -> break od }

/* Close the end of side s. Without the other end the connection is free. */
inline hang_up(c, s)
{
	open[END(c, s)] = false;
	drain(END(c, s));
	if
	:: !open[END(c, 1 - s)] ->
		drain(END(c, 1 - s));
		reset[c] = false; guest[c] = false;
		told[END(c, 0)] = false; told[END(c, 1)] = false
	:: else -> put(c, s, FIN, 0)
	fi
}

inline lose(s)
{
	hang_up(conn[s], s);
	state[s] = IDLE; peer[s] = 0; conn[s] = 0
}

inline establish(s, c, whom)
{
	state[s] = READY; conn[s] = c; peer[s] = whom; last[s] = whom;
	unsure[s] = false;
	assert(state[1 - s] != READY || conn[1 - s] == c ||
	       !ALIVE(conn[1 - s]) || !ALIVE(c))
}

/* Handle what has come on the connection of side s; x is free to use. */
inline input(s)
{
	if
	:: told[END(conn[s], s)] -> lose(s)
	:: !told[END(conn[s], s)] && len(to[END(conn[s], s)]) > 0 ->
		to[END(conn[s], s)]?what,x;
		if
		:: what == FIN || what == REJECT -> unsure[s] = false; lose(s)
		:: what == HELLO ->
			assert(state[s] == GREETING);
			establish(s, conn[s], x)
		:: what == MSG -> assert(state[s] == READY && x == peer[s])
		fi; what = IDLE
	:: else
	fi
}

/* A guest has said HELLO: tdm_claim_check(), then adopt() or REJECT. */
inline judge(s, c)
{
	guest[c] = false;
#ifndef WEAK_CLAIM
	do /* gone() */
	:: state[s] == READY &&
	   (told[END(conn[s], s)] || len(to[END(conn[s], s)])) -> input(s)
	:: else -> break
	od;
#endif
	if
#ifndef WEAK_CLAIM
	:: state[s] == READY -> put(c, s, REJECT, 0); hang_up(c, s)
#endif
#ifndef WEAK_TIE
	:: whom > id[s] && (state[s] == GREETING || (state[s] != READY &&
	   unsure[s] && (!last[s] || last[s] == whom))) ->
		put(c, s, REJECT, 0); hang_up(c, s)
#endif
	:: else ->
		assert(!AGREED); /* a live session is never displaced */
		WHEN(state[s] != IDLE, lose(s));
		put(c, s, HELLO, id[s]);
		establish(s, c, whom)
	fi
}

inline look_at(s, c)
{
	if
	:: guest[c] && open[END(c, s)] && told[END(c, s)] -> hang_up(c, s)
	:: guest[c] && open[END(c, s)] && !told[END(c, s)] &&
	   len(to[END(c, s)]) > 0 ->
		to[END(c, s)]?what,whom;
		if :: what == HELLO -> what = IDLE; judge(s, c)
		   :: else -> what = IDLE; hang_up(c, s) fi;
		whom = 0
	:: else
	fi
}

proctype side(byte s)
{
	byte x, whom;
	mtype what = IDLE;
	do
	:: atomic { look_at(s, 2 * (1 - s)) };
	   atomic { look_at(s, 2 * (1 - s) + 1) };
	   atomic {
		if
		:: state[s] == IDLE ->
			x = 2 * s;
			WHEN(open[END(x, 0)] || open[END(x, 1)], x++);
			if
			:: !open[END(x, 0)] && !open[END(x, 1)] ->
				open[END(x, 0)] = true; open[END(x, 1)] = true;
				guest[x] = true; conn[s] = x; state[s] = CONNECTING
			:: else
			fi
		:: state[s] == CONNECTING && told[END(conn[s], s)] -> lose(s)
		:: state[s] == CONNECTING && !told[END(conn[s], s)] ->
			state[s] = GREETING; unsure[s] = true;
			put(conn[s], s, HELLO, id[s])
		:: state[s] == GREETING || state[s] == READY -> input(s)
		fi;
		x = 0
	   };
	   atomic {
		if :: state[s] == READY && len(to[END(conn[s], 1 - s)]) == 0 ->
			put(conn[s], s, MSG, id[s])
		   :: true fi
	   }
	od
}

/* The kernel tells of resets. */
#define TELL(e) atomic { reset[e / 2] && open[e] && !told[e] -> told[e] = true }
active proctype kernel()
{
end:	do
	:: TELL(0) :: TELL(1) :: TELL(2) :: TELL(3)
	:: TELL(4) :: TELL(5) :: TELL(6) :: TELL(7)
	od
}

active proctype world()
{
	byte c, n;

	atomic {
		id[0] = 3;
		if :: id[1] = 2 :: id[1] = 4 fi;
		run side(0);
		run side(1)
	};
	for (n : 1 .. RESETS) { atomic {
		select (c : 0 .. 3);
		WHEN(open[END(c, 0)] || open[END(c, 1)],
		     reset[c] = true; drain(END(c, 0)); drain(END(c, 1)))
	} }
	for (n : 1 .. RESTARTS) { atomic {
		for (c : 0 .. 3) { WHEN(open[END(c, 1)], hang_up(c, 1)) }
		state[1] = IDLE; peer[1] = 0; conn[1] = 0;
		unsure[1] = false; last[1] = 0;
		if :: id[1] = 1 :: id[1] = 5 fi
	} }
}

ltl agree { <>[] AGREED }

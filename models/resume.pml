/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M9. Resume: a session goes on over a new connection after each loss.
 *
 * Models: advance(), tdm_conn_push() of tcp/wire/send.c; put_position(),
 * acked_to() of tcp/wire/tx.c; tdm_keep_acked(), tdm_keep_rewind() of
 * tcp/wire/keep.c; take(), record(), position(), ended() of tcp/wire/rx.c;
 * lose(), attempt(), find(), resumed(), answered(), tdm_resume_guest() of
 * tcp/wire/resume.c; end_sent() of tcp/wire/unacked.c. doc/PROTOCOL-tcp.md
 * "Resume"; ADR 43.
 *
 * Proves: whatever is lost, and when, each record is delivered once, in order;
 * no side acknowledges what it has not received; what a RESUME asks for is kept
 * on the other side (assertions). A send that ended well, by whatever word, is
 * delivered (assertion at the end). When losses stop, all is delivered.
 *
 * Bounds: MSGS records of each side, LOSSES losses; 2 records in the network
 * and 2 in the kernel of each side. A loss takes what is in the network, and if
 * it likes what a side has not read. A position is a number of records.
 * Weakened: WEAK_KEEP, WEAK_FINAL, WEAK_BESIDE.
 */
#define MSGS 2
#ifndef LOSSES
#define LOSSES 2
#endif
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi

mtype = { MSG, POSITION, RESUME };

/* On the way to each side over the newest connection, and in its kernel. */
chan net[2] = [2] of { mtype, byte };
chan kernel[2] = [2] of { mtype, byte };
chan guest[2] = [1] of { byte }; /* a RESUME that asks, not accepted yet */
bool broken;		 /* the newest connection was lost */

bool up[2] = true, trying[2];
byte committed[2], kept[2], next[2]; /* numbers of records */
byte rx[2], said[2], ended[2];
byte losses;

#define ROOM(s) (len(net[1 - s]) < 2)

inline purge(c)
{
	do :: len(c) > 0 -> c?_,_ :: else -> break od
}

/* The peer has all records before @pos. */
inline acked(s, pos)
{
	assert(pos <= rx[1 - s] && pos <= committed[s]);
	WHEN(pos > kept[s], kept[s] = pos);
	WHEN(pos > ended[s], ended[s] = pos)
}

inline rewind(s, pos)
{
	assert(kept[s] <= pos);
	acked(s, pos);
	next[s] = pos;
	up[s] = true;
	trying[s] = false
}

inline handle(s)
{
	kernel[s]?what,n;
	if
	:: what == MSG -> assert(n == rx[s]); rx[s]++
	:: what == POSITION -> acked(s, n)
#ifdef WEAK_BESIDE
		; rx[s]++
#endif
	:: what == RESUME -> skip
	fi;
	what = 0; n = 0
}

/* A guest asks: answer, and go on from what it has received. */
inline accept(s)
{
	guest[s]?n;
	if
	:: trying[s] && s == 0 -> trying[1 - s] = false /* DUPLICATE */
	:: else ->
		/* the own attempt, and the connection it had */
		do :: len(guest[1 - s]) > 0 -> guest[1 - s]?_ :: else -> break od;
		purge(net[1 - s]); purge(net[s]);
#ifndef WEAK_FINAL
		purge(kernel[s]);
#endif
		broken = false;
		net[1 - s]!RESUME,rx[s];
		rewind(s, n)
	fi;
	n = 0
}

proctype side(byte s)
{
	mtype what = 0;
	byte n;
end:	do
	:: atomic { committed[s] < MSGS -> committed[s]++ }
	:: atomic { up[s] && !broken && next[s] < committed[s] && ROOM(s) ->
		net[1 - s]!MSG,next[s]; next[s]++;
#ifdef WEAK_KEEP
		kept[s] = next[s]
#endif
		}
	:: atomic { up[s] && !broken && said[s] != rx[s] && ROOM(s) ->
		net[1 - s]!POSITION,rx[s]; said[s] = rx[s] }
	:: atomic { up[s] && len(kernel[s]) > 0 -> handle(s) }
	:: atomic { up[s] && len(net[s]) > 0 && nfull(kernel[s]) ->
		net[s]?what,n; kernel[s]!what,n; what = 0; n = 0 }
	/* The kernel's word: the peer's host has all bytes. They stay kept. */
	:: atomic { up[s] && !broken && len(net[1 - s]) == 0 &&
		    ended[s] < next[s] -> ended[s] = next[s] }
	/* Read to the end, or not. */
	:: atomic { up[s] && broken -> purge(kernel[s]); up[s] = false }
	:: atomic { !up[s] && !trying[s] && nfull(guest[1 - s]) ->
		guest[1 - s]!rx[s]; trying[s] = true }
	:: atomic { len(guest[s]) > 0 -> accept(s) }
	/* The answer to ours is the first of a connection. */
	:: atomic { trying[s] && len(net[s]) > 0 ->
		net[s]?what,n; assert(what == RESUME); what = 0;
		rewind(s, n); said[s] = 0; n = 0 }
	:: atomic { trying[s] && broken && len(guest[1 - s]) == 0 &&
		    !up[1 - s] -> trying[s] = false }
	od
}

init { atomic { run side(0); run side(1) } }

active proctype world()
{
	byte i;
end:	do
	:: atomic { losses < LOSSES && !broken ->
		losses++; broken = true; purge(net[0]); purge(net[1]) }
	:: atomic { timeout ->
		for (i : 0 .. 1) {
			assert(rx[i] == MSGS && up[i]);
			assert(ended[i] <= rx[1 - i])
		}
		break }
	od
}

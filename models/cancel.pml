/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M8. Cancel against match: a receive side, two transports that bring it
 * announced messages, and fi_cancel of sends and of receives.
 *
 * Models: get(), queue(), free_entry() of peer/srx_export.c; tdm_srx_cancel() of
 * peer/srx_cancel.c; tdm_srx_join() of peer/srx.c; rx_rts(), rx_cancel() of
 * shm/rx.c; tdm_shm_op_cancel(), _ack() of shm/op.c; withdraw() of
 * tcp/wire/tx_end.c; tdm_tx_cts() of tcp/wire/tx.c; withdrawn() of
 * tcp/wire/rx.c; tdm_rx_rts(), tdm_rx_withdraw() of tcp/wire/rx_msg.c.
 * PROTOCOL-shm.md "Large messages", PROTOCOL-tcp.md "CANCEL"; ADR 2.
 *
 * Proves: each send and each receive has one completion; a cancelled send was
 * not delivered, and one that ended well was; a message fills one receive, and
 * a cancelled receive none; answers name an operation that exists, although an
 * id is used again.
 *
 * Bounds: side 0 sends by shared memory (RTS, ACK), side 1 by TCP (RTS, CTS,
 * DATA); MSGS messages each, one at a time, all with one id; RECVS receives from
 * any source. What the receiver's lock covers is one step; bytes of a matched
 * message arrive later.
 * Weakened: WEAK_STATE, WEAK_WITHDRAW, WEAK_ALONE.
 */
#define MSGS 2
#define RECVS 3
#define NOBODY 9
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi

mtype = { RTS, CANCEL, DATA, ANSWER, DROPPED, /* records */
	  FREE, POSTED, FILLING, WAITING, MATCHED };

chan to_rx[2] = [3] of { mtype, byte };
chan to_tx[2] = [2] of { mtype };

byte good[4], bad[4], delivered[4]; /* 2 * side + number: how often */

/* The receive side: the entries of receives, and a message of each side. */
mtype recv[RECVS] = FREE;
byte filled_by[RECVS], done[RECVS], posts;
mtype msg[2] = FREE;
byte number[2];

proctype sender(byte s)
{
	byte m;
	bool cancelled, asked;

	do
	:: m == MSGS -> break
	:: m < MSGS ->
		cancelled = false;
		asked = false;
		to_rx[s]!RTS,m;
		do
		:: atomic { !cancelled && !asked && len(to_rx[s]) < 3 ->
			to_rx[s]!CANCEL,0; cancelled = true
#ifdef WEAK_ALONE
			; bad[2 * s + m]++; break
#endif
		}
		:: atomic { to_tx[s]?ANSWER ->
			assert(!asked);
			if
			:: s == 0 -> good[m]++; break
			:: s == 1 -> asked = true; to_rx[s]!DATA,m;
				good[2 + m]++; break
			fi
		}
		:: atomic { to_tx[s]?DROPPED ->
			assert(cancelled); bad[2 * s + m]++; break }
		od;
		m++
	od
}

/* A receive is completed, and its entry given back. */
inline complete(r)
{
	assert(recv[r] == FILLING);
	delivered[2 * filled_by[r] + number[filled_by[r]]]++;
	done[r]++;
	recv[r] = FREE;
	msg[filled_by[r]] = FREE;
	filled_by[r] = NOBODY
}

/* The transport s begins to move its message to receive r. */
inline start(s, r)
{
	recv[r] = FILLING;
	filled_by[r] = s;
	msg[s] = MATCHED;
	WHEN(s == 1, to_tx[1]!ANSWER)
}

proctype transport(byte s)
{
	byte r, n;
end:	do
	:: atomic { to_rx[s]?RTS,n ->
		assert(msg[s] == FREE);
		number[s] = n; n = 0; msg[s] = WAITING;
		do /* the oldest receive */
		:: r < RECVS && recv[r] == POSTED -> start(s, r); break
		:: r < RECVS && recv[r] != POSTED -> r++
		:: r == RECVS -> break
		od;
		r = 0
	}
	:: atomic { to_rx[s]?CANCEL,_ ->
#ifdef WEAK_WITHDRAW
		WHEN(msg[s] != FREE, msg[s] = FREE; to_tx[s]!DROPPED)
#else
		WHEN(msg[s] == WAITING, msg[s] = FREE; to_tx[s]!DROPPED)
#endif
	}
	:: atomic { to_rx[s]?DATA,n -> /* TCP: the bytes */
		assert(msg[s] == MATCHED && number[s] == n); n = 0;
		do :: filled_by[r] != s -> r++ :: else -> break od;
		complete(r); r = 0 }
	:: atomic { s == 0 && msg[s] == MATCHED -> /* shared memory: the last slice */
		do :: filled_by[r] != s -> r++ :: else -> break od;
		complete(r); to_tx[0]!ANSWER; r = 0 }
	od
}

#ifdef WEAK_STATE
#define CANCELLABLE(r) (recv[r] != FREE)
#else
#define CANCELLABLE(r) (recv[r] == POSTED)
#endif

active proctype application()
{
end:	do
	:: atomic { posts < RECVS -> /* post: a message that waits comes first */
		recv[posts] = POSTED;
		if
		:: msg[0] == WAITING -> start(0, posts)
		:: msg[1] == WAITING -> start(1, posts)
		:: msg[0] != WAITING && msg[1] != WAITING
		fi;
		posts++ }
	:: atomic { CANCELLABLE(0) -> done[0]++; recv[0] = FREE }
	:: atomic { CANCELLABLE(1) -> done[1]++; recv[1] = FREE }
	:: atomic { CANCELLABLE(2) -> done[2]++; recv[2] = FREE }
	od
}

init {
	byte i;

	atomic {
		filled_by[0] = NOBODY; filled_by[1] = NOBODY;
		filled_by[2] = NOBODY;
		run sender(0); run sender(1); run transport(0); run transport(1)
	};
	timeout;
	for (i : 0 .. RECVS - 1) {
		assert(done[i] + (recv[i] == POSTED) == (i < posts))
	}
	for (i : 0 .. 2 * MSGS - 1) {
		assert(delivered[i] == good[i] && good[i] + bad[i] <= 1)
	}
}

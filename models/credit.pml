/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M7. Credit, and announcements where there is none.
 *
 * Models: tdm_tx_commit(), tdm_tx_acked(), tdm_tx_put_ack() of tcp/wire/tx.c;
 * tdm_tx_awaits_credit() of tcp/wire/tx_own.c; begin_eager() of tcp/wire/rx.c;
 * tdm_rx_rts() of tcp/wire/rx_msg.c; wanted(), available(), tdm_credit_give(),
 * tdm_credit_low() of tcp/wire/credit.c; tdm_credit_release(). doc/PROTOCOL-tcp.md
 * "Credit"; ADR 27.
 *
 * Proves: a sender never sends beyond its credit; the account exceeds its size
 * by the share of a peer and its announced messages at most; credit is
 * conserved: given = unused + held + given back; a peer that has little unused
 * was given more or told FULL, or an ACK is due (assertions). Without a further
 * receive all messages still reach the receiver, held or announced, up to the
 * number that its HELLO allows (assertion at the end).
 *
 * Bounds: MSGS messages of one size, which is one unit of credit and the least
 * that counts as low; a share of SHARE units, an account of ACCOUNT units, of
 * which other peers take and give back some at any time; ANNOUNCED messages
 * without an answer. Receives are posted at any time, or never. Once the answer
 * to an ASK stands in for an ACK.
 * Weakened: WEAK_LOW, WEAK_FULL, WEAK_COUNT, WEAK_UNSAID.
 */
#define MSGS 6
#define SHARE 2
#define ACCOUNT 4
#define ANNOUNCED 2
#define FIRST SHARE
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

mtype = { EAGER, RTS, ACK, CTS };
chan to_rx = [2] of { mtype };
chan to_tx = [2] of { mtype, byte, bit }; /* with credit given, FULL */

/* The sender. */
byte queued, charged, freed, rts; /* sendq; rts: without an answer */
bool told_full, thirsty;

/* The receiver. */
byte given = FIRST, rx_charged, rx_freed, ack_freed;
byte waiting, ctss, others; /* announced, without a receive; CTS to be sent */
bool said_full, ack_now, asked;
bool no_receives; /* the application posts no more */

#define UNUSED (given - rx_charged)
#define HELD (rx_charged - rx_freed)
#define USED (given - rx_freed + waiting + others)
#define ROOM (USED < ACCOUNT -> ACCOUNT - USED : 0)
#define HAS (given - rx_freed)
#define AVAILABLE(want) MIN(want, MAX(ROOM, SHARE - MIN(SHARE, HAS)))

active proctype sender()
{
	byte credit;
	bit is_full;
end:	do
	:: atomic { queued + charged + rts < MSGS && queued == 0 -> queued++ }
	:: atomic { queued && !thirsty && charged < FIRST + freed &&
		    nfull(to_rx) ->
		to_rx!EAGER; charged++; queued-- }
	:: atomic { queued && !thirsty && charged >= FIRST + freed && !told_full ->
		thirsty = true }
	:: atomic { queued && !thirsty && charged >= FIRST + freed && told_full &&
		    rts < ANNOUNCED && nfull(to_rx) ->
		to_rx!RTS; rts++; queued-- }
	:: atomic { to_tx?ACK,credit,is_full ->
		assert(credit >= freed);
		freed = credit; told_full = is_full; thirsty = false; credit = 0 }
	:: atomic { to_tx?CTS,_,_ -> rts-- }
	od
}

/* tdm_credit_low() */
inline low()
{
#ifndef WEAK_LOW
	WHEN(!(said_full && AVAILABLE(1) == 0), ack_now = true)
#else
	skip
#endif
}

/* tdm_credit_give(), for an ACK */
inline give()
{
	n = MAX(FIRST, HELD);
	n = (UNUSED < n -> AVAILABLE(n - UNUSED) : 0);
	given = given + n;
	said_full = (UNUSED < 1);
	ack_freed = rx_freed;
	ack_now = false;
	n = 0
}

inline check()
{
	assert(rx_freed <= rx_charged && rx_charged <= given);
	assert(UNUSED >= 1 || said_full || ack_now);
	assert(USED <= ACCOUNT + SHARE + ANNOUNCED)
}

active proctype receiver()
{
	byte n;
end:	do
	:: atomic { to_rx?EAGER ->
#ifndef WEAK_COUNT
		assert(UNUSED >= 1);
		rx_charged++;
#endif
		WHEN(UNUSED < 1, low());
		check() }
	:: atomic { to_rx?RTS -> waiting++; WHEN(UNUSED < 1, low()); check() }
	/* A receive takes a message that waits. */
	:: atomic { HELD && !no_receives -> rx_freed++;
		WHEN(rx_freed - ack_freed > SHARE / 4, ack_now = true);
		check() }
	:: atomic { waiting && !no_receives && nfull(to_tx) -> waiting--; to_tx!CTS,0,0 }
	:: atomic { ack_now && nfull(to_tx) -> give();
#ifdef WEAK_FULL
		to_tx!ACK,given - FIRST,0;
#else
		to_tx!ACK,given - FIRST,said_full;
#endif
		check() }
	/* ASK, then NO: the sums of an ACK, without FULL (tdm_credit_unsaid()) */
	:: atomic { !asked && !waiting && nfull(to_tx) -> asked = true; give();
		to_tx!ACK,given - FIRST,told_full;
#ifndef WEAK_UNSAID
		WHEN(said_full, said_full = false; ack_now = true);
#endif
		check() }
	od
}

/* Other peers of the endpoint. */
active proctype peers()
{
	do
	:: atomic { others < ROOM -> others++ }
	:: atomic { others > 0 -> others-- }
	:: break
	od;
	no_receives = true
}

active proctype at_rest()
{
	timeout -> assert(!queued || rts == ANNOUNCED)
}

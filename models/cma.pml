/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * M6. Bytes that are read from another process, against everything that takes
 * the memory away: fi_cancel, fi_close of the endpoint or of the region, death.
 *
 * The holder has the memory, the puller reads it by process_vm_readv(2).
 *   default  a message: RTS, reads, ACK
 *   WRITE    RTS_WRITE: the puller stores the bytes in a region of its own
 *   READ     READ, RTS_READ, reads, ACK, ACK: the memory is a region
 *
 * Models: send_rts() of shm/tx.c; tdm_shm_op_cancel(), _ack() of shm/op.c;
 * tdm_shm_op_forget() of it; tdm_shm_pull_run(), _finish(), _end(), sender_gone(),
 * recalled() of shm/cma.c; feed_none() of shm/bounce.c; rx_cancel()
 * of shm/rx.c; serve_confirm() of shm/serve.c; tdm_shm_session_free(),
 * tdm_shm_pair_lose(). doc/PROTOCOL-shm.md "Large messages", "One-sided
 * operations"; ADR 3. There is no grant that is revoked: a holder cannot stop a
 * read, so the puller finds out afterwards whether the bytes count.
 *
 * Proves: a puller reports success only if every byte was read while the memory
 * was the provider's; a cancelled send was not delivered; nothing is stored in a
 * region after its close; each side ends its operation once, and no close waits.
 *
 * Bounds: one operation of SLICES slices; the holder does one of cancel, close,
 * death, close of the region; the puller may close its region. The stores of the
 * holder pass through a store buffer (TSO). With FORGET the holder's application
 * removes the puller's address, once.
 * Weakened: WEAK_GONE, WEAK_CANCEL, WEAK_CONFIRM (READ), WEAK_REVOKE (WRITE),
 * WEAK_RECALL (FORGET).
 */
#define SLICES 2
#define WHEN(test, ...) if :: (test) -> __VA_ARGS__ :: else fi

mtype = { RTS, FAIL, READ_RECORD, OK, ACCESS, /* records; ACK with a status */
	  PULL, NO_BYTES,		      /* NO_BYTES: FAIL with aux 0 */
	  NONE, WAITING, PULLING, ASKED, CONFIRM, SENT, GOOD, BAD, CANCELED };

chan to_puller = [3] of { mtype };
chan to_holder = [3] of { mtype };

/* Memory of the holder: the application's own again; words of its segment. */
#define BUF 0
#define GONE 1
#define RECALLED 2
bit mem[3];
chan sb = [2] of { byte };
bool dead;		   /* the holder: the lifeline is closed */

mtype op = NONE;	   /* the operation at the holder; with READ: its serve */
mtype pull = NONE;	   /* the operation at the puller */
bool told;		   /* the send was reported as aborted */
bool cancelled, closed;	   /* FAIL sent; the endpoint of the holder is closed */
bool revoked_h, revoked_p; /* the region of the holder, of the puller is closed */

active proctype memory()
{
	byte at;
end:	do :: atomic { sb?at -> mem[at] = 1; at = 0 } od
}

/* The application gets its memory back. */
inline reuse() { sb!BUF }

inline end_op(how)
{
	assert(op == SENT);
	op = how;
	reuse()
}

active proctype holder()
{
	mtype what;

#ifdef READ
	to_holder?what;
	if
	:: true -> op = SENT
	:: revoked_h = true; reuse(); op = BAD; to_puller!ACCESS; goto end
	fi;
#else
	op = SENT;
#endif
	to_puller!RTS;
end:	do
	:: atomic { to_holder?what ->
#ifdef READ
		/* tdm_shm_serve_confirm() */
		assert(op == SENT);
		op = (revoked_h -> BAD : GOOD);
		to_puller!(revoked_h -> ACCESS : what)
#else
		assert(op == SENT);
		if
		:: what == PULL ->
			/* tdm_shm_bounce_feed() */
			assert(told);
			op = BAD; to_puller!NO_BYTES; goto next
		:: else
		fi;
		assert(what == OK || cancelled || revoked_p);
		end_op((what == OK -> GOOD : (revoked_p -> BAD : CANCELED)));
next:		skip
#endif
	}
#ifdef READ
	:: atomic { !revoked_h && !closed -> revoked_h = true; reuse() }
#else
	:: atomic { op == SENT && !cancelled && !told ->
		cancelled = true; to_puller!FAIL
#ifdef WEAK_CANCEL
		; end_op(CANCELED)
#endif
	}
#endif
#ifdef FORGET
	:: atomic { op == SENT && !told ->
		told = true; sb!RECALLED; reuse() }
#endif
	/* fi_close: first the word, then the memory is the application's. */
	:: closed = true; sb!GONE; reuse(); dead = true; break
	/* Death: another process may get the number. */
	:: dead = true; reuse(); break
	od
}

inline end_pull(how, status)
{
	assert(pull == PULLING || pull == WAITING);
	pull = how;
	to_holder!status
}

active proctype puller()
{
	mtype what;
	byte slice;
	bool spoiled;

#ifdef READ
	to_holder!READ_RECORD;
#endif
	do
	:: atomic { to_puller?what ->
		if
		:: what == RTS -> assert(pull == NONE);
#if defined(READ) || defined(WRITE)
			pull = PULLING
#else
			if :: pull = PULLING :: pull = WAITING fi
#endif
		:: what == FAIL ->
			/* rx_cancel(): if no receive has matched it */
			WHEN(pull == WAITING, end_pull(CANCELED, ACCESS))
		:: what == NO_BYTES -> assert(pull == ASKED); pull = BAD
		:: what == OK || what == ACCESS -> /* of a read */
			assert(pull == CONFIRM || what == ACCESS);
			pull = (what == OK -> GOOD : BAD)
		fi;
		assert(pull != GOOD || !spoiled)
	}
	:: pull == WAITING -> pull = PULLING /* a receive is posted */
	:: atomic { pull == PULLING && slice < SLICES ->
#ifndef WEAK_REVOKE
		if
		:: revoked_p -> end_pull(BAD, ACCESS)
		:: else -> slice++; spoiled = spoiled || mem[BUF]
		fi
#else
		slice++; spoiled = spoiled || mem[BUF]; assert(!revoked_p)
#endif
	}
	:: pull == PULLING && slice == SLICES ->
		/* tdm_shm_pull_finish() */
		if
#ifndef WEAK_GONE
		:: mem[GONE] -> pull = BAD
		:: atomic { !mem[GONE] && dead -> pull = BAD }
#ifndef WEAK_RECALL
		:: atomic { !mem[GONE] && !dead && mem[RECALLED] ->
			pull = ASKED; to_holder!PULL }
		:: atomic { !mem[GONE] && !dead && !mem[RECALLED] ->
#else
		:: atomic { !mem[GONE] && !dead ->
#endif
#else
		:: atomic { true ->
#endif
#if defined(READ) && !defined(WEAK_CONFIRM)
			pull = CONFIRM; to_holder!OK
#else
			end_pull(GOOD, OK);
			assert(!spoiled)
#endif
		}
		fi
#ifdef WRITE
	:: !revoked_p -> revoked_p = true
#endif
	/* The session ends: what was published is handled first. */
	:: atomic { dead && empty(to_puller) && pull != GOOD ->
		WHEN(pull != CANCELED, pull = BAD); break }
	:: atomic { timeout -> break }
	od;
	assert(pull == GOOD || pull == BAD || pull == CANCELED || pull == WAITING);
	assert(dead || (pull == WAITING) == (op == SENT));
	assert(op != CANCELED || pull != GOOD)
}

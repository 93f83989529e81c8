/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a connection that it has only at times, so that an idle one is
 * small; parts.c. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_PARTS_H
#define TDM_TCP_WIRE_PARTS_H

#include <stdint.h>

#include "base/list.h"
#include "tcp/wire/ids.h"
#include "tcp/wire/loop.h"
#include "tcp/wire/record.h"
#include "tdm_order.h"

struct fi_rma_iov;
struct tdm_conn;

/*
 * State of a connection for all but short expected messages. A connection that
 * needs it has its own from tdm_busy_need() on, and keeps it until a periodic
 * check finds it empty; the others share tdm_not_busy, which is empty and
 * read-only.
 */
struct tdm_busy {
	struct tdm_list dataq, waitq; /* struct tdm_tx */
	struct tdm_list ctlq;	      /* struct tdm_rx */
	struct tdm_list rxs;	      /* struct tdm_rx, all of them */
	struct tdm_slow slow;	      /* of waitq and dataq: tdm_order.h */
	struct tdm_ids ids, rids;     /* struct tdm_tx, struct tdm_rx */
	/* bytes of conn->borrow: the first one kept, those still to be sent */
	size_t borrow_kept, borrow_off, borrow_end;
	/* element of rxs: the next LEFT is for it or for a later one */
	struct tdm_list *left_at;
	struct fi_rma_iov *more; /* RANGEs of the next operation, or NULL */
	uint32_t rts;		 /* announcements and reads without an answer */
	uint32_t announced;	 /* announced by the peer, unanswered */
	uint8_t more_count;	 /* elements of more */
	uint8_t head[TDM_WIRE_HEAD_BYTES]; /* a header not complete yet */
};

extern const struct tdm_busy tdm_not_busy;

/* Initialize c->busy of the new connection @c, which is not busy. */
void tdm_busy_init(struct tdm_conn *c);

/* Give @c, which is not busy, a struct tdm_busy. Errors: -FI_ENOMEM. */
int tdm_busy_make(struct tdm_conn *c) tdm_must_check;

/* Free c->busy if it is empty. */
void tdm_busy_trim(struct tdm_conn *c);

/* Forget the ids of @c: its session has ended, and they with it. */
void tdm_busy_forget(struct tdm_conn *c);

/* Free c->busy, whose lists are empty. */
void tdm_busy_free(struct tdm_conn *c);

/*
 * State of a connection that has no session, from the first attempt to connect
 * on. A connection with a session has one only while it waits for memory of the
 * kernel.
 */
struct tdm_setup {
	struct tdm_conn *conn;
	struct tdm_loop_timer timer;
	uint64_t since_ns; /* start of the connect time-out; 0: not started */
	/* first refusal since another answer; 0: the last was none */
	uint64_t refused_ns;
	uint64_t entered_ns; /* when the state was entered */
	/* RESUMING: when the last attempt began; until when its phase counts */
	uint64_t begun_ns, counts_ns;
	unsigned backoff_ms;
	int why; /* BACKOFF: fi_errno of the last attempt */
	/* GREETING: received bytes; with keys our own greeting follows. */
	uint8_t *greeting;
	uint8_t greeting_len;
	uint8_t proving; /* the proof was sent, no answer yet */
	/* RESUMING: enum of resume.c; the state that follows */
	uint8_t phase, then;
	unsigned tries; /* failed attempts in a row */
	unsigned hollow; /* RESUMING: those that a host accepted and said nothing */
};

/* Returns c->setup, made if @c has none. NULL: out of memory. */
struct tdm_setup *tdm_setup_get(struct tdm_conn *c);

/* Free that of @c, if it has one, and what was received of a greeting. */
void tdm_setup_free(struct tdm_conn *c);
void tdm_setup_forget_greeting(struct tdm_conn *c);

/* Disarm the timer of @c, if it has one. */
void tdm_setup_disarm(struct tdm_conn *c);

/* conn.c: the timer of a connection; its state says what it was armed for. */
void tdm_conn_timer(struct tdm_loop_timer *timer);

#endif /* TDM_TCP_WIRE_PARTS_H */

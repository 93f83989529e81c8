/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of an endpoint and their states; conn.c. Lock: held. */
#ifndef TDM_TCP_WIRE_CONN_H
#define TDM_TCP_WIRE_CONN_H

#include "tcp/wire/sock.h"

/* Not 0 when @c has a session. */
static inline int tdm_conn_live(const struct tdm_conn *c)
{
	return c->state >= TDM_CONN_RESUMING;
}

/* Not 0 when both sides of @c can resume a session. */
static inline int tdm_conn_resumes(const struct tdm_conn *c)
{
	return c->features & TDM_WIRE_FEATURE_RESUME;
}

/* Not 0 when @c has a session and a connection for it. */
static inline int tdm_conn_open(const struct tdm_conn *c)
{
	return c->state >= TDM_CONN_READY;
}

/*
 * Put @c on the list of the next pass, which reads its input and then ends or
 * retries it.
 */
static inline void tdm_conn_again(struct tdm_conn *c)
{
	c->again = 1;
	c->tcp->again = 1;
	tdm_tcp_nudge(c->tcp);
}

/* Not 0 when @c is to have a session. */
static inline int tdm_conn_wanted(const struct tdm_conn *c)
{
	return c->wanted || !tdm_list_empty(&c->sendq);
}

/*
 * Set the source of the messages of @c: @fi_addr in the AV, or FI_ADDR_UNSPEC.
 * Its next messages belong to group @group, 0 without groups.
 */
void tdm_conn_set_source(struct tdm_conn *c, fi_addr_t fi_addr, uint32_t group);

/*
 * Allocates a connection to @addr in state IDLE and looks up its address in the
 * AV. NULL: out of memory.
 */
struct tdm_conn *tdm_conn_new(struct tdm_tcp *tcp, const struct tdm_addr *addr);

void tdm_conn_set_state(struct tdm_conn *c, enum tdm_conn_state state);

/* Give @c the socket @s, connected or connecting. */
void tdm_conn_take(struct tdm_conn *c, struct tdm_sock s);

/* Close the socket of @c, if it has one, and drop what is to be sent. */
void tdm_conn_close_fd(struct tdm_conn *c);

enum {
	TDM_BACKOFF_MOST_MS = 1000,
	/* An attempt to connect that no kernel answers is repeated then. */
	TDM_CONNECT_LONG_MS = 2000,
};

/*
 * Let the timer of @c, which has c->setup, expire at its next attempt to connect:
 * after a random time, which grows with each attempt, up to TDM_BACKOFF_MOST_MS.
 * Without memory @c fails.
 */
void tdm_conn_back_off(struct tdm_conn *c);

/*
 * Watch the socket for @events (TDM_LOOP_*). If that fails, the next pass of
 * progress ends a connection with a session, after reading the bytes that have
 * arrived, and retries one without a session (tdm_conn_retry()).
 */
void tdm_conn_watch(struct tdm_conn *c, int events);

/*
 * Called when an attempt to connect has failed with @err (positive fi_errno):
 * waits for the back-off before the next one, or fails @c if the connect
 * time-out has passed.
 */
void tdm_conn_retry(struct tdm_conn *c, int err);

/*
 * End the connection: all its operations fail with @err, @prov. @c becomes DEAD
 * and is freed at a later pass. Does nothing when it is DEAD already.
 */
void tdm_conn_fail(struct tdm_conn *c, int err, int prov);

/* Free DEAD connections to which no unexpected message refers any more. */
void tdm_conn_reap(struct tdm_tcp *tcp);

/* Free @c with all it holds; no completion is written. */
void tdm_conn_free(struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_CONN_H */

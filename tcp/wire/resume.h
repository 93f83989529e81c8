/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session whose connection was lost goes on over a new one; resume.c. All
 * functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_RESUME_H
#define TDM_TCP_WIRE_RESUME_H

#include "tcp/wire/sock.h"

struct tdm_challenge;

/* Called when the session of @c begins: keeps what is sent from now on. */
void tdm_resume_ready(struct tdm_conn *c);

/*
 * Called when the connection of @c has ended with @err (positive fi_errno), and
 * its input was read to the end: @c becomes RESUMING, and connects again.
 * Returns not 0: the session cannot be resumed; nothing was changed.
 */
int tdm_resume_begin(struct tdm_conn *c, int err) tdm_must_check;

/* Called when the socket of @c, which is RESUMING, is ready. */
void tdm_resume_readable(struct tdm_conn *c);
void tdm_resume_writable(struct tdm_conn *c);

/* Called when the timer of @c, which is RESUMING, has expired. */
void tdm_resume_timer(struct tdm_conn *c);

/*
 * Called when somebody claims the address of @c, which is RESUMING, or after
 * tdm_conn_again(): does not wait for the next attempt, and gives up one whose socket
 * could not be watched (c->tx_err). @c may have failed afterwards.
 */
void tdm_resume_hurry(struct tdm_conn *c);

/*
 * Not 0 when the HELLO @g asks for the session that @c has, as acceptor: the
 * answer was lost, and the peer has never had that session.
 */
int tdm_resume_asked_again(const struct tdm_conn *c,
			   const struct tdm_wire_greeting *g);

/*
 * Called then: answer on @s with HELLO again, and repeat all that was sent.
 * Returns 0: @s is taken; or -1.
 */
int tdm_resume_greet_again(struct tdm_conn *c, struct tdm_sock s);

/* As tdm_admit_guest(), for the RESUME @g. */
int tdm_resume_guest(struct tdm_tcp *tcp, struct tdm_sock s,
		     const struct tdm_addr *from, struct tdm_wire_greeting *g);

/*
 * With keys: called when a guest has proven with its RESUME @g that it knows
 * ch->key. Out: ch->answer without its proof, ch->credit. Returns 0: send that;
 * else as tdm_admit_guest().
 */
int tdm_resume_challenge(struct tdm_tcp *tcp, int fd,
			 const struct tdm_addr *from,
			 struct tdm_wire_greeting *g, struct tdm_challenge *ch);

/* Called when the guest has proven it again. Returns 0: @s is taken; or -1. */
int tdm_resume_proven(struct tdm_tcp *tcp, struct tdm_sock s,
		      const struct tdm_wire_greeting *g,
		      const struct tdm_challenge *ch);

#endif /* TDM_TCP_WIRE_RESUME_H */

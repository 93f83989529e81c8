/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop of one domain. An epoll set has the watched descriptors;
 * libevent (included by loop.c only) watches that set, and timers. One *hot*
 * socket, the busiest, is polled directly. Sleepers sleep on the same set.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_LOOP_H
#define TDM_TCP_WIRE_LOOP_H

#include <stdint.h>

#include "base/base.h"
#include "base/list.h"

struct tdm_conn;
struct tdm_loop;
struct event;

enum { TDM_LOOP_READ = 1, TDM_LOOP_WRITE = 2 };

enum { TDM_STAGE_BYTES = 64 << 10 };

/* A watched descriptor, embedded in its user. Zeroed means not watched. */
struct tdm_loop_io {
	int fd;
	uint8_t events; /* TDM_LOOP_* asked for; 0: not watched */
	uint8_t in_set; /* events it has in the epoll set */
	uint8_t lazy;	/* a listener: may be polled less often */
	void (*ready)(struct tdm_loop_io *io, int events);
};

/* A one-shot timer, embedded in its user. Zeroed means not armed. */
struct tdm_loop_timer {
	struct event *ev;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: not armed */
	struct tdm_list node; /* armed ones; the loop's */
	void (*fired)(struct tdm_loop_timer *timer);
};

/*
 * The staging buffer, for bytes read from any socket of the loop that cannot be
 * read to their place directly. rx.c fills and empties it.
 */
struct tdm_stage {
	/* the connection whose bytes wait here for memory; or NULL */
	struct tdm_conn *stalled;
	uint32_t at, end; /* these bytes */
	uint8_t bytes[TDM_STAGE_BYTES];
};

/* Out: *@loop. Errors: -FI_ENOMEM; the cause is logged. */
int tdm_loop_open(struct tdm_loop **loop) tdm_must_check;

/* No io may be watched and no timer armed any more. NULL is fine. */
void tdm_loop_close(struct tdm_loop *loop);

/* The staging buffer of @loop, which owns it. */
struct tdm_stage *tdm_loop_stage(struct tdm_loop *loop);

/*
 * Watch io->fd for @events (0 stops). io->fd, io->lazy and io->ready are set
 * by the caller before the first call; io->fd may be closed after stopping.
 * Errors: -FI_ENOMEM, the descriptor is then watched as before.
 */
int tdm_loop_watch(struct tdm_loop *loop, struct tdm_loop_io *io, int events);

/*
 * Arm for @ms from now, replacing an earlier arming. timer->fired is set by
 * the caller and runs once, from tdm_loop_progress(). Errors: -FI_ENOMEM.
 */
int tdm_loop_timer_arm(struct tdm_loop *loop, struct tdm_loop_timer *timer,
		       unsigned ms);
void tdm_loop_timer_disarm(struct tdm_loop_timer *timer);

/*
 * Make @io hot: poll it directly in each progress call by io->ready(io,
 * TDM_LOOP_READ), and not because the set says that it is readable. No effect
 * while another socket is hot and busy. A hot socket that stays idle becomes
 * cold by itself. NULL: no socket is hot.
 */
void tdm_loop_heat(struct tdm_loop *loop, struct tdm_loop_io *io);

/* io->ready found data: the hot socket stays hot. */
void tdm_loop_active(struct tdm_loop *loop, struct tdm_loop_io *io);

/*
 * io->ready cannot read now: end the pass after it. Other ready sockets wait for
 * the next pass.
 */
void tdm_loop_end(struct tdm_loop *loop);

/*
 * One progress pass: polls the hot socket each time, the others when due.
 * @only_tcp not 0: only TCP has traffic, so the cold sockets are due at nearly
 * every call; 0: every 20 us at most.
 */
void tdm_loop_progress(struct tdm_loop *loop, int only_tcp);

/*
 * The epoll set, to sleep on. The first call adds what wakes sleepers. Errors:
 * -errno.
 */
int tdm_loop_wait_fd(struct tdm_loop *loop);

/*
 * Let a foreign descriptor (a peer provider's) wake sleepers as well. @loop is
 * a struct tdm_loop. Errors: -errno.
 */
int tdm_loop_wait_add(void *loop, int fd);
void tdm_loop_wait_del(void *loop, int fd);

/*
 * Make tdm_loop_wait_fd() readable until the next tdm_loop_arm(), because work
 * was left to the next pass.
 */
void tdm_loop_wake(struct tdm_loop *loop);

/*
 * Returns 0 when it is safe to sleep on tdm_loop_wait_fd(), else -FI_EAGAIN.
 * The pass after an arm() polls all sockets.
 */
int tdm_loop_arm(struct tdm_loop *loop);

#endif /* TDM_TCP_WIRE_LOOP_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop of one domain: listeners, cold sockets and timers are
 * libevent's (only loop.c includes it); one hot socket is polled directly.
 * A private epoll set mirrors all watched descriptors, made when somebody
 * wants to sleep and not before.
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
	uint8_t events;	       /* TDM_LOOP_* asked for; 0: not watched */
	uint8_t mirrored;      /* the events the private epoll set knows */
	uint8_t lazy;	       /* a listener: may be looked at less often */
	struct event *read_ev; /* libevent's, owned by the loop */
	struct event *write_ev;
	struct tdm_loop *loop;
	struct tdm_list node; /* watched ones; the loop's */
	void (*ready)(struct tdm_loop_io *io, int events);
};

/* A one-shot timer, embedded in its user. Zeroed means not armed. */
struct tdm_loop_timer {
	struct event *ev;
	struct tdm_loop *loop;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: not armed */
	struct tdm_list node; /* armed ones; the loop's */
	void (*fired)(struct tdm_loop_timer *timer);
};

/*
 * The staging buffer: what is read from any socket of the loop and does not go
 * to its place directly. rx.c fills it and handles what is in it.
 */
struct tdm_stage {
	struct tdm_conn *stalled; /* bytes of it wait for memory; or NULL */
	uint32_t at, end;	  /* these bytes */
	uint8_t bytes[TDM_STAGE_BYTES];
};

/* Out: *@loop. Errors: -FI_ENOMEM; the cause is logged. */
int tdm_loop_open(struct tdm_loop **loop) tdm_must_check;

/* Nothing may be watched or armed any more. NULL is fine. */
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
 * Poll @io directly at each progress call from now on: while hot, libevent
 * does not watch its readability and io->ready(io, TDM_LOOP_READ) is called
 * instead. No effect when another socket is hot and busy. The hot socket
 * cools down by itself when it stays idle. NULL: no socket is hot.
 */
void tdm_loop_heat(struct tdm_loop *loop, struct tdm_loop_io *io);

/* io->ready found data: the hot socket stays hot. */
void tdm_loop_active(struct tdm_loop *loop, struct tdm_loop_io *io);

/*
 * io->ready leaves its descriptor readable on purpose: the pass ends after it,
 * which would call it again and again. What else is ready keeps until the next.
 */
void tdm_loop_end(struct tdm_loop *loop);

/*
 * One progress pass: the hot socket each time, all else when it is due.
 * @only_tcp not 0: nothing but TCP has traffic, so the cold sockets are due
 * at nearly every call; 0: every 20 us at most.
 */
void tdm_loop_progress(struct tdm_loop *loop, int only_tcp);

/* The private epoll set, made at the first call; -errno. */
int tdm_loop_wait_fd(struct tdm_loop *loop);

/*
 * Let a foreign descriptor (a peer's) wake sleepers as well. @loop is a
 * struct tdm_loop. Errors: -errno.
 */
int tdm_loop_wait_add(void *loop, int fd);
void tdm_loop_wait_del(void *loop, int fd);

/*
 * Make tdm_loop_wait_fd() readable until the next tdm_loop_arm(): something
 * was left to the next pass, or to the look before the next sleep.
 */
void tdm_loop_wake(struct tdm_loop *loop);

/*
 * 0 when it is safe to sleep on tdm_loop_wait_fd(), else -FI_EAGAIN. The pass
 * after an arm() looks at all sockets.
 */
int tdm_loop_arm(struct tdm_loop *loop);

#endif /* TDM_TCP_WIRE_LOOP_H */

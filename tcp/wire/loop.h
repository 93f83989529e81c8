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
	uint8_t events; /* TDM_LOOP_* that the user asked for; 0: not watched */
	uint8_t in_set; /* events it has in the epoll set */
	uint8_t lazy;	/* a listener: may be polled less often */
	void (*ready)(struct tdm_loop_io *io, int events);
};

/* A one-shot timer, embedded in its user. Zeroed means not armed. */
struct tdm_loop_timer {
	struct event *ev;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: not armed */
	struct tdm_list node; /* node in the loop's list of armed timers */
	void (*fired)(struct tdm_loop_timer *timer);
	/* 1: does not wake sleepers: it expires in the pass after that */
	uint8_t lazy;
};

/*
 * The staging buffer, for bytes read from any socket of the loop that cannot be
 * read to their place directly. rx.c fills and empties it.
 */
struct tdm_stage {
	/* the connection whose bytes wait here for memory; or NULL */
	struct tdm_conn *stalled;
	uint64_t since_ns; /* since when a record has waited for memory; 0: none waits */
	uint32_t at, end; /* where these bytes are in bytes[] */
	uint8_t bytes[TDM_STAGE_BYTES];
};

/*
 * Open an event loop. Out: *@loop. Errors: -FI_ENOMEM, and -errno of
 * epoll_create1(2) and epoll_ctl(2), which TCP cannot do without; logged.
 */
int tdm_loop_open(struct tdm_loop **loop) tdm_must_check;

/*
 * Close @loop, which may be NULL. No io may be watched and no timer armed any
 * more.
 */
void tdm_loop_close(struct tdm_loop *loop);

/* Returns the staging buffer of @loop, which owns it. */
struct tdm_stage *tdm_loop_stage(struct tdm_loop *loop);

/*
 * Watch io->fd for @events (0: stop watching). The caller sets io->fd, io->lazy
 * and io->ready before the first call; after stopping it may close io->fd.
 * Errors: -FI_ENOMEM; the descriptor is then watched as before.
 */
int tdm_loop_watch(struct tdm_loop *loop, struct tdm_loop_io *io, int events);

/*
 * Let @timer expire @ms from now; an earlier time is replaced. timer->fired,
 * which the caller has set, is called once, from tdm_loop_progress(). Errors:
 * -FI_ENOMEM.
 */
int tdm_loop_timer_arm(struct tdm_loop *loop, struct tdm_loop_timer *timer,
		       unsigned ms);
void tdm_loop_timer_disarm(struct tdm_loop_timer *timer);

/*
 * Make @io hot: poll it directly in progress calls by io->ready(io,
 * TDM_LOOP_READ), the less often the longer it is silent, and not because the set
 * says that it is readable. No effect
 * while another socket is hot and busy. A hot socket that stays idle becomes
 * cold by itself. NULL: no socket is hot.
 */
void tdm_loop_heat(struct tdm_loop *loop, struct tdm_loop_io *io);

/*
 * Called by io->ready() of the hot socket when it has found data: the socket
 * stays hot.
 */
void tdm_loop_active(struct tdm_loop *loop, struct tdm_loop_io *io);

/*
 * Called by io->ready() when it cannot read now: the pass ends after it, and
 * other ready sockets wait for the next pass.
 */
void tdm_loop_end(struct tdm_loop *loop);

/*
 * One progress pass: polls the hot socket and the others when due (due.h).
 * @only_tcp 0: there is other traffic, and the cold sockets are due every 20 us, or
 * every 200 us if all are listeners.
 */
void tdm_loop_progress(struct tdm_loop *loop, int only_tcp);

/*
 * Returns the epoll set, on which to sleep. The first call adds the descriptors
 * that wake sleepers. Errors: -errno.
 */
int tdm_loop_wait_fd(struct tdm_loop *loop);

/*
 * add: let a descriptor of others (of a peer provider) wake sleepers too; del:
 * end that. @loop is a struct tdm_loop. Errors: -errno.
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

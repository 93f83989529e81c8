/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop of one domain: listeners, cold sockets and timers are
 * libevent's (only loop.c includes it); one hot socket is polled directly.
 * A private epoll set mirrors all watched descriptors, made when somebody
 * wants to sleep and not before.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_LOOP_H
#define TDM_TCP_LOOP_H

#include <stdint.h>

#include "tdm_base.h"

struct tdm_loop;
struct event;

enum { TDM_LOOP_READ = 1, TDM_LOOP_WRITE = 2 };

/* A watched descriptor, embedded in its user. Zeroed means not watched. */
struct tdm_loop_io {
	int fd;
	int events;		/* TDM_LOOP_* asked for; 0: not watched */
	struct event *read_ev;	/* libevent's, owned by the loop */
	struct event *write_ev;
	struct tdm_loop *loop;
	void (*ready)(struct tdm_loop_io *io, int events);
};

/* A one-shot timer, embedded in its user. Zeroed means not armed. */
struct tdm_loop_timer {
	struct event *ev;
	struct tdm_loop *loop;
	uint64_t deadline_ns; /* 0: not armed */
	struct tdm_loop_timer *next;
	void (*fired)(struct tdm_loop_timer *timer);
};

int tdm_loop_open(struct tdm_loop **loop) tdm_must_check;
void tdm_loop_close(struct tdm_loop *loop);

/*
 * Watch io->fd for @events (0 stops). io->fd and io->ready are set by the
 * caller before the first call. Errors: -FI_ENOMEM.
 */
int tdm_loop_watch(struct tdm_loop *loop, struct tdm_loop_io *io, int events);

/* Arm for @ms from now, replacing an earlier arming; disarm. */
int tdm_loop_timer_arm(struct tdm_loop *loop, struct tdm_loop_timer *timer,
		       unsigned ms);
void tdm_loop_timer_disarm(struct tdm_loop_timer *timer);

/*
 * The socket to poll directly at each progress call, or NULL for none. While
 * hot, libevent does not watch its readability; io->ready(io, TDM_LOOP_READ)
 * is called at each progress call instead. The hot socket cools down by
 * itself when it stays idle.
 */
void tdm_loop_heat(struct tdm_loop *loop, struct tdm_loop_io *io);

/* io->ready found data: the hot socket stays hot. */
void tdm_loop_active(struct tdm_loop *loop);

/*
 * One progress pass: the hot socket each time; all else when it is due. @idle
 * not 0: nothing but TCP has traffic, look at the cold sockets now.
 */
void tdm_loop_progress(struct tdm_loop *loop, int only_tcp);

/* The private epoll set, made at the first call; -errno. */
int tdm_loop_wait_fd(struct tdm_loop *loop);

/* Let a foreign descriptor (a peer's) wake sleepers as well. */
int tdm_loop_wait_add(void *loop, int fd);
void tdm_loop_wait_del(void *loop, int fd);

/* 0 when it is safe to sleep on tdm_loop_wait_fd(), else -FI_EAGAIN. */
int tdm_loop_arm(struct tdm_loop *loop);

#endif /* TDM_TCP_LOOP_H */

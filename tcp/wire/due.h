/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a pass of an event loop polls which sockets: the hot one, and the cold ones of
 * the epoll set. An application that spins calls for a pass in much less time than a
 * system call takes, so most passes make none.
 *
 * All functions: domain lock held. They read the clock, and make no system call.
 */
#ifndef TDM_TCP_WIRE_DUE_H
#define TDM_TCP_WIRE_DUE_H

#include <stdint.h>

/* Of one event loop. All 0: nothing has been polled yet. */
struct tdm_due {
	uint64_t hot_idle_ns; /* when the hot socket was first found silent */
	uint64_t hot_look_ns; /* last poll of it since then; 0: none */
	uint64_t looked_ns;   /* last poll of the cold sockets */
	uint64_t read_ns;  /* last reading of the clock without a hot socket */
	uint64_t quiet_ns; /* the first of them that came after `quiet` was 0 */
	unsigned hot_misses; /* polls of the hot socket since it had data */
	unsigned hot_polls;  /* all polls of hot sockets */
	unsigned passes;
	int all;   /* 1: the next pass polls all sockets */
	int quiet; /* 1: the last poll of the cold sockets found none ready */
	int spins; /* such readings that followed each other closely */
	/* beside other traffic one pass of 1 << skips reads the clock */
	unsigned skips;
	/* 1: what is polled in this pass has its longest gap: tdm_due_polled() */
	int hot_full, cold_full;
};

enum tdm_due_hot {
	TDM_DUE_NOT,	  /* do not poll it in this pass */
	TDM_DUE_HOT,	  /* poll it */
	TDM_DUE_HOT_COLD, /* and, with nothing but TCP in use, the cold ones too */
	TDM_DUE_COOL,	  /* it has been silent for long: make it cold */
};

/*
 * Says what to do with the hot socket in this pass, and counts the poll. A caller that
 * finds data sets hot_misses to 0.
 *
 * The time from one poll of a silent socket to the next is a sixteenth of the silence, up
 * to 1.5 us: on average, data are late by a thirty-second of the time that they were
 * waited for. Beside a hot socket, each fourth poll of it polls the cold ones. While none
 * is hot, they have a gap of their own, up to 5 us, or 10 us if all are listeners; and up to
 * 20 us, or 200 us, beside traffic that is not TCP.
 */
enum tdm_due_hot tdm_due_hot(struct tdm_due *due);

/* Returns not 0 when the hot socket has had data lately: no other takes its place. */
int tdm_due_hot_busy(const struct tdm_due *due);

/*
 * Returns not 0 when this pass polls the cold sockets and the timers. Called once in each
 * pass, after tdm_due_hot(). @hot: what that has returned, or TDM_DUE_COOL: no socket is
 * hot. @only_tcp: nothing but TCP is in use. @eager: not only listeners are watched.
 */
int tdm_due_cold(struct tdm_due *due, enum tdm_due_hot hot, int only_tcp,
		 int eager);

/*
 * Called after the polls of a pass. A gap of full length begins when its poll has ended:
 * where system calls take as long as the gap, each pass would make one otherwise.
 */
void tdm_due_polled(struct tdm_due *due);

#endif /* TDM_TCP_WIRE_DUE_H */

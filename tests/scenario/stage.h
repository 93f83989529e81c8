/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where scenarios are played: endpoints, regions, a whole play.
 */
#ifndef TDT_STAGE_H
#define TDT_STAGE_H

#include "play.h"
#include "tests/harness/holdings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Read the parameters: before tdm_env is changed. Once is enough. */
void tdt_play_begin(void);

/*
 * Open the endpoints of @play->scenario; they know each other. @play is zeroed
 * but for scenario, tier, seed, err, invisible, lenient, two, side, fd. Errors:
 * of the call that failed; nothing is left open then.
 */
int tdt_play_open(struct tdt_play *play);

/* Close all; problems are told as of the others. */
void tdt_play_close(struct tdt_play *play);

/*
 * One more endpoint, in a domain of its own, opened with @attr: the next number.
 * Returns 0 or the error of the call that failed, which is told like that of an
 * operation.
 */
int tdt_play_more(struct tdt_play *play, const struct tdt_attr *attr);
void tdt_play_close_more(struct tdt_play *play);

/* The attributes with which @play->w was, or will be, opened. */
void tdt_play_attr(const struct tdt_play *play, struct tdt_attr *attr);

/* Endpoint @i; NULL: the other process has it. */
struct tdt_ep *tdt_play_ep(struct tdt_play *play, size_t i);

/* Insert the name of endpoint @to at @from. 0, or an error that was told. */
int tdt_play_know(struct tdt_play *play, size_t from, size_t to);

/*
 * Register memory of endpoint @ep, TDT_PLAY_REGION bytes filled with @ep, by
 * the key tdt_play_key(). Returns 0, or an error that was told.
 */
int tdt_play_expose(struct tdt_play *play, size_t ep);
int tdt_play_hide(struct tdt_play *play, size_t ep);
uint64_t tdt_play_key(size_t ep);

/* Callbacks in the course of a play. */
struct tdt_play_hooks {
	void (*calm)(void);    /* nothing strikes from now on */
	void (*closing)(void); /* all is about to be closed */
};

/*
 * Open, run, be calm, see that messages pass again, close. Returns
 * play->problem.
 */
const char *tdt_play_whole(struct tdt_play *play,
			   const struct tdt_play_hooks *hooks);

#ifdef __cplusplus
}
#endif

#endif /* TDT_STAGE_H */

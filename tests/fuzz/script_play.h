/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A script while it is played: shared by script.c, script_pass.c (passes and what
 * they complete) and script_steps.c (what each kind of step calls).
 *
 * Which receive takes which message of one source does not depend on when a message
 * comes: both sides are served in order, so the first receive that some message
 * matches gets the first message that matches it, whoever was there first. What does
 * depend on it, a peek or a cancel, is preceded by tdt_script_rest(). A one-sided or
 * atomic operation is waited for, so that memory has one outcome.
 */
#ifndef TDT_SCRIPT_PLAY_H
#define TDT_SCRIPT_PLAY_H

#include "tests/fuzz/script.h"
#include "tests/harness/drive.h"

enum {
	PLAYERS = 2,
	KINDS = 8, /* of steps; the last one is a pass */
	REGION_BYTES = 64 * 1024,
	OFFSET_BYTES = 256, /* a step's offset counts these */
	SELF_TAG_BIT = 4,   /* of messages to oneself */
	REST_TAG_BIT = 62,
	ANY_TAG = 255, /* mask of what steps use */
	TYPES = 20,    /* of data, some of which are none; and operations */
	OPS = 24,
	ATOMS = 8,	 /* elements of the operands of an atomic operation */
	ATOM_BYTES = 32, /* of the largest type: FI_LONG_DOUBLE_COMPLEX */
};

/* The step's members, as the bytes come. */
struct step {
	uint8_t what;
	uint8_t how;  /* endpoint, tagged, call, pieces */
	uint8_t tag;  /* tag and mask */
	uint8_t size; /* which of sizes[] */
	uint8_t peer; /* whom, or nobody known */
	uint8_t flags;
	uint8_t at; /* offset in a region; which key */
	uint8_t arg;
};

/* A step that was played: its operation has @context. */
struct deed {
	struct fi_context2 context;
	struct tdt_ep *ep;
	uint8_t *buf; /* @size bytes */
	size_t size;
	int open;    /* 1: an end is to come */
	int receive; /* 1: can be canceled */
	int multi;   /* 1: FI_MULTI_RECV, has several completions */
};

struct play {
	struct tdt_world *w;
	struct tdt_script_end *end;
	struct deed deeds[SCRIPT_STEPS];
	size_t count;
	uint8_t *region[PLAYERS];
	struct fid_mr *mr[PLAYERS], *read_only[PLAYERS];
	const char *broken;
};

/* The first promise that was broken is kept: @what, a static text. */
void tdt_script_broke(struct play *p, const char *what);

/* Make a pass, and give each completion to its deed. */
void tdt_script_pass(struct play *p);

/* Make passes until @d has ended. */
void tdt_script_await(struct play *p, const struct deed *d);

/*
 * Returns not 0, after a pass, when @ret says that a call may be repeated. @end: the
 * time of tdt_now_ms() from which on that is a broken promise.
 */
int tdt_script_again(struct play *p, ssize_t ret, uint64_t end);

/*
 * Two messages from each player to each, of a tag that no step uses, behind all that
 * was sent: when they are there, so is all else, and answers have come back.
 */
void tdt_script_rest(struct play *p);

/*
 * The kinds of steps. Each makes the calls that @s says for @d, which is the last
 * one of @p and has its endpoint, and returns what the call returned.
 */
ssize_t tdt_script_send(struct play *p, struct deed *d, const struct step *s);
ssize_t tdt_script_receive(struct play *p, struct deed *d,
			   const struct step *s);
/* Look for a message, and take, drop or leave it. */
ssize_t tdt_script_peek(struct play *p, struct deed *d, const struct step *s);
/* Cancel a receive, or something else that is nothing to be canceled. */
ssize_t tdt_script_cancel(struct play *p, struct deed *d, const struct step *s);
ssize_t tdt_script_rma(struct play *p, struct deed *d, const struct step *s);
ssize_t tdt_script_atomic(struct play *p, struct deed *d, const struct step *s);

static inline struct tdt_deed_end *tdt_script_end_of(struct play *p,
						     const struct deed *d)
{
	return &p->end->deeds[d - p->deeds];
}

#endif /* TDT_SCRIPT_PLAY_H */

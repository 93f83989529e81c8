/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios: what applications do, each a seeded C function, and a ledger that
 * judges it while calls fail, memory is short or a process is killed.
 *
 * A scenario is one script for both sides. It names endpoints by number; what
 * an endpoint does, the process does that has it: this one, or in two processes
 * the one whose side it is. The ledger has a line, a move, for each operation,
 * with the same number in both processes.
 *
 * What the ledger asks for: each operation ends once; one that was not refused
 * and whose message arrived has the right bytes; a send that succeeded was
 * received; an error is one that fi_tandem(7), FAULTS, allows after what struck;
 * no operation fails before something struck, and none at all if what struck
 * is to be invisible.
 *
 * Locking: none. Calls are made by one thread.
 */
#ifndef TDT_PLAY_H
#define TDT_PLAY_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/child.h"
#include "tests/harness/drive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TDT_PLAY_MOVES = 256,
	TDT_PLAY_BYTES = 8 << 20, /* room for the buffers of a scenario */
	TDT_PLAY_EPS = 4,
	TDT_PLAY_REGION = 64 << 10, /* bytes of an endpoint's memory region */
};

enum tdt_tier { TDT_TIER_SHM, TDT_TIER_TCP };

/* Of a scenario. */
enum {
	TDT_BOTH_TIERS = 1 << 0, /* else shared memory alone, or */
	TDT_OVER_TCP = 1 << 1,	 /* TCP alone */
	TDT_TWO = 1 << 2,	 /* also with its endpoints in two processes */
	TDT_TWO_ALONE = 1 << 3,	 /* with them in two processes alone */
};

struct tdt_play;

struct tdt_scenario {
	const char *name;
	void (*run)(struct tdt_play *play);
	void (*set)(struct tdt_attr *attr); /* NULL: the defaults */
	unsigned flags;
};

/* All of them; the last has no name. */
extern const struct tdt_scenario tdt_scenarios[];

enum tdt_move_kind { TDT_MOVE_SEND, TDT_MOVE_INJECT, TDT_MOVE_RECV };

struct tdt_move {
	enum tdt_move_kind kind; /* SEND: all that is not a receive */
	size_t ep;
	int pair; /* the move at the other end, or -1 */
	unsigned char *buf;
	size_t len;
	uint32_t seed; /* of the content of a send */
	int posted, ended, err, cancelled;
	int expect; /* the error it has to end with */
	int may;    /* an error it may end with besides */
	int untagged;
	int refused; /* the call has failed: the scenario notes it */
	int multi;   /* a buffer for the messages of the moves that follow */
	int got;     /* messages in it */
	struct tdt_comp comp;
};

struct tdt_play {
	const struct tdt_scenario *scenario;
	enum tdt_tier tier;
	uint64_t seed;
	uint64_t random; /* state, from the seed */
	int err;	 /* the error that a call is made to give, or 0 */
	int invisible;	 /* no operation may fail of it */
	int lenient;	 /* something may strike at any time */
	int two;	 /* the other side is the process at the end of fd */
	size_t side;
	int fd;
	int alone; /* that process has gone */

	struct tdt_world *w, *more; /* more: tdt_play_more() */
	fi_addr_t addr[TDT_PLAY_EPS][TDT_PLAY_EPS];
	struct fid_mr *mr[TDT_PLAY_EPS];
	unsigned char *region[TDT_PLAY_EPS];
	struct tdt_move moves[TDT_PLAY_MOVES];
	int count;
	uint64_t tag;	       /* of the last tdt_play_pass() */
	unsigned lost_injects; /* errors of injected messages */
	unsigned lost;	       /* sent, and lost with a connection that broke */
	size_t used;	       /* of the room for buffers */
	/* not NULL: takes completions that are not of moves; 0: it does not */
	int (*other)(struct tdt_play *play, const struct tdt_ep *ep,
		     const struct tdt_comp *comp);
	char problem[512]; /* the first thing that was wrong, or "" */
};

/* Note that something is wrong; the first time counts. Takes a printf format. */
void tdt_play_wrong(struct tdt_play *play, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Has anything struck since the play began? */
int tdt_play_struck(const struct tdt_play *play);

/* May a call or an operation fail with @err, positive, now? */
int tdt_play_may_fail(const struct tdt_play *play, int err);

/* Is @ret, the result of the call @what, 0 or an error that may be? Returns it. */
int tdt_play_try(struct tdt_play *play, const char *what, int ret);

/* A number below @below from the seed. */
uint64_t tdt_play_random(struct tdt_play *play, uint64_t below);

/* Memory until the next tdt_play_open(); never NULL. */
unsigned char *tdt_play_room(struct tdt_play *play, size_t len);

/*
 * A line of the ledger for an operation of endpoint @ep. The caller posts it, if
 * the endpoint is here, with the line as its context, by tdt_play_post(), which
 * repeats @call while that gives -FI_EAGAIN.
 */
struct tdt_move *tdt_play_move(struct tdt_play *play, enum tdt_move_kind kind,
			       size_t ep, size_t len);
typedef ssize_t (*tdt_play_call)(struct tdt_play *play, struct tdt_move *move,
				 void *arg);
void tdt_play_post(struct tdt_play *play, struct tdt_move *move,
		   tdt_play_call call, void *arg);

/*
 * Post @op at endpoint @ep, a send to or a receive from endpoint @other
 * (TDT_PLAY_EPS: any). Members buf, addr and context of @op are filled in; a
 * @pair other than NULL is the move at the other end.
 */
struct tdt_move *tdt_play_op(struct tdt_play *play, size_t ep, size_t other,
			     struct tdt_op *op, struct tdt_move *pair);

/* The same, in the line @move, which has ended, and with its context. */
void tdt_play_again(struct tdt_play *play, struct tdt_move *move,
		    struct tdt_op *op, struct tdt_move *pair);

/* A message of @len bytes: the receive, then the send. Returns the receive. */
struct tdt_move *tdt_play_pass(struct tdt_play *play, size_t from, size_t to,
			       size_t len, int tagged);

/* One pass of progress; completions are entered in the ledger. */
void tdt_play_turn(struct tdt_play *play);

/* Progress until @cond; a problem, and not 0, if the deadline is over. */
int tdt_play_until(struct tdt_play *play,
		   int (*cond)(struct tdt_play *, void *), void *arg,
		   const char *what);

/* Progress until the other process gets here too. */
void tdt_play_meet(struct tdt_play *play);

/* Progress until all moves have ended; judge them; an empty ledger. */
void tdt_play_wait(struct tdt_play *play);

/* Judge what has ended, cancel the rest and forget it. */
void tdt_play_drop(struct tdt_play *play);

#ifdef __cplusplus
}
#endif

#endif /* TDT_PLAY_H */

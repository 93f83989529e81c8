/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A play in the room of sim.h: two to six addresses, at each of which endpoints of
 * the real code live one after the other, traffic between them, and faults, all
 * drawn from a seed; and a ledger that judges what they see.
 *
 * Locking: none, one thread.
 */
#ifndef TDS_SIM_PLAY_H
#define TDS_SIM_PLAY_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "sim.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TDS_PLACES = 6,
	TDS_EPS = 16,	/* of one play, the dead included */
	TDS_OPS = 4096, /* of one play */
	TDS_CELLS = 4,	/* of each initiator, in each region */
	TDS_CELL_BYTES = 256,
	TDS_ARENA_BYTES = 256 << 20,
};

/* What happened to a pair, bits. */
enum tds_harm {
	TDS_HARM_RESET = 1 << 0,   /* its connection was broken */
	TDS_HARM_ENDED = 1 << 1,   /* one of the endpoints has ended */
	TDS_HARM_SILENT = 1 << 2,  /* a partition between their hosts */
	TDS_HARM_REMOVED = 1 << 3, /* the address was removed */
	TDS_HARM_YOUNG = 1 << 4,   /* broken before both sides had greeted */
	/* with TDS_HARM_RESET: it will break, when the changed bit is read */
	TDS_HARM_LATER = 1 << 5,
	TDS_HARM_STOPPED = 1 << 6, /* for longer than the connect time-out */
	/* an attempt to reach a dead process may meet its heir */
	TDS_HARM_HEIR = 1 << 7,
};

enum tds_op_kind {
	TDS_OP_SEND,
	TDS_OP_INJECT,
	TDS_OP_RECV,
	TDS_OP_MULTI, /* a receive with FI_MULTI_RECV */
	TDS_OP_WRITE,
	TDS_OP_READ,
	TDS_OP_ADD, /* fetching atomic */
};

/* Classes of messages within which order holds. */
enum { TDS_CLASSES = 3 }; /* without a tag, and two tags */

struct tds_op {
	struct fi_context2 room;
	enum tds_op_kind kind;
	int ep;	   /* index of the endpoint that posted it */
	int place; /* the peer's; receives: -1 for any */
	int cls;
	unsigned char *buf;
	size_t len;
	uint32_t seq; /* sends: in class and pair; receives: in the order posted */
	int cell;     /* one-sided */
	unsigned epoch; /* one-sided: lives at the place when posted */
	int posted, ended, err, cancelled;
	uint64_t step; /* when it was posted */
	/* sends: */
	int got, got_by;
	uint64_t got_at; /* order of its receive, and offset in that */
	int final;
};

struct tds_cell {
	int known, busy;
	uint32_t fill; /* of a block: seed of its bytes */
	uint64_t sum;  /* of a counter */
};

struct tds_ep {
	int place, life; /* the n-th at its place */
	struct tds_proc *proc;
	int alive;
	uint64_t pause_begin;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	unsigned char *region;
	fi_addr_t addr[TDS_PLACES];
	unsigned harm[TDS_PLACES];
	uint64_t reset_step[TDS_PLACES];	/* of the last reset */
	uint32_t sent[TDS_PLACES][TDS_CLASSES]; /* sequence numbers */
	uint32_t receives;			/* of all classes */
	int open_any[TDS_CLASSES], open_directed[TDS_PLACES];
	int outstanding;
	int failed_injects; /* errors without a context */
	struct tds_cell cell[TDS_PLACES][TDS_CELLS];
};

struct tds_play {
	uint64_t seed;
	int places, eps;
	int host[TDS_PLACES], now_at[TDS_PLACES]; /* endpoint, or -1 */
	unsigned life[TDS_PLACES];
	struct tds_ep ep[TDS_EPS];
	int ops;
	size_t used;	      /* of the arena */
	unsigned char *spare; /* buffers of receives that have ended, a list */
	int budget;	      /* operations that are still to be posted */
	size_t longest;
	unsigned fault_rate, fault_kinds;
	int quiet;	       /* faults have ended */
	int idle;	       /* steps without result */
	uint64_t due[TDS_EPS]; /* when a place restarts, by place; 0: never */
	uint64_t heal;	       /* when partitions end; 0: none */
	uint64_t steps;
	/* figures */
	uint64_t received, sent_ok, failed, lost, onesided, faults;
	char wrong[512];	   /* the first thing that was wrong, or "" */
	struct tds_op op[TDS_OPS]; /* the first ops of them are in use */
};

/* Play @seed. Returns "" or what was wrong. */
const char *tds_play(struct tds_play *p, uint64_t seed);

/* ---- sim_stage.c: endpoints ---------------------------------------------- */

/* Once, before the first play: libfabric's description of the provider. */
void tds_stage_begin(void);

/* What the provider keeps for the process is the same in each play. */
void tds_stage_reset(void);

/* Returns the living endpoint at @place, or NULL. */
struct tds_ep *tds_alive_at(struct tds_play *p, int place);

/* An endpoint at @place. Returns its index. */
int tds_ep_open(struct tds_play *p, int place);

/* fi_close() of all that it has. */
void tds_ep_close(struct tds_play *p, struct tds_ep *e);

void tds_ep_remove(struct tds_play *p, struct tds_ep *e, int place);

/* ---- sim_traffic.c: operations ------------------------------------------- */

/* Post one of those that are left, drawn at random, at @e. */
void tds_post_any(struct tds_play *p, struct tds_ep *e);

/* A receive from any source, or a message. Returns 0, or an error. */
int tds_post_recv(struct tds_play *p, struct tds_ep *e, int cls, int place);
int tds_post_send(struct tds_play *p, struct tds_ep *e, int place, int cls,
		  size_t len);
void tds_cancel(struct tds_play *p, struct tds_op *op);

/* Read the queue of @e. Returns the number of entries. */
int tds_poll(struct tds_play *p, struct tds_ep *e);

/* ---- sim_fault.c --------------------------------------------------------- */

void tds_fault_any(struct tds_play *p);
void tds_fault_due(struct tds_play *p); /* what ends by itself */
uint64_t tds_fault_next(struct tds_play *p);
void tds_fault_stop(struct tds_play *p); /* all end; places live again */

#ifdef __cplusplus
}
#endif

#endif /* TDS_SIM_PLAY_H */

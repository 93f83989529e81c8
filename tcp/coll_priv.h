/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of collective operations; included by coll*.c only. coll.h has what they
 * are.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_COLL_PRIV_H
#define TDM_TCP_COLL_PRIV_H

#include "coll/build.h"
#include "tcp/coll.h"
#include "tcp/root.h"
#include "tdm_op.h"

/* The part of an endpoint; made by its first join. */
struct tdm_coll {
	struct tdm_root *root;
	struct tdm_retry retry; /* domain->retry while there is work */
	struct tdm_list ready;	/* struct tdm_coll_op with work to do */
	struct tdm_list groups; /* struct tdm_group */
	struct tdm_list notes;	/* notes being sent */
	int urgent;		/* 1: the next pass must come before sleep */
	int closing;
};

/* A member, as another one sees it. */
struct tdm_member {
	fi_addr_t addr; /* its index */
	uint32_t id; /* of the group at this member; in tags of messages to it */
	int lost;    /* why it is gone, a positive fi_errno; or 0 */
	int told;    /* 1: the others have been told of it */
	struct tdm_group *group;
};

struct tdm_group {
	struct fid_mc fid;
	struct tdm_coll *coll; /* NULL: its endpoint has closed */
	struct tdm_list node;  /* coll->groups */
	uint32_t id;	       /* of the group here, unique in the domain */
	struct tdm_coll_map map;
	struct tdm_member *member; /* member[map.size] */
	uint32_t seq;		   /* of the next operation */
	struct tdm_list ops;	   /* struct tdm_coll_op, oldest first */
	int joined;		   /* 1: operations may be posted */
	/*
	 * From operation broken_seq on all end with this error, a positive
	 * fi_errno; or 0
	 */
	int broken;
	uint32_t broken_seq;
	uint32_t untold;  /* lost members that others have not been told of */
	uint64_t lost_ns; /* when the last of them was lost */
	uint64_t tag;	  /* hash of the members, for the tags of the join */
	uint64_t allowed; /* FI_BARRIER_SET and the like; 0: all */
	/* the receive for notes of other members, and its buffer */
	struct tdm_op noted;
	int listening; /* 1: it is posted */
	uint32_t note[4];
};

/* A transfer of the round under way. */
struct tdm_coll_xfer {
	struct tdm_op op;
	struct tdm_coll_op *owner;
	const struct tdm_coll_step *step;
	int active;
};

/* An operation from the call to its end. */
struct tdm_coll_op {
	struct tdm_list node;  /* group->ops */
	struct tdm_list ready; /* coll->ready, or unlinked */
	struct tdm_group *group;
	struct tdm_coll_plan plan;
	uint8_t *buf[TDM_COLL_BUFS];
	struct tdm_amo amo; /* of reductions */
	uint64_t flags;	    /* FI_COMPLETION */
	void *context;
	uint32_t seq;
	size_t at;     /* the step to be done next */
	size_t used;   /* elements of xfer[] that the round has used */
	size_t active; /* of them, transfers that have not ended */
	int busy;      /* 1: steps are being done */
	int err;       /* a positive fi_errno: it ends with it; or 0 */
	/*
	 * NULL, or called at the end in place of a completion: a join. Failures
	 * do not end it: what does not come is 0.
	 */
	void (*done)(struct tdm_coll_op *op);
	struct tdm_coll_xfer *xfer; /* xfer[plan.widest] */
};

enum {
	/* as many members as there are numbers of groups */
	TDM_COLL_MEMBERS_MOST = 0x7fffffff,
};

/* coll_run.c */

/*
 * Allocates an operation of @group without a plan, which is on no list. NULL:
 * out of memory.
 */
struct tdm_coll_op *tdm_coll_op_alloc(struct tdm_group *group);

/* Free @op, which has no transfers. */
void tdm_coll_op_free(struct tdm_coll_op *op);

/*
 * Make @op, whose plan is complete, ready to run: allocates what it needs.
 * Errors: -FI_ENOMEM.
 */
int tdm_coll_op_prepare(struct tdm_coll_op *op) tdm_must_check;

/* Begin @op; it may end, and be freed, in the call. */
void tdm_coll_op_start(struct tdm_coll_op *op);

/* Let @op end with @err as soon as its transfers have. */
void tdm_coll_op_fail(struct tdm_coll_op *op, int err);

/*
 * Let the next pass call @op, or look after the groups with NULL; no thread
 * sleeps before.
 */
void tdm_coll_wake(struct tdm_coll *coll, struct tdm_coll_op *op);

/* Let some later pass do so; a thread may sleep before. */
void tdm_coll_put_off(struct tdm_coll *coll, struct tdm_coll_op *op);

/* Do the work that is ready. */
void tdm_coll_pass(struct tdm_retry *retry);

/* Withdraw what @op has posted; its sends stay. */
void tdm_coll_op_unpost(struct tdm_coll_op *op);

/* coll_note.c */

/* Returns the number of the next operation of @group. */
uint32_t tdm_group_next(struct tdm_group *group);

/*
 * Called when @op has ended with an error: from the next operation on @group has
 * that error, and the other members are told of it.
 */
void tdm_group_break(struct tdm_group *group, const struct tdm_coll_op *op);

/*
 * Make sure that the loss of the member @rank will be noticed: calls it, if it
 * was never sent anything.
 */
void tdm_group_call(struct tdm_group *group, uint32_t rank);

/* Have the operations of all groups that wait for lost members end. */
void tdm_coll_mourn(struct tdm_coll *coll);

/* Returns the tag of messages of @op to the member @rank, or to this one. */
uint64_t tdm_coll_tag_to(const struct tdm_coll_op *op, uint32_t rank);
uint64_t tdm_coll_tag_here(const struct tdm_coll_op *op);

/* Returns the member of @group at index @addr, or NULL. */
struct tdm_member *tdm_group_member(struct tdm_group *group, fi_addr_t addr);

/*
 * hear: post the receive for notes to @group, once it is joined; silence: withdraw
 * it. Returns 0, or -FI_EAGAIN: a note is being written. noted: its end().
 */
void tdm_group_hear(struct tdm_group *group);
int tdm_group_silence(struct tdm_group *group);
void tdm_group_noted(struct tdm_op *op, const struct tdm_end *end);

/* Free the notes that are being sent; the transports are closed. */
void tdm_coll_notes_free(struct tdm_coll *coll);

/* coll_group.c */

/* Returns the group of @root with the address @addr, or NULL. */
struct tdm_group *tdm_coll_group_at(const struct tdm_root *root,
				    fi_addr_t addr);

/*
 * coll_run.c: returns where receives of @root are posted, or NULL: it has no
 * receive side.
 */
struct tdm_srx *tdm_coll_srx(struct tdm_root *root);

#endif /* TDM_TCP_COLL_PRIV_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred operations, which wait for a counter, fi_trigger(3): those posted
 * with FI_TRIGGER, and the deferred work of a domain (work.c), some of which
 * only changes a counter.
 *
 *   WAITING at its counter (peer/trigger.h)
 *   DUE the threshold was reached; on domain->due until a pass starts it
 *   STARTED a transport or a receive queue has it; deferred work only
 *
 *   WAITING --> DUE --> STARTED     [engine->due(), a pass]
 *      +-------------------+        [cancelled, its endpoint closes]
 *
 * From STARTED it is freed when it ends, is refused or cancelled, or when its
 * endpoint closes. It is on domain->deferred all the time. Only step() in
 * deferred.c changes its state.
 */
#ifndef TDM_TCP_DEFERRED_H
#define TDM_TCP_DEFERRED_H

#include "tcp/ep.h"
#include "tdm_kept.h"
#include "tdm_op.h"

enum tdm_deferred_state {
	TDM_DEFERRED_WAITING,
	TDM_DEFERRED_DUE,
	TDM_DEFERRED_STARTED,
};

struct tdm_deferred {
	struct tdm_trigger trigger; /* DUE: its node is on domain->due */
	struct tdm_list all;	    /* domain->deferred */
	struct tdm_domain *domain;
	struct tdm_ep *ep;     /* NULL: for a counter */
	struct tdm_cntr *cntr; /* the counter it waits for; NULL once STARTED */
	/*
	 * the counter that counts its completion, or that it changes; or NULL
	 */
	struct tdm_cntr *count;
	const void *work; /* the struct fi_deferred_work; NULL: FI_TRIGGER */
	void *context;	  /* the application's */
	uint64_t value;	  /* the value for a counter */
	uint8_t keep;	  /* 1: value is added, not set */
	uint8_t state;	  /* enum tdm_deferred_state */
	uint8_t busy;	  /* 1: being started, must not be freed */
	uint8_t over;	  /* 1: it ended meanwhile */
	struct tdm_op op; /* deferred work: kept.x.context points to it */
	struct tdm_xfer_kept kept; /* the request, of a transfer */
	uint8_t copy[];		   /* payload of an inject */
};

/* Prepare @domain for deferred operations. */
void tdm_deferred_init(struct tdm_domain *domain);

/*
 * Defer @x, which was checked and has FI_TRIGGER: it is posted to @ep when the
 * condition of its context is met. Lock: taken inside. Errors: -FI_EINVAL
 * without a context or counter, -FI_EDOMAIN for a counter of another domain,
 * -FI_ENOSYS for other conditions than FI_TRIGGER_THRESHOLD, -FI_ENOMEM.
 */
ssize_t tdm_deferred_post(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * Checks whether a call may post @x to @ep, with @flags in place of those of
 * @x. It refuses FI_TRIGGER.
 */
typedef int (*tdm_check_fn)(const struct tdm_ep *ep, const struct tdm_xfer *x,
			    uint64_t flags);

/*
 * Called when @check refused @x with @why: if FI_TRIGGER is the only reason,
 * defers @x as tdm_deferred_post() does; else returns @why.
 */
ssize_t tdm_deferred_try(struct tdm_ep *ep, const struct tdm_xfer *x, int why,
			 tdm_check_fn check);

/*
 * Allocates a deferred operation of @domain that waits for no counter yet: a
 * copy of @x (NULL: none) for @ep, with room for @copy bytes of payload. NULL:
 * out of memory.
 */
struct tdm_deferred *tdm_deferred_alloc(struct tdm_domain *domain,
					struct tdm_ep *ep,
					const struct tdm_xfer *x, size_t copy);

/*
 * Let @t, whose trigger is set, wait for @cntr; it may become due at once. From
 * here on t->count cannot be closed. Lock: held.
 */
void tdm_deferred_add(struct tdm_deferred *t, struct tdm_cntr *cntr);

/*
 * Make @t end by tdm_op.end() and count on t->count. Call it before
 * tdm_deferred_add().
 */
void tdm_deferred_follow(struct tdm_deferred *t);

/* Free @t, which must not have been STARTED, without a report. Lock: held. */
void tdm_deferred_forget(struct tdm_deferred *t);

/*
 * fi_cancel(3) of the deferred operation with @context on @ep. One that waits
 * ends with FI_ECANCELED; for one that was started, @cancel is called with the
 * context that the transport has. Returns 0, -FI_ENOENT, or the result of
 * @cancel. Lock: held.
 */
ssize_t tdm_deferred_cancel(struct tdm_ep *ep, const void *context,
			    ssize_t (*cancel)(struct tdm_ep *ep,
					      void *context));

/*
 * Called when @ep begins to close, during which passes are made: frees its
 * operations that have not been STARTED. Lock: held.
 */
void tdm_deferred_quit(const struct tdm_ep *ep);

/*
 * Called when @ep is being freed and its transports are closed: frees all its
 * deferred operations, started ones too, without a completion. Lock: held.
 */
void tdm_deferred_drop(const struct tdm_ep *ep);

/*
 * Called when @addr leaves the AV: operations of @root and its contexts that
 * wait to be sent there end with FI_ECONNABORTED. Lock: held.
 */
void tdm_deferred_removed(const struct tdm_root *root, fi_addr_t addr);

/* The due() of struct tdm_engine. */
void tdm_domain_due(struct tdm_engine *engine, struct tdm_trigger *trigger);

#endif /* TDM_TCP_DEFERRED_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that wait for a counter, fi_trigger(3): those posted with
 * FI_TRIGGER, and the deferred work of a domain (work.c), of which some only
 * change a counter.
 *
 *   WAITING   in the order of its counter (peer/trigger.h)
 *   DUE       the threshold was reached; on domain->due until a pass starts it
 *   STARTED   a transport or a receive queue has it; deferred work only
 *
 * WAITING -> DUE [engine->due()] -> STARTED [a pass], or gone: over, refused,
 * cancelled, or dropped with its endpoint. From its first moment to its last
 * it is on domain->deferred.
 */
#ifndef TDM_TCP_DEFERRED_H
#define TDM_TCP_DEFERRED_H

#include "tcp/ep.h"
#include "tdm_op.h"
#include "tdm_xfer.h"

enum tdm_deferred_state {
	TDM_DEFERRED_WAITING,
	TDM_DEFERRED_DUE,
	TDM_DEFERRED_STARTED,
};

struct tdm_deferred {
	struct tdm_trigger trigger; /* DUE: its node is on domain->due */
	struct tdm_list all;	    /* domain->deferred */
	struct tdm_domain *domain;
	struct tdm_ep *ep;	/* whose it is, no alias; NULL: a counter's */
	struct tdm_cntr *cntr;	/* waited for; NULL once STARTED */
	struct tdm_cntr *count; /* counts its end, or is changed; or NULL */
	const void *work; /* the struct fi_deferred_work; NULL: FI_TRIGGER */
	void *context;	  /* the application's */
	uint64_t value;	  /* a counter's */
	uint8_t keep;	  /* it is added, not set */
	uint8_t state;	  /* enum tdm_deferred_state */
	uint8_t busy;	  /* being started: must not be freed */
	uint8_t over;	  /* ended meanwhile */
	struct tdm_op op; /* deferred work: what kept.x.context is */
	struct tdm_xfer_kept kept; /* of a transfer */
	uint8_t copy[];		   /* payload of an inject */
};

/* Prepare @domain for them. */
void tdm_deferred_init(struct tdm_domain *domain);

/*
 * Post @x, which was checked and has FI_TRIGGER, to @ep when the condition of
 * its context is met. Lock: taken inside. Errors: -FI_EINVAL without a context
 * or counter, -FI_EDOMAIN for a counter of elsewhere, -FI_ENOSYS for other
 * conditions than FI_TRIGGER_THRESHOLD, -FI_ENOMEM.
 */
ssize_t tdm_deferred_post(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * The checks of a call that posts @x to @ep, but with @flags for its flags:
 * FI_TRIGGER is not among those that are granted.
 */
typedef int (*tdm_check_fn)(const struct tdm_ep *ep, const struct tdm_xfer *x,
			    uint64_t flags);

/*
 * For @x, which @check refused with @why: held back as tdm_deferred_post()
 * does, if FI_TRIGGER is all that speaks against it; otherwise @why.
 */
ssize_t tdm_deferred_try(struct tdm_ep *ep, const struct tdm_xfer *x, int why,
			 tdm_check_fn check);

/*
 * A new one for @domain, which waits for nothing yet; of @x (NULL: of none)
 * and @ep, room for @copy bytes of payload. NULL: out of memory.
 */
struct tdm_deferred *tdm_deferred_alloc(struct tdm_domain *domain,
					struct tdm_ep *ep,
					const struct tdm_xfer *x, size_t copy);

/*
 * Let @t, whose trigger is set, wait for @cntr and start it if it need not.
 * t->count is held from here on. Lock: held.
 */
void tdm_deferred_add(struct tdm_deferred *t, struct tdm_cntr *cntr);

/* Have @t end by tdm_op.end() and count on t->count. Before it is added. */
void tdm_deferred_follow(struct tdm_deferred *t);

/* Forget @t, which has not been STARTED; nobody is told. Lock: held. */
void tdm_deferred_forget(struct tdm_deferred *t);

/*
 * fi_cancel(3) on @ep of what is not known by @context to anybody else: what
 * waits ends with FI_ECANCELED, what was started is @cancel's by its own
 * context. 0, or -FI_ENOENT and what @cancel says. Lock: held.
 */
ssize_t tdm_deferred_cancel(struct tdm_ep *ep, const void *context,
			    ssize_t (*cancel)(struct tdm_ep *ep,
					      void *context));

/*
 * @ep begins to close: what has not been STARTED vanishes, since a close makes
 * passes, or lets others make them. Lock: held.
 */
void tdm_deferred_quit(const struct tdm_ep *ep);

/* @ep closes: all of it vanishes, the transports have let go. Lock: held. */
void tdm_deferred_drop(const struct tdm_ep *ep);

/*
 * @addr leaves the AV: what waits to be sent there, by @ep or a context of it,
 * ends with FI_ECONNABORTED. Lock: held.
 */
void tdm_deferred_removed(const struct tdm_ep *ep, fi_addr_t addr);

/* work.c: fi_control(3) of a domain. Lock: taken inside. */
int tdm_work_control(struct fid *fid, int command, void *arg);

#endif /* TDM_TCP_DEFERRED_H */

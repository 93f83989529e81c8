/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that could not be done when it was asked for and waits for a progress
 * pass: struct tdm_retry of tcp/domain.h. Each pass calls all that are on
 * domain->retry; the owner of one takes it off.
 *
 * Lock: domain held.
 */
#include "tcp/retry.h"

#include "tcp/domain.h"

enum { RETRY_MS = 10 };

void tdm_retry_pass(struct tdm_domain *d)
{
	struct tdm_list *pos, *tmp;

	/*
	 * A call of work to be retried that finds no room makes progress: do not
	 * recurse.
	 */
	if (d->in_retry)
		return;
	d->in_retry = 1;
	tdm_list_for_each_safe(pos, tmp, &d->retry) {
		struct tdm_retry *retry =
			tdm_list_entry(pos, struct tdm_retry, node);

		retry->pass(retry);
	}
	d->in_retry = 0;
}

/* Let a timer wake a sleeping thread for the next pass. */
void tdm_retry_arm(struct tdm_domain *d)
{
	if (!tdm_list_empty(&d->retry))
		(void)!tdm_loop_timer_arm(d->loop, &d->retry_timer, RETRY_MS);
}

static void nothing(struct tdm_loop_timer *timer)
{
	(void)timer; /* the timer only ends the sleep */
}

void tdm_retry_init(struct tdm_domain *d)
{
	tdm_list_init(&d->retry);
	d->retry_timer.fired = nothing;
}

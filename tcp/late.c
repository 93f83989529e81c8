/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that could not be done when it was asked for and waits for a progress
 * pass: struct tdm_late of tcp/domain.h. Each pass calls all that are on
 * domain->late; the owner of one takes it off.
 *
 * Lock: domain held.
 */
#include "tcp/domain.h"

enum { RETRY_MS = 10 };

void tdm_late_pass(struct tdm_domain *d)
{
	struct tdm_list *pos, *tmp;

	/*
	 * A call of late work that finds no room makes progress: do not
	 * recurse.
	 */
	if (d->in_late)
		return;
	d->in_late = 1;
	tdm_list_for_each_safe(pos, tmp, &d->late) {
		struct tdm_late *late =
			tdm_list_entry(pos, struct tdm_late, node);

		late->pass(late);
	}
	d->in_late = 0;
}

/*
 * A sleeping thread makes no progress: let a timer wake it for the next pass.
 */
void tdm_late_arm(struct tdm_domain *d)
{
	if (!tdm_list_empty(&d->late))
		(void)!tdm_loop_timer_arm(d->loop, &d->late_timer, RETRY_MS);
}

static void nothing(struct tdm_loop_timer *timer)
{
	(void)timer; /* the timer only ends the sleep */
}

void tdm_late_init(struct tdm_domain *d)
{
	tdm_list_init(&d->late);
	d->late_timer.fired = nothing;
}

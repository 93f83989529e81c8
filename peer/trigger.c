/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The triggers of one counter; see trigger.h.
 *
 * Invariant: `trip` is the least value at which a trigger is due. So it is
 * computed again when the first trigger of a list, or the error value, changes.
 */
#include "peer/trigger.h"

#include "base/base.h"

static struct tdm_trigger *trigger_of(struct tdm_list *node)
{
	return tdm_list_entry(node, struct tdm_trigger, node);
}

static struct tdm_trigger *first(const struct tdm_triggers *t,
				 enum tdm_trigger_kind kind)
{
	const struct tdm_list *head = &t->waiting[kind];

	return tdm_list_empty(head) ? NULL : trigger_of(head->next);
}

/*
 * Returns what the error value @errs adds to the value that a trigger of @kind
 * waits for: @errs for a BOTH trigger, else 0.
 */
static uint64_t head_start(enum tdm_trigger_kind kind, uint64_t errs)
{
	return kind == TDM_TRIGGER_BOTH ? errs : 0;
}

static void find_trip(struct tdm_triggers *t, uint64_t errs)
{
	int kind;

	t->trip = UINT64_MAX;
	for (kind = 0; kind < TDM_TRIGGER_KINDS; kind++) {
		const struct tdm_trigger *f =
			first(t, (enum tdm_trigger_kind)kind);
		uint64_t start;

		if (!f)
			continue;
		start = head_start(f->kind, errs);
		t->trip = tdm_min(t->trip, f->threshold > start ?
						   f->threshold - start :
						   0);
	}
}

void tdm_triggers_init(struct tdm_triggers *t)
{
	int kind;

	t->trip = UINT64_MAX;
	t->next_no = 0;
	for (kind = 0; kind < TDM_TRIGGER_KINDS; kind++)
		tdm_list_init(&t->waiting[kind]);
}

int tdm_triggers_add(struct tdm_triggers *t, struct tdm_trigger *trigger,
		     uint64_t value, uint64_t errs)
{
	struct tdm_list *at = t->waiting[trigger->kind].prev;

	while (at != &t->waiting[trigger->kind] &&
	       trigger_of(at)->threshold > trigger->threshold)
		at = at->prev;
	trigger->no = t->next_no++;
	tdm_list_init(&trigger->node);
	tdm_list_add_after(&trigger->node, at);
	find_trip(t, errs);
	return value >= t->trip;
}

static int reached(const struct tdm_trigger *f, uint64_t value, uint64_t errs)
{
	uint64_t start = head_start(f->kind, errs);

	return f->threshold <= start || f->threshold - start <= value;
}

static int before(const struct tdm_trigger *a, const struct tdm_trigger *b)
{
	return a->threshold != b->threshold ? a->threshold < b->threshold :
					      a->no < b->no;
}

struct tdm_trigger *tdm_triggers_take(struct tdm_triggers *t, uint64_t value,
				      uint64_t errs)
{
	struct tdm_trigger *best = NULL;
	int kind;

	for (kind = 0; kind < TDM_TRIGGER_KINDS; kind++) {
		struct tdm_trigger *f = first(t, (enum tdm_trigger_kind)kind);

		if (f && reached(f, value, errs) && (!best || before(f, best)))
			best = f;
	}
	if (best)
		tdm_list_del(&best->node);
	find_trip(t, errs);
	return best;
}

void tdm_triggers_remove(struct tdm_triggers *t, struct tdm_trigger *trigger,
			 uint64_t errs)
{
	tdm_list_del(&trigger->node);
	find_trip(t, errs);
}

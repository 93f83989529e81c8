/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that wait for a threshold of a counter, fi_trigger(3): an ordered
 * structure, one per counter, that knows nothing of what it holds.
 *
 * A counter has a value and an error value. FI_TRIGGER operations wait for the
 * value, since they are for data that has arrived; deferred work waits for the
 * sum of both, as its section says. Each kind has a list of its own, sorted by
 * threshold and, where that is the same, in the order of adding; both are
 * taken from as if they were one list. Adding searches from the end: those who
 * add with rising thresholds pay nothing for it.
 *
 * Everything: G: domain lock.
 */
#ifndef TDM_PEER_TRIGGER_H
#define TDM_PEER_TRIGGER_H

#include <stdint.h>

#include "base/list.h"

enum tdm_trigger_kind {
	TDM_TRIGGER_VALUE, /* operations that succeeded */
	TDM_TRIGGER_BOTH,  /* operations that ended */
	TDM_TRIGGER_KINDS
};

struct tdm_trigger {
	struct tdm_list node; /* whoever has it: its counter, then its taker */
	uint64_t threshold;
	uint64_t no; /* order of adding, per counter */
	enum tdm_trigger_kind kind;
};

struct tdm_triggers {
	/*
	 * The value from which there is something to take, with the error value
	 * of the last call; UINT64_MAX: nothing waits. What counts compares with
	 * it and nothing else.
	 */
	uint64_t trip;
	uint64_t next_no;
	struct tdm_list waiting[TDM_TRIGGER_KINDS];
};

void tdm_triggers_init(struct tdm_triggers *t);

/*
 * Add @trigger, whose threshold and kind are set, for a counter whose error
 * value is @errs. Not 0 when something is to be taken at @value.
 */
int tdm_triggers_add(struct tdm_triggers *t, struct tdm_trigger *trigger,
		     uint64_t value, uint64_t errs);

/*
 * Take the first one that the values have reached, or NULL: by threshold, then
 * by the order of adding.
 */
struct tdm_trigger *tdm_triggers_take(struct tdm_triggers *t, uint64_t value,
				      uint64_t errs);

/* Take back @trigger, which waits here. @errs: the error value. */
void tdm_triggers_remove(struct tdm_triggers *t, struct tdm_trigger *trigger,
			 uint64_t errs);

#endif /* TDM_PEER_TRIGGER_H */

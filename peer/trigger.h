/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that wait for a threshold of a counter, fi_trigger(3): one ordered
 * structure per counter. It does not know what the operations are.
 *
 * A counter has a value and an error value. FI_TRIGGER operations wait for the
 * value, since they are for data that has arrived; deferred work waits for the
 * sum of both, as its section says. Each kind has a list of its own, sorted by
 * threshold and, where that is the same, in the order of adding; triggers are
 * taken from both as if they were one list. Adding searches from the end, so
 * adding with rising thresholds is cheap.
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
	struct tdm_list node; /* list of its current owner */
	uint64_t threshold;
	uint64_t no; /* order of adding, per counter */
	enum tdm_trigger_kind kind;
};

struct tdm_triggers {
	/*
	 * The counter value at which a trigger is due, given the error value of
	 * the last call; UINT64_MAX: nothing waits. The code that counts
	 * compares with this alone.
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
 * Take the first trigger that is due, or NULL: by threshold, then by the order
 * of adding.
 */
struct tdm_trigger *tdm_triggers_take(struct tdm_triggers *t, uint64_t value,
				      uint64_t errs);

/* Remove @trigger, which waits here. @errs: the error value. */
void tdm_triggers_remove(struct tdm_triggers *t, struct tdm_trigger *trigger,
			 uint64_t errs);

#endif /* TDM_PEER_TRIGGER_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that wait for a threshold of a counter, fi_trigger(3): one ordered
 * structure per counter. It does not know what the operations are.
 *
 * A counter has a value and an error value. FI_TRIGGER operations wait for the
 * value, since they are for data that has arrived; deferred work waits for the
 * sum of both, as its section says. Each kind has a list of its own, sorted by
 * threshold; triggers with the same threshold are in the order in which they
 * were added. Triggers are taken from both lists as if these were one. A new
 * trigger's place is searched from the end, so adding with rising thresholds is
 * cheap.
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
	 * The counter value at which the next trigger is due, for the error
	 * value of the last call; UINT64_MAX: none waits. The code that counts
	 * compares the value with this word only.
	 */
	uint64_t trip;
	uint64_t next_no;
	struct tdm_list waiting[TDM_TRIGGER_KINDS];
};

void tdm_triggers_init(struct tdm_triggers *t);

/*
 * Add @trigger, whose threshold and kind are set, for a counter whose error
 * value is @errs. Returns not 0 when a trigger is due at @value.
 */
int tdm_triggers_add(struct tdm_triggers *t, struct tdm_trigger *trigger,
		     uint64_t value, uint64_t errs);

/*
 * Remove and return the first trigger that is due, by threshold, then by the
 * order of adding; NULL: none is.
 */
struct tdm_trigger *tdm_triggers_take(struct tdm_triggers *t, uint64_t value,
				      uint64_t errs);

/* Remove @trigger, which must be in @t. @errs: the error value. */
void tdm_triggers_remove(struct tdm_triggers *t, struct tdm_trigger *trigger,
			 uint64_t errs);

#endif /* TDM_PEER_TRIGGER_H */

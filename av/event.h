/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inserts of a vector that was opened with FI_EVENT. For the files of av/ only.
 */
#ifndef TDM_AV_EVENT_H
#define TDM_AV_EVENT_H

#include "av/insert.h"
#include "av/symmetric.h"

int tdm_av_queue_open(struct tdm_av *av) tdm_must_check;

/*
 * hold: lock the queue of a vector opened with FI_EVENT, which keeps other
 * inserts out; release: unlock it. This is the outermost lock, taken before the
 * domain lock. Both do nothing for other vectors.
 */
void tdm_av_queue_hold(struct tdm_av *av);
void tdm_av_queue_release(struct tdm_av *av);

/*
 * End all queued inserts with FI_ECANCELED for each address. The queue does not
 * exist afterwards. Lock: queue held, domain held.
 */
void tdm_av_queue_cancel(struct tdm_av *av);

/*
 * Insert the addresses at @array, or those of @range, for @call: at once when
 * no earlier insert waits and no name has to be resolved, else in the queue's
 * thread. Errors: -FI_ENOMEM, -FI_EAGAIN (no thread could be started); nothing
 * was inserted then.
 */
int tdm_av_queue_insert(struct tdm_av_call *call,
			const void *array) tdm_must_check;
int tdm_av_queue_range(struct tdm_av_call *call,
		       const struct tdm_av_range *range) tdm_must_check;

/*
 * Write the error event of address @i of @call; write the final event of @call.
 * Lock: held.
 */
void tdm_av_event_err(const struct tdm_av_call *call, size_t i, int err);
void tdm_av_event_end(const struct tdm_av_call *call);

#endif /* TDM_AV_EVENT_H */

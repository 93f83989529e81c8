/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a message, or of a one-sided operation's payload, that is being
 * received.
 *
 *   NEW --+--> WAITING --+--> DROPPING
 *         |       |      |
 *         |       v      |
 *         +--> PLACING --+
 *         +--> READING --+
 *         +--> OPERANDS -+
 *         +--------------+
 *
 * 	NEW       its record was parsed; nobody has been asked for a place
 * 	WAITING   a message that found no receive; the entry is queued at the
 * 	          owner [queue -> start, discard, withdraw]
 * 	PLACING   bytes go to a receive or a region, whose entry it has
 * 	          [place -> arrived, want, fail, revoke]
 * 	READING   bytes go to the buffer of a read of ours, or the results of an
 * 	          atomic operation [reading -> stop]
 *  OPERANDS operands of an atomic operation are being collected [atomic ->
 *            operands]
 * 	DROPPING  there is no place, or not any more: further bytes are discarded
 *
 * It has an entry while it is WAITING or PLACING. It may be freed in any state,
 * which ends it; one that is WAITING stays when its connection is lost.
 */
#ifndef TDM_TCP_WIRE_RX_STATE_H
#define TDM_TCP_WIRE_RX_STATE_H

#include <assert.h>
#include <stdint.h>

#include "base/base.h"

enum tdm_rx_state {
	TDM_RX_NEW,
	TDM_RX_WAITING,
	TDM_RX_PLACING,
	TDM_RX_READING,
	TDM_RX_OPERANDS,
	TDM_RX_DROPPING,
};

/* Not 0 when a tdm_rx may go from state @from to @to. */
static inline int tdm_rx_may_step(enum tdm_rx_state from, enum tdm_rx_state to)
{
	/* The states that may follow, by state, in the order of the enum. */
	static const uint8_t next[] = {
		/* NEW */ 1 << TDM_RX_WAITING | 1 << TDM_RX_PLACING |
			1 << TDM_RX_READING | 1 << TDM_RX_OPERANDS |
			1 << TDM_RX_DROPPING,
		/* WAITING */ 1 << TDM_RX_PLACING | 1 << TDM_RX_DROPPING,
		/* PLACING */ 1 << TDM_RX_DROPPING,
		/* READING */ 1 << TDM_RX_DROPPING,
		/* OPERANDS */ 1 << TDM_RX_DROPPING,
		/* DROPPING */ 0,
	};

	return next[from] >> to & 1;
}

/*
 * Change *@state, the state of a struct tdm_rx, to @to. The step must be legal
 * (asserted).
 */
static inline void tdm_rx_step(uint8_t *state, enum tdm_rx_state to)
{
	assert(tdm_rx_may_step((enum tdm_rx_state) * state, to));
	*state = (uint8_t)to;
}

#endif /* TDM_TCP_WIRE_RX_STATE_H */

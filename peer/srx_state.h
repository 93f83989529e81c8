/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of an entry of the receive side.
 *
 *   FREE --+--> POSTED -----------------+--> FILLING     a receive
 *          |      +--> SPENT            |
 *          +----------------------------+                a part of a buffer
 *          |                            |
 *          +--> NEW --> WAITING --------+                a message
 *                          +--> CLAIMED +
 *                                  +--> LOST
 *
 * and from each back to FREE. The entry of a receive that takes a waiting
 * message stays FREE, and the message's entry goes on.
 *
 *	POSTED    a receive waits for a message [recv -> match, cancel, flush]
 *	SPENT     a multi-recv buffer takes no more messages; parts of it are
 *	          still being filled [multi_take, cancel -> multi_put]
 *	NEW       handed out for an unexpected message [get -> queue, free]
 *	WAITING   that message waits for a receive [queue -> start, free]
 *	CLAIMED   a peek claimed it; it waits for FI_CLAIM [peek -> claim, free]
 *	LOST      it was claimed, but its transport gave it back [free -> claim]
 *	FILLING   a transport moves a message into a receive [get, start -> free]
 *
 * POSTED and WAITING entries are in the match queue of their kind; CLAIMED and
 * LOST ones on srx->claimed. NEW and FILLING ones belong to their transport,
 * which may also give back WAITING and CLAIMED ones. SPENT and POSTED ones are
 * never seen by a transport.
 */
#ifndef TDM_PEER_SRX_STATE_H
#define TDM_PEER_SRX_STATE_H

#include <assert.h>
#include <stdint.h>

#include "base/base.h"

enum tdm_srx_state {
	TDM_SRX_FREE,
	TDM_SRX_POSTED,
	TDM_SRX_SPENT,
	TDM_SRX_NEW,
	TDM_SRX_WAITING,
	TDM_SRX_CLAIMED,
	TDM_SRX_LOST,
	TDM_SRX_FILLING,
};

/* Not 0 when an entry may go from state @from to @to. */
static inline int tdm_srx_may_step(enum tdm_srx_state from,
				   enum tdm_srx_state to)
{
	/* The states that may follow, by state, in the order of the enum. */
	static const uint8_t next[] = {
		/* FREE */ 1 << TDM_SRX_FREE | 1 << TDM_SRX_POSTED |
			1 << TDM_SRX_NEW | 1 << TDM_SRX_FILLING,
		/* POSTED */ 1 << TDM_SRX_FREE | 1 << TDM_SRX_SPENT |
			1 << TDM_SRX_FILLING,
		/* SPENT */ 1 << TDM_SRX_FREE,
		/* NEW */ 1 << TDM_SRX_FREE | 1 << TDM_SRX_WAITING,
		/* WAITING */ 1 << TDM_SRX_FREE | 1 << TDM_SRX_CLAIMED |
			1 << TDM_SRX_FILLING,
		/* CLAIMED */ 1 << TDM_SRX_FREE | 1 << TDM_SRX_LOST |
			1 << TDM_SRX_FILLING,
		/* LOST */ 1 << TDM_SRX_FREE,
		/* FILLING */ 1 << TDM_SRX_FREE,
	};

	return next[from] >> to & 1;
}

/*
 * Change *@state, the state of an entry, to @to. The step must be legal
 * (asserted).
 */
static inline void tdm_srx_step(uint8_t *state, enum tdm_srx_state to)
{
	assert(tdm_srx_may_step((enum tdm_srx_state) * state, to));
	*state = (uint8_t)to;
}

#endif /* TDM_PEER_SRX_STATE_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that a foreign provider may make, when, and about which records. Its
 * code is trusted to run in this process, not to keep to fi_peer(3): each of its
 * calls passes through here before anything that it names is looked at.
 *
 * Invariants:
 *  1. A provider calls back only inside of a call of ours, on the same thread:
 *     between tdm_foreign_enter() and tdm_foreign_leave(). The domain lock is
 *     held there. Other calls are refused.
 *  2. What it names must be a record of the domain that is under way, in use, and
 *     in a state in which the call is due. Records and exports stay addressable
 *     until the domain closes.
 *
 * A breach is logged, and the provider gets no further remote endpoints.
 *
 * Lock: domain held, but for the calls that invariant 1 refuses.
 */
#ifndef TDM_PEER_FOREIGN_GUARD_H
#define TDM_PEER_FOREIGN_GUARD_H

#include <stdint.h>

#include <rdma/providers/fi_peer.h>

struct tdm_foreign;
struct tdm_foreign_ep;
struct tdm_foreign_rx;
struct tdm_foreign_tx;

/* Of a record: in use while check is the complement of serial. */
struct tdm_foreign_mark {
	uint32_t serial; /* another for each use */
	uint32_t check;
};

static inline int tdm_foreign_in_use(const struct tdm_foreign_mark *mark)
{
	return mark->check == ~mark->serial;
}

/* Not 0 when the record of @mark is still in the use that had @serial. */
static inline int tdm_foreign_same(const struct tdm_foreign_mark *mark,
				   uint32_t serial)
{
	return tdm_foreign_in_use(mark) && mark->serial == serial;
}

/*
 * Around each call of the provider of @f. enter() returns what leave() gets: calls
 * nest.
 */
struct tdm_foreign *tdm_foreign_enter(struct tdm_foreign *f);
void tdm_foreign_leave(struct tdm_foreign *was);

/*
 * The provider whose call is under way has broken fi_peer(3): @what. Outside of
 * such a call any thread may call it; the next pass logs that.
 */
void tdm_foreign_breach(const char *what);

/* Prepare @f: calls from outside up to now are not those of its provider. */
void tdm_foreign_guard(struct tdm_foreign *f);

/* Log the calls from outside since the last pass of @f, if there were any. */
void tdm_foreign_check_outside(struct tdm_foreign *f);

/*
 * Return the object that a call of the provider names: the endpoint of an export,
 * the record of a receive entry, of the context of a receive, of that of a send.
 * NULL: none, which is a breach.
 */
struct tdm_foreign_ep *tdm_foreign_ep_called(struct fid_peer_srx *lent);
struct tdm_foreign_rx *tdm_foreign_rx_called(struct fi_peer_rx_entry *entry);
struct tdm_foreign_rx *tdm_foreign_rx_named(void *context);
struct tdm_foreign_tx *tdm_foreign_tx_named(void *context);

#endif /* TDM_PEER_FOREIGN_GUARD_H */

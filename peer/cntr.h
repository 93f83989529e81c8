/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counter of the owner, fi_cntr(3), and its exports, fi_peer(3) "PEER
 * COUNTER". It has a value and an error value; a wait ends when the value
 * reaches the threshold, the error value changes, or the time is over.
 */
#ifndef TDM_PEER_CNTR_H
#define TDM_PEER_CNTR_H

#include <rdma/fi_domain.h>
#include <rdma/providers/fi_peer.h>

#include "peer/cq.h"
#include "peer/trigger.h"
#include "tdm_engine.h"

struct tdm_cntr;

/*
 * Open a counter. In: @attr as the application gave it to fi_cntr_open(3), or
 * NULL. Out: *@cntr; attr->wait_obj as granted. fi_cntr_wait of a counter with
 * FI_WAIT_SET returns -FI_ENOSYS; with FI_WAIT_NONE it polls, although
 * fi_cntr(3) does not ask for it. With FI_PEER in
 * attr->flags, @context is that of fi_peer(3), and the exports of the counter are
 * the object of the owner that lends it.
 * Errors: -FI_EINVAL for an unknown event kind or wait object, other flags, and a
 * peer context that cannot be used; -FI_ENOSYS for FI_CNTR_EVENTS_BYTES and for a
 * wait object that an import does not have; -FI_ENOMEM, descriptor errors.
 * Lock: taken inside.
 */
int tdm_cntr_open(struct tdm_engine *engine, struct fi_cntr_attr *attr,
		  void *context, struct tdm_cntr **cntr) tdm_must_check;

struct tdm_cntr *tdm_cntr_from_fid(struct fid_cntr *fid);
struct fid_cntr *tdm_cntr_fid(struct tdm_cntr *cntr);
struct tdm_engine *tdm_cntr_engine(const struct tdm_cntr *cntr);

/*
 * For a poll set that has reported all changes up to number @seen: returns the
 * number of the last change of either value if there is a later one to report,
 * else 0. Changes made by fi_cntr_set and fi_cntr_add, and all before them, are
 * not reported. Lock: held. Spec: fi_poll(3), fi_poll.
 */
uint64_t tdm_cntr_news(const struct tdm_cntr *cntr, uint64_t seen);

/* Returns the export for transport @t; valid as long as @cntr is open. */
struct fid_peer_cntr *tdm_cntr_export(struct tdm_cntr *cntr,
				      enum tdm_transport t);

/* As tdm_cq_local(), for a counter. */
struct fid_cntr *tdm_cntr_local(struct tdm_cntr *cntr);
void tdm_cntr_set_local(struct tdm_cntr *cntr, struct fid_cntr *local);

/*
 * Called when an endpoint is bound to @cntr, and when it is unbound: as
 * tdm_cq_get() and tdm_cq_put().
 */
void tdm_cntr_get(struct tdm_cntr *cntr);
void tdm_cntr_put(struct tdm_cntr *cntr);

/*
 * fi_trywait(3): 0, or -FI_EAGAIN when a value has changed since
 * fi_cntr_read or there is something to progress; -FI_EINVAL without a
 * descriptor. Lock: taken inside.
 */
int tdm_cntr_trywait(struct tdm_cntr *cntr);

/*
 * Make @trigger, whose threshold and kind are set, wait for @cntr; or remove
 * it. When the threshold is reached, perhaps at once, engine->due() gets the
 * trigger. @cntr cannot be closed while a trigger waits for it. Lock: held.
 */
void tdm_cntr_await(struct tdm_cntr *cntr, struct tdm_trigger *trigger);
void tdm_cntr_unawait(struct tdm_cntr *cntr, struct tdm_trigger *trigger);

/*
 * Carry out an update that the application deferred: add @value, or (@keep 0)
 * set it. Lock: held.
 */
void tdm_cntr_change(struct tdm_cntr *cntr, int keep, uint64_t value);

/* As tdm_cq_on_close(). */
void tdm_cntr_on_close(struct tdm_cntr *cntr, void (*closed)(void *arg),
		       void *arg);

#endif /* TDM_PEER_CNTR_H */

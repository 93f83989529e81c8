/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queue of the owner, fi_eq(3). The application opens one on the fabric;
 * the link opens one which the peer provider imports, to write struct
 * tdm_peer_event into it.
 *
 * An EQ belongs to the fabric, not to a domain, and has its own lock, the
 * innermost of all: it may be taken with the domain lock held, and no lock is
 * taken under it. Reading an EQ, and sleeping on it, makes progress of the
 * domains that report to it: tdm_eq_drive().
 */
#ifndef TDM_PEER_EQ_H
#define TDM_PEER_EQ_H

#include <rdma/fi_eq.h>

#include "base/base.h"

struct tdm_engine;
struct tdm_eq;

/*
 * Open an EQ. In: @attr as the application gave it to fi_eq_open(3), or NULL;
 * attr->size is the number of entries (0: default). Without FI_WRITE in
 * attr->flags, fi_eq_write by the application returns -FI_EINVAL. Out: *@eq.
 * Errors: -FI_EINVAL (for an unknown wait object, for FI_WAIT_SET without a
 * set, for FI_PEER: tandem's EQ imports nothing), -FI_ENOMEM, descriptor
 * errors.
 */
int tdm_eq_open(const struct fi_eq_attr *attr, void *context,
		struct tdm_eq **eq) tdm_must_check;

struct tdm_eq *tdm_eq_from_fid(struct fid_eq *fid);
struct fid_eq *tdm_eq_fid(struct tdm_eq *eq);

/*
 * Append an error event; err_data is copied. Errors: -FI_EOVERRUN when the
 * queue is full (the reader gets the same code after it has read the entries
 * before it), -FI_ENOMEM.
 */
int tdm_eq_write_err(struct tdm_eq *eq, const struct fi_eq_err_entry *entry);

/*
 * Append an event as fi_eq_write(3) does, whatever attr->flags say. Returns
 * @len, or -FI_EOVERRUN, -FI_ENOMEM.
 */
ssize_t tdm_eq_write(struct tdm_eq *eq, uint32_t event, const void *buf,
		     size_t len);

/*
 * As tdm_eq_write_err() and tdm_eq_write(), for events whose number the
 * application can know in advance (an insert into an AV reports each address
 * that failed): they do not count against the size of the queue. Errors:
 * -FI_ENOMEM; -FI_EOVERRUN when the queue was overrun earlier.
 */
int tdm_eq_keep_err(struct tdm_eq *eq, const struct fi_eq_err_entry *entry);
ssize_t tdm_eq_keep(struct tdm_eq *eq, uint32_t event, const void *buf,
		    size_t len);

/* Not 0 when there is something to read; one relaxed load, no lock. */
int tdm_eq_pending(const struct tdm_eq *eq);

/* Drop the oldest event or error, whatever it is. */
void tdm_eq_drop(struct tdm_eq *eq);

/*
 * get: called when an object begins to report to @eq; put: when it ends. In
 * between, fi_close of @eq returns -FI_EBUSY.
 */
void tdm_eq_get(struct tdm_eq *eq);
void tdm_eq_put(struct tdm_eq *eq);

/*
 * Make reading @eq, and sleeping on it, make progress of @engine, whose
 * operations may end as events of @eq. Calls are counted, and each keeps @eq
 * from being closed. Errors: -FI_ENOMEM, descriptor errors. Lock: not held.
 * Spec: fi_domain(3), FI_PROGRESS_MANUAL.
 */
int tdm_eq_drive(struct tdm_eq *eq, struct tdm_engine *engine) tdm_must_check;

/*
 * Undo one tdm_eq_drive(). To be called before @engine is freed. Lock: not
 * held.
 */
void tdm_eq_undrive(struct tdm_eq *eq, struct tdm_engine *engine);

/*
 * fi_trywait(3) for @eq. Returns 0; -FI_EAGAIN when there is something to read
 * or to progress; -FI_EINVAL without a descriptor.
 */
int tdm_eq_trywait(struct tdm_eq *eq);

/*
 * Have fi_close call @closed(@arg) when it ends @eq, without the EQ's lock; the
 * fabric counts its objects by it.
 */
void tdm_eq_on_close(struct tdm_eq *eq, void (*closed)(void *arg), void *arg);

#endif /* TDM_PEER_EQ_H */

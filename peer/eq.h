/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queue of the owner, fi_eq(3). Opened by the application on the
 * fabric, and by the link, whose EQ the peer imports to write struct
 * tdm_peer_event into it.
 *
 * An EQ belongs to the fabric, not to a domain, and has its own lock, the
 * innermost of all: it may be taken with the domain lock held, and no lock is
 * taken under it. The domains that report to an EQ are driven by those who read
 * it or sleep on it: tdm_eq_drive().
 */
#ifndef TDM_PEER_EQ_H
#define TDM_PEER_EQ_H

#include <rdma/fi_eq.h>

#include "base/base.h"

struct tdm_engine;
struct tdm_eq;

/*
 * Open an EQ. In: @attr as fi_eq_open(3) got it, or NULL; attr->size is the
 * number of entries (0: default) and, unless FI_WRITE is in attr->flags,
 * fi_eq_write by the application gives -FI_EINVAL. Errors: -FI_EINVAL (for an
 * unknown wait object, for FI_WAIT_SET without a set, for FI_PEER: nothing is
 * imported here), -FI_ENOMEM, descriptor errors.
 */
int tdm_eq_open(const struct fi_eq_attr *attr, void *context,
		struct tdm_eq **eq) tdm_must_check;

struct tdm_eq *tdm_eq_from_fid(struct fid_eq *fid);
struct fid_eq *tdm_eq_fid(struct tdm_eq *eq);

/*
 * Add an error event; err_data is copied. Errors: -FI_EOVERRUN when full (the
 * reader is told by the same code once the entries before it are read),
 * -FI_ENOMEM.
 */
int tdm_eq_write_err(struct tdm_eq *eq, const struct fi_eq_err_entry *entry);

/*
 * Add an event as fi_eq_write(3) does, whatever attr->flags say. Returns @len,
 * or -FI_EOVERRUN, -FI_ENOMEM.
 */
ssize_t tdm_eq_write(struct tdm_eq *eq, uint32_t event, const void *buf,
		     size_t len);

/*
 * As the two above, for events whose number has been announced (an insert into
 * an AV reports each address that failed): they do not count against the size
 * of the queue. Errors: -FI_ENOMEM; -FI_EOVERRUN when the queue was overrun
 * earlier.
 */
int tdm_eq_keep_err(struct tdm_eq *eq, const struct fi_eq_err_entry *entry);
ssize_t tdm_eq_keep(struct tdm_eq *eq, uint32_t event, const void *buf,
		    size_t len);

/* Not 0 when there is something to read; one relaxed load, no lock. */
int tdm_eq_pending(const struct tdm_eq *eq);

/* Drop the oldest event or error, whatever it is. */
void tdm_eq_drop(struct tdm_eq *eq);

/* Hold @eq while something reports to it: fi_close gives -FI_EBUSY. */
void tdm_eq_get(struct tdm_eq *eq);
void tdm_eq_put(struct tdm_eq *eq);

/*
 * Operations of @engine may end as events of @eq: reading @eq, and sleeping
 * on it, make progress of @engine. Counted; holds @eq. Errors: -FI_ENOMEM,
 * descriptor errors. Lock: not held. Spec: fi_domain(3), FI_PROGRESS_MANUAL.
 */
int tdm_eq_drive(struct tdm_eq *eq, struct tdm_engine *engine) tdm_must_check;

/* Undo it, before @engine is freed. Lock: not held. */
void tdm_eq_undrive(struct tdm_eq *eq, struct tdm_engine *engine);

/*
 * fi_trywait(3): 0, -FI_EAGAIN when there is something to read or to progress,
 * -FI_EINVAL without a descriptor.
 */
int tdm_eq_trywait(struct tdm_eq *eq);

/*
 * Run @closed(@arg) when fi_close ends @eq; the fabric counts its objects.
 * @closed runs without the EQ's lock.
 */
void tdm_eq_on_close(struct tdm_eq *eq, void (*closed)(void *arg), void *arg);

#endif /* TDM_PEER_EQ_H */

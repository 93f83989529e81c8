/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue of the owner, fi_cq(3), and its exports to the transports,
 * fi_peer(3) "PEER CQ". It consists of a ring of entries in the application's
 * format, a list of errors with their positions, and an overflow list for
 * entries that do not fit the ring. No completion is lost unless memory is
 * exhausted: then the CQ enters the overrun state of fi_cq(3), and readers get
 * -FI_EOVERRUN after the entries that were kept.
 */
#ifndef TDM_PEER_CQ_H
#define TDM_PEER_CQ_H

#include <rdma/fi_eq.h>
#include <rdma/providers/fi_peer.h>

#include "tdm_engine.h"

struct tdm_cq;

/* The transports that import the queues of a domain; indexes the exports. */
enum tdm_transport { TDM_TRANSPORT_TCP, TDM_TRANSPORT_LOCAL, TDM_TRANSPORTS };

/*
 * Open a CQ. In: @attr as the application gave it to fi_cq_open(3) (NULL: all
 * defaults); @context, of the fid; @source, not 0 when fi_cq_readfrom must
 * report source addresses (FI_SOURCE). Out: *@cq; attr->size, format and
 * wait_obj as granted. FI_CQ_FORMAT_UNSPEC becomes FI_CQ_FORMAT_CONTEXT, which
 * fits any buffer.
 * With FI_PEER in attr->flags, @context is that of fi_peer(3), and the exports of
 * the CQ are the object of the owner that lends it.
 * Errors: -FI_EINVAL for a bad format, condition, size, wait object or peer
 * context, -FI_ENOSYS for a wait object that an import does not have, -FI_ENOMEM,
 * descriptor errors. Lock: taken inside.
 */
int tdm_cq_open(struct tdm_engine *engine, struct fi_cq_attr *attr, int source,
		void *context, struct tdm_cq **cq) tdm_must_check;

struct tdm_cq *tdm_cq_from_fid(struct fid_cq *fid);
struct fid_cq *tdm_cq_fid(struct tdm_cq *cq);
struct tdm_engine *tdm_cq_engine(const struct tdm_cq *cq);

/* Not 0 when a read would return something else than -FI_EAGAIN. Lock: held. */
int tdm_cq_ready(const struct tdm_cq *cq);

/*
 * Not 0 when as many entries, errors included, wait to be read as @cq was
 * opened for. The caller must then refuse operations that would add one,
 * fi_domain(3) "FI_RM_ENABLED"; @cq still takes the completions of operations
 * posted earlier. Lock: held.
 */
int tdm_cq_full(const struct tdm_cq *cq);

/*
 * Not 0 when as many errors wait to be read as @cq was opened for. The caller must
 * then refuse also operations without a completion, of which each that fails adds
 * one. Lock: held.
 */
int tdm_cq_full_of_errors(const struct tdm_cq *cq);

/*
 * Return how many entries, errors included, wait to be read, and for how many
 * @cq was opened. Lock: held.
 */
size_t tdm_cq_waiting(const struct tdm_cq *cq);
size_t tdm_cq_size(const struct tdm_cq *cq);

/* Returns the export of @cq for transport @t; valid as long as @cq is open. */
struct fid_peer_cq *tdm_cq_export(struct tdm_cq *cq, enum tdm_transport t);

/*
 * Returns the peer provider's CQ that imports @cq, or NULL. The link sets it
 * when it opens the peer's CQ; closing @cq closes that one too.
 */
struct fid_cq *tdm_cq_local(struct tdm_cq *cq);
void tdm_cq_set_local(struct tdm_cq *cq, struct fid_cq *local);

/*
 * get: called when an endpoint is bound to @cq; put: when it is unbound. In
 * between, fi_close of @cq returns -FI_EBUSY. Lock: held.
 */
void tdm_cq_get(struct tdm_cq *cq);
void tdm_cq_put(struct tdm_cq *cq);

/*
 * fi_trywait(3) for @cq. Returns 0; -FI_EAGAIN when there is something to read
 * or to progress; -FI_EINVAL without a descriptor. Lock: taken inside.
 */
int tdm_cq_trywait(struct tdm_cq *cq);

/*
 * Have fi_close call @closed(@arg) when it ends @cq, with the lock held; the
 * domain counts its objects by it.
 */
void tdm_cq_on_close(struct tdm_cq *cq, void (*closed)(void *arg), void *arg);

/* Called in a child of fork(2), which inherited @cq: tcp/fork.c. Lock: held. */
void tdm_cq_orphan(struct tdm_cq *cq);

#endif /* TDM_PEER_CQ_H */

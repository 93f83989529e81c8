/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collective operations of an endpoint, fi_collective(3): the calls, groups of
 * members, and how plans (coll/plan.h) are carried out. Their messages are
 * tagged messages of the group TDM_COLL_GROUP (tdm_space.h), which no receive or
 * send of the application can name, and so never meet those of the application.
 *
 * Files: coll.c the calls, coll_group.c groups, coll_note.c what members tell each
 * other, coll_run.c operations under way.
 */
#ifndef TDM_TCP_COLL_H
#define TDM_TCP_COLL_H

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>

struct tdm_ep;
struct tdm_root;

/* The calls of an endpoint that was granted FI_COLLECTIVE; coll.c. */
extern struct fi_ops_collective tdm_coll_ops;

/* fi_query_collective(3); coll.c. */
int tdm_coll_query(struct fid_domain *domain, enum fi_collective_op coll,
		   struct fi_collective_attr *attr, uint64_t flags);

/* fi_join_collective(3), the join() of fi_ops_cm; coll_group.c. */
int tdm_coll_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		  struct fid_mc **mc, void *context);

/*
 * coll_note.c: the member at index @addr is gone for good; @err is the positive
 * fi_errno. Called for all peers that are lost, members or not; does no more
 * than note it, for the next pass. Lock: held.
 */
void tdm_coll_lost(struct tdm_root *root, fi_addr_t addr, int err);

/*
 * coll_run.c: fi_cancel(3) of the operation with @context: it ends with
 * FI_ECANCELED, at the other members with FI_ECONNABORTED. Returns 0, or
 * -FI_ENOENT: there is none. Lock: held.
 */
ssize_t tdm_coll_cancel(struct tdm_root *root, const void *context);

/*
 * coll_group.c. quit: @root is about to close: its receives are withdrawn and
 * nothing is reported from here on; free: its transports are closed. Groups that
 * the application has not closed remain, for fi_close(3) alone. Lock: held.
 */
void tdm_coll_quit(struct tdm_root *root);
void tdm_coll_free(struct tdm_root *root);

#endif /* TDM_TCP_COLL_H */

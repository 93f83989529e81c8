/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects that an endpoint is bound to, fi_ep_bind(3). */
#ifndef TDM_TCP_BIND_H
#define TDM_TCP_BIND_H

#include <stdint.h>

#include "peer/cq.h"

struct sockaddr;
struct tdm_addr;
struct tdm_av_user;
struct tdm_domain;
struct tdm_done;
struct tdm_ep;
struct tdm_eq;

/* fi_ep_bind(3), fi_scalable_ep_bind(3): bind.c. Lock: taken inside. */
int tdm_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

/* The user_ids() of struct tdm_av_user: user ids came into use. Lock: held. */
void tdm_ep_av_user_ids(struct tdm_av_user *user);

/* Unbind queues and counters. Lock: held. */
void tdm_ep_unbind(struct tdm_ep *ep);

/*
 * The last step of closing an endpoint, which was bound to @eq (NULL: to none).
 * Lock: not held, since a reader of @eq may hold it.
 */
void tdm_ep_closed(struct tdm_domain *domain, struct tdm_eq *eq);

/*
 * Fill *@done with the exports for @t that report sends and receives of @ep.
 * Lock: held.
 */
void tdm_ep_done(struct tdm_ep *ep, enum tdm_transport t,
		 struct tdm_done *done);

/*
 * Returns the socket address of @addr, an address of an operation on @ep, kept in
 * *@to, or NULL: it is not in the address vector. Lock: held.
 */
const struct sockaddr *tdm_ep_name_of(const struct tdm_ep *ep, fi_addr_t addr,
				      struct tdm_addr *to);

/*
 * Returns which of FI_REMOTE_READ and FI_REMOTE_WRITE @ep was not granted, so
 * that peers may not use them; for a receive context, those of its endpoint.
 */
uint64_t tdm_ep_refused(const struct tdm_ep *ep);

#endif /* TDM_TCP_BIND_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the endpoints: the functions of ep.c and bind.c for all kinds of
 * endpoint, and the kinds that have a file of their own.
 *
 *   ep.c       fi_endpoint(): open, enable and close with transports
 *   bind.c     queues, counters and other bound objects
 *   alias.c    fi_ep_alias()
 *   srx_ctx.c  fi_srx_context(): a receive side that endpoints share
 *   stx.c      fi_stx_context()
 *   sep.c      fi_scalable_ep()
 *   context.c  fi_tx_context() and fi_rx_context() of it
 */
#ifndef TDM_TCP_EP_PRIV_H
#define TDM_TCP_EP_PRIV_H

#include "tcp/ep.h"

/*
 * An endpoint without ops tables, disabled, with a copy of @info. NULL: out of
 * memory. It is not counted by @domain yet. Lock: not needed.
 */
struct tdm_ep *tdm_ep_alloc(struct tdm_domain *domain,
			    const struct fi_info *info, enum tdm_ep_kind kind,
			    void *context);

/*
 * Free @ep, whose transports have closed, and unbind it from all objects.
 * Lock: held.
 */
void tdm_ep_free(struct tdm_ep *ep);

/*
 * fi_enable(3) of an endpoint with transports. Errors: those of fi_enable, and
 * of binding the address. Lock: held.
 */
int tdm_ep_enable(struct tdm_ep *ep);

/* Make the receive side of @ep. Errors: -FI_ENOMEM. */
int tdm_ep_open_srx(struct tdm_ep *ep);

/* Attributes of its receive side, or of those of its contexts. */
struct tdm_srx_attr tdm_ep_srx_attr(struct tdm_ep *ep);

/* The kinds of receives of @ep whose source counts, as the SRX has them. */
static inline int tdm_ep_directed_kinds(const struct tdm_ep *ep)
{
	return (ep->directed & FI_MSG ? TDM_SRX_DIRECTED_MSG : 0) |
	       (ep->directed & FI_TAGGED ? TDM_SRX_DIRECTED_TAG : 0);
}

/* The address to bind to: the info's source, or the best interface. */
int tdm_ep_own_name(struct tdm_ep *ep);

/*
 * fi_close(3) of an endpoint that has transports: send the injects that wait,
 * print the report, and disable it, if it is enabled. Lock: held; released
 * while injects wait, for at most a second.
 */
void tdm_ep_quit(struct tdm_ep *ep);

/* The default flags of operations, from the info and the bindings. */
void tdm_ep_resolve_flags(struct tdm_ep *ep);

/* Calls that several kinds of endpoint share; each takes the lock. */
int tdm_ep_control(struct fid *fid, int command, void *arg);

/*
 * fi_cancel(3) of the send with @context that a transport of @ep, which is
 * enabled, has. Lock: held. Errors: -FI_ENOENT, -FI_EAGAIN.
 */
ssize_t tdm_ep_cancel_send(struct tdm_ep *ep, void *context);

/*
 * fi_cancel(3) of the operation with @context on @ep, or on the endpoint of an
 * alias: first by @cancel(), then among deferred operations. @cancel: Lock:
 * held.
 */
ssize_t tdm_ep_cancel_by(struct tdm_ep *ep, void *context,
			 ssize_t (*cancel)(struct tdm_ep *ep, void *context));
ssize_t tdm_ep_rx_size_left(struct fid_ep *fid);
extern struct fi_ops_cm tdm_ep_cm_ops;
extern struct fi_ops_cm tdm_ep_no_cm_ops; /* for objects without a name */

/* fi_ep_bind(3), fi_scalable_ep_bind(3): bind.c. Lock: taken inside. */
int tdm_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

/* Callback of struct tdm_av_user: user ids came into use. Lock: held. */
void tdm_ep_av_ids(struct tdm_av_user *user);

/* Unbind queues, counters, AV and shared contexts. Lock: held. */
void tdm_ep_unbind(struct tdm_ep *ep);

/*
 * The last step of closing an endpoint that was bound to @eq, or (NULL) to
 * none. Lock: not held, since a reader of @eq may hold it.
 */
void tdm_ep_closed(struct tdm_domain *domain, struct tdm_eq *eq);

/*
 * Are all objects bound that fi_enable(3) needs? Errors: -FI_ENOAV, -FI_ENOCQ,
 * -FI_EOPBADSTATE without a shared context. Lock: held.
 */
int tdm_ep_check_bound(const struct tdm_ep *ep);

/*
 * Fill *@done with the exports for @t that report sends and receives of @ep.
 * Lock: held.
 */
void tdm_ep_done(struct tdm_ep *ep, enum tdm_transport t,
		 struct tdm_done *done);

/*
 * bind.c: the rights among FI_REMOTE_READ and FI_REMOTE_WRITE that @ep was not
 * granted, so that peers may not use them; for a receive context those of its
 * endpoint.
 */
uint64_t tdm_ep_refused(const struct tdm_ep *ep);

/* option.c: set the sizes that options may lower to their maximum. */
void tdm_option_init(struct tdm_ep *ep);

/* Not 0 when an option has lowered one. */
int tdm_ep_limited(struct tdm_ep *ep);

/* fi_control(FI_GETOPSFLAG). Errors: -FI_EINVAL. Lock: held. */
int tdm_ep_get_op_flags(struct tdm_ep *ep, uint64_t *flags);

/*
 * fi_control(FI_SETOPSFLAG): FI_TRANSMIT or FI_RECV says which direction.
 * Errors: -FI_EBADFLAGS, -FI_EINVAL. Lock: held.
 */
int tdm_ep_set_op_flags(struct tdm_ep *ep, uint64_t flags);

/* alias.c: fi_control(FI_ALIAS) on @ep. Lock: held. */
int tdm_alias_open(struct tdm_ep *ep, const struct fi_alias *alias);

/* Update the aliases of @ep after it was enabled. Lock: held. */
void tdm_alias_follow(struct tdm_ep *ep);

/*
 * srx_ctx.c: bind; at enabling, share the AV and set where operations are
 * reported.
 */
int tdm_srx_ctx_bind(struct tdm_ep *ep, struct fid *fid);
int tdm_srx_ctx_enable(struct tdm_ep *ep, const struct tdm_done *done);

/* @ep, bound to a shared context, is enabled; is unbound. Lock: held. */
void tdm_srx_ctx_join(struct tdm_ep *ep);
void tdm_srx_ctx_leave(struct tdm_ep *ep);

/* context.c: members that @attr leaves open stay as they are in @a. */
void tdm_rx_attr_merge(struct fi_rx_attr *a, const struct fi_rx_attr *attr);

/* stx.c */
int tdm_stx_bind(struct tdm_ep *ep, struct fid *fid);
void tdm_stx_put(struct tdm_stx *stx);

/* sep.c: enable @ep, unless a context has done it. Lock: held. */
int tdm_sep_enable(struct tdm_ep *ep);

/*
 * Keys: keys.c. Take them when @ep is being enabled, from its AV or attributes,
 * and give them back; zero-safe. Errors: -FI_ENOMEM. Lock: held.
 */
int tdm_ep_take_keys(struct tdm_ep *ep) tdm_must_check;
void tdm_ep_give_keys(struct tdm_ep *ep);

/*
 * Log the address of @ep, which has been enabled, and whether it has no key and
 * can be reached from other hosts.
 */
void tdm_ep_tell_open(const struct tdm_ep *ep);

/* The number of the key of @addr in the AV of @ep, for struct tdm_srx_attr. */
uint32_t tdm_ep_key_of(void *ep, fi_addr_t addr);

/* May @ep have a pair with @addr, which is in its AV? */
int tdm_ep_key_ok(const struct tdm_ep *ep, fi_addr_t addr);

#endif /* TDM_TCP_EP_PRIV_H */

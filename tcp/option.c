/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoint options, fi_endpoint(3), fi_getopt and fi_setopt, and the default
 * operation flags of fi_control(FI_SETOPSFLAG).
 *
 * Lock: the domain's, taken here (not in tdm_ep_set_op_flags()).
 */
#include "tcp/option.h"

#include <stdbool.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp/ep_priv.h"
#include "tcp/getinfo.h"

/* The options that lower a size, which the endpoint must not exceed then. */
static const struct limit {
	int name;
	size_t offset; /* in struct tdm_limits */
	uint64_t caps; /* the endpoint must have been granted */
	int inject;
} limits[] = {
	{ FI_OPT_MAX_MSG_SIZE, offsetof(struct tdm_limits, msg), FI_MSG, 0 },
	{ FI_OPT_MAX_TAGGED_SIZE, offsetof(struct tdm_limits, tagged),
	  FI_TAGGED, 0 },
	{ FI_OPT_MAX_RMA_SIZE, offsetof(struct tdm_limits, rma), FI_RMA, 0 },
	{ FI_OPT_MAX_ATOMIC_SIZE, offsetof(struct tdm_limits, atomic),
	  FI_ATOMIC, 0 },
	{ FI_OPT_INJECT_MSG_SIZE, offsetof(struct tdm_limits, inject_msg),
	  FI_MSG, 1 },
	{ FI_OPT_INJECT_TAGGED_SIZE, offsetof(struct tdm_limits, inject_tagged),
	  FI_TAGGED, 1 },
	{ FI_OPT_INJECT_RMA_SIZE, offsetof(struct tdm_limits, inject_rma),
	  FI_RMA, 1 },
	{ FI_OPT_INJECT_ATOMIC_SIZE, offsetof(struct tdm_limits, inject_atomic),
	  FI_ATOMIC, 1 },
};

static size_t *limit_of(struct tdm_ep *ep, const struct limit *l)
{
	return (size_t *)(void *)((char *)&ep->limits + l->offset);
}

/* Returns the greatest value that may be set: what fi_getinfo(3) granted. */
static size_t limit_most(const struct tdm_ep *ep, const struct limit *l)
{
	size_t most = l->inject ? ep->inject_bytes :
				  ep->info->ep_attr->max_msg_size;

	return l->caps == FI_ATOMIC ? tdm_min(most, TDM_AMO_BYTES) : most;
}

/* Returns the limit option @name of @ep, or NULL: it has none. */
static const struct limit *find_limit(const struct tdm_ep *ep, int name)
{
	size_t i;

	for (i = 0; i < TDM_ARRAY_LEN(limits); i++) {
		if (limits[i].name == name)
			return ep->info->caps & limits[i].caps ? &limits[i] :
								 NULL;
	}
	return NULL;
}

void tdm_option_init(struct tdm_ep *ep)
{
	size_t i;

	if (!ep->info->ep_attr->max_msg_size)
		ep->info->ep_attr->max_msg_size = TDM_MAX_MSG_BYTES;
	for (i = 0; i < TDM_ARRAY_LEN(limits); i++)
		*limit_of(ep, &limits[i]) = limit_most(ep, &limits[i]);
}

int tdm_ep_limited(struct tdm_ep *ep)
{
	size_t i;

	for (i = 0; i < TDM_ARRAY_LEN(limits); i++) {
		if (*limit_of(ep, &limits[i]) != limit_most(ep, &limits[i]))
			return 1;
	}
	return 0;
}

int tdm_ep_check(const struct tdm_ep *ep, const struct tdm_xfer *x)
{
	const struct tdm_limits *l = &ep->limits;
	size_t most = l->msg, inject = l->inject_msg;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (x->flags & FI_TAGGED) {
		most = l->tagged;
		inject = l->inject_tagged;
	} else if (x->flags & FI_RMA) {
		most = l->rma;
		inject = l->inject_rma;
	} else if (x->flags & FI_ATOMIC) {
		most = l->atomic;
		inject = l->inject_atomic;
	}
	return x->len > most || ((x->flags & FI_INJECT) && x->len > inject) ?
		       -FI_EMSGSIZE :
		       0;
}

/* Set *@value to the value of a size option. Returns 0 or -FI_ENOPROTOOPT. */
static int size_option(struct tdm_ep *ep, int name, size_t *value)
{
	const struct limit *l = find_limit(ep, name);

	if (l) {
		*value = *limit_of(ep, l);
		return 0;
	}
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		*value = ep->min_multi_recv;
		return 0;
	case FI_OPT_CM_DATA_SIZE:
		*value = 0; /* endpoints are connectionless, fi_cm(3) */
		return 0;
	case FI_OPT_TX_SIZE:
		*value = ep->tx_size;
		return 0;
	case FI_OPT_RX_SIZE:
		*value = ep->info->rx_attr->size;
		return 0;
	default:
		return -FI_ENOPROTOOPT;
	}
}

static int put(void *optval, size_t *optlen, const void *value, size_t len)
{
	size_t room = *optlen;

	*optlen = len;
	if (room < len)
		return -FI_ETOOSMALL;
	memcpy(optval, value, len);
	return 0;
}

/*
 * FI_OPT_SHARED_MEMORY_PERMITTED of @ep. A shared receive context has no paths:
 * the endpoints decide that are bound to it.
 */
static int shm_permitted(const struct tdm_ep *ep)
{
	return ep->root ? ep->root->shm_permitted : tdm_env.shm != TDM_SHM_OFF;
}

int tdm_ep_getopt(fid_t fid, int level, int optname, void *optval,
		  size_t *optlen)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	int ret, p2p = FI_HMEM_P2P_DISABLED;
	size_t value;
	bool yes;

	if (!optlen || (*optlen && !optval))
		return -FI_EINVAL;
	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (optname == FI_OPT_SHARED_MEMORY_PERMITTED) {
		yes = !!shm_permitted(ep);
		return put(optval, optlen, &yes, sizeof(yes));
	}
	if (optname == FI_OPT_FI_HMEM_P2P)
		return put(optval, optlen, &p2p, sizeof(p2p));
	tdm_lock_acquire(&ep->domain->lock);
	ret = size_option(ep, optname, &value);
	tdm_lock_release(&ep->domain->lock);
	return ret ? ret : put(optval, optlen, &value, sizeof(value));
}

static int set_shm_permitted(struct tdm_ep *ep, const void *optval,
			     size_t optlen)
{
	bool yes;

	/* Contexts have no paths of their own. */
	if (!ep->kind->has_transports)
		return -FI_ENOPROTOOPT;
	if (optlen != sizeof(yes))
		return -FI_EINVAL;
	if (ep->enabled)
		return -FI_EOPBADSTATE;
	memcpy(&yes, optval, sizeof(yes));
	/* An option cannot allow a thing that the environment forbids. */
	if (yes && tdm_env.shm == TDM_SHM_OFF)
		return -FI_EINVAL;
	ep->root->shm_permitted = yes;
	return 0;
}

/* Only host memory is supported, so there is one valid value. */
static int set_hmem_p2p(const void *optval, size_t optlen)
{
	int p2p;

	if (optlen != sizeof(p2p))
		return -FI_EINVAL;
	memcpy(&p2p, optval, sizeof(p2p));
	return p2p == FI_HMEM_P2P_DISABLED ? 0 : -FI_EOPNOTSUPP;
}

static void set_min_multi_recv(struct tdm_ep *ep, size_t bytes)
{
	ep->min_multi_recv = bytes;
	ep->rx_side->set_min_multi_recv(ep, bytes);
}

static int set_size(struct tdm_ep *ep, int optname, size_t value)
{
	const struct limit *l = find_limit(ep, optname);

	if (optname == FI_OPT_MIN_MULTI_RECV) {
		set_min_multi_recv(ep, value);
		return 0;
	}
	if (!l)
		return -FI_ENOPROTOOPT;
	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (value > limit_most(ep, l))
		return -FI_EINVAL;
	*limit_of(ep, l) = value;
	return 0;
}

static int set_locked(struct tdm_ep *ep, int optname, const void *optval,
		      size_t optlen)
{
	size_t value;

	switch (optname) {
	case FI_OPT_SHARED_MEMORY_PERMITTED:
		return set_shm_permitted(ep, optval, optlen);
	case FI_OPT_FI_HMEM_P2P:
		return set_hmem_p2p(optval, optlen);
	case FI_OPT_CUDA_API_PERMITTED:
		return -FI_EINVAL; /* fi_endpoint(3): there is no CUDA */
	default:
		break;
	}
	if (size_option(ep, optname, &value))
		return -FI_ENOPROTOOPT;
	if (optlen != sizeof(value))
		return -FI_EINVAL;
	memcpy(&value, optval, sizeof(value));
	return set_size(ep, optname, value);
}

int tdm_ep_setopt(fid_t fid, int level, int optname, const void *optval,
		  size_t optlen)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	int ret;

	if (!optval)
		return -FI_EINVAL;
	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	tdm_lock_acquire(&ep->domain->lock);
	ret = set_locked(ep, optname, optval, optlen);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

int tdm_ep_get_op_flags(const struct tdm_handle *h, uint64_t *flags)
{
	switch (*flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		*flags = h->tx_default;
		return 0;
	case FI_RECV:
		*flags = h->rx_default;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

int tdm_ep_set_op_flags(struct tdm_handle *h, uint64_t flags)
{
	uint64_t op = flags & ~(FI_TRANSMIT | FI_RECV);
	/* fi_trigger(3): only if the capability was granted. */
	uint64_t trigger = h->ep->info->caps & FI_TRIGGER;

	switch (flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		if (op & ~(TDM_TX_OP_FLAGS | trigger))
			return -FI_EBADFLAGS;
		h->tx_default = op;
		break;
	case FI_RECV:
		if (op & ~(TDM_RX_OP_FLAGS | trigger))
			return -FI_EBADFLAGS;
		h->rx_default = op;
		break;
	default:
		return -FI_EINVAL;
	}
	tdm_handle_resolve_flags(h);
	return 0;
}

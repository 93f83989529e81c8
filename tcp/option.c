/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoint options, fi_endpoint(3), fi_getopt and fi_setopt, and the default
 * operation flags of fi_control(FI_SETOPSFLAG).
 *
 * Lock: the domain's, taken here (not in tdm_ep_set_op_flags()).
 */
#include <stdbool.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "tcp/ep.h"
#include "tcp/getinfo.h"

/* The value of a size option, 0 and *@value, or -FI_ENOPROTOOPT. */
static int size_option(const struct tdm_ep *ep, int name, size_t *value)
{
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		*value = ep->min_multi_recv;
		return 0;
	case FI_OPT_MAX_MSG_SIZE:
	case FI_OPT_MAX_TAGGED_SIZE:
		*value = TDM_MAX_MSG_BYTES;
		return 0;
	case FI_OPT_INJECT_MSG_SIZE:
	case FI_OPT_INJECT_TAGGED_SIZE:
		*value = ep->inject_bytes;
		return 0;
	case FI_OPT_TX_SIZE:
		*value = ep->info->tx_attr->size;
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

int tdm_ep_getopt(fid_t fid, int level, int optname, void *optval,
		  size_t *optlen)
{
	struct tdm_ep *ep = tdm_container_of(fid, struct tdm_ep, fid.fid);
	size_t value;
	bool yes;
	int ret;

	if (!optlen || (*optlen && !optval))
		return -FI_EINVAL;
	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (optname == FI_OPT_SHARED_MEMORY_PERMITTED) {
		yes = !!ep->shm_permitted;
		return put(optval, optlen, &yes, sizeof(yes));
	}
	tdm_lock_acquire(&ep->domain->lock);
	ret = size_option(ep, optname, &value);
	tdm_lock_release(&ep->domain->lock);
	return ret ? ret : put(optval, optlen, &value, sizeof(value));
}

static int set_locked(struct tdm_ep *ep, int optname, const void *optval,
		      size_t optlen)
{
	size_t value, limit;
	bool yes;

	if (optname == FI_OPT_SHARED_MEMORY_PERMITTED) {
		if (optlen != sizeof(yes))
			return -FI_EINVAL;
		if (ep->enabled)
			return -FI_EOPBADSTATE;
		memcpy(&yes, optval, sizeof(yes));
		/* What the environment forbids an option cannot allow. */
		if (yes && tdm_env.shm == TDM_SHM_OFF)
			return -FI_EINVAL;
		ep->shm_permitted = yes;
		return 0;
	}
	if (size_option(ep, optname, &limit))
		return -FI_ENOPROTOOPT;
	if (optlen != sizeof(value))
		return -FI_EINVAL;
	memcpy(&value, optval, sizeof(value));
	switch (optname) {
	case FI_OPT_MIN_MULTI_RECV:
		ep->min_multi_recv = value;
		tdm_srx_set_min_multi_recv(ep->srx, value);
		return 0;
	case FI_OPT_MAX_MSG_SIZE:
	case FI_OPT_MAX_TAGGED_SIZE:
	case FI_OPT_INJECT_MSG_SIZE:
	case FI_OPT_INJECT_TAGGED_SIZE:
		/* A smaller limit than the one kept is a promise kept. */
		if (ep->enabled)
			return -FI_EOPBADSTATE;
		return value > limit ? -FI_EINVAL : 0;
	default:
		return -FI_ENOPROTOOPT;
	}
}

int tdm_ep_setopt(fid_t fid, int level, int optname, const void *optval,
		  size_t optlen)
{
	struct tdm_ep *ep = tdm_container_of(fid, struct tdm_ep, fid.fid);
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

int tdm_ep_set_op_flags(struct tdm_ep *ep, uint64_t flags)
{
	uint64_t op = flags & ~(FI_TRANSMIT | FI_RECV);

	switch (flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		if (op & ~(uint64_t)TDM_TX_OP_FLAGS)
			return -FI_EBADFLAGS;
		ep->info->tx_attr->op_flags = op;
		ep->tx_op_flags = op | (ep->tx_selective ? 0 : FI_COMPLETION);
		return 0;
	case FI_RECV:
		if (op & ~(uint64_t)TDM_RX_OP_FLAGS)
			return -FI_EBADFLAGS;
		ep->info->rx_attr->op_flags = op;
		ep->rx_op_flags = op | (ep->rx_selective ? 0 : FI_COMPLETION);
		return 0;
	default:
		return -FI_EINVAL;
	}
}

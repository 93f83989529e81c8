/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The offer of the provider, fi_getinfo(3): the attributes, the rules by which
 * hints are accepted, lowered or refused, and the addresses of an info.
 */
#ifndef TDM_TCP_GETINFO_H
#define TDM_TCP_GETINFO_H

#include <rdma/fabric.h>

#include "av/addr.h"
#include "tdm_order.h"

/* Capabilities, each defined in fi_tandem(7), CAPABILITIES. */
#define TDM_PRIMARY_CAPS                                                       \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV |         \
	 FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE |               \
	 FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV | \
	 FI_NAMED_RX_CTX | FI_COLLECTIVE)
#define TDM_SECONDARY_CAPS                                                     \
	(FI_MULTI_RECV | FI_TAGGED_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR |    \
	 FI_RMA_EVENT | FI_TRIGGER | FI_FENCE | FI_LOCAL_COMM |                \
	 FI_REMOTE_COMM | FI_AV_USER_ID | FI_SHARED_AV)
#define TDM_CAPS (TDM_PRIMARY_CAPS | TDM_SECONDARY_CAPS)
/*
 * Capabilities that make calls fail which succeed without them: granted only if
 * the hints name them.
 */
#define TDM_STRICT_CAPS (FI_EXACT_DIRECTED_RECV | FI_SOURCE_ERR)
/*
 * Granted likewise, since messages cost more with them: addresses have groups.
 */
#define TDM_DEAR_CAPS FI_COLLECTIVE
/*
 * Capabilities below another owner, fi_peer(3); not those that the receive context
 * of another owner cannot have.
 */
#define TDM_PEER_CAPS                                                          \
	((TDM_CAPS &                                                           \
	  ~(FI_TRIGGER | FI_NAMED_RX_CTX | FI_SOURCE_ERR | FI_COLLECTIVE)) |   \
	 FI_PEER)
/* Granted if the hints name no capability. */
#define TDM_FREE_CAPS (TDM_CAPS & ~(uint64_t)(TDM_STRICT_CAPS | TDM_DEAR_CAPS))
#define TDM_DOMAIN_CAPS                                                        \
	(FI_LOCAL_COMM | FI_REMOTE_COMM | FI_AV_USER_ID | FI_SHARED_AV)
/*
 * Capabilities of each direction. tx_attr.caps and rx_attr.caps ignore those of
 * the other one: applications copy all of fi_info.caps there.
 */
#define TDM_TX_CAPS                                                            \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ |         \
	 FI_WRITE | FI_TRIGGER | FI_FENCE | FI_NAMED_RX_CTX | FI_COLLECTIVE)
#define TDM_RX_CAPS                                                            \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ |  \
	 FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV |        \
	 FI_EXACT_DIRECTED_RECV | FI_MULTI_RECV | FI_TAGGED_MULTI_RECV |       \
	 FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT | FI_TRIGGER |               \
	 FI_COLLECTIVE)
/*
 * Capabilities that rx_attr.caps list only if the hints name them: they are
 * newer than most applications.
 */
#define TDM_NAMED_RX_CAPS                                                      \
	(FI_TAGGED_DIRECTED_RECV | TDM_STRICT_CAPS | FI_TAGGED_MULTI_RECV)
#define TDM_TX_OP_FLAGS                                                        \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |                      \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define TDM_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)
/* Atomic operations are carried out one by one as they arrive. */
#define TDM_MSG_ORDER                                                          \
	(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |            \
	 FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/*
 * TDM_MSG_ORDER, and the orders that cost something: granted if the hints name
 * them.
 */
#define TDM_ORDERS (TDM_MSG_ORDER | TDM_ORDER_RMA)

/*
 * Returns the kinds of receives, FI_MSG and FI_TAGGED, whose source is compared
 * with @caps; FI_EXACT_DIRECTED_RECV alone implies FI_DIRECTED_RECV.
 */
static inline uint64_t tdm_caps_directed(uint64_t caps)
{
	if (caps & FI_DIRECTED_RECV)
		return FI_MSG | FI_TAGGED;
	if (caps & FI_TAGGED_DIRECTED_RECV)
		return FI_TAGGED;
	return caps & FI_EXACT_DIRECTED_RECV ? FI_MSG | FI_TAGGED : 0;
}

/* Alternating bits: all 64 tag bits are one field, fi_endpoint(3). */
#define TDM_TAG_FORMAT 0xaaaaaaaaaaaaaaaaull

/*
 * The flag of fi_getinfo() with which libfabric's layered providers ask other
 * providers for an endpoint to build on (the core passes it on; no installed
 * header names it).
 */
#define TDM_GETINFO_LAYERED (1ull << 59)

enum {
	TDM_DEFAULT_CTX_SIZE = 1024,
	TDM_CQ_DATA_BYTES = 8,
	TDM_MR_KEY_BYTES = 8,
	TDM_MAX_EPS = 32768,
	TDM_MAX_CONTEXTS = 256, /* of a scalable endpoint, each way */
	TDM_MAX_QUEUES = 65536,
	TDM_MAX_CNTRS = 65536,
	TDM_MAX_MRS = 1 << 20,
	TDM_MIN_MULTI_RECV_BYTES = 64,
	TDM_PROTO_VERSION = 1,
};

/*
 * fi_endpoint(3), protocol: a provider's own protocol numbers have the highest bit
 * set, so that TDM_PROTO, read as an int, is negative.
 */
#define TDM_PROTO 0x80007464u

/* struct fi_provider.getinfo; called without any lock, by any thread. */
int tdm_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

struct tdm_iface;

/*
 * Fill in the addresses and the names of domain and fabric of @info from the
 * arguments of fi_getinfo(); names and an address format that are set are kept.
 * If several interfaces fit, copies of @info for the others are appended to it.
 * Errors: -FI_ENODATA, -FI_ENOMEM.
 */
int tdm_info_addresses(const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info *info);

#endif /* TDM_TCP_GETINFO_H */

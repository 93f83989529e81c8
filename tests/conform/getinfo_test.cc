/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo(3): every attribute of the hints is granted, lowered to what is
 * asked, or refused; every bit that is offered is taken back.
 */
#include <arpa/inet.h>
#include <functional>
#include <netinet/in.h>
#include <string>

#include "tests/harness/fixture.h"

namespace
{

class Getinfo : public testing::Test
{
protected:
	struct fi_info *hints = nullptr, *info = nullptr;

	void SetUp() override
	{
		hints = fi_allocinfo();
		ASSERT_NE(nullptr, hints);
		hints->fabric_attr->prov_name = strdup(tdt_prov_name());
		hints->ep_attr->type = FI_EP_RDM;
	}

	void TearDown() override
	{
		if (hints)
			fi_freeinfo(hints);
		drop();
	}

	void drop()
	{
		if (info)
			fi_freeinfo(info);
		info = nullptr;
	}

	int get(const char *node = nullptr, const char *service = nullptr,
		uint64_t flags = 0)
	{
		drop();
		return fi_getinfo(TDT_API, node, service, flags, hints, &info);
	}

	/* The entry for hints that ask for nothing. */
	struct fi_info *offer()
	{
		EXPECT_EQ(0, get());
		return info ? fi_dupinfo(info) : nullptr;
	}
};

using Change = std::function<void(struct fi_info *)>;

struct Hint {
	const char *name;
	Change set;
	int want; /* 0 or -FI_ENODATA */
};

#define HINT(field, value, want)                                               \
	{ #field " = " #value,                                                 \
	  [](struct fi_info *h) { h->field = (decltype(h->field))(value); },   \
	  want }

const Hint table[] = {
	HINT(caps, FI_MSG, 0),
	HINT(caps, FI_TAGGED, 0),
	HINT(caps, FI_MSG | FI_SEND, 0),
	HINT(caps, FI_MSG | FI_RECV, 0),
	HINT(caps, FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, 0),
	HINT(caps, FI_MSG | FI_MULTI_RECV, 0),
	HINT(caps, FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM, 0),
	HINT(caps, FI_MSG | FI_SHARED_AV, 0),
	HINT(caps, FI_COLLECTIVE, 0),
	HINT(caps, FI_MSG | FI_TAGGED | FI_COLLECTIVE, 0),
	HINT(caps, FI_MSG | FI_HMEM, -FI_ENODATA),
	HINT(caps, FI_MSG | FI_MULTICAST, -FI_ENODATA),
	HINT(caps, FI_MSG | FI_TRIGGER, 0),
	HINT(caps, FI_MSG | FI_NAMED_RX_CTX, 0),
	HINT(caps, FI_MSG | FI_RMA_PMEM, -FI_ENODATA),
	HINT(mode, 0, 0),
	HINT(mode, FI_CONTEXT | FI_CONTEXT2, 0),
	HINT(mode, ~0ull, 0),
	HINT(addr_format, FI_FORMAT_UNSPEC, 0),
	HINT(addr_format, FI_SOCKADDR, 0),
	HINT(addr_format, FI_SOCKADDR_IN, 0),
	HINT(addr_format, FI_ADDR_STR, 0),
	HINT(addr_format, 17 /* FI_SOCKADDR_IP, from 2.3 */, 0),
	HINT(addr_format, FI_SOCKADDR_IB, -FI_ENODATA),
	HINT(addr_format, FI_ADDR_EFA, -FI_ENODATA),
	HINT(addr_format, FI_ADDR_PSMX3, -FI_ENODATA),
	HINT(ep_attr->type, FI_EP_UNSPEC, 0),
	HINT(ep_attr->type, FI_EP_RDM, 0),
	HINT(ep_attr->type, FI_EP_MSG, -FI_ENODATA),
	HINT(ep_attr->type, FI_EP_DGRAM, 0),
	HINT(ep_attr->protocol, FI_PROTO_EFA, -FI_ENODATA),
	HINT(ep_attr->protocol_version, 0xffff, -FI_ENODATA),
	HINT(ep_attr->max_msg_size, 1 << 20, 0),
	HINT(ep_attr->msg_prefix_size, 8, -FI_ENODATA),
	HINT(ep_attr->max_order_raw_size, SIZE_MAX, -FI_ENODATA),
	HINT(ep_attr->tx_ctx_cnt, 1, 0),
	HINT(ep_attr->tx_ctx_cnt, 256, 0),
	HINT(ep_attr->tx_ctx_cnt, 257, -FI_ENODATA),
	HINT(ep_attr->rx_ctx_cnt, 256, 0),
	HINT(ep_attr->rx_ctx_cnt, 257, -FI_ENODATA),
	HINT(ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT, 0),
	HINT(ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT, 0),
	HINT(tx_attr->caps, FI_MSG | FI_SEND, 0),
	HINT(tx_attr->caps, FI_MULTICAST, -FI_ENODATA),
	HINT(tx_attr->op_flags, FI_INJECT, 0),
	HINT(tx_attr->op_flags, FI_COMPLETION, 0),
	HINT(tx_attr->op_flags, FI_INJECT_COMPLETE, 0),
	HINT(tx_attr->op_flags, FI_TRANSMIT_COMPLETE, 0),
	HINT(tx_attr->op_flags, FI_DELIVERY_COMPLETE, 0),
	HINT(tx_attr->op_flags, FI_MATCH_COMPLETE, 0),
	HINT(tx_attr->op_flags, FI_COMMIT_COMPLETE, -FI_ENODATA),
	HINT(tx_attr->msg_order, 0, 0),
	HINT(tx_attr->msg_order, FI_ORDER_SAS, 0),
	HINT(tx_attr->comp_order, 0, 0),
	HINT(tx_attr->comp_order, 1, -FI_ENODATA),
	HINT(tx_attr->inject_size, 8, 0),
	HINT(tx_attr->inject_size, 1 << 20, -FI_ENODATA),
	HINT(tx_attr->size, 1, 0),
	HINT(tx_attr->size, 4096, 0),
	HINT(tx_attr->size, SIZE_MAX, 0),
	HINT(tx_attr->iov_limit, 1, 0),
	HINT(tx_attr->iov_limit, 8, 0),
	HINT(tx_attr->iov_limit, 1024, -FI_ENODATA),
	HINT(rx_attr->caps, FI_MSG | FI_RECV, 0),
	HINT(rx_attr->op_flags, FI_COMPLETION, 0),
	HINT(rx_attr->op_flags, FI_INJECT, -FI_ENODATA),
	HINT(rx_attr->msg_order, FI_ORDER_SAS, 0),
	HINT(rx_attr->comp_order, 1ull << 16, -FI_ENODATA),
	HINT(rx_attr->total_buffered_recv, 1, -FI_ENODATA),
	HINT(rx_attr->size, 4096, 0),
	HINT(rx_attr->size, SIZE_MAX, 0),
	HINT(rx_attr->iov_limit, 8, 0),
	HINT(rx_attr->iov_limit, 1024, -FI_ENODATA),
	HINT(domain_attr->threading, FI_THREAD_SAFE, 0),
	HINT(domain_attr->threading, FI_THREAD_COMPLETION, 0),
	HINT(domain_attr->threading, FI_THREAD_DOMAIN, 0),
	HINT(domain_attr->control_progress, FI_PROGRESS_MANUAL, 0),
	HINT(domain_attr->data_progress, FI_PROGRESS_MANUAL, 0),
	HINT(domain_attr->control_progress, FI_PROGRESS_AUTO, 0),
	HINT(domain_attr->data_progress, FI_PROGRESS_AUTO, 0),
	HINT(domain_attr->control_progress, FI_PROGRESS_CONTROL_UNIFIED, 0),
	HINT(domain_attr->progress, FI_PROGRESS_CONTROL_UNIFIED, 0),
	HINT(domain_attr->progress, 77, -FI_ENODATA),
	HINT(domain_attr->resource_mgmt, FI_RM_ENABLED, 0),
	HINT(domain_attr->resource_mgmt, FI_RM_DISABLED, 0),
	HINT(domain_attr->av_type, FI_AV_TABLE, 0),
	HINT(domain_attr->av_type, FI_AV_MAP, 0),
	HINT(domain_attr->mr_mode, 1 /* FI_MR_BASIC */, 0),
	HINT(domain_attr->mr_mode, 2 /* FI_MR_SCALABLE */, 0),
	HINT(domain_attr->mr_mode,
	     FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	     0),
	HINT(domain_attr->cq_data_size, 8, 0),
	HINT(domain_attr->cq_data_size, 9, -FI_ENODATA),
	HINT(domain_attr->cq_cnt, 100, 0),
	HINT(domain_attr->cq_cnt, SIZE_MAX, 0),
	HINT(domain_attr->ep_cnt, 100, 0),
	HINT(domain_attr->ep_cnt, SIZE_MAX, 0),
	HINT(domain_attr->cntr_cnt, 100, 0),
	HINT(domain_attr->cntr_cnt, SIZE_MAX, 0),
	HINT(domain_attr->max_ep_tx_ctx, 256, 0),
	HINT(domain_attr->max_ep_tx_ctx, 257, -FI_ENODATA),
	HINT(domain_attr->max_ep_rx_ctx, 256, 0),
	HINT(domain_attr->max_ep_rx_ctx, 257, -FI_ENODATA),
	HINT(domain_attr->max_ep_stx_ctx, 100, 0),
	HINT(domain_attr->max_ep_stx_ctx, SIZE_MAX, 0),
	HINT(domain_attr->max_ep_srx_ctx, 100, 0),
	HINT(domain_attr->max_ep_srx_ctx, SIZE_MAX, 0),
	HINT(domain_attr->max_err_data, 1 << 20, 0),
	HINT(domain_attr->caps, FI_LOCAL_COMM | FI_REMOTE_COMM, 0),
	HINT(domain_attr->caps, FI_AV_USER_ID, 0),
	HINT(domain_attr->caps, FI_SHARED_AV, 0),
	HINT(domain_attr->max_group_id, 1, 0),
	HINT(domain_attr->max_group_id, UINT32_MAX, -FI_ENODATA),
	HINT(domain_attr->name, strdup("no such interface"), -FI_ENODATA),
	HINT(fabric_attr->name, strdup("no such fabric"), -FI_ENODATA),
	HINT(fabric_attr->prov_version, 0x7fff0000, -FI_ENODATA),
};

class Hints : public Getinfo, public testing::WithParamInterface<size_t>
{
};

TEST_P(Hints, GrantedOrRefused)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 6: A hint that is not zero is met or
	 * refused with -FI_ENODATA. */
	const Hint &h = table[GetParam()];

	ONLY_TANDEM();
	h.set(hints);
	EXPECT_EQ(h.want, get()) << h.name;
	if (h.want) {
		EXPECT_EQ(nullptr, info);
	}
}

INSTANTIATE_TEST_SUITE_P(Each, Hints,
			 testing::Range<size_t>(0, sizeof(table) /
							   sizeof(table[0])));

TEST_F(Getinfo, NameIsSetByTheCore)
{
	/* fi_fabric(3) 2.1, prov_name - Provider Name 1: It is the name of the
	 * provider, which libfabric itself fills in. */
	ASSERT_EQ(0, get());
	EXPECT_STREQ(tdt_prov_name(), info->fabric_attr->prov_name);
	EXPECT_NE(nullptr, info->fabric_attr->name);
	EXPECT_NE(nullptr, info->domain_attr->name);
}

TEST_F(Getinfo, OfferIsComplete)
{
	/* fi_tandem(7), LIMITS. */
	ONLY_TANDEM();
	ASSERT_EQ(0, get());
	EXPECT_EQ(FI_EP_RDM, info->ep_attr->type);
	EXPECT_EQ(4096u, info->tx_attr->inject_size);
	EXPECT_EQ(8u, info->tx_attr->iov_limit);
	EXPECT_EQ(8u, info->rx_attr->iov_limit);
	EXPECT_EQ(1024u, info->tx_attr->size);
	EXPECT_EQ(1024u, info->rx_attr->size);
	EXPECT_EQ(8u, info->domain_attr->cq_data_size);
	EXPECT_EQ(FI_RM_ENABLED, info->domain_attr->resource_mgmt);
	EXPECT_EQ(FI_PROGRESS_MANUAL, info->domain_attr->data_progress);
	EXPECT_EQ(FI_AV_UNSPEC, info->domain_attr->av_type);
	EXPECT_EQ(0u, info->mode);
	EXPECT_EQ(0u, info->tx_attr->comp_order);
	EXPECT_EQ(0u, info->rx_attr->total_buffered_recv);
	EXPECT_NE(0u, info->domain_attr->cntr_cnt);
}

TEST_F(Getinfo, DatagramsAreOfferedByNameOnly)
{
	/* fi_tandem(7), DATAGRAM ENDPOINTS: Without hints, or with
	 * FI_EP_UNSPEC, fi_getinfo(3) returns FI_EP_RDM only. */
	static const struct {
		enum fi_ep_type asked, given;
	} types[] = {
		{ FI_EP_UNSPEC, FI_EP_RDM },
		{ FI_EP_RDM, FI_EP_RDM },
		{ FI_EP_DGRAM, FI_EP_DGRAM },
	};

	ONLY_TANDEM();
	for (auto t : types) {
		hints->ep_attr->type = t.asked;
		ASSERT_EQ(0, get());
		for (struct fi_info *i = info; i; i = i->next)
			EXPECT_EQ(t.given, i->ep_attr->type);
	}
	drop();
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, nullptr, &info));
	for (struct fi_info *i = info; i; i = i->next) {
		std::string name = i->fabric_attr->prov_name;

		EXPECT_EQ(std::string::npos, name.find("tandem;")) << name;
		if (name == tdt_prov_name()) {
			EXPECT_EQ(FI_EP_RDM, i->ep_attr->type);
		}
	}
}

TEST_F(Getinfo, DatagramOfferDiffersByItsTypeOnly)
{
	/*
	 * fi_tandem(7), DATAGRAM ENDPOINTS: "Apart from the type they equal
	 * those of FI_EP_RDM", whatever else the hints say.
	 */
	static const Change changes[] = {
		[](struct fi_info *) {},
		[](struct fi_info *h) { h->caps = FI_TAGGED | FI_RMA; },
		[](struct fi_info *h) { h->tx_attr->inject_size = 8; },
		[](struct fi_info *h) { h->ep_attr->tx_ctx_cnt = 7; },
		[](struct fi_info *h) { h->addr_format = FI_ADDR_STR; },
	};

	ONLY_TANDEM();
	for (auto &change : changes) {
		std::string text[2];

		change(hints);
		hints->ep_attr->type = FI_EP_DGRAM;
		ASSERT_EQ(0, get("127.0.0.1", "4711", FI_SOURCE));
		info->ep_attr->type = FI_EP_RDM;
		text[0] = fi_tostr(info, FI_TYPE_INFO);
		hints->ep_attr->type = FI_EP_RDM;
		ASSERT_EQ(0, get("127.0.0.1", "4711", FI_SOURCE));
		text[1] = fi_tostr(info, FI_TYPE_INFO);
		EXPECT_EQ(text[1], text[0]);
	}
}

TEST_F(Getinfo, LayeredProvidersGetNoDatagrams)
{
	/* fi_tandem(7), DATAGRAM ENDPOINTS: "Providers that are layered over
	 * others ... get no datagram endpoints (-FI_ENODATA)". Their requests
	 * have this flag; all else is answered as without it. */
	const uint64_t layered = 1ull << 59;

	ONLY_TANDEM();
	hints->ep_attr->type = FI_EP_DGRAM;
	EXPECT_EQ(-FI_ENODATA, get(nullptr, nullptr, layered));
	EXPECT_EQ(nullptr, info);
	for (auto type : { FI_EP_UNSPEC, FI_EP_RDM }) {
		hints->ep_attr->type = type;
		ASSERT_EQ(0, get(nullptr, nullptr, layered));
		EXPECT_EQ(FI_EP_RDM, info->ep_attr->type);
	}
}

TEST_F(Getinfo, ProgressIsGrantedAsAskedFor)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 14: FI_PROGRESS_UNSPEC:
	 * the hints leave it open. The cheapest model is given. */
	static const enum fi_progress levels[] = {
		FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO,
		FI_PROGRESS_CONTROL_UNIFIED
	};

	ONLY_TANDEM();
	for (auto control : levels) {
		for (auto data : levels) {
			hints->domain_attr->control_progress = control;
			hints->domain_attr->data_progress = data;
			ASSERT_EQ(0, get());
			EXPECT_EQ(control ? control : FI_PROGRESS_MANUAL,
				  info->domain_attr->control_progress);
			EXPECT_EQ(data ? data : FI_PROGRESS_MANUAL,
				  info->domain_attr->data_progress);
		}
	}
}

TEST_F(Getinfo, EveryBitOfTheOfferIsTakenBack)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 1: Capabilities that came back can be
	 * asked for, bit by bit. */
	struct fi_info *o = offer();

	ASSERT_NE(nullptr, o);
	for (int bit = 0; bit < 64; bit++) {
		uint64_t b = 1ull << bit;

		if (!(o->caps & b))
			continue;
		hints->caps = b |
			      (b & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC) ?
				       0 :
				       FI_MSG);
		EXPECT_EQ(0, get()) << fi_tostr(&b, FI_TYPE_CAPS);
		if (info) {
			EXPECT_EQ(b, info->caps & b);
		}
	}
	fi_freeinfo(o);
}

TEST_F(Getinfo, EveryCombinationOfContextFlagsIsTakenBack)
{
	/* fi_getinfo(3) 2.1, FI_INFO 10 and 11: as above, for tx_attr and
	 * rx_attr. */
	struct fi_info *o = offer();

	ASSERT_NE(nullptr, o);
	for (int bit = 0; bit < 64; bit++) {
		uint64_t b = 1ull << bit;

		hints->tx_attr->caps = o->tx_attr->caps & b;
		hints->rx_attr->caps = o->rx_attr->caps & b;
		hints->tx_attr->msg_order = o->tx_attr->msg_order & b;
		hints->rx_attr->msg_order = o->rx_attr->msg_order & b;
		EXPECT_EQ(0, get()) << bit;
	}
	fi_freeinfo(o);
}

TEST_F(Getinfo, OfferAsHintsIsGranted)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 6: An entry that was returned can be
	 * passed in again. */
	struct fi_info *o = offer(), *again = nullptr;

	ASSERT_NE(nullptr, o);
	EXPECT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, o, &again));
	ASSERT_NE(nullptr, again);
	EXPECT_EQ(o->caps, again->caps);
	fi_freeinfo(again);
	fi_freeinfo(o);
}

TEST_F(Getinfo, PrimaryCapsOnlyWhenAsked)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 34: Only the primary capabilities
	 * that were asked for have to work. */
	const uint64_t primary =
		FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST |
		FI_NAMED_RX_CTX | FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV |
		FI_HMEM | FI_COLLECTIVE | FI_AV_USER_ID | FI_PEER;

	for (uint64_t asked : { uint64_t(FI_MSG), uint64_t(FI_TAGGED),
				uint64_t(FI_MSG | FI_DIRECTED_RECV) }) {
		hints->caps = asked;
		ASSERT_EQ(0, get());
		EXPECT_EQ(asked, info->caps & primary);
		EXPECT_EQ(uint64_t(FI_SEND | FI_RECV),
			  info->caps & (FI_SEND | FI_RECV))
			<< "both directions when none is named";
	}
	hints->caps = FI_MSG | FI_SEND;
	ASSERT_EQ(0, get());
	EXPECT_FALSE(info->caps & FI_RECV);
}

TEST_F(Getinfo, AskedValuesAreReturned)
{
	/* fi_getinfo(3) 2.1, FI_INFO 10: a returned value is never less than
	 * the hint. */
	hints->tx_attr->size = 2000;
	hints->rx_attr->size = 3000;
	hints->tx_attr->iov_limit = 2;
	hints->tx_attr->inject_size = 64;
	hints->ep_attr->max_msg_size = 12345;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	ASSERT_EQ(0, get());
	EXPECT_GE(info->tx_attr->size, 2000u);
	EXPECT_GE(info->rx_attr->size, 3000u);
	EXPECT_GE(info->tx_attr->iov_limit, 2u);
	EXPECT_GE(info->tx_attr->inject_size, 64u);
	EXPECT_GE(info->ep_attr->max_msg_size, 12345u);
	EXPECT_EQ(uint64_t(FI_DELIVERY_COMPLETE), info->tx_attr->op_flags);
	EXPECT_EQ(FI_THREAD_DOMAIN, info->domain_attr->threading);
}

TEST_F(Getinfo, SourceAddressIsTheNode)
{
	/* fi_getinfo(3) 2.1, FLAGS 4: FI_SOURCE: node and service name the
	 * endpoint's own address. */
	hints->addr_format = FI_SOCKADDR_IN;
	ASSERT_EQ(0, get("127.0.0.1", "4711", FI_SOURCE));
	ASSERT_EQ(sizeof(struct sockaddr_in), info->src_addrlen);
	auto *sin = static_cast<struct sockaddr_in *>(info->src_addr);
	EXPECT_EQ(htonl(INADDR_LOOPBACK), sin->sin_addr.s_addr);
	EXPECT_EQ(htons(4711), sin->sin_port);
	EXPECT_EQ(uint32_t(FI_SOCKADDR_IN), info->addr_format);
	ASSERT_EQ(0, get(nullptr, "4712", FI_SOURCE));
	sin = static_cast<struct sockaddr_in *>(info->src_addr);
	EXPECT_EQ(htons(4712), sin->sin_port);
}

TEST_F(Getinfo, DestinationAddressIsResolved)
{
	/* fi_getinfo(3) 2.1, FI_INFO 8: dest_addr is the address that node and
	 * service name. */
	hints->addr_format = FI_SOCKADDR_IN;
	ASSERT_EQ(0, get("127.0.0.1", "4711"));
	ASSERT_EQ(sizeof(struct sockaddr_in), info->dest_addrlen);
	auto *sin = static_cast<struct sockaddr_in *>(info->dest_addr);
	EXPECT_EQ(htonl(INADDR_LOOPBACK), sin->sin_addr.s_addr);
	EXPECT_EQ(htons(4711), sin->sin_port);
	ASSERT_NE(nullptr, info->src_addr);
	sin = static_cast<struct sockaddr_in *>(info->src_addr);
	EXPECT_EQ(htonl(INADDR_LOOPBACK), sin->sin_addr.s_addr)
		<< "the address from which it would be reached";
}

TEST_F(Getinfo, AddrStrNode)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 5: node may be an FI_ADDR_STR. */
	ONLY_TANDEM();
	hints->addr_format = FI_SOCKADDR_IN;
	ASSERT_EQ(0,
		  get("fi_sockaddr_in://127.0.0.1:4713", nullptr, FI_SOURCE));
	auto *sin = static_cast<struct sockaddr_in *>(info->src_addr);
	EXPECT_EQ(htons(4713), sin->sin_port);
}

TEST_F(Getinfo, NodesNobodyHas)
{
	/* fi_getinfo(3) 2.1, ERRORS 2: -FI_ENODATA, never a crash, for names
	 * that do not resolve and addresses of others. */
	hints->addr_format = FI_SOCKADDR_IN;
	for (const char *node : { "256.1.1.1", "", "fi_sockaddr_in://x",
				  "fi_sockaddr_in://[::1]:1", "a b c" }) {
		EXPECT_GT(0, get(node, "1", FI_SOURCE | FI_NUMERICHOST))
			<< node;
		EXPECT_EQ(nullptr, info);
	}
	std::string longest(4096, 'a');
	EXPECT_GT(0, get(longest.c_str(), "1", FI_NUMERICHOST));
	EXPECT_GT(0, get("127.0.0.1", "no-such-service"));
	EXPECT_GT(0, get("127.0.0.1", "99999"));
}

TEST_F(Getinfo, BadSourceOfHints)
{
	/* fi_getinfo(3) 2.1, FI_INFO 5: A src_addr has a length. Short and
	 * foreign addresses are refused, not read over. */
	struct sockaddr_in sin;

	memset(&sin, 0, sizeof(sin));
	sin.sin_family = AF_INET;
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	hints->addr_format = FI_SOCKADDR_IN;
	for (size_t len : { 1u, 2u, 8u, 15u }) {
		hints->src_addr = malloc(len);
		memcpy(hints->src_addr, &sin, len);
		hints->src_addrlen = len;
		EXPECT_GT(0, get()) << len;
		free(hints->src_addr);
		hints->src_addr = nullptr;
	}
	hints->src_addr = malloc(sizeof(sin));
	hints->src_addrlen = sizeof(sin);
	memcpy(hints->src_addr, &sin, sizeof(sin));
	ASSERT_EQ(0, get());
	auto *got = static_cast<struct sockaddr_in *>(info->src_addr);
	EXPECT_EQ(sin.sin_addr.s_addr, got->sin_addr.s_addr);
	static_cast<struct sockaddr_in *>(hints->src_addr)->sin_family =
		AF_UNIX;
	EXPECT_GT(0, get());
}

TEST_F(Getinfo, UnknownFlagsAreTolerated)
{
	/* Flags reach providers unmodified, internal ones included
	 * (FI_RESCAN of 2.6 is bit 35). */
	ONLY_TANDEM();
	EXPECT_EQ(0, get(nullptr, nullptr, 1ull << 35));
}

TEST_F(Getinfo, OldAndNewApiVersions)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 4: version says which interfaces the
	 * application was written for. */
	for (uint32_t v :
	     { FI_VERSION(1, 5), FI_VERSION(1, 11), FI_VERSION(1, 20),
	       FI_VERSION(2, 0), FI_VERSION(2, 1) }) {
		drop();
		EXPECT_EQ(0, fi_getinfo(v, nullptr, nullptr, 0, hints, &info))
			<< v;
	}
}

TEST_F(Getinfo, CallersBefore15GetOneOfTheirModes)
{
	/* fi_domain(3) 2.1, Memory Registration Mode (mr_mode) 10, 12 and 13:
	 * Up to version 1.4 the field has one of the values FI_MR_UNSPEC (hints
	 * only), FI_MR_BASIC and FI_MR_SCALABLE. */
	const int unspec = 0, basic = 1, scalable = 2;

	ONLY_TANDEM();
	for (uint32_t v : { FI_VERSION(1, 0), FI_VERSION(1, 4) }) {
		for (int asked : { unspec, basic, scalable }) {
			drop();
			hints->domain_attr->mr_mode = asked;
			ASSERT_EQ(0, fi_getinfo(v, nullptr, nullptr, 0, hints,
						&info));
			EXPECT_EQ(asked ? asked : basic,
				  info->domain_attr->mr_mode);
		}
	}
	drop();
	hints->domain_attr->mr_mode = unspec;
	ASSERT_EQ(0, fi_getinfo(FI_VERSION(1, 5), nullptr, nullptr, 0, hints,
				&info));
	EXPECT_EQ(0, info->domain_attr->mr_mode);
}

TEST_F(Getinfo, WithoutHints)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 2: Without node, service and hints,
	 * every provider answers. */
	bool found = false;

	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, nullptr, &info));
	for (struct fi_info *i = info; i; i = i->next)
		found |= !strcmp(i->fabric_attr->prov_name, tdt_prov_name());
	EXPECT_TRUE(found);
}

TEST_F(Getinfo, SparseHints)
{
	/* fi_getinfo(3) 2.1, FI_INFO 10 to 14: Hints may lack the structures of
	 * attributes. */
	struct fi_info bare;

	memset(&bare, 0, sizeof(bare));
	bare.fabric_attr = hints->fabric_attr;
	bare.caps = FI_MSG;
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, &bare, &info));
}

TEST_F(Getinfo, DomainNameChoosesTheInterface)
{
	/* fi_tandem(7), ADDRESSES: domain_attr.name of an entry is the name of
	 * the interface; in hints it chooses one. */
	ONLY_TANDEM();
	hints->domain_attr->name = strdup("lo");
	ASSERT_EQ(0, get());
	EXPECT_STREQ("lo", info->domain_attr->name);
	hints->addr_format = FI_SOCKADDR_IN;
	ASSERT_EQ(0, get());
	auto *sin = static_cast<struct sockaddr_in *>(info->src_addr);
	EXPECT_EQ(htonl(INADDR_LOOPBACK), sin->sin_addr.s_addr);
}

} // namespace

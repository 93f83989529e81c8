/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities of endpoints and contexts, as applications write them down:
 * the whole of fi_info.caps in both directions, kinds without directions,
 * lists copied from an earlier fi_getinfo(3).
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "tests/harness/fixture.h"
#include "tests/harness/raw.h"

namespace
{

const uint64_t SENDS = FI_SEND | FI_READ | FI_WRITE;
const uint64_t RECEIVES = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
const uint64_t STRICT = FI_EXACT_DIRECTED_RECV | FI_SOURCE_ERR;
const uint64_t KINDS = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

class Caps : public Raw
{
protected:
	/* A plain endpoint of info, enabled. */
	struct fid_ep *enabled()
	{
		struct fid_ep *ep;
		struct fid_av *a = av();
		struct fid_cq *q = cq();

		ep = endpoint();
		if (!ep)
			return nullptr;
		EXPECT_EQ(0, fi_ep_bind(ep, &a->fid, 0));
		EXPECT_EQ(0, fi_ep_bind(ep, &q->fid, FI_TRANSMIT | FI_RECV));
		EXPECT_EQ(0, fi_enable(ep));
		return ep;
	}
};

TEST_F(Caps, OfBothDirectionsInEachAttribute)
{
	/* fi_tandem(7), CAPABILITIES: in tx_attr->caps and rx_attr->caps bits
	 * of the other direction are ignored. */
	const uint64_t all = KINDS | SENDS | RECEIVES | FI_DIRECTED_RECV |
			     FI_MULTI_RECV | FI_NAMED_RX_CTX | FI_SOURCE |
			     FI_RMA_EVENT | FI_FENCE | FI_TRIGGER |
			     FI_LOCAL_COMM | FI_REMOTE_COMM;

	ONLY_TANDEM();
	for (int which = 1; which < 4; which++) {
		renew();
		hints->caps = all;
		hints->tx_attr->caps = which & 1 ? all : 0;
		hints->rx_attr->caps = which & 2 ? all : 0;
		ASSERT_EQ(0, get()) << which;
		EXPECT_EQ(all, info->caps);
		EXPECT_EQ(SENDS, info->tx_attr->caps & (SENDS | RECEIVES));
		EXPECT_EQ(RECEIVES, info->rx_attr->caps & (SENDS | RECEIVES));
		EXPECT_EQ(KINDS, info->tx_attr->caps & KINDS);
		EXPECT_EQ(KINDS, info->rx_attr->caps & KINDS);
		EXPECT_EQ(0u, info->tx_attr->caps & FI_DIRECTED_RECV);
		EXPECT_EQ(0u, info->rx_attr->caps & FI_NAMED_RX_CTX);
		open_domain();
		/* The same again for what is opened. */
		info->tx_attr->caps = info->rx_attr->caps = all;
		endpoint();
		close_all();
	}
}

TEST_F(Caps, WhatNobodyKnowsIsStillRefused)
{
	/* fi_getinfo(3) 2.1, ERRORS 2: -FI_ENODATA for a capability that the
	 * provider does not have. */
	ONLY_TANDEM();
	hints->tx_attr->caps = FI_MSG | FI_MULTICAST;
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	hints->rx_attr->caps = FI_MSG | FI_HMEM;
	EXPECT_EQ(-FI_ENODATA, get());
}

TEST_F(Caps, ASideWithoutABitOfItsOwnIsLeftOpen)
{
	ONLY_TANDEM();
	hints->caps = FI_MSG | FI_RMA | FI_WRITE | FI_RECV | FI_SEND;
	hints->tx_attr->caps = FI_RECV | FI_REMOTE_WRITE;
	hints->rx_attr->caps = FI_SEND | FI_FENCE;
	ASSERT_EQ(0, get());
	EXPECT_EQ(uint64_t(FI_MSG | FI_RMA | FI_WRITE | FI_SEND),
		  info->tx_attr->caps);
	EXPECT_EQ(uint64_t(FI_MSG | FI_RMA | FI_RECV), info->rx_attr->caps);
}

TEST_F(Caps, WhatIsListedForNobodyForbidsNothing)
{
	/* fi_tandem(7), FI_EXACT_DIRECTED_RECV, FI_SOURCE_ERR: for those who
	 * name them. Applications take what is listed without hints, put it
	 * into the hints of their next call, and receive from anybody. */
	char buf[8];

	ONLY_TANDEM();
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, nullptr, &info));
	for (struct fi_info *i = info; i; i = i->next) {
		if (strcmp(i->fabric_attr->prov_name, tdt_prov_name()))
			continue;
		EXPECT_EQ(0u, i->caps & STRICT);
		EXPECT_EQ(0u, i->rx_attr->caps & STRICT);
		hints->caps = i->caps;
	}
	ASSERT_NE(0u, hints->caps);
	ASSERT_EQ(0, get());
	EXPECT_EQ(0u, info->caps & STRICT);
	open_domain();
	struct fid_ep *ep = enabled();
	ASSERT_NE(nullptr, ep);
	EXPECT_EQ(0, fi_trecv(ep, buf, sizeof(buf), nullptr, FI_ADDR_UNSPEC, 1,
			      0, nullptr));
	EXPECT_EQ(0, fi_recv(ep, buf, sizeof(buf), nullptr, FI_ADDR_UNSPEC,
			     nullptr));
}

TEST_F(Caps, WhatForbidsIsForThoseWhoNameIt)
{
	ONLY_TANDEM();
	hints->caps = FI_MSG | FI_SOURCE | STRICT;
	ASSERT_EQ(0, get());
	EXPECT_EQ(STRICT, info->caps & STRICT);
	EXPECT_EQ(STRICT, info->rx_attr->caps & STRICT);
}

TEST_F(Caps, ContextsTakeTheCapsOfTheirEndpoint)
{
	/* fi_tandem(7), CONTEXTS: attributes of contexts follow the same
	 * rules. A receive context may be opened with FI_NAMED_RX_CTX among
	 * its caps, as it stands in those of the endpoint. */
	struct fid_ep *sep, *tx, *rx;
	struct fid_stx *stx;

	ONLY_TANDEM();
	hints->caps = KINDS | SENDS | RECEIVES | FI_NAMED_RX_CTX;
	ASSERT_EQ(0, get());
	open_domain();
	ASSERT_EQ(0, fi_scalable_ep(domain, info, &sep, nullptr));
	keep(sep);
	struct fi_tx_attr ta = *info->tx_attr;
	struct fi_rx_attr ra = *info->rx_attr;
	ta.caps = ra.caps = info->caps;
	ASSERT_EQ(0, fi_tx_context(sep, 0, &ta, &tx, nullptr));
	keep(tx);
	EXPECT_EQ(0u, ta.caps & RECEIVES);
	ASSERT_EQ(0, fi_rx_context(sep, 0, &ra, &rx, nullptr));
	keep(rx);
	EXPECT_EQ(0u, ra.caps & (SENDS | FI_NAMED_RX_CTX));
	ta.caps = ra.caps = info->caps;
	ASSERT_EQ(0, fi_srx_context(domain, &ra, &rx, nullptr));
	keep(rx);
	ASSERT_EQ(0, fi_stx_context(domain, &ta, &stx, nullptr));
	keep(stx);
}

/* One-sided calls of a context whose caps name kinds only. */
class CapsOfContexts : public Raw, public testing::WithParamInterface<uint64_t>
{
};

TEST_P(CapsOfContexts, KindsWithoutADirectionHaveBoth)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 2 and 23: An application that names
	 * none of the directions of FI_RMA or FI_ATOMIC asks for all of them.
	 * So too for a transmit context. */
	struct fid_ep *sep, *tx;
	struct fi_tx_attr ta;
	char buf[8] = { 0 };
	uint64_t value = 0, result = 0;
	fi_addr_t to = 0;

	ONLY_TANDEM();
	hints->caps = KINDS | SENDS | RECEIVES;
	ASSERT_EQ(0, get());
	open_domain();
	struct fid_av *a = av();
	struct fid_cq *q = cq();
	ASSERT_EQ(0, fi_scalable_ep(domain, info, &sep, nullptr));
	keep(sep);
	ASSERT_EQ(0, fi_scalable_ep_bind(sep, &a->fid, 0));
	ta = *info->tx_attr;
	ta.caps = GetParam();
	ASSERT_EQ(0, fi_tx_context(sep, 0, &ta, &tx, nullptr));
	keep(tx);
	EXPECT_EQ(uint64_t(FI_READ | FI_WRITE), ta.caps & (FI_READ | FI_WRITE));
	ASSERT_EQ(0, fi_ep_bind(tx, &q->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_enable(tx));
	/* The calls are granted; there is no such address. */
	EXPECT_EQ(-FI_EINVAL, fi_read(tx, buf, 8, nullptr, to, 0, 1, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_write(tx, buf, 8, nullptr, to, 0, 1, nullptr));
	EXPECT_EQ(-FI_EINVAL,
		  fi_fetch_atomic(tx, &value, 1, nullptr, &result, nullptr, to,
				  0, 1, FI_UINT64, FI_SUM, nullptr));
}

INSTANTIATE_TEST_SUITE_P(Each, CapsOfContexts,
			 testing::Values(FI_RMA | FI_ATOMIC, KINDS | FI_SEND,
					 KINDS | FI_NAMED_RX_CTX,
					 KINDS | RECEIVES));

} // namespace

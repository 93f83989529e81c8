/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of the contract: our owner, with a mock peer that imported its
 * objects through the link. The mock peer's transport does what a test tells
 * it and remembers what it is asked.
 */
#ifndef TDT_OWNER_SIDE_H
#define TDT_OWNER_SIDE_H

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <netinet/in.h>

#include <gtest/gtest.h>

#include "tests/unit/fake_engine.h"
#include "tests/unit/mock_peer.h"

extern "C" {
#include "peer/link.h"
}

/* The peer's half of an SRX: keeps what it was started or told to discard. */
struct Transport {
	struct fi_ops_srx_peer ops = {};
	std::vector<struct fi_peer_rx_entry *> started;
	std::vector<struct fi_peer_rx_entry *> discarded;
	std::vector<std::string> calls;

	static Transport *&self()
	{
		static Transport *one;

		return one;
	}

	Transport()
	{
		self() = this;
		ops.size = sizeof(ops);
		ops.start_msg = [](struct fi_peer_rx_entry *e) {
			return self()->start("start_msg", e);
		};
		ops.start_tag = [](struct fi_peer_rx_entry *e) {
			return self()->start("start_tag", e);
		};
		ops.discard_msg = [](struct fi_peer_rx_entry *e) {
			return self()->discard("discard_msg", e);
		};
		ops.discard_tag = [](struct fi_peer_rx_entry *e) {
			return self()->discard("discard_tag", e);
		};
	}

	int start(const char *call, struct fi_peer_rx_entry *e)
	{
		calls.push_back(call);
		started.push_back(e);
		return 0;
	}

	int discard(const char *call, struct fi_peer_rx_entry *e)
	{
		calls.push_back(call);
		discarded.push_back(e);
		return 0;
	}
};

class OwnerSide : public testing::Test
{
protected:
	tdt::FakeEngine engine;
	tdt::MockPeer peer;
	Transport transport;
	struct fid_domain owner = {};
	struct fi_info *info = fi_allocinfo();
	struct tdm_link *link = nullptr;
	struct fid_av *av = nullptr;
	struct tdm_srx *srx = nullptr;
	struct tdm_cq *cq = nullptr;
	struct tdm_cntr *tx = nullptr, *rx = nullptr;
	struct fid_ep *ep = nullptr;
	struct fi_cq_attr cq_attr = {};
	int directed = 1;
	std::vector<struct tdm_peer_event> events;

	/* The attributes that the peer received. */
	struct fid_peer_cq *pcq = nullptr;
	struct fid_peer_cntr *ptx = nullptr, *prx = nullptr;
	struct fid_peer_srx *psrx = nullptr;

	OwnerSide()
	{
		info->caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
		info->addr_format = FI_SOCKADDR_IN;
		cq_attr.format = FI_CQ_FORMAT_TAGGED;
		cq_attr.wait_obj = FI_WAIT_FD;
	}

	~OwnerSide() override
	{
		fi_freeinfo(info);
	}

	void SetUp() override
	{
		struct tdm_link_attr attr = {};

		attr.prov = &peer.prov;
		attr.owner = &owner;
		attr.engine = &engine.engine;
		attr.info = info;
		attr.event = [](void *arg, const struct tdm_peer_event *ev) {
			static_cast<OwnerSide *>(arg)->events.push_back(*ev);
		};
		attr.arg = this;
		ASSERT_EQ(0, tdm_link_open(&attr, &link));
		ASSERT_EQ(0,
			  tdm_cq_open(&engine.engine, &cq_attr, 1, this, &cq));
		ASSERT_EQ(0, tdm_cntr_open(&engine.engine, nullptr, this, &tx));
		ASSERT_EQ(0, tdm_cntr_open(&engine.engine, nullptr, this, &rx));
		engine.locked([&] { import_all(); });
		ASSERT_NE(nullptr, psrx);
	}

	void import_all()
	{
		static const struct sockaddr_in name = {};
		struct tdm_link_ep_attr attr = {};
		struct tdm_srx_attr sattr = {};
		const struct fi_av_attr av_attr = {};

		ASSERT_EQ(0, tdm_link_import_cq(link, cq));
		ASSERT_EQ(0, tdm_link_import_cntr(link, tx));
		ASSERT_EQ(0, tdm_link_import_cntr(link, rx));
		ASSERT_EQ(0, tdm_link_av_open(link, &av_attr, &av));
		sattr.engine = &engine.engine;
		sattr.size = 64;
		sattr.min_multi_recv = 64;
		sattr.directed = directed ? TDM_SRX_DIRECTED_MSG |
						    TDM_SRX_DIRECTED_TAG :
					    0;
		ASSERT_EQ(0, tdm_srx_open(&sattr, &srx));
		attr.info = info;
		attr.srx = tdm_srx_export(srx, TDM_TRANSPORT_LOCAL);
		attr.av = av;
		attr.tx_cq = attr.rx_cq = cq;
		attr.send_cntr = tx;
		attr.recv_cntr = rx;
		attr.name = &name;
		attr.namelen = sizeof(name);
		ASSERT_EQ(0, tdm_link_ep_open(link, &attr, &ep));
		pcq = peer.cqs.at(0);
		ptx = peer.cntrs.at(0);
		prx = peer.cntrs.at(1);
		psrx = peer.srxs.at(0);
		psrx->peer_ops = &transport.ops;
		set_done();
	}

	void set_done()
	{
		struct tdm_done done = {};

		done.rx_cq = done.tx_cq = pcq;
		done.send_cntr = ptx;
		done.recv_cntr = prx;
		tdm_srx_set_done(srx, &done);
	}

	void TearDown() override
	{
		engine.locked([&] {
			if (srx)
				tdm_srx_flush(srx);
			if (ep)
				tdm_link_ep_close(link, ep);
		});
		if (cq) {
			EXPECT_EQ(0, fi_close(&tdm_cq_fid(cq)->fid));
		}
		if (tx) {
			EXPECT_EQ(0, fi_close(&tdm_cntr_fid(tx)->fid));
		}
		if (rx) {
			EXPECT_EQ(0, fi_close(&tdm_cntr_fid(rx)->fid));
		}
		if (av)
			fi_close(&av->fid);
		engine.locked([&] {
			tdm_srx_close(srx);
			tdm_link_close(link);
		});
		EXPECT_EQ(0u, peer.open.size());
	}
};

#endif /* TDT_OWNER_SIDE_H */

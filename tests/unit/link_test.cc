/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link: what a peer is asked for and in which order, what it is given,
 * how it is driven and slept on, and that nothing is left open whichever
 * step fails.
 */
#include <gtest/gtest.h>

#include <algorithm>

#include <netinet/in.h>

#include "fake_engine.h"
#include "mock_peer.h"

extern "C" {
#include "base/auth.h"
#include "peer/link.h"
#include "tests/harness/fault.h"
}

namespace
{

using tdt::FakeEngine;
using tdt::MockPeer;

class Link : public testing::Test
{
protected:
	FakeEngine engine;
	MockPeer peer;
	struct fid_domain owner = {};
	struct fi_info *info = fi_allocinfo();
	struct tdm_link *link = nullptr;
	struct fid_av *av = nullptr;
	struct tdm_srx *srx = nullptr;
	std::vector<struct tdm_cq *> cqs;
	std::vector<struct tdm_cntr *> cntrs;
	std::vector<struct tdm_peer_event> events;
	std::vector<int> added, removed;
	int add_result = 0;

	Link()
	{
		info->caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV |
			     FI_SOURCE | FI_DIRECTED_RECV | FI_RMA | FI_READ |
			     FI_REMOTE_COMM | FI_MULTI_RECV;
		info->addr_format = FI_SOCKADDR_IN;
		info->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
		info->tx_attr->size = 333;
	}

	~Link() override
	{
		fi_freeinfo(info);
	}

	int open()
	{
		struct tdm_link_attr attr = {};

		attr.prov = &peer.prov;
		attr.owner = &owner;
		attr.engine = &engine.engine;
		attr.info = info;
		attr.event = [](void *arg, const struct tdm_peer_event *ev) {
			static_cast<Link *>(arg)->events.push_back(*ev);
		};
		attr.arg = this;
		return tdm_link_open(&attr, &link);
	}

	/* A link with an AV and an SRX; queues by add_cq() and add_cntr(). */
	void must_open()
	{
		const struct fi_av_attr av_attr = {};
		struct tdm_srx_attr attr = {};

		ASSERT_EQ(open(), 0);
		attr.engine = &engine.engine;
		attr.size = 16;
		engine.locked([&] {
			ASSERT_EQ(tdm_srx_open(&attr, &srx), 0);
			ASSERT_EQ(tdm_link_av_open(link, &av_attr, &av), 0);
		});
	}

	struct tdm_cq *add_cq()
	{
		struct tdm_cq *cq = nullptr;

		EXPECT_EQ(tdm_cq_open(&engine.engine, nullptr, 0, nullptr, &cq),
			  0);
		engine.locked(
			[&] { EXPECT_EQ(tdm_link_import_cq(link, cq), 0); });
		cqs.push_back(cq);
		return cq;
	}

	struct tdm_cntr *add_cntr()
	{
		struct tdm_cntr *c = nullptr;

		EXPECT_EQ(tdm_cntr_open(&engine.engine, nullptr, nullptr, &c),
			  0);
		engine.locked(
			[&] { EXPECT_EQ(tdm_link_import_cntr(link, c), 0); });
		cntrs.push_back(c);
		return c;
	}

	int open_ep(struct tdm_link_ep_attr attr, struct fid_ep **ep)
	{
		static const struct sockaddr_in name = {};
		int ret = 0;

		attr.info = info;
		attr.srx = tdm_srx_export(srx, TDM_TRANSPORT_LOCAL);
		attr.av = av;
		attr.name = &name;
		attr.namelen = sizeof(name);
		engine.locked([&] { ret = tdm_link_ep_open(link, &attr, ep); });
		return ret;
	}

	struct fid_ep *add_ep(struct tdm_link_ep_attr attr)
	{
		struct fid_ep *ep = nullptr;

		EXPECT_EQ(open_ep(attr, &ep), 0);
		return ep;
	}

	struct fid_ep *add_ep(struct tdm_cq *tx, struct tdm_cq *rx)
	{
		struct tdm_link_ep_attr attr = {};

		attr.tx_cq = tx;
		attr.rx_cq = rx;
		return add_ep(attr);
	}

	void close_ep(struct fid_ep *ep)
	{
		engine.locked([&] { tdm_link_ep_close(link, ep); });
	}

	void progress()
	{
		engine.locked([&] { tdm_link_progress(link); });
	}

	int arm()
	{
		int ret = 0;

		engine.locked([&] { ret = tdm_link_arm(link); });
		return ret;
	}

	int watch()
	{
		int ret = 0;

		engine.locked([&] {
			ret = tdm_link_watch(
				link,
				[](void *arg, int fd) {
					Link *l = static_cast<Link *>(arg);

					if (!l->add_result)
						l->added.push_back(fd);
					return l->add_result;
				},
				[](void *arg, int fd) {
					static_cast<Link *>(arg)
						->removed.push_back(fd);
				},
				this);
		});
		return ret;
	}

	void close_all()
	{
		for (struct tdm_cq *cq : cqs)
			EXPECT_EQ(fi_close(&tdm_cq_fid(cq)->fid), 0);
		for (struct tdm_cntr *c : cntrs)
			EXPECT_EQ(fi_close(&tdm_cntr_fid(c)->fid), 0);
		cqs.clear();
		cntrs.clear();
		if (av)
			fi_close(&av->fid);
		engine.locked([&] {
			tdm_srx_close(srx);
			tdm_link_close(link);
		});
		av = nullptr;
		srx = nullptr;
		link = nullptr;
	}

	void TearDown() override
	{
		close_all();
		EXPECT_EQ(peer.open.size(), 0u);
	}
};

TEST_F(Link, AsksForAPeerOnItsOwnTerms)
{
	ASSERT_EQ(open(), 0);
	ASSERT_NE(peer.hints, nullptr);
	EXPECT_EQ(peer.hints->caps, FI_MSG | FI_TAGGED | FI_SEND | FI_RECV |
					    FI_SOURCE | FI_DIRECTED_RECV |
					    FI_RMA | FI_READ | FI_PEER |
					    FI_AV_USER_ID);
	EXPECT_EQ(peer.hints->ep_attr->type, FI_EP_RDM);
	EXPECT_EQ(peer.hints->domain_attr->threading, FI_THREAD_DOMAIN);
	EXPECT_EQ(peer.hints->addr_format,
		  static_cast<uint32_t>(FI_SOCKADDR_IN));
	EXPECT_EQ(peer.fabric_version, fi_version());
	EXPECT_EQ(peer.find("fabric")->fabric.api_version, fi_version());
	EXPECT_EQ(peer.owner, &owner);
	EXPECT_NE(peer.events, nullptr);
}

TEST_F(Link, ThePeerIsReliableWhateverTheApplicationOpens)
{
	/* fi_tandem(7), DATAGRAM ENDPOINTS: a type of the application's info,
	 * of which no transport knows. */
	struct tdm_link_ep_attr attr = {};

	info->ep_attr->type = FI_EP_DGRAM;
	must_open();
	EXPECT_EQ(peer.hints->ep_attr->type, FI_EP_RDM);
	attr.tx_cq = attr.rx_cq = add_cq();
	close_ep(add_ep(attr));
	EXPECT_EQ(peer.ep_type, FI_EP_RDM);
}

TEST_F(Link, APeerWithoutDomainAndEqImportsWillDo)
{
	peer.no_domain2 = true;
	peer.no_eq = true;
	ASSERT_EQ(open(), 0);
	EXPECT_EQ(peer.owner, nullptr);
	progress();
}

TEST_F(Link, ARefusalIsPassedOnAndLeavesNothing)
{
	for (int n = 1; n <= 3; n++) {
		peer.fail_at = n;
		EXPECT_EQ(open(), -FI_ENOMEM) << n;
		EXPECT_EQ(link, nullptr);
		EXPECT_EQ(peer.open.size(), 0u);
		fi_freeinfo(peer.hints);
		peer.hints = nullptr;
	}
	tdm_link_close(nullptr);
}

TEST_F(Link, QueuesAreImportedByTheirLocalExport)
{
	struct tdm_cq *cq;
	struct tdm_cntr *c;

	must_open();
	cq = add_cq();
	c = add_cntr();
	EXPECT_EQ(tdm_cq_local(cq), &peer.find("cq")->cq);
	EXPECT_EQ(tdm_cntr_local(c), &peer.find("cntr")->cntr);
	EXPECT_EQ(peer.cqs.at(0), tdm_cq_export(cq, TDM_TRANSPORT_LOCAL));
	EXPECT_EQ(peer.cntrs.at(0), tdm_cntr_export(c, TDM_TRANSPORT_LOCAL));
}

TEST_F(Link, APeerWithoutDescriptorsIsOpenedWithoutWaiting)
{
	struct tdm_cq *cq;

	peer.no_wait_fd = true;
	must_open();
	cq = add_cq();
	EXPECT_NE(tdm_cq_local(cq), nullptr);
	EXPECT_NE(tdm_cntr_local(add_cntr()), nullptr);
	struct fid_ep *ep = add_ep(cq, cq);
	EXPECT_EQ(watch(), 0);
	EXPECT_EQ(arm(), -FI_EAGAIN) << "it must be polled";
	close_ep(ep);
	EXPECT_EQ(arm(), 0);
}

TEST_F(Link, AnImportThatFailsSaysWhy)
{
	struct tdm_cq *cq = nullptr;

	must_open();
	ASSERT_EQ(tdm_cq_open(&engine.engine, nullptr, 0, nullptr, &cq), 0);
	cqs.push_back(cq);
	peer.fd = 1;
	peer.no_wait_fd = true;
	peer.fail_at = 2;
	engine.locked(
		[&] { EXPECT_EQ(tdm_link_import_cq(link, cq), -FI_ENOMEM); });
	EXPECT_EQ(tdm_cq_local(cq), nullptr);
}

/*
 * fi_peer(3) 2.1, fi_ops_cq_owner::write() 2: The owner's address in, the
 * peer's out.
 */
TEST_F(Link, AddressesCarryTheOwnersId)
{
	struct sockaddr_in a = {};
	fi_addr_t at = FI_ADDR_UNSPEC;

	must_open();
	EXPECT_EQ(tdm_link_av_insert(av, &a, 0, 7, &at), 0);
	EXPECT_EQ(peer.user_ids[at], 7u);
	EXPECT_EQ(tdm_link_av_insert(av, nullptr, 0, 7, &at),
		  -FI_EADDRNOTAVAIL);
	tdm_link_av_remove(av, at);
	EXPECT_TRUE(peer.user_ids.empty());
}

/* tdm_keys.h: a peer that does not offer it gets no addresses with keys. */
TEST_F(Link, KeysWithNumbersNeedAPeerThatHasThem)
{
	struct tdm_auth_keys *keys = tdm_auth_alloc(1);
	struct tdm_link_ep_attr attr = {};
	struct sockaddr_in a = {};
	fi_addr_t at = FI_ADDR_UNSPEC;
	struct fid_ep *ep = nullptr;

	must_open();
	EXPECT_EQ(tdm_link_av_insert(av, &a, 3, 7, &at), -FI_ENOSYS);
	EXPECT_EQ(at, FI_ADDR_UNSPEC);
	keys->key[0].id = 3;
	keys->key[0].size = TDM_AUTH_LEAST_BYTES;
	attr.tx_cq = attr.rx_cq = add_cq();
	attr.keys = keys;
	EXPECT_EQ(open_ep(attr, &ep), -FI_ENOSYS);
	EXPECT_EQ(ep, nullptr);
	tdm_auth_free(keys);
}

TEST_F(Link, AnEndpointIsBoundNamedAndEnabledInOrder)
{
	struct tdm_link_ep_attr attr = {};
	struct fid_ep *ep;
	char text[64];

	must_open();
	attr.tx_cq = attr.rx_cq = add_cq();
	attr.send_cntr = add_cntr();
	attr.recv_cntr = add_cntr();
	attr.context = this;
	peer.calls.clear();
	ep = add_ep(attr);
	ASSERT_NE(ep, nullptr);
	EXPECT_EQ(ep->fid.context, this);
	EXPECT_EQ(peer.tx_op_flags, FI_DELIVERY_COMPLETE);
	EXPECT_EQ(peer.tx_size, 333u);
	EXPECT_EQ(peer.calls.front(), "ep");
	EXPECT_TRUE(peer.called("bind av 0"));
	snprintf(text, sizeof(text), "bind cq %#llx",
		 FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	EXPECT_TRUE(peer.called(text));
	snprintf(text, sizeof(text), "bind cq %#llx", FI_RECV);
	EXPECT_TRUE(peer.called(text));
	snprintf(text, sizeof(text), "bind cntr %#llx", FI_SEND);
	EXPECT_TRUE(peer.called(text));
	snprintf(text, sizeof(text), "bind cntr %#llx", FI_RECV);
	EXPECT_TRUE(peer.called(text));
	EXPECT_EQ(peer.position("srx") + 1, peer.position("bind srx 0"))
		<< "back to back";
	EXPECT_LT(peer.position("setname 16"), peer.position("enable"));
	EXPECT_EQ(peer.calls.back(), "enable");
	EXPECT_EQ(peer.srxs.at(0), tdm_srx_export(srx, TDM_TRANSPORT_LOCAL));
	close_ep(ep);
	EXPECT_EQ(peer.find("ep"), nullptr);
	EXPECT_EQ(peer.find("srx"), nullptr);
}

TEST_F(Link, AnEndpointThatFailsAtAnyStepLeavesNothing)
{
	struct tdm_link_ep_attr attr = {};
	struct fid_ep *ep = nullptr;
	size_t before;
	int n;

	must_open();
	attr.tx_cq = add_cq();
	attr.rx_cq = add_cq();
	attr.send_cntr = attr.recv_cntr = add_cntr();
	before = peer.open.size();
	for (n = 1; n < 50; n++) {
		peer.fail_at = n;
		if (!open_ep(attr, &ep))
			break;
		EXPECT_EQ(peer.open.size(), before) << n;
		EXPECT_EQ(ep, nullptr);
		progress();
		EXPECT_EQ(peer.find("cq", 1)->reads, 0) << "not driven";
	}
	EXPECT_EQ(n, 11) << "steps";
	close_ep(ep);
}

class LinkMemory : public Link, public testing::WithParamInterface<bool>
{
};

TEST_P(LinkMemory, AnEndpointWithoutMemoryLeavesNothing)
{
	struct tdm_auth_keys *keys = nullptr;
	struct tdm_link_ep_attr attr = {};
	struct fid_ep *ep = nullptr;
	size_t before;
	unsigned nth;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	must_open();
	attr.rx_cq = add_cq();
	if (GetParam()) {
		keys = tdm_auth_alloc(1);
		keys->key[0].size = TDM_AUTH_LEAST_BYTES;
	}
	attr.keys = keys;
	before = peer.open.size();
	for (nth = 1; nth < 50; nth++) {
		tdt_alloc_fail(nth, 0);
		int ret = open_ep(attr, &ep);
		if (!tdt_alloc_stop())
			break;
		if (ret == 0) {
			close_ep(ep);
			ep = nullptr;
		}
		EXPECT_EQ(peer.open.size(), before) << nth;
	}
	EXPECT_LT(nth, 50u);
	if (ep)
		close_ep(ep);
	tdm_auth_free(keys);
}

INSTANTIATE_TEST_SUITE_P(Key, LinkMemory, testing::Bool());

/* Each endpoint is driven through one queue, each queue is read once. */
TEST_F(Link, ProgressReadsEachQueueOnce)
{
	struct tdm_cq *a, *b;
	struct tdm_link_ep_attr counted = {};
	struct fid_ep *ep[4];

	must_open();
	a = add_cq();
	b = add_cq();
	counted.send_cntr = add_cntr();
	ep[0] = add_ep(a, b);
	ep[1] = add_ep(b, b);
	ep[2] = add_ep(a, nullptr);
	ep[3] = add_ep(counted);
	progress();
	EXPECT_EQ(peer.find("cq", 0)->reads, 1);
	EXPECT_EQ(peer.find("cq", 1)->reads, 1);
	EXPECT_EQ(peer.find("cntr")->reads, 1);
	close_ep(ep[1]);
	close_ep(ep[2]);
	progress();
	EXPECT_EQ(peer.find("cq", 0)->reads, 1);
	EXPECT_EQ(peer.find("cq", 1)->reads, 2) << "one endpoint is left";
	EXPECT_EQ(peer.find("cntr")->reads, 2);
	close_ep(ep[0]);
	close_ep(ep[3]);
	progress();
	EXPECT_EQ(peer.find("cq", 1)->reads, 2);
	EXPECT_EQ(peer.find("cntr")->reads, 2);
}

/* A counter of one-sided operations is enough to be driven. */
TEST_F(Link, AnyCounterDrives)
{
	for (size_t i = 0; i < 4; i++) {
		struct tdm_link_ep_attr attr = {};
		struct fid_ep *ep;

		must_open();
		attr.rma_cntr[i] = add_cntr();
		ep = add_ep(attr);
		progress();
		EXPECT_EQ(peer.find("cntr")->reads, 1) << i;
		close_ep(ep);
		close_all();
		fi_freeinfo(peer.hints);
		peer.hints = nullptr;
	}
}

TEST_F(Link, ManyQueuesAreAllDriven)
{
	std::vector<struct fid_ep *> eps;

	must_open();
	for (int i = 0; i < 40; i++)
		eps.push_back(add_ep(nullptr, add_cq()));
	progress();
	for (size_t i = 0; i < 40; i++)
		EXPECT_EQ(peer.find("cq", i)->reads, 1);
	for (struct fid_ep *ep : eps)
		close_ep(ep);
}

struct tdm_peer_event event_of(struct fid_ep *ep, uint32_t type)
{
	struct tdm_peer_event ev = {};

	ev.entry.fid = &ep->fid;
	ev.entry.data = 4;
	ev.type = type;
	return ev;
}

TEST_F(Link, EventsOfThePeerAreDelivered)
{
	struct tdm_cq *cq;
	struct fid_ep *a, *b;
	struct tdm_peer_event ev;
	char odd[600] = {};

	must_open();
	cq = add_cq();
	a = add_ep(cq, cq);
	b = add_ep(cq, cq);
	ev = event_of(a, TDM_PEER_UP);
	EXPECT_EQ(fi_eq_write(peer.events, FI_NOTIFY, &ev, sizeof(ev), 0),
		  static_cast<ssize_t>(sizeof(ev)));
	fi_eq_write(peer.events, FI_NOTIFY, odd, 8, 0);
	fi_eq_write(peer.events, FI_SHUTDOWN, &ev, sizeof(ev), 0);
	EXPECT_EQ(arm(), -FI_EAGAIN) << "events wait";
	ev = event_of(b, TDM_PEER_LOST);
	fi_eq_write(peer.events, FI_NOTIFY, &ev, sizeof(ev), 0);
	progress();
	ASSERT_EQ(events.size(), 2u);
	EXPECT_EQ(events[0].entry.fid, &a->fid);
	EXPECT_EQ(events[0].entry.data, 4u);
	EXPECT_EQ(events[0].type, static_cast<uint32_t>(TDM_PEER_UP));
	EXPECT_EQ(events[1].type, static_cast<uint32_t>(TDM_PEER_LOST));

	/* Once it is closed nothing is heard of an endpoint. */
	fi_eq_write(peer.events, FI_NOTIFY, &ev, sizeof(ev), 0);
	ev = event_of(a, TDM_PEER_LOST);
	fi_eq_write(peer.events, FI_NOTIFY, &ev, sizeof(ev), 0);
	close_ep(b);
	progress();
	ASSERT_EQ(events.size(), 3u);
	EXPECT_EQ(events[2].entry.fid, &a->fid);
	close_ep(a);
}

/* An event of a foreign shape does not block those behind it. */
TEST_F(Link, AnOversizedEventIsPassedOver)
{
	struct tdm_peer_event ev = {};
	char big[5000] = {};

	must_open();
	fi_eq_write(peer.events, FI_NOTIFY, big, sizeof(big), 0);
	fi_eq_write(peer.events, FI_NOTIFY, &ev, sizeof(ev), 0);
	progress();
	EXPECT_EQ(events.size(), 1u);
	EXPECT_EQ(arm(), 0);
}

TEST_F(Link, DescriptorsAreWatchedOnceAndWhileUsed)
{
	struct tdm_cq *a, *b;
	struct fid_ep *ep[3];

	peer.fd = 55;
	must_open();
	a = add_cq();
	b = add_cq();
	peer.find("cq", 1)->wait_fd = 55;
	ep[0] = add_ep(a, a);
	EXPECT_EQ(arm(), -FI_EAGAIN) << "nobody watches";
	EXPECT_EQ(watch(), 0);
	EXPECT_EQ(added, std::vector<int>({ 55 }));
	EXPECT_EQ(arm(), 0);
	EXPECT_EQ(peer.trywait_count, 1u);
	peer.trywait_result = -FI_EAGAIN;
	EXPECT_EQ(arm(), -FI_EAGAIN);
	peer.trywait_result = 0;

	/* A second queue of the same descriptor, a third with its own. */
	ep[1] = add_ep(b, b);
	EXPECT_EQ(added.size(), 1u);
	peer.fd = 66;
	ep[2] = add_ep(nullptr, add_cq());
	EXPECT_EQ(added, std::vector<int>({ 55, 66 }));
	EXPECT_EQ(arm(), 0);
	EXPECT_EQ(peer.trywait_count, 3u);
	close_ep(ep[0]);
	EXPECT_TRUE(removed.empty());
	close_ep(ep[2]);
	EXPECT_EQ(removed, std::vector<int>({ 66 }));
	close_ep(ep[1]);
	EXPECT_EQ(removed, std::vector<int>({ 66, 55 }));
}

TEST_F(Link, AWatchThatFailsTakesAllBack)
{
	struct tdm_cq *cq;
	struct fid_ep *ep;

	peer.fd = 55;
	must_open();
	cq = add_cq();
	ep = add_ep(cq, cq);
	add_result = -FI_EMFILE;
	EXPECT_EQ(watch(), -FI_EMFILE);
	EXPECT_EQ(arm(), -FI_EAGAIN);
	add_result = 0;
	EXPECT_EQ(watch(), 0);
	EXPECT_EQ(arm(), 0);
	close_ep(ep);
}

} // namespace

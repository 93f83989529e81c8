/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory peer driven by a mock owner: opening, attaching, messages
 * of every size and kind. doc/PROTOCOL-shm.md is the specification; faults
 * are in shm_fault_test.cc and shm_garbage_test.cc.
 */
#include "base/env.h"
#include "ring_valid.h"
#include "shm_world.h"
#include "tests/harness/fault.h"
#include "tcp/fabric.h"

using namespace shm_test;

/* fi_peer(3) 2.1, PEER DOMAIN 3: Without the flag there is no owner. */
TEST_F(ShmTest, DomainWithoutPeerFlagImportsNothing)
{
	/* fi_tandem(7), AS A PEER: regions are the owner's, so there are none. */
	struct fi_provider *prov = tdm_shm_provider();
	struct fi_peer_domain_context ctx = {};
	struct fid_fabric *fabric;
	struct fi_atomic_attr attr = {};
	struct fid_domain *domain;
	struct fi_info *info;
	struct fid_mr *mr;

	ASSERT_EQ(prov->getinfo(fi_version(), nullptr, nullptr, 0, nullptr,
				&info),
		  0);
	ASSERT_EQ(prov->fabric(info->fabric_attr, &fabric, nullptr), 0);
	EXPECT_EQ(fi_domain2(fabric, info, &domain, FI_PEER, &ctx), -FI_EINVAL);
	EXPECT_EQ(fi_domain2(fabric, info, &domain, FI_PEER | FI_SEND, &ctx),
		  -FI_EINVAL);
	ASSERT_EQ(fi_domain(fabric, info, &domain, &ctx), 0);
	EXPECT_EQ(domain->fid.context, &ctx);
	EXPECT_EQ(fi_mr_reg(domain, &ctx, 1, FI_SEND, 0, 0, 0, &mr, nullptr),
		  -FI_ENOSYS);
	EXPECT_EQ(fi_query_atomic(domain, FI_INT8, FI_SUM, &attr, 0),
		  -FI_ENOSYS);
	EXPECT_EQ(fi_close(&domain->fid), 0);
	EXPECT_EQ(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

TEST_F(ShmTest, ReceiveContextOfAnotherOwnerNeedsMemory)
{
	/* fi_tandem(7), AS A PEER: each allocation of the import fails in turn. */
	struct fid_peer_srx lent = {};
	struct fi_peer_srx_context ctx = { sizeof(ctx), &lent };
	struct sockaddr_in in = address(next_port());
	struct fi_rx_attr attr = {};
	struct tdt_owner_attr owner = {};
	struct tdt_owner *o = nullptr;
	struct fid_ep *srx = nullptr;
	unsigned nth = 1, failed;
	int ret;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	owner.name = &in;
	owner.namelen = sizeof(in);
	owner.kind = TDT_OWNER_NEWER;
	ASSERT_EQ(tdt_owner_open(tdm_shm_provider(), &owner, &o), 0);
	owners.push_back(o);
	lent.owner_ops = o->own_srx.owner_ops;
	attr.op_flags = FI_PEER;
	do {
		tdt_alloc_fail(nth++, 0);
		ret = fi_srx_context(o->domain, &attr, &srx, &ctx);
		failed = tdt_alloc_stop();
		EXPECT_EQ(ret, failed ? -FI_ENOMEM : 0);
	} while (failed);
	EXPECT_EQ(nth, 4u) << "the context and its adapter";
	EXPECT_NE(lent.peer_ops, nullptr);
	EXPECT_EQ(fi_close(&srx->fid), 0);
}

/*
 * fi_peer(3) 2.1, PEER DOMAIN 1: Memory regions of the peer's domain are the
 * owner's.
 */
TEST_F(ShmTest, MemoryRegistrationReachesTheOwner)
{
	struct tdt_owner *o = open(next_port());
	struct fid_mr *mr;
	char c;

	EXPECT_EQ(fi_mr_reg(o->domain, &c, 1, FI_SEND, 0, 0, 0, &mr, nullptr),
		  -FI_EOPNOTSUPP);
	EXPECT_EQ(o->mr_calls, 1u);
}

TEST_F(ShmTest, NameInUseIsRefusedAtEnable)
{
	struct sockaddr_in in = address(next_port());
	struct tdt_owner_attr attr = {};
	struct tdt_owner *second = nullptr;

	attr.name = &in;
	attr.namelen = sizeof(in);
	ASSERT_NE(open(ntohs(in.sin_port)), nullptr);
	EXPECT_EQ(tdt_owner_open(tdm_shm_provider(), &attr, &second),
		  -FI_EADDRINUSE);
}

/* fi_tandem(7), AS A PEER 2: without fi_setname, fi_enable chooses a name. */
TEST_F(PairTest, EndpointsWithoutANameChooseOne)
{
	struct sockaddr_in6 name[2] = {};
	struct tdt_owner_attr attr = {};
	size_t len = sizeof(name[0]);

	close(a);
	close(b);
	attr.selective = 1;
	for (int i : { 0, 1 }) {
		struct tdt_owner *&o = i ? b : a;

		ASSERT_EQ(tdt_owner_open(tdm_shm_provider(), &attr, &o), 0);
		owners.push_back(o);
		ASSERT_EQ(fi_getname(&o->ep->fid, &name[i], &len), 0);
		ASSERT_EQ(len, sizeof(name[i]));
		EXPECT_EQ(name[i].sin6_family, AF_INET6);
		EXPECT_EQ(name[i].sin6_addr.s6_addr[0], 0xfd);
	}
	EXPECT_NE(memcmp(&name[0], &name[1], len), 0);
	to_b = tdt_owner_insert(a, &name[1], len, id_b);
	to_a = tdt_owner_insert(b, &name[0], len, id_a);
	exchange(100, 1);
}

TEST_F(PairTest, SendToNobodyIsRefusedAndToldOnce)
{
	fi_addr_t to = insert(a, next_port(), 300);
	char c = 0;

	EXPECT_EQ(tsend(a, to, &c, 1, 0, &c), -FI_ECONNREFUSED);
	EXPECT_EQ(tsend(a, to, &c, 1, 0, &c), -FI_ECONNREFUSED);
	EXPECT_EQ(a->nevents, 1u);
	EXPECT_EQ(a->events[0].type, unsigned(TDM_PEER_REFUSED));
	EXPECT_EQ(a->events[0].reason, unsigned(TDM_REASON_NO_LISTENER));
	EXPECT_EQ(a->events[0].err, FI_ECONNREFUSED);
	EXPECT_EQ(a->events[0].entry.data, 300u);
	EXPECT_EQ(a->dones, 0u);
}

TEST_F(PairTest, FirstSendAttachesAndBothSidesAreTold)
{
	meet();
	for (struct tdt_owner *o : { a, b }) {
		const struct tdm_peer_event *e =
			tdt_owner_event(o, TDM_PEER_UP);

		ASSERT_NE(e, nullptr);
		EXPECT_EQ(e->entry.fid, &o->ep->fid);
		EXPECT_EQ(e->entry.data, o == a ? id_b : id_a);
		EXPECT_EQ(e->cma, 1u);
		EXPECT_EQ(o->nevents, 1u);
	}
}

TEST_F(PairTest, BothAttachAtOnceAndOneSessionStays)
{
	char c = 1;

	for (int i = 0; i < 20; i++) {
		/* Neither has progressed: both send HELLO. */
		EXPECT_EQ(tsend(a, to_b, &c, 1, 7, &c), -FI_EAGAIN);
		EXPECT_EQ(tsend(b, to_a, &c, 1, 7, &c), -FI_EAGAIN);
		EXPECT_EQ(send(a, to_b, &c, 1, 7, &c), 0);
		EXPECT_EQ(send(b, to_a, &c, 1, 7, &c), 0);
		ASSERT_TRUE(until([&] {
			return tdt_owner_queued(a) == 1 &&
			       tdt_owner_queued(b) == 1;
		}));
		EXPECT_EQ(a->nevents, 1u);
		EXPECT_EQ(b->nevents, 1u);
		remake();
	}
}

TEST_F(PairTest, EndBeforeTheSessionIsUpThereShowsAtTheNextSend)
{
	char c = 1, d = 2;

	/* For a it is up as soon as it has b's HELLO; b has not read READY. */
	for (int i = 0; i < 100 && tsend(a, to_b, &c, 1, 7, &c); i++) {
		tdt_owner_progress(b);
		tdt_owner_progress(a);
	}
	ASSERT_EQ(pair_of(a)->state, TDM_SHM_PAIR_UP);
	ASSERT_TRUE(!pair_of(b) || pair_of(b)->state != TDM_SHM_PAIR_UP);
	/* So many that a asks for the peer's life at none of the next. */
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(tsend(a, to_b, &c, 1, 7, &c), 0);
	close(b);
	EXPECT_EQ(tsend(a, to_b, &c, 1, 7, &d), 0);
	ASSERT_NE(tdt_owner_find(a, &d), nullptr);
	EXPECT_EQ(tdt_owner_find(a, &d)->err, FI_ECONNRESET);
	ASSERT_NE(tdt_owner_event(a, TDM_PEER_LOST), nullptr);
	EXPECT_EQ(tdt_owner_event(a, TDM_PEER_LOST)->err, FI_ECONNRESET);
}

TEST_F(PairTest, EveryShortLengthArrives)
{
	meet();
	for (size_t len = 0; len <= 600; len++)
		exchange(len, len + 1);
}

TEST_F(PairTest, LengthsAroundEveryBorderArrive)
{
	meet();
	for (size_t base : { 48u, 112u, 240u, 752u, 1024u, 4096u, 8192u, 16384u,
			     65536u, 131072u, 524288u, 1048576u }) {
		for (size_t len = base - 20; len <= base + 20; len += 4)
			exchange(len, len);
	}
}

/*
 * fi_endpoint(3) 2.1, msg_order - Message Ordering 17: FI_ORDER_SAS: whatever
 * way the bytes take.
 */
TEST_F(PairTest, MixedSizesMatchInTheOrderSent)
{
	const size_t sizes[] = { 0, 8, 100000, 200, 64, 3000, 1 << 20, 5, 700 };
	std::vector<std::vector<unsigned char>> out, in;
	const int rounds = 60;
	std::vector<char> ctx(rounds), sent(rounds);
	int next = 0;

	meet();
	for (int i = 0; i < rounds; i++) {
		out.push_back(pattern(sizes[i % 9], unsigned(i)));
		in.emplace_back(sizes[i % 9]);
	}
	for (int i = 0; i < rounds; i += 2)
		tdt_owner_trecv(b, in[i].data(), in[i].size(), 5, &ctx[i]);
	for (int i = 1; i < rounds; i += 2)
		tdt_owner_trecv(b, in[i].data(), in[i].size(), 6, &ctx[i]);
	ASSERT_TRUE(until([&] {
		while (next < rounds &&
		       !tsend(a, to_b, out[next].data(), out[next].size(),
			      next % 2 ? 6 : 5, &sent[next]))
			next++;
		return next == rounds && b->dones == size_t(rounds);
	}));
	for (int i = 0; i < rounds; i++) {
		ASSERT_EQ(tdt_owner_find(b, &ctx[i])->err, 0);
		ASSERT_EQ(in[i], out[i]) << i;
	}
	ASSERT_TRUE(until([&] { return a->dones == size_t(rounds); }));
}

TEST_F(PairTest, RingGrowsWhenBusyAndNothingIsLostOrReordered)
{
	const uint64_t count = 20000;
	uint64_t sent = 0, got = 0, in = 0;

	meet();
	EXPECT_EQ(pair_of(a)->tx.count, unsigned(TDM_SHM_RING_SMALL_SLOTS));
	while (got < count) {
		while (sent < count && sent - got < 700) {
			auto m = pattern(8 + sent % 900, unsigned(sent));

			memcpy(m.data(), &sent, 8);
			if (tsend(a, to_b, m.data(), m.size(), 3, &sent))
				break;
			sent++;
		}
		for (int i = 0; i < 3; i++) {
			std::vector<unsigned char> buf(1000);

			tdt_owner_trecv(b, buf.data(), buf.size(), 3, &in);
			ASSERT_TRUE(until([&] { return b->dones == 1; }));
			memcpy(&in, buf.data(), 8);
			ASSERT_EQ(in, got);
			ASSERT_EQ(b->done[0].len, 8 + got % 900);
			auto m = pattern(8 + got % 900, unsigned(got));
			ASSERT_EQ(memcmp(m.data() + 8, buf.data() + 8,
					 m.size() - 8),
				  0);
			b->dones = 0;
			if (++got == count)
				break;
		}
	}
	EXPECT_GE(pair_of(a)->tx.gen, 1u);
	EXPECT_TRUE(tdt_ring_valid(&pair_of(a)->tx));
}

TEST_F(PairTest, RemoteDataTravelsWithEveryKindOfMessage)
{
	for (size_t len : { size_t(0), size_t(8), size_t(40), size_t(500),
			    size_t(100000) }) {
		std::vector<unsigned char> in(len);
		auto out = pattern(len, 9);
		char ca, cb;

		tdt_owner_trecv(b, in.data(), len, 1, &cb);
		ASSERT_EQ(send(a, to_b, out.data(), len, 1, &ca,
			       FI_REMOTE_CQ_DATA, 0x1122334455667788ull),
			  0);
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
		EXPECT_EQ(tdt_owner_find(b, &cb)->data, 0x1122334455667788ull);
		EXPECT_TRUE(tdt_owner_find(b, &cb)->flags & FI_REMOTE_CQ_DATA);
		EXPECT_EQ(in, out);
		ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
		a->dones = 0;
		b->dones = 0;
	}
}

TEST_F(PairTest, UntaggedMessagesAndVectors)
{
	char x[5] = "abcd", y[100], z[300], got[405];
	struct iovec out[3] = { { x, 5 }, { y, 100 }, { z, 300 } };
	struct iovec in[2] = { { got, 7 }, { got + 7, 398 } };
	struct tdt_recv r = { 0, in, 2, FI_ADDR_UNSPEC, 0, 0, got };
	struct fi_msg msg = {};

	memset(y, 'y', sizeof(y));
	memset(z, 'z', sizeof(z));
	msg.msg_iov = out;
	msg.iov_count = 3;
	msg.addr = to_b;
	msg.context = x;
	tdt_owner_recv(b, &r);
	ASSERT_TRUE(
		until([&] { return !fi_sendmsg(a->ep, &msg, FI_COMPLETION); }));
	ASSERT_TRUE(until([&] { return b->dones == 1; }));
	EXPECT_EQ(b->done[0].len, 405u);
	EXPECT_TRUE(b->done[0].flags & FI_MSG);
	EXPECT_EQ(memcmp(got, x, 5), 0);
	EXPECT_EQ(memcmp(got + 5, y, 100), 0);
	EXPECT_EQ(memcmp(got + 105, z, 300), 0);
}

/*
 * fi_endpoint(3) 2.1, fi_ep_bind 6 and 10: Selective completion; counters count
 * all the same.
 */
TEST_F(PairTest, InjectWritesNoCompletionAndCounts)
{
	uint64_t v = 42, got = 0;

	meet();
	a->sends = 0;
	tdt_owner_trecv(b, &got, 8, 4, &got);
	ASSERT_EQ(fi_tinject(a->ep, &v, 8, to_b, 4), 0);
	v = 0;
	ASSERT_TRUE(until([&] { return b->dones == 1; }));
	EXPECT_EQ(got, 42u);
	EXPECT_EQ(a->dones, 0u);
	EXPECT_EQ(a->sends, 1u);
	EXPECT_EQ(b->recvs, 2u);
}

/*
 * fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 15: FI_DELIVERY_COMPLETE: the send
 * ends after the receive.
 */
TEST_F(PairTest, DeliveryCompleteWaitsForPlacement)
{
	for (size_t len : { size_t(0), size_t(64), size_t(3000) }) {
		std::vector<unsigned char> in(len);
		auto out = pattern(len, 1);
		char ca, cb;

		ASSERT_EQ(send(a, to_b, out.data(), len, 1, &ca,
			       FI_DELIVERY_COMPLETE),
			  0);
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
		for (int i = 0; i < 100; i++)
			step();
		EXPECT_EQ(tdt_owner_find(a, &ca), nullptr);
		tdt_owner_trecv(b, in.data(), len, 1, &cb);
		ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
		EXPECT_EQ(in, out);
		/* And with the receive posted first. */
		a->dones = 0;
		tdt_owner_trecv(b, in.data(), len, 1, &cb);
		ASSERT_EQ(send(a, to_b, out.data(), len, 1, &ca,
			       FI_DELIVERY_COMPLETE),
			  0);
		ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
		a->dones = 0;
		b->dones = 0;
	}
}

TEST_F(PairTest, UnexpectedShortAndLong)
{
	for (size_t len : { size_t(0), size_t(48), size_t(112), size_t(2000),
			    size_t(8000), size_t(300000) }) {
		std::vector<unsigned char> in(len);
		auto out = pattern(len, 2);
		char ca, cb;

		ASSERT_EQ(send(a, to_b, out.data(), len, 1, &ca), 0);
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
		EXPECT_EQ(tdt_owner_queued_source(b), id_a);
		tdt_owner_trecv(b, in.data(), len, 1, &cb);
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
		}));
		EXPECT_EQ(in, out);
		EXPECT_EQ(tdt_owner_find(b, &cb)->src, id_a);
		a->dones = 0;
		b->dones = 0;
	}
}

/*
 * fi_peer(3) 2.1, fi_ops_srx_peer::discard_msg() / discard_tag() 1: The message
 * is dropped, and the sender does not wait for it.
 */
TEST_F(PairTest, DiscardEndsTheSend)
{
	auto big = pattern(300000, 1);
	char c[3];

	ASSERT_EQ(send(a, to_b, big.data(), big.size(), 1, &c[0]), 0);
	ASSERT_EQ(send(a, to_b, big.data(), 100, 1, &c[1],
		       FI_DELIVERY_COMPLETE),
		  0);
	ASSERT_EQ(send(a, to_b, big.data(), 100, 1, &c[2]), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 3; }));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(tdt_owner_discard(b), 0);
	EXPECT_TRUE(until([&] { return a->dones == 3; }));
	EXPECT_EQ(b->dones, 0u);
	EXPECT_EQ(b->entries, 0u);
}

/*
 * fi_cq(3) 2.1, COMPLETION FIELDS 9: FI_ETRUNC: len is placed, olen left out;
 * the sender succeeds.
 */
TEST_F(PairTest, TruncationIsReportedAtTheReceiverOnly)
{
	for (int cma = 0; cma < 2; cma++) {
		for (int unexpected = 0; unexpected < 2; unexpected++) {
			for (size_t len :
			     { size_t(100), size_t(5000), size_t(200000) }) {
				std::vector<unsigned char> in(60, 0xee);
				auto out = pattern(len, 3);
				char ca, cb;

				if (!unexpected)
					tdt_owner_trecv(b, in.data(), 50, 1,
							&cb);
				ASSERT_EQ(send(a, to_b, out.data(), len, 1,
					       &ca),
					  0);
				if (unexpected) {
					ASSERT_TRUE(until([&] {
						return tdt_owner_queued(b) == 1;
					}));
					tdt_owner_trecv(b, in.data(), 50, 1,
							&cb);
				}
				ASSERT_TRUE(until([&] {
					return tdt_owner_find(b, &cb) &&
					       tdt_owner_find(a, &ca);
				}));
				const struct tdt_done *d =
					tdt_owner_find(b, &cb);
				EXPECT_EQ(d->err, FI_ETRUNC);
				EXPECT_EQ(d->len, 50u);
				EXPECT_EQ(d->olen, len - 50);
				EXPECT_EQ(memcmp(in.data(), out.data(), 50), 0);
				EXPECT_EQ(in[50], 0xee);
				EXPECT_EQ(tdt_owner_find(a, &ca)->err, 0);
				a->dones = 0;
				b->dones = 0;
			}
		}
		tdm_env.cma = 0;
		remake();
	}
}

TEST_F(PairTest, LargeMessagesByCopyInterleaveWithShortOnes)
{
	const int count = 8;
	const size_t len = 5 << 20;
	std::vector<std::vector<unsigned char>> out, in;
	std::vector<char> ca(count), cb(count);

	tdm_env.cma = 0;
	remake();
	meet();
	EXPECT_EQ(tdt_owner_event(a, TDM_PEER_UP)->cma, 0u);
	for (int i = 0; i < count; i++) {
		out.push_back(pattern(len + size_t(i), unsigned(i)));
		in.emplace_back(len + size_t(i));
		tdt_owner_trecv(b, in[i].data(), in[i].size(), unsigned(i),
				&cb[i]);
		ASSERT_EQ(send(a, to_b, out[i].data(), out[i].size(),
			       unsigned(i), &ca[i]),
			  0);
	}
	uint64_t v = 77, w = 0;
	tdt_owner_trecv(b, &w, 8, 99, &w);
	ASSERT_EQ(send(a, to_b, &v, 8, 99, &v), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &w); }));
	EXPECT_EQ(w, 77u);
	EXPECT_LT(b->dones, size_t(count));
	ASSERT_TRUE(until([&] {
		return b->dones == count + 1 && a->dones == count + 1;
	}));
	for (int i = 0; i < count; i++)
		EXPECT_EQ(in[i], out[i]);
}

TEST_F(PairTest, LargeVectorsByBothWays)
{
	for (int cma = 1; cma >= 0; cma--) {
		tdm_env.cma = cma;
		remake();
		auto out = pattern(900000, 8);
		std::vector<unsigned char> in(900000);
		unsigned char *p = out.data(), *q = in.data();
		struct iovec src[4] = { { p, 1 },
					{ p + 1, 99999 },
					{ p + 100000, 700000 },
					{ p + 800000, 100000 } };
		struct iovec dst[3] = { { q, 333333 },
					{ q + 333333, 3 },
					{ q + 333336, 566664 } };
		struct tdt_recv r = { 1, dst, 3, id_a, 0xf0, 0xf, q };
		struct fi_msg_tagged msg = {};

		msg.msg_iov = src;
		msg.iov_count = 4;
		msg.addr = to_b;
		msg.tag = 0xf3;
		msg.context = p;
		tdt_owner_recv(b, &r);
		ASSERT_TRUE(until([&] {
			return !fi_tsendmsg(a->ep, &msg, FI_COMPLETION);
		}));
		ASSERT_TRUE(
			until([&] { return b->dones == 1 && a->dones == 1; }));
		EXPECT_EQ(b->done[0].tag, 0xf3u);
		EXPECT_EQ(in, out);
	}
}

/* More than fit into a slab of operations, and than the size says. */
TEST_F(PairTest, SendsThatWaitForTheirReceivesAreNotCounted)
{
	const size_t count = 300;
	auto big = pattern(20000, 1);
	std::vector<unsigned char> in(20000);
	size_t sent = 0;

	remake(4);
	meet();
	ASSERT_TRUE(until([&] {
		while (sent < count &&
		       !tsend(a, to_b, big.data(), big.size(), 1, &sent))
			sent++;
		return tdt_owner_queued(b) == count;
	}));
	EXPECT_EQ(tdm_shm_ep_from_fid(a->ep)->tx_used, 0u);
	for (size_t i = 0; i < count; i++) {
		in.assign(in.size(), 0);
		tdt_owner_trecv(b, in.data(), in.size(), 1, &in);
		ASSERT_TRUE(until([&] { return b->dones == i + 1; }));
		ASSERT_EQ(in, big);
	}
	ASSERT_TRUE(until([&] { return a->dones == count; }));
}

TEST_F(PairTest, SelfIsAPairLikeAnyOther)
{
	fi_addr_t self = insert(a, port_a, 100);

	for (size_t len : { size_t(0), size_t(8), size_t(700), size_t(5000),
			    size_t(1 << 20) }) {
		for (int unexpected = 0; unexpected < 2; unexpected++) {
			std::vector<unsigned char> in(len);
			auto out = pattern(len, 6);
			char ca, cb;

			if (!unexpected)
				tdt_owner_trecv(a, in.data(), len, 1, &cb);
			ASSERT_EQ(send(a, self, out.data(), len, 1, &ca), 0);
			if (unexpected) {
				ASSERT_TRUE(until([&] {
					return tdt_owner_queued(a) == 1;
				}));
				tdt_owner_trecv(a, in.data(), len, 1, &cb);
			}
			ASSERT_TRUE(until([&] {
				return tdt_owner_find(a, &cb) &&
				       tdt_owner_find(a, &ca);
			}));
			EXPECT_EQ(in, out);
			EXPECT_EQ(tdt_owner_find(a, &cb)->src, 100u);
			a->dones = 0;
		}
	}
}

TEST_F(PairTest, SelfTakesMoreThanItsRingHolds)
{
	fi_addr_t self = insert(a, port_a, 100);
	uint64_t v = 0, got = 0;

	for (v = 0; v < 1000; v++)
		ASSERT_EQ(send(a, self, &v, 8, 1, &v), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_queued(a) == 1000; }));
	for (uint64_t i = 0; i < 1000; i++) {
		tdt_owner_trecv(a, &got, 8, 1, &got);
		ASSERT_EQ(got, i);
	}
}

/*
 * fi_peer(3) 2.1, fi_ops_srx_owner::foreach_unspec_addr() 1: The source is
 * learned by an insert.
 */
TEST_F(PairTest, UnknownSourceIsNamedByALaterInsert)
{
	char c = 5, d = 0;

	ASSERT_EQ(fi_av_remove(b->av, &to_a, 1, 0), 0);
	ASSERT_EQ(send(a, to_b, &c, 1, 1, &c), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	EXPECT_EQ(tdt_owner_queued_source(b), FI_ADDR_UNSPEC);
	EXPECT_EQ(tdt_owner_event(b, TDM_PEER_UP)->entry.data, FI_ADDR_UNSPEC);
	insert(b, port_a, 555);
	EXPECT_EQ(tdt_owner_queued_source(b), 555u);
	struct iovec iov = { &d, 1 };
	struct tdt_recv r = { 1, &iov, 1, 555, 1, 0, &d };
	tdt_owner_recv(b, &r);
	EXPECT_EQ(d, 5);
	EXPECT_EQ(b->done[0].src, 555u);
	/* The source of a message that arrives now is known at once. */
	ASSERT_EQ(send(a, to_b, &c, 1, 1, &c), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	EXPECT_EQ(tdt_owner_queued_source(b), 555u);
}

/* fi_peer(3), foreach_unspec_addr: called when a source became known. */
TEST_F(PairTest, OwnerIsAskedOnlyWhenASourceBecameKnown)
{
	char c = 5;

	ASSERT_EQ(fi_av_remove(b->av, &to_a, 1, 0), 0);
	ASSERT_EQ(send(a, to_b, &c, 1, 1, &c), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	b->resolved = 0;
	insert(b, next_port(), 554);
	EXPECT_EQ(b->resolved, 0u) << "of somebody else";
	fi_addr_t named = insert(b, port_a, 555);
	EXPECT_EQ(b->resolved, 1u);
	EXPECT_EQ(tdt_owner_queued_source(b), 555u);
	insert(b, port_a, 556);
	EXPECT_EQ(b->resolved, 1u) << "known already";
	ASSERT_EQ(fi_av_remove(b->av, &named, 1, 0), 0);
	EXPECT_EQ(b->resolved, 2u) << "another index is the lowest";
	/* An insert of no address asks in any case. */
	EXPECT_EQ(fi_av_insert(b->av, nullptr, 0, nullptr, FI_AV_USER_ID,
			       nullptr),
		  0);
	EXPECT_EQ(b->resolved, 3u);
}

TEST_F(PairTest, AliasesAreReportedAsTheLowest)
{
	char c = 1;

	insert(b, port_a, 50);
	insert(b, port_a, 60);
	ASSERT_EQ(send(a, to_b, &c, 1, 1, &c), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	EXPECT_EQ(tdt_owner_queued_source(b), 50u);
}

TEST_F(ShmTest, InsertBeforeEnableWorks)
{
	struct sockaddr_in in = address(next_port());
	struct tdt_owner_attr attr = {};
	struct tdt_owner *o = nullptr;
	char c = 3;

	attr.name = &in;
	attr.namelen = sizeof(in);
	attr.no_enable = 1;
	ASSERT_EQ(tdt_owner_open(tdm_shm_provider(), &attr, &o), 0);
	owners.push_back(o);
	fi_addr_t self = tdt_owner_insert(o, &in, sizeof(in), 9);
	EXPECT_EQ(self, 0u);
	EXPECT_EQ(fi_tsend(o->ep, &c, 1, nullptr, self, 1, &c), -FI_EINVAL);
	tdt_owner_progress(o);
	ASSERT_EQ(fi_enable(o->ep), 0);
	EXPECT_EQ(fi_tsend(o->ep, &c, 1, nullptr, self, 1, &c), 0);
	EXPECT_TRUE(until([&] { return tdt_owner_queued(o) == 1; }));
}

TEST_F(PairTest, BadAddressesFailOneByOne)
{
	struct sockaddr_in in[2] = { address(next_port()), address(0) };
	fi_addr_t addr[2] = { 1, 2 };
	char c = 0;

	EXPECT_EQ(fi_av_insert(a->av, in, 2, addr, FI_AV_USER_ID, nullptr), 1);
	EXPECT_NE(addr[0], FI_ADDR_NOTAVAIL);
	EXPECT_EQ(addr[1], FI_ADDR_NOTAVAIL);
	EXPECT_EQ(fi_av_insert(a->av, in, 1, addr, 0, nullptr), -FI_EINVAL);
	EXPECT_EQ(tsend(a, 12345, &c, 1, 1, &c), -FI_EINVAL);
	EXPECT_EQ(tsend(a, FI_ADDR_UNSPEC, &c, 1, 1, &c), -FI_EINVAL);
}

TEST_F(ShmTest, ManyPeersEachWithItsOwnOrder)
{
	const int count = 20;
	struct tdt_owner *hub = open(next_port());
	std::vector<struct tdt_owner *> leaves;
	std::vector<uint64_t> next(count, 0);
	std::vector<char> buf(8);
	uint16_t hub_port = 0;
	struct sockaddr_in in;
	size_t len = sizeof(in);

	ASSERT_EQ(fi_getname(&hub->ep->fid, &in, &len), 0);
	hub_port = ntohs(in.sin_port);
	for (int i = 0; i < count; i++) {
		uint16_t port = next_port();
		struct sockaddr_in leaf = address(port);

		leaves.push_back(open(port));
		in = address(hub_port);
		ASSERT_EQ(tdt_owner_insert(leaves[i], &in, sizeof(in), 1), 0u);
		tdt_owner_insert(hub, &leaf, sizeof(leaf), fi_addr_t(i));
	}
	const uint64_t each = 300;
	uint64_t total = 0, v = 0;
	std::vector<uint64_t> sent(count, 0);
	ASSERT_TRUE(until([&] {
		for (int i = 0; i < count; i++) {
			while (sent[i] < each &&
			       !fi_tinject(leaves[i]->ep, &sent[i], 8, 0, 1))
				sent[i]++;
		}
		while (tdt_owner_queued(hub)) {
			size_t at = hub->dones;

			tdt_owner_trecv(hub, &v, 8, 1, &v);
			fi_addr_t src = hub->done[at].src;
			EXPECT_LT(src, fi_addr_t(count));
			EXPECT_EQ(v, next[src]++);
			total++;
		}
		return total == each * count;
	}));
}

/* The bound on unexpected messages. */
TEST_F(PairTest, UnexpectedFloodIsBoundedAndDrains)
{
	const size_t count = 2000;
	auto m = pattern(4000, 4);
	std::vector<unsigned char> in(4000);
	size_t sent = 0;

	tdm_env.unexp_max_bytes = 400000;
	meet();
	/*
	 * Messages beyond b's bound are announced: no send waits for a receive.
	 */
	EXPECT_TRUE(until([&] {
		while (sent < count &&
		       !tsend(a, to_b, m.data(), m.size(), 1, &sent))
			sent++;
		return sent == count;
	}));
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(b->ep);
	for (int i = 0; i < 1000; i++)
		step();
	/* With what each takes that is announced. */
	const size_t each = sizeof(struct fi_peer_rx_entry) +
			    ep->pulls.object_bytes +
			    ep->domain->unexp[0].object_bytes;
	EXPECT_LT(ep->unexp_bytes, 400000u + 300 * 1024 + count * each);
	for (size_t got = 0; got < count; got++) {
		in.assign(4000, 0);
		tdt_owner_trecv(b, in.data(), in.size(), 1, &in);
		ASSERT_TRUE(until([&] { return b->dones == 1; })) << got;
		ASSERT_EQ(in, m);
		b->dones = 0;
	}
	EXPECT_TRUE(until([&] { return a->dones == count; }));
	EXPECT_EQ(ep->unexp_bytes, 0u);
	EXPECT_TRUE(tdm_list_empty(&ep->held));
}

/* Announced messages between two that do not receive. */
class AnnouncedTest : public PairTest
{
protected:
	enum { MOST = 50 };

	std::vector<unsigned char> big = pattern(20000, 1), in = big;

	void bound(uint32_t at_a, uint32_t at_b)
	{
		meet();
		ASSERT_TRUE(until([&] {
			return !tsend(b, to_a, big.data(), 1, 99, nullptr);
		}));
		tdm_shm_ep_from_fid(a->ep)->announced_most = at_a;
		tdm_shm_ep_from_fid(b->ep)->announced_most = at_b;
		ASSERT_TRUE(until([&] { return tdt_owner_queued(a) == 1; }));
		tdt_owner_discard(a);
		a->dones = b->dones = 0;
	}

	/* As many as @from can announce while @o looks at each. */
	size_t announce(struct tdt_owner *from, fi_addr_t to, size_t most)
	{
		size_t n = 0, vain = 0;

		while (n < most && vain < 1000) {
			if (tsend(from, to, big.data(), big.size(), n + 1,
				  this)) {
				vain++;
				step();
			} else {
				n++;
				vain = 0;
			}
		}
		for (int i = 0; i < 100; i++)
			step();
		return n;
	}

	/* @o receives message @tag; the sender's operation ends. */
	void take(struct tdt_owner *o, struct tdt_owner *from, uint64_t tag)
	{
		size_t received = o->dones, sent = from->dones;

		in.assign(in.size(), 0);
		tdt_owner_trecv(o, in.data(), in.size(), tag, &in);
		ASSERT_TRUE(until([&] {
			return o->dones > received && from->dones > sent;
		})) << tag;
		ASSERT_EQ(o->done[received].err, 0);
		ASSERT_EQ(in, big);
	}
};

/* doc/PROTOCOL-shm.md, "Large messages": so many, and no more until an ACK. */
TEST_F(AnnouncedTest, BoundedAtBothSidesWhileAnswersPass)
{
	bound(MOST, MOST);
	/* Both sides at once: neither can wait for the other. */
	EXPECT_EQ(size_t(MOST), announce(a, to_b, 2 * MOST));
	EXPECT_EQ(size_t(MOST), announce(b, to_a, 2 * MOST));
	EXPECT_EQ(uint32_t(MOST), pair_of(b)->waiting);
	EXPECT_EQ(uint32_t(MOST), pair_of(a)->waiting);
	/* Messages that need no announcement pass, and acknowledgements. */
	char c = 0, d = 0;
	for (int i = 0; i < 100; i++) {
		tdt_owner_trecv(b, &d, 1, 1000, &d);
		ASSERT_EQ(send(a, to_b, &c, 1, 1000, &c,
			       i % 2 ? FI_DELIVERY_COMPLETE : 0),
			  0);
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &d) && tdt_owner_find(a, &c);
		}));
		a->dones = b->dones = 0;
	}
	/* The newest first; each that goes makes room for one. */
	for (uint64_t tag = MOST; tag; tag--) {
		take(b, a, tag);
		ASSERT_EQ(1u, announce(a, to_b, 1)) << tag;
		ASSERT_EQ(0u, announce(a, to_b, 1)) << tag;
	}
	for (uint64_t tag = MOST; tag; tag--)
		take(a, b, tag);
	for (int i = 0; i < MOST; i++)
		take(b, a, 1);
	EXPECT_EQ(0u, pair_of(a)->announced + pair_of(a)->waiting);
	EXPECT_EQ(0u, pair_of(b)->announced + pair_of(b)->waiting);
}

/* A dropped announcement makes room, and so does the end of a session. */
TEST_F(AnnouncedTest, DropsAndEndsMakeRoom)
{
	char c[MOST];

	bound(MOST, MOST);
	for (char &one : c)
		ASSERT_EQ(send(a, to_b, big.data(), big.size(), 1, &one), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == MOST; }));
	for (int i = 0; i < 20; i++)
		ASSERT_EQ(0, tdt_owner_discard(b));
	ASSERT_TRUE(until([&] { return pair_of(a)->announced == MOST - 20; }));
	EXPECT_EQ(uint32_t(MOST - 20), pair_of(b)->waiting);
	/*
	 * The next session counts from 0; messages kept from the former one end
	 * on their own.
	 */
	close(a);
	ASSERT_TRUE(until(
		[&] { return tdt_owner_event(b, TDM_PEER_LOST) != nullptr; }));
	a = open(port_a);
	to_b = insert(a, port_b, id_b);
	tdm_shm_ep_from_fid(a->ep)->announced_most = MOST;
	meet();
	EXPECT_EQ(size_t(MOST), announce(a, to_b, 2 * MOST));
	EXPECT_EQ(size_t(2 * MOST - 20), tdt_owner_queued(b));
	while (tdt_owner_queued(b) > MOST)
		ASSERT_EQ(0, tdt_owner_discard(b));
	EXPECT_EQ(uint32_t(MOST), pair_of(b)->waiting);
	for (uint64_t tag = 1; tag <= MOST; tag++)
		take(b, a, tag);
}

/* A sender that does not count is not believed: the pair ends, not memory. */
TEST_F(AnnouncedTest, MoreThanIsAgreedEndsThePair)
{
	bound(2 * MOST, MOST);
	EXPECT_LE(size_t(MOST), announce(a, to_b, 2 * MOST));
	ASSERT_TRUE(until(
		[&] { return tdt_owner_event(b, TDM_PEER_LOST) != nullptr; }));
	EXPECT_EQ(size_t(MOST), tdt_owner_queued(b));
	while (!tdt_owner_discard(b))
		;
}

TEST_F(PairTest, CloseInEitherOrderWithMessagesQueued)
{
	auto big = pattern(100000, 1);
	char c[3];

	for (int order = 0; order < 4; order++) {
		ASSERT_EQ(send(a, to_b, big.data(), big.size(), 1, &c[0]), 0);
		ASSERT_EQ(send(a, to_b, big.data(), 2000, 1, &c[1]), 0);
		ASSERT_EQ(send(a, to_b, big.data(), 20, 1, &c[2],
			       FI_DELIVERY_COMPLETE),
			  0);
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 3; }));
		close(b, order & 1, order >> 1);
		/* The sender learns of it. */
		ASSERT_TRUE(until([&] {
			return tdt_owner_event(a, TDM_PEER_LOST) != nullptr;
		}));
		EXPECT_EQ(tdt_owner_event(a, TDM_PEER_LOST)->err,
			  order & 2 ? FI_ESHUTDOWN : FI_ESHUTDOWN);
		close(a, order & 1, order >> 1);
		make();
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole of tandem below another owner: fi_tandem(7), BELOW ANOTHER OWNER, and
 * fi_peer(3). Each test runs over shared memory and over TCP, below owners of both
 * layouts of receive entries (tdm_layout.h).
 */
#include <deque>

#include <rdma/fi_rma.h>

#include "tests/harness/mock_rma.h"
#include "whole_side.h"

namespace
{

using shm_test::pattern;

const size_t lengths[] = { 0, 1, 48, 5000, 300000 };

class Whole : public whole::Pair
{
};

const whole::Below ours[] = { { whole::SHM, TDT_OWNER_OURS },
			      { whole::TCP, TDT_OWNER_OURS } };
const whole::Below foreign[] = {
	{ whole::SHM, TDT_OWNER_OLDER },    { whole::SHM, TDT_OWNER_NEWER },
	{ whole::TCP, TDT_OWNER_NEWER },    { whole::SHM, TDT_OWNER_SILENT },
	{ whole::ALONE, TDT_OWNER_SILENT }, { whole::ALONE, TDT_OWNER_OLDER },
	{ whole::ALONE, TDT_OWNER_NEWER }
};

INSTANTIATE_TEST_SUITE_P(, Whole, testing::ValuesIn(ours), whole::name);
INSTANTIATE_TEST_SUITE_P(Foreign, Whole, testing::ValuesIn(foreign),
			 whole::name);

TEST_P(Whole, MessagesFillTheOwnersReceives)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 1: the peer takes the
	 * receive from the owner, completes it on the owner's queue with the
	 * owner's name of the source, and gives the entry back. */
	meet();
	const size_t alive = b->entries;
	for (size_t len : lengths) {
		auto out = pattern(len + 1, unsigned(len));
		std::vector<unsigned char> in(len + 1, 0xee);
		char ca, cb;

		tdt_owner_trecv(b, in.data(), len, 5, &cb);
		ASSERT_EQ(0, send(a, to_b, out.data(), len, 5, &ca,
				  FI_REMOTE_CQ_DATA, 0x1234));
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
		})) << len;
		const struct tdt_done *d = tdt_owner_find(b, &cb);
		EXPECT_EQ(0, d->err);
		EXPECT_EQ(len, d->len);
		EXPECT_EQ(5u, d->tag);
		EXPECT_EQ(0x1234u, d->data);
		EXPECT_EQ(id_a, d->src);
		EXPECT_EQ(uint64_t(FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA),
			  d->flags);
		EXPECT_EQ(0, memcmp(in.data(), out.data(), len));
		EXPECT_EQ(0xee, in[len]);
		a->dones = b->dones = 0;
	}
	EXPECT_EQ(alive, b->entries);
}

TEST_P(Whole, TagsOfMasksAreReportedAsSent)
{
	/* fi_peer(3) 2.1, fi_ops_cq_owner::write() 1: the completion has the tag
	 * of the message, also where the receive ignores bits of it. */
	char in = 0, out = 3, ca, cb;
	struct iovec iov = { &in, 1 };
	struct tdt_recv r = { 1, &iov, 1, FI_ADDR_UNSPEC, 0x10, 0xff, &cb };

	meet();
	tdt_owner_recv(b, &r);
	ASSERT_EQ(0, send(a, to_b, &out, 1, 0x77, &ca));
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
	EXPECT_EQ(0x77u, tdt_owner_find(b, &cb)->tag);
}

TEST_P(Whole, UnexpectedMessagesAreQueuedAndStarted)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 2: after -FI_ENOENT the
	 * peer queues the message, with what a peek needs, and takes its receive
	 * by start_tag. */
	meet();
	for (size_t len : lengths) {
		auto out = pattern(len + 1, 1);
		std::vector<unsigned char> in(len + 1, 0xee);
		char ca, cb;

		ASSERT_EQ(0, send(a, to_b, out.data(), len, 6, &ca,
				  FI_REMOTE_CQ_DATA, 0x99));
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
		EXPECT_EQ(id_a, tdt_owner_queued_source(b));
		EXPECT_EQ(len, b->queued->rx.msg_size);
		EXPECT_EQ(0x99u, b->queued->rx.cq_data);
		EXPECT_NE(0u, b->queued->rx.flags & FI_REMOTE_CQ_DATA);
		tdt_owner_trecv(b, in.data(), len, 6, &cb);
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
		}));
		EXPECT_EQ(0, tdt_owner_find(b, &cb)->err);
		EXPECT_EQ(id_a, tdt_owner_find(b, &cb)->src);
		EXPECT_EQ(0x99u, tdt_owner_find(b, &cb)->data);
		EXPECT_EQ(0, memcmp(in.data(), out.data(), len));
		EXPECT_EQ(0xee, in[len]);
		EXPECT_EQ(0u, tdt_owner_queued(b));
		a->dones = b->dones = 0;
	}
}

TEST_P(Whole, UntaggedMessagesHaveReceivesOfTheirOwn)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::get_msg() / get_tag() 3: get_msg for
	 * messages, get_tag for tagged ones. */
	char one = 1, two = 2, in_m = 0, in_t = 0, cm, ct;
	struct iovec iov = { &in_m, 1 };
	struct tdt_recv r = { 0, &iov, 1, id_a, 0, 0, &cm };

	meet();
	tdt_owner_trecv(b, &in_t, 1, 0, &ct);
	tdt_owner_recv(b, &r);
	ASSERT_EQ(0, retry([&] { return fi_inject(a->ep, &one, 1, to_b); }));
	ASSERT_EQ(0,
		  retry([&] { return fi_tinject(a->ep, &two, 1, to_b, 0); }));
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(b, &cm) && tdt_owner_find(b, &ct);
	}));
	EXPECT_EQ(1, in_m);
	EXPECT_EQ(2, in_t);
	EXPECT_EQ(uint64_t(FI_MSG | FI_RECV), tdt_owner_find(b, &cm)->flags);
}

TEST_P(Whole, DiscardedMessagesHaveNoCompletion)
{
	/* fi_peer(3) 2.1, fi_ops_srx_peer::discard_msg() / discard_tag() 1: the
	 * peer drops message and data and completes nothing; the sender's
	 * operation ends. */
	meet();
	for (size_t len : lengths) {
		auto out = pattern(len + 1, 2);
		char ca;

		ASSERT_EQ(0, send(a, to_b, out.data(), len, 6, &ca,
				  FI_DELIVERY_COMPLETE));
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
		ASSERT_EQ(0, tdt_owner_discard(b));
		ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
		EXPECT_EQ(0u, b->dones);
		EXPECT_EQ(0, tdt_owner_find(a, &ca)->err);
		a->dones = 0;
	}
}

TEST_P(Whole, TruncationIsAnErrorEntry)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::get_msg() / get_tag() 2: the peer
	 * checks that the message fits the receive. */
	meet();
	for (size_t len : { 100u, 300000u }) {
		auto out = pattern(len, 3);
		std::vector<unsigned char> in(len, 0xee);
		char ca, cb;

		tdt_owner_trecv(b, in.data(), 40, 8, &cb);
		ASSERT_EQ(0, send(a, to_b, out.data(), len, 8, &ca));
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
		EXPECT_EQ(FI_ETRUNC, tdt_owner_find(b, &cb)->err);
		EXPECT_EQ(40u, tdt_owner_find(b, &cb)->len);
		EXPECT_EQ(len - 40, tdt_owner_find(b, &cb)->olen);
		EXPECT_EQ(0xee, in[40]);
		a->dones = b->dones = 0;
	}
}

TEST_P(Whole, UnknownSourcesAreAskedForAfterAnInsert)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::foreach_unspec_addr() 1: an update of
	 * the addresses makes the owner ask; the source is the user id. */
	struct sockaddr_in addr_c = {};
	struct tdt_owner *c = open(&addr_c);
	char out = 1, in = 0, cc, cb;
	fi_addr_t c_to_b;

	ASSERT_NE(nullptr, c);
	c_to_b = tdt_owner_insert(c, &addr_b, sizeof(addr_b), 7);
	ASSERT_EQ(0, send(c, c_to_b, &out, 1, 4, &cc));
	ASSERT_TRUE(until([&] {
		tdt_owner_progress(c);
		return tdt_owner_queued(b) == 1;
	}));
	EXPECT_EQ(FI_ADDR_UNSPEC, tdt_owner_queued_source(b));
	tdt_owner_insert(b, &addr_c, sizeof(addr_c), 300);
	EXPECT_EQ(300u, tdt_owner_queued_source(b));
	tdt_owner_trecv(b, &in, 1, 4, &cb);
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
	EXPECT_EQ(300u, tdt_owner_find(b, &cb)->src);
	close(&c);
}

TEST_P(Whole, CountersOfBothSidesCount)
{
	/* fi_peer(3) 2.1, fi_ops_cntr_owner::inc() 1: the peer increments the
	 * owner's counters, with or without a completion. */
	char in[3], out = 1, ca, cb;

	meet();
	const uint64_t sends = a->sends, recvs = b->recvs;
	for (char &c : in)
		tdt_owner_trecv(b, &c, 1, 2, &cb);
	ASSERT_EQ(0, send(a, to_b, &out, 1, 2, &ca));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, retry([&] {
				  return fi_tinject(a->ep, &out, 1, to_b, 2);
			  }));
	ASSERT_TRUE(until([&] {
		return a->sends == sends + 3 && b->recvs == recvs + 3;
	}));
	EXPECT_EQ(1u, a->dones);
	EXPECT_EQ(0u, a->send_errs);
}

TEST_P(Whole, ReadingACounterDrivesThePeer)
{
	/* fi_peer(3) 2.1, PEER COUNTER 3: reading the peer's counter makes
	 * progress and returns nothing. */
	char in = 0, out = 9, ca, cb;

	meet();
	tdt_owner_trecv(b, &in, 1, 2, &cb);
	ASSERT_EQ(0, tsend(a, to_b, &out, 1, 2, &ca));
	ASSERT_TRUE(tdt_eventually(
		[&] { return tdt_owner_find(b, &cb) != nullptr; },
		[&] {
			tdt_owner_progress(a);
			b->driving = 1;
			EXPECT_EQ(0u, fi_cntr_read(b->recv_local));
			b->driving = 0;
		}));
	EXPECT_EQ(9, in);
}

TEST_P(Whole, DeliveryIsAnsweredBeforeTheOwnerTurnsAway)
{
	/* fi_cq(3) 2.1, FI_DELIVERY_COMPLETE: the sender may wait for the target.
	 * The owner finds the receive in its own call and completes it there, so
	 * that its application may never drive the peer again. */
	char in = 0, out = 7, ca, cb;

	meet();
	ASSERT_EQ(0, send(a, to_b, &out, 1, 2, &ca, FI_DELIVERY_COMPLETE));
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	tdt_owner_trecv(b, &in, 1, 2, &cb);
	ASSERT_NE(nullptr, tdt_owner_find(b, &cb));
	EXPECT_EQ(7, in);
	EXPECT_TRUE(tdt_eventually(
		[&] { return tdt_owner_find(a, &ca) != nullptr; },
		[&] { tdt_owner_progress(a); }));
}

TEST_P(Whole, LossOfAPeerIsToldToTheOwner)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER: sends fail with the owner's name of
	 * the address, and the owner's event queue gets an event. */
	auto out = pattern(300000, 1);
	char ca;

	meet();
	ASSERT_EQ(0, send(a, to_b, out.data(), out.size(), 2, &ca,
			  FI_DELIVERY_COMPLETE));
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	close(&b, 0, 1);
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(a, &ca) &&
		       tdt_owner_event(a, TDM_PEER_LOST);
	}));
	/* The peer alone names it as tandem's owner does: tdm_provider.h. */
	EXPECT_EQ(alone() ? id_b : to_b,
		  tdt_owner_event(a, TDM_PEER_LOST)->entry.data);
	EXPECT_EQ(&a->ep->fid, tdt_owner_event(a, TDM_PEER_LOST)->entry.fid);
}

TEST_P(Whole, WithdrawnMessageEndsTheReceiveThatMatches)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER: an owner's list cannot give a message
	 * back, so its receive fails. Only the sender over shared memory cancels
	 * after the announcement. */
	auto out = pattern(300000, 1);
	std::vector<unsigned char> in(out.size());
	char ca, cb;

	if (GetParam().path == whole::TCP)
		GTEST_SKIP() << "TCP cancels only what it has not sent";
	meet();
	ASSERT_EQ(0, send(a, to_b, out.data(), out.size(), 2, &ca));
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	ASSERT_EQ(0, fi_cancel(&a->ep->fid, &ca));
	ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
	ASSERT_EQ(FI_ECANCELED, tdt_owner_find(a, &ca)->err);
	EXPECT_EQ(1u, tdt_owner_queued(b));
	tdt_owner_trecv(b, in.data(), in.size(), 2, &cb);
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
	EXPECT_EQ(FI_ECONNRESET, tdt_owner_find(b, &cb)->err);
}

TEST_P(Whole, MessagesFoundInSendsWaitForTheOwner)
{
	/* fi_peer(3) 2.1, PEER SRX 5: the owner locks before it drives the peer,
	 * so that nothing may call its receive context at other times. Both sides
	 * send without a read until no more is taken, and then read. TearDown()
	 * looks at what the owners noted. */
	const size_t most = 20000;
	std::vector<char> in_a(most), in_b(most);
	size_t to = 0, back = 0, i;
	char out[1], ctx;

	meet();
	for (i = 0; i < most; i++) {
		out[0] = char(i);
		if (!fi_tinject(a->ep, out, 1, to_b, 1))
			to++;
		out[0] = char(i + 1);
		if (!fi_tinject(b->ep, out, 1, to_a, 2))
			back++;
	}
	for (i = 0; i < to; i++)
		tdt_owner_trecv(b, &in_b[i], 1, 1, &ctx);
	ASSERT_TRUE(until([&] { return b->dones == to; }));
	for (i = 0; i < back; i++)
		tdt_owner_trecv(a, &in_a[i], 1, 2, &ctx);
	ASSERT_TRUE(until([&] { return a->dones == back; }));
	EXPECT_EQ(0u, tdt_owner_queued(a) + tdt_owner_queued(b));
	/* In order: those that were not taken are missing. */
	EXPECT_EQ(0, in_b[0]);
	EXPECT_EQ(1, in_a[0]);
}

/* Write with remote data to the region of b with key 77. */
class WholeRegion : public Whole
{
protected:
	void write(const char *memory)
	{
		char out[8] = "written", ca;

		ASSERT_EQ(0, retry([&] {
				  struct iovec iov = { out, sizeof(out) };
				  struct fi_rma_iov rma = { 0, sizeof(out),
							    77 };
				  struct fi_msg_rma msg = {};

				  msg.msg_iov = &iov;
				  msg.iov_count = 1;
				  msg.addr = to_b;
				  msg.rma_iov = &rma;
				  msg.rma_iov_count = 1;
				  msg.context = &ca;
				  msg.data = 5;
				  return fi_writemsg(a->ep, &msg,
						     FI_COMPLETION |
							     FI_REMOTE_CQ_DATA);
			  }));
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(a, &ca) && b->dones == 1;
		}));
		EXPECT_EQ(0, tdt_owner_find(a, &ca)->err);
		EXPECT_STREQ("written", memory);
		EXPECT_EQ(5u, b->done[0].data);
		EXPECT_EQ(id_a, b->done[0].src);
	}
};

INSTANTIATE_TEST_SUITE_P(, WholeRegion, testing::ValuesIn(ours), whole::name);

TEST_P(WholeRegion, OfTheOwnersDomainIsServed)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 1: the peer uses the calls of the imported
	 * domain: fi_tandem(7), BELOW ANOTHER OWNER, regions. */
	char memory[8] = {};

	tdt_region_add(b, 77, memory, sizeof(memory), FI_REMOTE_WRITE);
	meet();
	write(memory);
	tdt_region_close(b, 77);
}

TEST_P(WholeRegion, OfThePeersDomainIsServed)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER: without an imported domain, regions
	 * are registered in tandem's. */
	struct fid_mr *mr = nullptr;
	char memory[8] = {};

	close(&b);
	b = open(&addr_b, 1);
	ASSERT_NE(nullptr, b);
	to_b = tdt_owner_insert(a, &addr_b, sizeof(addr_b), id_b);
	to_a = tdt_owner_insert(b, &addr_a, sizeof(addr_a), id_a);
	meet();
	ASSERT_EQ(0, fi_mr_reg(b->domain, memory, sizeof(memory),
			       FI_REMOTE_WRITE, 0, 77, 0, &mr, nullptr));
	write(memory);
	EXPECT_EQ(0, fi_close(&mr->fid));
}

TEST_P(Whole, ClosesInEitherOrder)
{
	/* fi_peer(3) leaves open whether endpoint or receive context goes first,
	 * and whether messages that wait are discarded before, between or after:
	 * efa and lnx differ. Entries come back once at most. */
	for (int srx_first = 0; srx_first < 2; srx_first++) {
		for (int late = 0; late < 2; late++) {
			auto out = pattern(300000, 1);
			std::vector<unsigned char> in(out.size());
			char ca, cb;

			meet();
			for (size_t len : lengths)
				ASSERT_EQ(0, send(a, to_b, out.data(), len, 6,
						  &ca));
			ASSERT_TRUE(until(
				[&] { return tdt_owner_queued(b) == 5; }));
			tdt_owner_trecv(b, in.data(), in.size(), 9, &cb);
			close(&b, srx_first, late);
			close(&a);
			TearDown();
			SetUp();
		}
	}
}

TEST_P(Whole, AnyTrafficArrives)
{
	/* Sizes, tags and the order of sends and receives at random. */
	std::mt19937 random(7);
	struct Msg {
		std::vector<unsigned char> out, in;
		uint64_t tag;
		int posted = 0, sent = 0;
		char cs, cr;
	};
	std::deque<Msg> msgs(400);
	size_t posted = 0, sent = 0;

	meet();
	for (Msg &m : msgs) {
		size_t len = random() % 7 ? random() % 3000 : random() % 90000;

		m.out = pattern(len, unsigned(random()));
		m.in.resize(len);
		m.tag = size_t(&m - &msgs[0]);
	}
	for (size_t i = 0; i < msgs.size(); i++)
		msgs[i].tag = i;
	while (posted < msgs.size() || sent < msgs.size()) {
		if (posted < msgs.size() && random() % 2) {
			Msg &m = msgs[posted++];

			tdt_owner_trecv(b, m.in.data(), m.in.size(), m.tag,
					&m.cr);
		}
		if (sent < msgs.size() && random() % 2) {
			Msg &m = msgs[sent];

			if (!tsend(a, to_b, m.out.data(), m.out.size(), m.tag,
				   &m.cs))
				sent++;
		}
		if (!(random() % 4))
			step();
	}
	ASSERT_TRUE(until([&] {
		return a->dones == msgs.size() && b->dones == msgs.size();
	}));
	for (Msg &m : msgs) {
		ASSERT_NE(nullptr, tdt_owner_find(b, &m.cr));
		EXPECT_EQ(0, tdt_owner_find(b, &m.cr)->err);
		EXPECT_TRUE(m.in == m.out) << m.tag;
	}
}

} // namespace

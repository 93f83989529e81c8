/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_peer(3), PEER SRX: see peer_cq_test.cc for the two sides. */
#include "owner_side.h"
#include "peer_side.h"

namespace
{

using shm_test::PairTest;
using shm_test::pattern;

const fi_addr_t ANY = FI_ADDR_UNSPEC;

/* Parameter: tagged. */
class OwnerSrx : public OwnerSide, public testing::WithParamInterface<int>
{
protected:
	int tagged = GetParam();

	struct Recv {
		char buf[64];
		struct iovec iov;
		struct tdm_xfer x;
	};
	std::deque<Recv> recvs;

	uint64_t kind() const
	{
		return tagged ? FI_TAGGED : FI_MSG;
	}

	/* Post a receive of @len bytes; its context is the Recv. */
	Recv *post(fi_addr_t addr, size_t len = 64, uint64_t flags = 0)
	{
		recvs.emplace_back();
		Recv *r = &recvs.back();

		memset(r, 0, sizeof(*r));
		r->iov.iov_base = r->buf;
		r->iov.iov_len = len;
		r->x.flags = kind() | FI_RECV | FI_COMPLETION | flags;
		r->x.iov = &r->iov;
		r->x.count = 1;
		r->x.len = len;
		r->x.addr = addr;
		r->x.tag = tagged ? 9 : 0;
		r->x.context = r;
		engine.locked([&] { EXPECT_EQ(0, tdm_srx_recv(srx, &r->x)); });
		return r;
	}

	int get(fi_addr_t addr, size_t size, struct fi_peer_rx_entry **e)
	{
		struct fi_peer_match_attr m = { addr, size, 9 };
		int ret = 1;

		engine.locked([&] {
			ret = tagged ? psrx->owner_ops->get_tag(psrx, &m, e) :
				       psrx->owner_ops->get_msg(psrx, &m, e);
		});
		return ret;
	}

	void queue(struct fi_peer_rx_entry *e)
	{
		engine.locked([&] {
			EXPECT_EQ(0, tagged ? psrx->owner_ops->queue_tag(e) :
					      psrx->owner_ops->queue_msg(e));
		});
	}

	void give_back(struct fi_peer_rx_entry *e)
	{
		engine.locked([&] { psrx->owner_ops->free_entry(e); });
	}

	/* An unexpected message of @size bytes, queued. */
	struct fi_peer_rx_entry *arrive(fi_addr_t addr, size_t size,
					void *context = nullptr)
	{
		struct fi_peer_rx_entry *e = nullptr;

		EXPECT_EQ(-FI_ENOENT, get(addr, size, &e));
		if (!e)
			return nullptr;
		e->peer_context = context;
		queue(e);
		return e;
	}

	ssize_t comp(struct fi_cq_tagged_entry *e)
	{
		memset(e, 0, sizeof(*e));
		return fi_cq_read(tdm_cq_fid(cq), e, 1);
	}
};

TEST_P(OwnerSrx, AllButThePeerOpsIsInitialised)
{
	/* fi_peer(3) 2.1, PEER SRX 3: The owner fills in all of fid_peer_srx
	 * and what it refers to, but not the calls of the peer. */
	EXPECT_EQ(size_t(FI_CLASS_PEER_SRX), psrx->ep_fid.fid.fclass);
	ASSERT_NE(nullptr, psrx->owner_ops);
	EXPECT_EQ(sizeof(struct fi_ops_srx_owner), psrx->owner_ops->size);
	EXPECT_NE(nullptr, psrx->owner_ops->get_msg);
	EXPECT_NE(nullptr, psrx->owner_ops->get_tag);
	EXPECT_NE(nullptr, psrx->owner_ops->queue_msg);
	EXPECT_NE(nullptr, psrx->owner_ops->queue_tag);
	EXPECT_NE(nullptr, psrx->owner_ops->foreach_unspec_addr);
	EXPECT_NE(nullptr, psrx->owner_ops->free_entry);
}

TEST_P(OwnerSrx, MatchReturnsTheReceive)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::get_msg() / get_tag() 1: get_msg()
	 * and get_tag(): a match is FI_SUCCESS with an entry that describes the
	 * receive and has FI_RECV and the kind of message in its flags. */
	struct fi_peer_rx_entry *e = nullptr;
	Recv *r = post(ANY, 48);

	ASSERT_EQ(0, get(5, 20, &e));
	ASSERT_NE(nullptr, e);
	EXPECT_EQ(psrx, e->srx);
	EXPECT_EQ(5u, e->addr);
	EXPECT_EQ(20u, e->msg_size);
	EXPECT_EQ(kind() | FI_RECV, e->flags & (FI_MSG | FI_TAGGED | FI_RECV));
	EXPECT_EQ(r, e->context);
	ASSERT_EQ(1u, e->count);
	EXPECT_EQ(r->buf, e->iov[0].iov_base);
	EXPECT_EQ(48u, e->iov[0].iov_len);
	EXPECT_NE(nullptr, e->desc);
	if (tagged) {
		EXPECT_EQ(9u, e->tag);
	}
	give_back(e);
}

TEST_P(OwnerSrx, NoMatchReturnsAnEntryAllTheSame)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::get_msg() / get_tag() 1: Without a
	 * match the result is -FI_ENOENT, with an entry that no receive belongs
	 * to yet. */
	struct fi_peer_rx_entry *e = nullptr;

	ASSERT_EQ(-FI_ENOENT, get(5, 20, &e));
	ASSERT_NE(nullptr, e);
	EXPECT_EQ(psrx, e->srx);
	EXPECT_EQ(5u, e->addr);
	EXPECT_EQ(20u, e->msg_size);
	if (tagged) {
		EXPECT_EQ(9u, e->tag);
	}
	Recv *r = post(ANY);
	(void)r;
	EXPECT_TRUE(transport.started.empty()) << "it was not queued";
	give_back(e);
}

TEST_P(OwnerSrx, MatchedReceiveIsTakenOffTheQueue)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 1, step 5: The owner
	 * takes the receive off its queue and gives it to the peer. */
	struct fi_peer_rx_entry *a = nullptr, *b = nullptr;

	post(ANY);
	ASSERT_EQ(0, get(5, 1, &a));
	EXPECT_EQ(-FI_ENOENT, get(5, 1, &b));
	give_back(a);
	give_back(b);
}

TEST_P(OwnerSrx, QueuedMessageIsStartedWhenMatched)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::queue_msg() / queue_tag() 1:
	 * queue_msg() and queue_tag(): from then on the owner starts or
	 * discards the message. */
	struct fi_peer_rx_entry *e = arrive(5, 20);

	ASSERT_NE(nullptr, e);
	EXPECT_TRUE(transport.calls.empty());
	Recv *r = post(ANY, 32);
	ASSERT_EQ(1u, transport.started.size());
	EXPECT_EQ(e, transport.started[0]);
	EXPECT_EQ(tagged ? "start_tag" : "start_msg", transport.calls[0]);
	/* fi_peer(3) 2.1, fi_ops_srx_peer::start_msg() / start_tag() 1: start:
	 * the entry is the peer's again, with buffers to receive into. */
	EXPECT_EQ(r, e->context);
	ASSERT_EQ(1u, e->count);
	EXPECT_EQ(r->buf, e->iov[0].iov_base);
	EXPECT_EQ(32u, e->iov[0].iov_len);
	EXPECT_TRUE(e->flags & FI_COMPLETION);
	EXPECT_EQ(kind() | FI_RECV, e->flags & (FI_MSG | FI_TAGGED | FI_RECV));
	give_back(e);
}

TEST_P(OwnerSrx, PeersFieldsAreLeftAlone)
{
	/* fi_peer(3) 2.1, fi_peer_rx_entry 1: peer_context is the peer's and
	 * owner_context the owner's; the peer may fill in more before it queues
	 * the message. */
	int mine;
	struct fi_peer_rx_entry *e = nullptr;

	ASSERT_EQ(-FI_ENOENT, get(5, 20, &e));
	e->peer_context = &mine;
	e->flags |= FI_REMOTE_CQ_DATA;
	e->cq_data = 0x1234;
	queue(e);
	post(ANY);
	ASSERT_EQ(1u, transport.started.size());
	EXPECT_EQ(&mine, e->peer_context);
	EXPECT_EQ(0x1234u, e->cq_data);
	EXPECT_TRUE(e->flags & FI_REMOTE_CQ_DATA);
	give_back(e);
}

TEST_P(OwnerSrx, QueuedMessagesAreDiscardedAtTheEnd)
{
	/* fi_peer(3) 2.1, fi_ops_srx_peer::discard_msg() / discard_tag() 1:
	 * discard_msg() and discard_tag(): the message and its data are
	 * dropped. */
	struct fi_peer_rx_entry *e = arrive(5, 20);
	struct fi_cq_tagged_entry c;

	ASSERT_NE(nullptr, e);
	engine.locked([&] { tdm_srx_flush(srx); });
	ASSERT_EQ(1u, transport.discarded.size());
	EXPECT_EQ(tagged ? "discard_tag" : "discard_msg", transport.calls[0]);
	EXPECT_TRUE(transport.started.empty());
	EXPECT_EQ(-FI_EAGAIN, comp(&c)) << "no completion is generated";
}

TEST_P(OwnerSrx, UnknownSourceMatchesReceivesFromAny)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 2, step 2: A message
	 * from FI_ADDR_UNSPEC matches receives from anybody alone. */
	struct fi_peer_rx_entry *e = nullptr, *u = nullptr;

	post(5);
	EXPECT_EQ(-FI_ENOENT, get(ANY, 1, &u));
	queue(u);
	Recv *r = post(ANY);
	ASSERT_EQ(1u, transport.started.size());
	EXPECT_EQ(r, u->context);
	ASSERT_EQ(0, get(5, 1, &e)) << "the directed one is still there";
	give_back(e);
	give_back(u);
}

TEST_P(OwnerSrx, DirectedReceiveLeavesUnknownSourcesAlone)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 2, step 7: A directed
	 * receive does not match a message of an unknown source. */
	struct fi_peer_rx_entry *u = arrive(ANY, 1);

	ASSERT_NE(nullptr, u);
	post(5);
	EXPECT_TRUE(transport.started.empty());
}

TEST_P(OwnerSrx, AddressUpdateMatchesThem)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::foreach_unspec_addr() 1:
	 * foreach_unspec_addr(): the owner asks get_addr about each entry whose
	 * source is unknown. */
	static fi_addr_t answer;
	static std::vector<struct fi_peer_rx_entry *> asked;
	struct fi_peer_rx_entry *a = arrive(ANY, 1), *b = arrive(7, 1);
	struct fi_peer_rx_entry *c = arrive(ANY, 2);

	asked.clear();
	post(5);
	auto look = [&](fi_addr_t found) {
		answer = found;
		engine.locked([&] {
			psrx->owner_ops->foreach_unspec_addr(
				psrx, [](struct fi_peer_rx_entry *e) {
					asked.push_back(e);
					return answer;
				});
		});
	};
	look(ANY);
	EXPECT_EQ((std::vector<struct fi_peer_rx_entry *>{ a, c }), asked)
		<< "only those of unknown source";
	EXPECT_TRUE(transport.started.empty());
	look(5);
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 3: An entry whose
	 * address became known may match a directed receive. */
	ASSERT_EQ(1u, transport.started.size());
	EXPECT_EQ(a, transport.started[0]);
	EXPECT_EQ(5u, a->addr);
	asked.clear();
	look(ANY);
	EXPECT_TRUE(asked.empty());
	(void)b;
	give_back(a);
}

TEST_P(OwnerSrx, StartsKeepTheOrderOfOneSource)
{
	/* "... and ensures correct application level message ordering." */
	struct fi_peer_rx_entry *e[4];

	for (auto &m : e)
		m = arrive(5, 1);
	for (int i = 0; i < 4; i++)
		post(i % 2 ? ANY : 5);
	ASSERT_EQ(4u, transport.started.size());
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(e[i], transport.started[i]);
	for (auto &m : e)
		give_back(m);
}

TEST_P(OwnerSrx, EntryCanBeFreedInsideStart)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner:: free_entry() 1: The peer has
	 * completed the message and gives the entry back: that may be before
	 * start returns. */
	struct fi_cq_tagged_entry c;

	static struct fi_peer_rx_entry *freed;

	freed = nullptr;
	transport.ops.start_msg =
		transport.ops.start_tag = [](struct fi_peer_rx_entry *e) {
			e->srx->owner_ops->free_entry(e);
			freed = e;
			return 0;
		};
	struct fi_peer_rx_entry *e = arrive(5, 3);
	post(ANY);
	EXPECT_EQ(e, freed);
	post(ANY);
	EXPECT_EQ(0, get(5, 3, &e)) << "the second receive waits";
	give_back(e);
	EXPECT_EQ(-FI_EAGAIN, comp(&c));
}

INSTANTIATE_TEST_SUITE_P(Kinds, OwnerSrx, testing::Values(0, 1),
			 [](const testing::TestParamInfo<int> &p) {
				 return p.param ? "tagged" : "msg";
			 });

class PeerSrxOpen : public RawPeer
{
protected:
	struct fi_ops_srx_owner owner_ops = {};
	struct fi_ops_srx_peer *none = nullptr;
	struct fid_peer_srx exported_srx = {};

	int open(uint64_t flags, void *context, struct fid_ep **srx)
	{
		struct fi_rx_attr attr = {};

		owner_ops.size = sizeof(owner_ops);
		exported_srx.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
		exported_srx.owner_ops = &owner_ops;
		attr.op_flags = flags;
		return fi_srx_context(domain, &attr, srx, context);
	}
};

TEST_F(PeerSrxOpen, NeedsFlagAndContext)
{
	/* fi_peer(3) 2.1, PEER SRX 2: The owner calls the peer's fi_srx_context
	 * with FI_PEER and a fi_peer_srx_context. */
	struct fi_peer_srx_context ctx = { sizeof(ctx), &exported_srx };
	struct fid_ep *srx = nullptr;

	EXPECT_EQ(-FI_EINVAL, open(0, &ctx, &srx));
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, nullptr, &srx));
	ctx.size = sizeof(ctx) - 1;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &srx));
	ctx.size = sizeof(ctx);
	ctx.srx = nullptr;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &srx));
	EXPECT_EQ(nullptr, srx);
}

TEST_F(PeerSrxOpen, SetsThePeerOps)
{
	/* fi_peer(3) 2.1, PEER SRX 3: The peer fills in its calls before
	 * fi_srx_context returns. */
	struct fi_peer_srx_context ctx = { sizeof(ctx), &exported_srx };
	struct fid_ep *srx = nullptr;

	ASSERT_EQ(0, open(FI_PEER, &ctx, &srx));
	ASSERT_NE(nullptr, exported_srx.peer_ops);
	EXPECT_EQ(sizeof(struct fi_ops_srx_peer), exported_srx.peer_ops->size);
	EXPECT_NE(nullptr, exported_srx.peer_ops->start_msg);
	EXPECT_NE(nullptr, exported_srx.peer_ops->start_tag);
	EXPECT_NE(nullptr, exported_srx.peer_ops->discard_msg);
	EXPECT_NE(nullptr, exported_srx.peer_ops->discard_tag);
	EXPECT_EQ(&owner_ops, exported_srx.owner_ops) << "the owner's";
	EXPECT_EQ(0, fi_close(&srx->fid));
}

TEST_F(PeerSrxOpen, PostsNoReceives)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX SETUP 1, step 5: The receive calls
	 * of the imported context report -FI_ENOSYS. */
	struct fi_peer_srx_context ctx = { sizeof(ctx), &exported_srx };
	struct fid_ep *srx = nullptr;
	char buf;

	ASSERT_EQ(0, open(FI_PEER, &ctx, &srx));
	EXPECT_NE(nullptr, srx->msg);
	EXPECT_NE(nullptr, srx->tagged);
	if (srx->msg && srx->tagged) {
		EXPECT_EQ(-FI_ENOSYS,
			  fi_recv(srx, &buf, 1, nullptr, ANY, nullptr));
		EXPECT_EQ(-FI_ENOSYS,
			  fi_trecv(srx, &buf, 1, nullptr, ANY, 0, 0, nullptr));
	}
	EXPECT_EQ(0, fi_close(&srx->fid));
}

class PeerSrx : public PairTest
{
};

TEST_F(PeerSrx, ReceivesArePostedWithTheOwnerOnly)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX SETUP 1, step 5: The peer takes all
	 * receive buffers from the imported context. */
	char buf;

	EXPECT_EQ(-FI_ENOSYS, fi_recv(b->ep, &buf, 1, nullptr, ANY, nullptr));
	EXPECT_EQ(-FI_ENOSYS,
		  fi_trecv(b->ep, &buf, 1, nullptr, ANY, 0, 0, nullptr));
}

TEST_F(PeerSrx, EntriesComeBackAfterTheCompletion)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner:: free_entry() 1: The peer has
	 * completed the message and gives the entry back. Exactly once: none is
	 * left alive. */
	meet();
	size_t alive = b->entries;
	for (size_t len : { 0u, 48u, 5000u, 300000u })
		exchange(len, 7);
	EXPECT_EQ(alive, b->entries);
	EXPECT_EQ(0u, b->broken);
}

TEST_F(PeerSrx, UnexpectedMessagesAreQueuedAndStarted)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::get_msg() / get_tag() 1: After
	 * -FI_ENOENT the peer keeps what it will need in peer_context and
	 * queues the message. */
	meet();
	for (size_t len : { 0u, 48u, 5000u, 300000u }) {
		auto out = pattern(len + 1, 1);
		std::vector<unsigned char> in(len + 1, 0xee);
		char ca, cb;

		ASSERT_EQ(0, send(a, to_b, out.data(), len, 6, &ca));
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
		tdt_owner_trecv(b, in.data(), len, 6, &cb);
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
		}));
		EXPECT_EQ(0, tdt_owner_find(b, &cb)->err);
		EXPECT_EQ(0, memcmp(in.data(), out.data(), len));
		EXPECT_EQ(0xee, in[len]);
		EXPECT_EQ(0u, tdt_owner_queued(b));
		a->dones = b->dones = 0;
	}
}

TEST_F(PeerSrx, DiscardedMessageHasNoCompletion)
{
	/* fi_peer(3) 2.1, fi_ops_srx_peer::discard_msg() / discard_tag() 1:
	 * discard_msg() and discard_tag(): a dropped message has no
	 * completion. */
	meet();
	for (size_t len : { 0u, 5000u, 300000u }) {
		auto out = pattern(len + 1, 1);
		char ca;

		ASSERT_EQ(0, send(a, to_b, out.data(), len, 6, &ca));
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
		ASSERT_EQ(0, tdt_owner_discard(b));
		ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }))
			<< "the sender's operation ends all the same";
		EXPECT_EQ(0u, b->dones);
		a->dones = 0;
	}
	exchange(100, 8);
}

TEST_F(PeerSrx, MessageThatDoesNotFitIsThePeersToCheck)
{
	/* fi_peer(3) 2.1, fi_ops_srx_owner::get_msg() / get_tag() 1: The peer
	 * checks whether a message fits into the buffers. */
	meet();
	for (size_t len : { 49u, 5000u, 300000u }) {
		auto out = pattern(len, 1);
		std::vector<unsigned char> in(len, 0xee);
		char ca, cb;

		tdt_owner_trecv(b, in.data(), 48, 6, &cb);
		ASSERT_EQ(0, send(a, to_b, out.data(), len, 6, &ca));
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
		EXPECT_EQ(FI_ETRUNC, tdt_owner_find(b, &cb)->err);
		EXPECT_EQ(48u, tdt_owner_find(b, &cb)->len);
		EXPECT_EQ(len - 48, tdt_owner_find(b, &cb)->olen);
		EXPECT_EQ(0, memcmp(in.data(), out.data(), 48));
		EXPECT_EQ(0xee, in[48]);
		ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
		a->dones = b->dones = 0;
	}
}

TEST_F(PeerSrx, OwnerWithoutMemoryIsAskedAgain)
{
	/* get_msg()/get_tag(): an owner that has no entry to give keeps the
	 * message from nobody: it is offered again. */
	char c = 3, d = 0, ca;

	meet();
	b->refuse_entries = 3;
	tdt_owner_trecv(b, &d, 1, 6, &d);
	ASSERT_EQ(0, send(a, to_b, &c, 1, 6, &ca));
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &d); }));
	EXPECT_EQ(0, tdt_owner_find(b, &d)->err);
	EXPECT_EQ(3, d);
}

TEST_F(PeerSrx, AddressUpdateAsksForUnknownSources)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 3: The peer calls
	 * foreach_unspec_addr whenever it learns addresses. */
	struct tdt_owner *c = open(shm_test::next_port());
	uint16_t port_c = shm_test::next_port();
	char out = 1, cc;

	ASSERT_NE(nullptr, c);
	(void)port_c;
	struct sockaddr_in in = shm_test::address(port_b);
	fi_addr_t to = tdt_owner_insert(c, &in, sizeof(in), 1);
	ASSERT_EQ(0, send(c, to, &out, 1, 6, &cc));
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	EXPECT_EQ(ANY, tdt_owner_queued_source(b));
	size_t len = sizeof(in);
	ASSERT_EQ(0, fi_getname(&c->ep->fid, &in, &len));
	ASSERT_NE(FI_ADDR_NOTAVAIL, tdt_owner_insert(b, &in, sizeof(in), 4711));
	EXPECT_EQ(4711u, tdt_owner_queued_source(b));
	tdt_owner_discard(b);
	ASSERT_TRUE(until([&] { return tdt_owner_find(c, &cc); }));
}

} // namespace

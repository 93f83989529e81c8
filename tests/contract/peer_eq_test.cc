/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_peer(3), PEER EQ: see peer_cq_test.cc for the two sides. */
#include "owner_side.h"
#include "peer_side.h"

namespace
{

using shm_test::PairTest;

class OwnerEq : public OwnerSide
{
protected:
	struct tdm_peer_event event(uint32_t type)
	{
		struct tdm_peer_event e = {};

		e.type = type;
		e.err = FI_ECONNRESET;
		e.entry.data = 77;
		return e;
	}
};

TEST_F(OwnerEq, EventsOfThePeerAreTakenIn)
{
	/* fi_peer(3) 2.1, PEER EQ 1: A peer may insert events into the queue of
	 * another provider. */
	struct tdm_peer_event e = event(TDM_PEER_LOST);

	ASSERT_NE(nullptr, peer.events);
	engine.locked([&] {
		ASSERT_EQ(static_cast<ssize_t>(sizeof(e)),
			  fi_eq_write(peer.events, FI_NOTIFY, &e, sizeof(e),
				      0));
		tdm_link_progress(link);
	});
	ASSERT_EQ(1u, events.size());
	EXPECT_EQ(uint32_t(TDM_PEER_LOST), events[0].type);
	EXPECT_EQ(77u, events[0].entry.data);
	EXPECT_EQ(FI_ECONNRESET, events[0].err);
}

TEST_F(OwnerEq, OrderIsKeptAndNothingIsLost)
{
	/* fi_eq(3) 2.1, fi_eq_read 1: A read takes one event; events are read
	 * in the order in which they were written. */
	const uint64_t n = 500;

	engine.locked([&] {
		for (uint64_t i = 0; i < n; i++) {
			struct tdm_peer_event e = event(TDM_PEER_UP);

			e.entry.data = i;
			if (fi_eq_write(peer.events, FI_NOTIFY, &e, sizeof(e),
					0) < 0)
				tdm_link_progress(link);
			if (i % 50 == 49)
				tdm_link_progress(link);
		}
		tdm_link_progress(link);
	});
	ASSERT_EQ(n, events.size());
	for (uint64_t i = 0; i < n; i++)
		EXPECT_EQ(i, events[i].entry.data);
}

TEST_F(OwnerEq, OutlivesThePeersEq)
{
	/* fi_peer(3) 2.1, PEER EQ 3: The fid_eq stays valid until the peer's
	 * queue is closed. */
	ASSERT_NE(nullptr, peer.find("eq"));
	peer.calls.clear();
	TearDown();
	EXPECT_TRUE(peer.called("close eq"));
	EXPECT_LT(peer.position("close ep"), peer.position("close eq"));
	cq = nullptr;
	tx = rx = nullptr;
	srx = nullptr;
	av = nullptr;
	ep = nullptr;
	link = nullptr;
}

class PeerEqOpen : public RawPeer
{
protected:
	struct fid_eq exported_eq = {};

	int open(uint64_t flags, void *context, struct fid_eq **eq)
	{
		struct fi_eq_attr attr = {};

		exported_eq.fid.fclass = FI_CLASS_EQ;
		attr.flags = flags;
		return fi_eq_open(fabric, &attr, eq, context);
	}
};

TEST_F(PeerEqOpen, NeedsFlagAndContext)
{
	/* fi_peer(3) 2.1, PEER EQ 3: With FI_PEER, the context of fi_eq_open is
	 * a fi_peer_eq_context. */
	struct fi_peer_eq_context ctx = { sizeof(ctx), &exported_eq };
	struct fid_eq *eq = nullptr;

	EXPECT_EQ(-FI_EINVAL, open(0, &ctx, &eq));
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, nullptr, &eq));
	ctx.size = sizeof(ctx) - 1;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &eq));
	ctx.size = sizeof(ctx);
	ctx.eq = nullptr;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &eq));
	EXPECT_EQ(nullptr, eq);
	ctx.eq = &exported_eq;
	ASSERT_EQ(0, open(FI_PEER, &ctx, &eq));
	EXPECT_EQ(0, fi_close(&eq->fid));
}

class PeerEq : public PairTest
{
};

TEST_F(PeerEq, EventsAreWrittenToTheOwner)
{
	/* fi_peer(3) 2.1, PEER EQ 1: The user needs one event queue only:
	 * attached and lost peers are told there. */
	meet();
	const struct tdm_peer_event *up = tdt_owner_event(a, TDM_PEER_UP);

	ASSERT_NE(nullptr, up);
	EXPECT_EQ(id_b, up->entry.data) << "in the owner's address space";
	EXPECT_EQ(&a->ep->fid, up->entry.fid);
	EXPECT_EQ(0, up->err);
	close(b);
	b = nullptr;
	ASSERT_TRUE(until([&] { return tdt_owner_event(a, TDM_PEER_LOST); }));
	const struct tdm_peer_event *lost = tdt_owner_event(a, TDM_PEER_LOST);
	EXPECT_EQ(id_b, lost->entry.data);
	EXPECT_NE(0, lost->err);
	size_t n = 0;
	for (size_t i = 0; i < a->nevents; i++)
		n += a->events[i].type == TDM_PEER_LOST;
	EXPECT_EQ(1u, n) << "told once";
}

} // namespace

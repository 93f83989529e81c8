/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_peer(3), PEER COUNTER: see peer_cq_test.cc for the two sides. */
#include "owner_side.h"
#include "peer_side.h"

namespace
{

using shm_test::PairTest;
using shm_test::pattern;

class OwnerCntr : public OwnerSide
{
};

TEST_F(OwnerCntr, FidAndOwnerOpsAreInitialised)
{
	/* fi_peer(3) 2.1, PEER COUNTER 2: A peer counter is set up as a peer
	 * queue is: the owner fills in fid and owner_ops. */
	for (struct fid_peer_cntr *c : { ptx, prx }) {
		EXPECT_EQ(size_t(FI_CLASS_PEER_CNTR), c->fid.fclass);
		ASSERT_NE(nullptr, c->owner_ops);
		EXPECT_EQ(sizeof(struct fi_ops_cntr_owner), c->owner_ops->size);
		EXPECT_NE(nullptr, c->owner_ops->inc);
		EXPECT_NE(nullptr, c->owner_ops->incerr);
	}
	EXPECT_NE(ptx, prx);
}

TEST_F(OwnerCntr, IncIncrementsTheValue)
{
	/* fi_peer(3) 2.1, fi_ops_cntr_owner::inc() 1: inc(): the owner's value
	 * grows. */
	for (uint64_t i = 1; i <= 3; i++) {
		engine.locked([&] { ptx->owner_ops->inc(ptx); });
		EXPECT_EQ(i, fi_cntr_read(tdm_cntr_fid(tx)));
	}
	EXPECT_EQ(0u, fi_cntr_readerr(tdm_cntr_fid(tx)));
	EXPECT_EQ(0u, fi_cntr_read(tdm_cntr_fid(rx)));
}

TEST_F(OwnerCntr, IncerrIncrementsTheError)
{
	/* fi_peer(3) 2.1, fi_ops_cntr_owner::incerr() 1: incerr(): the owner's
	 * error value grows for a transfer that failed. */
	engine.locked([&] { prx->owner_ops->incerr(prx); });
	EXPECT_EQ(0u, fi_cntr_read(tdm_cntr_fid(rx)));
	EXPECT_EQ(1u, fi_cntr_readerr(tdm_cntr_fid(rx)));
}

TEST_F(OwnerCntr, EachTransportCountsIntoTheSameCounter)
{
	/* fi_peer(3) 2.1, PEER COUNTER 2: The peer imports the owner's
	 * counter. */
	struct fid_peer_cntr *tcp = tdm_cntr_export(tx, TDM_TRANSPORT_TCP);

	engine.locked([&] {
		tcp->owner_ops->inc(tcp);
		ptx->owner_ops->inc(ptx);
	});
	EXPECT_EQ(2u, fi_cntr_read(tdm_cntr_fid(tx)));
}

TEST_F(OwnerCntr, ExportOutlivesThePeersCounter)
{
	/* As for the CQ: valid until the peer's counter is closed. */
	engine.locked([&] { tdm_link_ep_close(link, ep); });
	ep = nullptr;
	EXPECT_NE(nullptr, peer.find("cntr", 1));
	EXPECT_EQ(0, fi_close(&tdm_cntr_fid(tx)->fid));
	tx = nullptr;
	EXPECT_EQ(nullptr, peer.find("cntr", 1));
	EXPECT_NE(nullptr, peer.find("cntr", 0));
}

class PeerCntrOpen : public RawPeer
{
protected:
	static void note(struct fid_peer_cntr *)
	{
	}

	struct fi_ops_cntr_owner owner_ops = { sizeof(owner_ops), note, note };
	struct fid_peer_cntr exported_cntr = {};

	int open(uint64_t flags, void *context, struct fid_cntr **cntr)
	{
		struct fi_cntr_attr attr = {};

		exported_cntr.fid.fclass = FI_CLASS_PEER_CNTR;
		exported_cntr.owner_ops = &owner_ops;
		attr.flags = flags;
		attr.wait_obj = FI_WAIT_NONE;
		return fi_cntr_open(domain, &attr, cntr, context);
	}
};

TEST_F(PeerCntrOpen, NeedsFlagAndContext)
{
	/* As for the CQ: FI_PEER and a struct fi_peer_cntr_context. */
	struct fi_peer_cntr_context ctx = { sizeof(ctx), &exported_cntr };
	struct fid_cntr *cntr = nullptr;

	EXPECT_EQ(-FI_EINVAL, open(0, &ctx, &cntr));
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, nullptr, &cntr));
	ctx.size = sizeof(ctx) - 1;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &cntr));
	ctx.size = sizeof(ctx);
	ctx.cntr = nullptr;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &cntr));
	EXPECT_EQ(nullptr, cntr);
	ctx.cntr = &exported_cntr;
	ASSERT_EQ(0, open(FI_PEER, &ctx, &cntr));
	memset(&ctx, 0xff, sizeof(ctx));
	EXPECT_EQ(0u, fi_cntr_read(cntr));
	EXPECT_EQ(0, fi_close(&cntr->fid));
}

TEST_F(PeerCntrOpen, OnlyProgressCanBeAskedFor)
{
	/* fi_peer(3) 2.1, PEER COUNTER 4: fi_cntr_read of the peer's counter
	 * makes progress; all other calls that would look at it are
	 * -FI_ENOSYS. */
	struct fi_peer_cntr_context ctx = { sizeof(ctx), &exported_cntr };
	struct fid_cntr *cntr = nullptr;

	ASSERT_EQ(0, open(FI_PEER, &ctx, &cntr));
	EXPECT_EQ(0u, fi_cntr_read(cntr));
	EXPECT_EQ(-FI_ENOSYS, static_cast<int64_t>(fi_cntr_readerr(cntr)));
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_add(cntr, 1));
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_adderr(cntr, 1));
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_set(cntr, 1));
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_seterr(cntr, 1));
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_wait(cntr, 1, 0));
	EXPECT_EQ(0u, fi_cntr_read(cntr));
	EXPECT_EQ(0, fi_close(&cntr->fid));
}

class PeerCntr : public PairTest
{
};

TEST_F(PeerCntr, OperationsAreCountedOnBothSides)
{
	/* fi_peer(3) 2.1, PEER COUNTER 1: A peer counts at the counter of
	 * another provider. */
	meet();
	uint64_t sends = a->sends, recvs = b->recvs;

	for (size_t len : { 0u, 100u, 200000u })
		exchange(len, 3);
	EXPECT_EQ(sends + 3, a->sends);
	EXPECT_EQ(recvs + 3, b->recvs);
	EXPECT_EQ(0u, a->send_errs);
	EXPECT_EQ(0u, b->recv_errs);
}

TEST_F(PeerCntr, FailuresAreCountedAsSuch)
{
	/* incerr(), as above; success and failure are counted apart. */
	auto out = pattern(100, 1);
	unsigned char in[10];
	char ca, cb;

	meet();
	uint64_t sends = a->sends, recvs = b->recvs;
	tdt_owner_trecv(b, in, sizeof(in), 5, &cb);
	ASSERT_EQ(0, send(a, to_b, out.data(), out.size(), 5, &ca));
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(a, &ca) && tdt_owner_find(b, &cb);
	}));
	EXPECT_EQ(sends + 1, a->sends);
	EXPECT_EQ(recvs, b->recvs);
	EXPECT_EQ(1u, b->recv_errs);
}

TEST_F(PeerCntr, ReadingTheCounterMakesProgress)
{
	/* fi_peer(3) 2.1, PEER COUNTER 4: The owner drives a peer that needs
	 * manual progress by fi_cntr_read. */
	char c = 1, d = 0, ca;

	meet();
	tdt_owner_trecv(b, &d, 1, 5, &d);
	ASSERT_EQ(0, send(a, to_b, &c, 1, 5, &ca));
	EXPECT_TRUE(tdt_eventually(
		[&] { return tdt_owner_find(b, &d) != nullptr; },
		[&] { EXPECT_EQ(0u, fi_cntr_read(b->recv_local)); }));
}

} // namespace

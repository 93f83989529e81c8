/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_peer(3), PEER DOMAIN: see peer_cq_test.cc for the two sides. */
#include "owner_side.h"
#include "peer_side.h"

namespace
{

class OwnerDomain : public OwnerSide
{
};

TEST_F(OwnerDomain, IsHandedOver)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 2: The peer imports the owner's domain by
	 * fi_domain2 with FI_PEER and a struct fi_peer_domain_context, which
	 * the mock checks. */
	EXPECT_EQ(&owner, peer.owner);
}

TEST_F(OwnerDomain, OutlivesThePeersDomain)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 3: The fid_domain outlives the
	 * peer's domain. The link closes it after all that is in it. */
	ASSERT_NE(nullptr, peer.find("domain"));
	peer.calls.clear();
	TearDown();
	EXPECT_LT(peer.position("close ep"), peer.position("close domain"));
	EXPECT_LT(peer.position("close srx"), peer.position("close domain"));
	EXPECT_LT(peer.position("close cq"), peer.position("close domain"));
	EXPECT_LT(peer.position("close av"), peer.position("close domain"));
	EXPECT_LT(peer.position("close domain"), peer.position("close fabric"));
	EXPECT_TRUE(peer.called("close fabric"));
	cq = nullptr;
	tx = rx = nullptr;
	srx = nullptr;
	av = nullptr;
	ep = nullptr;
	link = nullptr;
}

TEST(OwnerDomainRefused, PeerThatCannotImportItIsStillAPeer)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 3: A provider without peer domains fails
	 * fi_domain2 with -FI_EINVAL (some give -FI_ENOSYS): it is then opened
	 * by fi_domain(). */
	tdt::FakeEngine engine;
	tdt::MockPeer plain;
	struct fid_domain owner = {};
	struct tdm_link_attr attr = {};
	struct tdm_link *link = nullptr;
	struct fi_info *info = fi_allocinfo();

	plain.no_domain2 = true;
	attr.prov = &plain.prov;
	attr.owner = &owner;
	attr.engine = &engine.engine;
	attr.info = info;
	attr.event = [](void *, const struct tdm_peer_event *) {
	};
	ASSERT_EQ(0, tdm_link_open(&attr, &link));
	EXPECT_EQ(nullptr, plain.owner);
	engine.locked([&] { tdm_link_close(link); });
	fi_freeinfo(info);
}

class PeerDomain : public RawPeer
{
};

TEST_F(PeerDomain, NeedsFlagAndContext)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 3: With FI_PEER, the context of
	 * fi_domain2 is a fi_peer_domain_context. */
	struct fi_peer_domain_context ctx = { sizeof(ctx), &exported };
	struct fid_domain *d = nullptr;

	EXPECT_EQ(-FI_EINVAL, fi_domain2(fabric, info, &d, FI_PEER, nullptr));
	ctx.size = sizeof(ctx) - 1;
	EXPECT_EQ(-FI_EINVAL, fi_domain2(fabric, info, &d, FI_PEER, &ctx));
	ctx.size = sizeof(ctx);
	ctx.domain = nullptr;
	EXPECT_EQ(-FI_EINVAL, fi_domain2(fabric, info, &d, FI_PEER, &ctx));
	EXPECT_EQ(nullptr, d);
}

TEST_F(PeerDomain, UsesTheOwnersOperations)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 1: The peer may use the operations of the
	 * owner's domain, to register memory there, say. */
	static int calls;
	struct fid_mr *mr = nullptr;
	char buf[8];

	calls = 0;
	mr_ops.reg = [](struct fid *, const void *, size_t, uint64_t, uint64_t,
			uint64_t, uint64_t, struct fid_mr **, void *) {
		calls++;
		return -FI_ENOMR;
	};
	EXPECT_EQ(-FI_ENOMR, fi_mr_reg(domain, buf, sizeof(buf), FI_SEND, 0, 1,
				       0, &mr, nullptr));
	EXPECT_EQ(1, calls);
}

TEST_F(PeerDomain, IsBusyWhileItsObjectsAreOpen)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 3: The owner's domain stays valid until
	 * the peer's is closed. fi_domain(3) 2.1, fi_close 1: -FI_EBUSY while
	 * it has open objects. */
	struct fi_av_attr attr = {};
	struct fid_av *av = nullptr;

	attr.type = FI_AV_TABLE;
	ASSERT_EQ(0, fi_av_open(domain, &attr, &av, nullptr));
	EXPECT_EQ(-FI_EBUSY, fi_close(&domain->fid));
	EXPECT_EQ(0, fi_close(&av->fid));
}

TEST_F(PeerDomain, ImportsNoAddressVector)
{
	/* fi_tandem(7), AS A PEER: an address vector is not imported; FI_PEER
	 * is refused as fi_peer(3) has it for the other objects. */
	struct fi_peer_av_context ctx = { sizeof(ctx), nullptr };
	struct fi_av_attr attr = {};
	struct fid_av *av = nullptr;

	attr.type = FI_AV_TABLE;
	attr.flags = FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_av_open(domain, &attr, &av, &ctx));
	attr.flags = 0;
	ASSERT_EQ(0, fi_av_open(domain, &attr, &av, nullptr));
	EXPECT_EQ(0, fi_close(&av->fid));
}

} // namespace

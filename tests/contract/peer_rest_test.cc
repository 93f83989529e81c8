/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_peer(3) has and tandem does not take: exports by fi_export_fid, imports by
 * fi_import_fid, peer address vectors and sets, peer transfers. Each is refused, and
 * nothing is written or kept. doc/peer-sentences.md has the reasons.
 */
#include <rdma/fi_collective.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_peer.h>

#include "tests/harness/raw.h"

namespace
{

const char *const NAMES[] = { "", "tandem-shm" };

/* Parameter: the domain's name that an owner asks for; "": the whole of tandem. */
class PeerRest : public Raw, public testing::WithParamInterface<const char *>
{
protected:
	void SetUp() override
	{
		renew();
		hints->caps = FI_TAGGED | FI_PEER;
		if (*GetParam())
			hints->domain_attr->name = strdup(GetParam());
		ASSERT_EQ(0, get());
		open_domain();
	}

	static void refuses_both(struct fid *fid)
	{
		struct fid stranger = {};
		struct fid *out = &stranger;

		stranger.fclass = FI_CLASS_PEER_CQ;
		EXPECT_EQ(-FI_ENOSYS, fi_export_fid(fid, 0, &out, nullptr))
			<< "class " << fid->fclass;
		EXPECT_EQ(&stranger, out);
		EXPECT_GT(0, fi_import_fid(fid, &stranger, 0))
			<< "class " << fid->fclass;
	}

	struct fid_cq *lent_cq()
	{
		static struct fi_ops_cq_owner ops = { sizeof(ops), nullptr,
						      nullptr };
		static struct fid_peer_cq lent;
		struct fi_peer_cq_context ctx = { sizeof(ctx), &lent };
		struct fi_cq_attr attr = {};
		struct fid_cq *fid = nullptr;

		lent.owner_ops = &ops;
		attr.flags = FI_PEER;
		EXPECT_EQ(0, fi_cq_open(domain, &attr, &fid, &ctx));
		return keep(fid);
	}

	struct fid_ep *endpoint()
	{
		struct fid_ep *fid = nullptr;

		EXPECT_EQ(0, fi_endpoint(domain, info, &fid, nullptr));
		return keep(fid);
	}
};

INSTANTIATE_TEST_SUITE_P(, PeerRest, testing::ValuesIn(NAMES),
			 [](const testing::TestParamInfo<const char *> &i) {
				 return *i.param ? "alone" : "whole";
			 });

TEST_P(PeerRest, NothingIsExportedOrImportedByFid)
{
	/* fi_peer(3) 2.1, fi_export_fid / fi_import_fid 1 and 2: the one is
	 * reserved, what the other replaces is the provider's to say: nothing. */
	refuses_both(&fabric->fid);
	refuses_both(&domain->fid);
	refuses_both(&av()->fid);
	refuses_both(&lent_cq()->fid);
	refuses_both(&endpoint()->fid);
}

TEST_P(PeerRest, EndpointForPeerTransfersIsRefused)
{
	/* fi_peer(3) 2.1, FI_PEER_TRANSFER 2 and 5: a provider that sends through
	 * its owner says so by its mode, and one that does not must not pass for
	 * one: it would leave the calls of the context unset. */
	struct fi_ops_transfer_peer ops = { sizeof(ops), nullptr, nullptr };
	struct fi_peer_transfer_context ctx = {};
	struct fid_ep *ep = nullptr;

	ctx.size = sizeof(ctx);
	ctx.peer_ops = &ops;
	EXPECT_EQ(0u, info->mode & FI_PEER_TRANSFER);
	info->mode |= FI_PEER_TRANSFER;
	EXPECT_EQ(-FI_EINVAL, fi_endpoint(domain, info, &ep, &ctx));
	EXPECT_EQ(nullptr, ep);
	EXPECT_EQ(nullptr, ops.complete);
}

TEST_P(PeerRest, AddressVectorOfAnOwnerIsRefused)
{
	/* fi_peer(3) 2.1, PEER AV 3; fi_tandem(7): each has a vector of its own. */
	struct fid_peer_av lent = {};
	struct fi_peer_av_context ctx = { sizeof(ctx), &lent };
	struct fi_av_attr attr = {};
	struct fid_av *fid = nullptr;

	attr.flags = FI_PEER;
	EXPECT_GT(0, fi_av_open(domain, &attr, &fid, &ctx));
	EXPECT_EQ(nullptr, fid);
}

TEST_P(PeerRest, AddressVectorSetOfAnOwnerIsNotImported)
{
	/* fi_peer(3) 2.1, PEER AV SET 2: its flag has no name in the header, and
	 * FI_PEER is the bit of FI_ALLREDUCE_SET. So the whole of tandem cannot
	 * tell, and makes a set of its own, to which the context means nothing. */
	struct fid_peer_av_set lent = {};
	/* The header's type does not exist: doc/spec-notes.md. */
	struct fi_peer_av_set_context ctx = {
		sizeof(ctx), reinterpret_cast<struct fi_peer_av_set *>(&lent)
	};
	struct fi_av_set_attr attr = {};
	struct fid_av_set *fid = nullptr;
	struct fid_av *vector = av();
	int ret;

	ASSERT_EQ(FI_ALLREDUCE_SET, FI_PEER);
	attr.flags = FI_PEER;
	attr.start_addr = attr.end_addr = FI_ADDR_NOTAVAIL;
	ret = fi_av_set(vector, &attr, &fid, &ctx);
	if (*GetParam()) {
		EXPECT_EQ(-FI_ENOSYS, ret);
		EXPECT_EQ(nullptr, fid);
	} else {
		ASSERT_EQ(0, ret);
		EXPECT_EQ(nullptr, lent.owner_ops);
		EXPECT_EQ(0, fi_close(&fid->fid));
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other side of the contract: our shared-memory peer. RawPeer opens its
 * objects one by one with contexts of the test's making; the pair tests of
 * shm_world.h drive it with a mock owner.
 */
#ifndef TDT_PEER_SIDE_H
#define TDT_PEER_SIDE_H

#include "tests/unit/shm_world.h"

extern "C" {
#include "tdm_provider.h"
}

/* A fabric and a domain of the peer, opened with FI_PEER. */
class RawPeer : public testing::Test
{
protected:
	struct fi_provider *prov = tdm_shm_provider();
	struct fi_info *info = nullptr;
	struct fid_fabric *fabric = nullptr;
	struct fid_domain *domain = nullptr;
	struct fid_domain exported = {};
	struct fi_ops_domain ops = {};
	struct fi_ops_mr mr_ops = {};

	void SetUp() override
	{
		struct fi_peer_domain_context ctx = { sizeof(ctx), &exported };

		exported.fid.fclass = FI_CLASS_DOMAIN;
		exported.ops = &ops;
		exported.mr = &mr_ops;
		ops.size = sizeof(ops);
		mr_ops.size = sizeof(mr_ops);
		ASSERT_EQ(0, prov->getinfo(fi_version(), nullptr, nullptr, 0,
					   nullptr, &info));
		ASSERT_EQ(0, prov->fabric(info->fabric_attr, &fabric, nullptr));
		fabric->api_version = fi_version();
		ASSERT_EQ(0, fi_domain2(fabric, info, &domain, FI_PEER, &ctx));
	}

	void TearDown() override
	{
		if (domain) {
			EXPECT_EQ(0, fi_close(&domain->fid));
		}
		if (fabric) {
			EXPECT_EQ(0, fi_close(&fabric->fid));
		}
		if (info)
			fi_freeinfo(info);
	}
};

#endif /* TDT_PEER_SIDE_H */

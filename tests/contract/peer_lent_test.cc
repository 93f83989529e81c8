/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory peer as other owners find it: by fi_getinfo(3) and fi_fabric(3)
 * of libfabric. The toy owner of examples/ uses it (.ci/examples.sh).
 */
#include <rdma/providers/fi_peer.h>

#include "tests/harness/raw.h"

class Lent : public Raw
{
protected:
	/* Call fi_getinfo(3) as an owner does. */
	int ask(uint64_t caps, const char *name, const char *node = nullptr)
	{
		renew();
		drop();
		hints->caps = caps;
		hints->domain_attr->name = name ? strdup(name) : nullptr;
		return fi_getinfo(TDT_API, node, nullptr, 0, hints, &info);
	}
};

TEST_F(Lent, IsOfferedToOwnersOnly)
{
	/* fi_tandem(7), AS A PEER 1: FI_PEER and the domain's name are needed. */
	ASSERT_EQ(0, ask(FI_TAGGED | FI_PEER, "tandem-shm"));
	EXPECT_EQ(nullptr, info->next);
	EXPECT_NE(0u, info->caps & FI_PEER);
	EXPECT_STREQ("tandem-shm", info->domain_attr->name);
	EXPECT_STREQ("tandem-shm", info->fabric_attr->name);
	EXPECT_EQ(4u, info->tx_attr->iov_limit);
	EXPECT_EQ(4u, info->rx_attr->iov_limit);
	EXPECT_EQ(-FI_ENODATA, ask(FI_TAGGED, "tandem-shm"));
	EXPECT_EQ(-FI_ENODATA, ask(FI_TAGGED | FI_PEER, "shm"));
	EXPECT_EQ(-FI_ENODATA,
		  ask(FI_TAGGED | FI_PEER, "tandem-shm", "127.0.0.1"));
	EXPECT_EQ(-FI_ENODATA, ask(FI_COLLECTIVE | FI_PEER, "tandem-shm"));
}

TEST_F(Lent, DomainNeedsNoOwner)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 3: the flag is one of fi_domain2.
	 * fi_tandem(7), AS A PEER: owners without a domain to lend call
	 * fi_domain. */
	struct fi_ops_domain ops = {};
	struct fi_ops_mr mr_ops = {};
	struct fid_domain own = {};
	struct fi_peer_domain_context ctx = { sizeof(ctx), &own };

	own.fid.fclass = FI_CLASS_DOMAIN;
	own.ops = &ops;
	own.mr = &mr_ops;
	ASSERT_EQ(0, ask(FI_TAGGED | FI_PEER, "tandem-shm"));
	ASSERT_EQ(0, fi_fabric(info->fabric_attr, &fabric, nullptr));
	ASSERT_EQ(0, fi_domain(fabric, info, &domain, nullptr));
	EXPECT_EQ(0, fi_close(&domain->fid));
	ASSERT_EQ(0, fi_domain2(fabric, info, &domain, FI_PEER, &ctx));
	EXPECT_EQ(0, fi_close(&domain->fid));
	EXPECT_EQ(0, fi_close(&fabric->fid));
}

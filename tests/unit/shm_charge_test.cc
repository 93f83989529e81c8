/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of unexpected messages over shared memory says what they take:
 * fi_tandem(7), FI_TANDEM_UNEXP_MAX.
 */
#include "shm_world.h"
#include "tests/harness/fault.h"

using namespace shm_test;

namespace
{

class ShmCharge : public PairTest
{
protected:
	/* Fills the slabs of a new pool: 16 + 32 + ... + 2048. */
	enum { COUNT = 4080 };

	/* Bytes of memory, and of the account, for COUNT messages of @len. */
	void compare(size_t len)
	{
		auto out = pattern(len + 1, 1);
		size_t sent = 0, before;

		ASSERT_NO_FATAL_FAILURE(remake());
		ASSERT_NO_FATAL_FAILURE(meet());
		struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(b->ep);

		before = b->entries;
		tdt_alloc_fail(0, 0);
		EXPECT_TRUE(until([&] {
			while (sent < COUNT &&
			       !tsend(a, to_b, out.data(), len, 1, &out))
				sent++;
			return b->entries == before + COUNT;
		}));
		const size_t taken = tdt_alloc_bytes();

		EXPECT_EQ(0u, tdt_alloc_stop());
		/* The mock's entries are its own; so much is charged for each. */
		EXPECT_NEAR(double(taken),
			    double(ep->unexp_bytes) -
				    double(COUNT) *
					    sizeof(struct fi_peer_rx_entry),
			    double(taken) / 50)
			<< len;
		while (!tdt_owner_discard(b))
			;
		EXPECT_EQ(0u, ep->unexp_bytes);
	}
};

TEST_F(ShmCharge, IsWhatTheMessagesTake)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations are not counted here";
	/* 20000 bytes are announced. */
	for (size_t len : { 0, 8, 112, 113, 1024, 1025, 4096, 5000, 20000 })
		ASSERT_NO_FATAL_FAILURE(compare(len));
}

/*
 * It is bounded where one sender after the other is new, and fills its ring before
 * the hub has heard that it is there.
 */
TEST_F(ShmTest, FloodsOfNewcomersAreBounded)
{
	const int count = 30, most = 40;
	struct tdt_owner *hub = open(next_port());
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(hub->ep);
	auto m = pattern(4000, 4);
	struct sockaddr_in to, in;
	size_t len = sizeof(to);
	uint64_t full = 0, announced;

	tdm_env.unexp_max_bytes = 100000;
	ASSERT_EQ(fi_getname(&hub->ep->fid, &to, &len), 0);
	to = address(ntohs(to.sin_port));
	for (int i = 0; i < count; i++) {
		uint16_t port = next_port();
		struct tdt_owner *leaf = open(port);
		int sent = 0;

		in = address(port);
		ASSERT_EQ(tdt_owner_insert(leaf, &to, sizeof(to), 1), 0u);
		tdt_owner_insert(hub, &in, sizeof(in), fi_addr_t(i));
		ASSERT_TRUE(until([&] {
			for (int k = 0; k < 50; k++) {
				while (sent < most &&
				       !fi_tsend(leaf->ep, m.data(), m.size(),
						 nullptr, 0, 1, &m))
					sent++;
				tdt_owner_progress(leaf);
			}
			tdt_owner_progress(hub);
			return sent == most;
		}));
		for (int k = 0; k < 100; k++)
			tdt_owner_progress(hub);
		if (i == 2)
			full = ep->unexp_bytes;
	}
	EXPECT_GT(full, 100000u);
	/* Of those that came then, no payload: what an announcement takes. */
	announced = sizeof(struct fi_peer_rx_entry) + ep->pulls.object_bytes +
		    ep->domain->unexp[0].object_bytes;
	EXPECT_LT(ep->unexp_bytes, full + count * most * announced);
}

} // namespace

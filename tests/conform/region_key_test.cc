/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions for peers with a key: fi_mr(3) auth_key, struct
 * fi_mr_auth_key, FI_AUTH_KEY; fi_av(3) fi_av_insert_auth_key.
 */
#include <rdma/fi_atomic.h>

#include "keys.h"

namespace
{

const uint64_t ALL = FI_REMOTE_READ | FI_REMOTE_WRITE;
const size_t WORDS = 16384; /* 128 KiB: announced by both paths */

class RegionKeys : public Keys
{
protected:
	std::vector<uint64_t> region, mine;
	uint64_t next_key = 0x51;

	RegionKeys() : region(WORDS, 7), mine(WORDS, 9)
	{
		attr.caps |= FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
	}

	/* fi_mr_regattr() of the region. Out: *@key. */
	int reg(struct fid_domain *d, const void *auth, size_t size,
		uint64_t flags, uint64_t *key = nullptr)
	{
		struct iovec v = iov_of(region.data(), WORDS * 8);
		struct fid_mr *mr = nullptr;
		struct fi_mr_attr a;

		memset(&a, 0, sizeof(a));
		a.mr_iov = &v;
		a.iov_count = 1;
		a.access = ALL;
		a.requested_key = next_key++;
		a.auth_key = (uint8_t *)const_cast<void *>(auth);
		a.auth_key_size = size;
		int ret = fi_mr_regattr(d, &a, flags, &mr);
		if (ret)
			return ret;
		made.push_back(&mr->fid);
		if (key)
			*key = fi_mr_key(mr);
		return 0;
	}

	int reg(const Own &o, fi_addr_t who, uint64_t flags,
		uint64_t *key = nullptr)
	{
		struct fi_mr_auth_key a = { o.av, who };

		return reg(o.domain, &a, sizeof(a), flags, key);
	}

	/* An endpoint with both keys in its AV. Out: their handles. */
	void of_both(Own &o, fi_addr_t h[2])
	{
		OK(open_own(o, nullptr));
		OK(both_keys(o, h));
	}

	/* The result of a call of @from that was accepted. */
	template <typename F>
	int outcome(Own &from, const std::vector<Own *> &all, F call)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		do {
			ret = call();
			poll_all(all);
		} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
		EXPECT_EQ(0, ret);
		if (ret)
			return -1;
		Entry e = next_of(from, all);
		return e.ret == 1 ? 0 : e.ret == -FI_EAVAIL ? e.err.err : -1;
	}

	/* Every kind of access to @key at @to ends with @err. */
	void has(Own &from, fi_addr_t to, uint64_t key, int err,
		 const std::vector<Own *> &all)
	{
		uint64_t *p = mine.data(), one = 1, was = 0;

		std::fill(region.begin(), region.end(), 7);
		for (size_t len : { size_t(8), WORDS * 8 }) {
			std::fill(mine.begin(), mine.end(), 9);
			EXPECT_EQ(err, outcome(from, all,
					       [&] {
						       return fi_write(from.ep,
								       p, len,
								       nullptr,
								       to, 0,
								       key, p);
					       }))
				<< len;
			EXPECT_EQ(err ? 7u : 9u, region[len / 8 - 1]);
			EXPECT_EQ(err,
				  outcome(from, all,
					  [&] {
						  return fi_read(from.ep, p,
								 len, nullptr,
								 to, 0, key, p);
					  }))
				<< len;
			EXPECT_EQ(9u, mine[len / 8 - 1]);
		}
		EXPECT_EQ(err, outcome(from, all, [&] {
				  return fi_fetch_atomic(from.ep, &one, 1,
							 nullptr, &was, nullptr,
							 to, 0, key, FI_UINT64,
							 FI_SUM, p);
			  }));
		EXPECT_EQ(err ? 7u : 10u, region[0]);
		EXPECT_EQ(err ? 0u : 9u, was);
	}
};

TEST_F(RegionKeys, Arguments)
{
	/* fi_mr(3) 2.1, auth_key_size 2, auth_key 2, FLAGS FI_AUTH_KEY: where
	 * the AV has the keys, a region's key is a struct fi_mr_auth_key, and
	 * the flag says that its address is that of a key. */
	ONLY_TANDEM();
	OPEN();
	Own a, b;
	fi_addr_t h, other;
	struct fi_mr_auth_key k;

	OK(open_own(a, nullptr));
	OK(open_own(b, nullptr));
	h = handle(a, ONE);
	other = handle(b, TWO);
	EXPECT_EQ(0, reg(a, h, FI_AUTH_KEY));
	EXPECT_EQ(0, reg(a, h, FI_AUTH_KEY | FI_RMA_EVENT));
	EXPECT_EQ(0, reg(a, FI_ADDR_UNSPEC, 0));
	EXPECT_EQ(0, reg(a.domain, nullptr, 0, 0));
	/* No key of this vector, no key at all, no address. */
	EXPECT_EQ(-FI_EINVAL, reg(a, h + 1, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EINVAL, reg(a, FI_ADDR_UNSPEC, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EINVAL, reg(a, h, 0));
	EXPECT_EQ(-FI_EINVAL, reg(a, 0, 0));
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, nullptr, 0, FI_AUTH_KEY));
	k = { a.av, h };
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, &k, sizeof(k) - 1, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, nullptr, sizeof(k), FI_AUTH_KEY));
	EXPECT_EQ(-FI_EBADFLAGS, reg(a, h, FI_AUTH_KEY | 1));
	/* No address vector, and one of another domain. */
	k = { nullptr, h };
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, &k, sizeof(k), FI_AUTH_KEY));
	k = { b.av, other };
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, &k, sizeof(k), FI_AUTH_KEY));
	/* An address, while it is there; and while there is its key. */
	fi_addr_t x = h;
	ASSERT_EQ(1,
		  fi_av_insert(a.av, rx()->name, 1, &x, FI_AUTH_KEY, nullptr));
	EXPECT_EQ(0, reg(a, x, 0));
	EXPECT_EQ(-FI_EINVAL, reg(a, x, FI_AUTH_KEY));
	/* Regions do not keep keys from being removed. */
	EXPECT_EQ(0, fi_av_remove(a.av, &h, 1, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EINVAL, reg(a, h, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EINVAL, reg(a, x, 0));
}

TEST_F(RegionKeys, ArgumentsWithoutKeysInTheVector)
{
	/* fi_mr(3) 2.1, auth_key 1: elsewhere the key is given as it is; FLAGS
	 * FI_AUTH_KEY is for domains of FI_AV_AUTH_KEY. */
	ONLY_TANDEM();
	OPEN();
	Own a;

	OK(open_own(a, ONE));
	EXPECT_EQ(0, reg(a.domain, ONE, strlen(ONE), 0));
	EXPECT_EQ(0, reg(rx()->domain, ONE, strlen(ONE), 0));
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, ONE, 15, 0));
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, ONE, 65, 0));
	EXPECT_EQ(-FI_EINVAL, reg(a.domain, nullptr, 20, 0));
	EXPECT_EQ(-FI_EBADFLAGS, reg(a.domain, ONE, 20, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EBADFLAGS, reg(rx()->domain, nullptr, 0, FI_AUTH_KEY));
}

TEST_F(RegionKeys, OnlyPeersWithTheKey)
{
	/* fi_av(3) 2.1, fi_av_insert_auth_key 6: A region registered with
	 * FI_AUTH_KEY serves peers with that key alone. fi_mr(3) 2.1, av 2: one
	 * for the vector serves those with any of its keys. */
	ONLY_TANDEM();
	OPEN();
	Own a, b;
	std::vector<Own *> all = { &a, &b };
	uint64_t key[2], any;
	fi_addr_t h[2], k[2];

	OK(of_both(a, h));
	OK(of_both(b, k));
	for (bool swapped : { false, true }) {
		Own &at = swapped ? b : a, &from = swapped ? a : b;
		fi_addr_t *at_key = swapped ? k : h,
			  *from_key = swapped ? h : k;

		for (int i = 0; i < 2; i++)
			ASSERT_EQ(0, reg(at, at_key[i], FI_AUTH_KEY, &key[i]));
		ASSERT_EQ(0, reg(at, FI_ADDR_UNSPEC, 0, &any));
		for (int i = 0; i < 2; i++) {
			fi_addr_t to = by_key(from, at, from_key[i]);

			OK(has(from, to, key[i], 0, all));
			OK(has(from, to, key[!i], FI_EACCES, all));
			OK(has(from, to, any, 0, all));
		}
	}
}

TEST_F(RegionKeys, LaterKeysHaveNoPart)
{
	/* fi_av(3) 2.1, fi_av_insert_auth_key 2: a region has the keys that
	 * were in the vector when it was registered. */
	ONLY_TANDEM();
	OPEN();
	Own at, from;
	std::vector<Own *> all = { &at, &from };
	fi_addr_t k[2];
	uint64_t early, late;

	OK(open_own(at, nullptr));
	handle(at, ONE);
	ASSERT_EQ(0, reg(at, FI_ADDR_UNSPEC, 0, &early));
	handle(at, TWO);
	ASSERT_EQ(0, reg(at, FI_ADDR_UNSPEC, 0, &late));
	OK(enable(at));
	OK(of_both(from, k));
	fi_addr_t one = by_key(from, at, k[0]), two = by_key(from, at, k[1]);
	OK(has(from, one, early, 0, all));
	OK(has(from, one, late, 0, all));
	OK(has(from, two, early, FI_EACCES, all));
	OK(has(from, two, late, 0, all));
}

TEST_F(RegionKeys, OnlyOnePeer)
{
	/* fi_mr(3) 2.1, addr 1: a region can be for one address. */
	ONLY_TANDEM();
	OPEN();
	Own at, from, other;
	std::vector<Own *> all = { &at, &from, &other };
	fi_addr_t h[2], k[2], l[2];
	uint64_t key;

	OK(of_both(at, h));
	OK(of_both(from, k));
	OK(of_both(other, l));
	fi_addr_t who = by_key(at, from, h[0]);
	ASSERT_EQ(0, reg(at, who, 0, &key));
	/* The region stays that peer's when its index is another's. */
	ASSERT_EQ(0, fi_av_remove(at.av, &who, 1, 0));
	EXPECT_EQ(who, by_key(at, other, h[0]));
	OK(has(from, by_key(from, at, k[0]), key, 0, all));
	OK(has(from, by_key(from, at, k[1]), key, FI_EACCES, all));
	OK(has(other, by_key(other, at, l[0]), key, FI_EACCES, all));
}

TEST_F(RegionKeys, KeysOfAnotherVectorDoNotCount)
{
	/* fi_mr(3) 2.1, av 1: the keys of a region are those of the vector that
	 * is named, even if a domain has another one. */
	ONLY_TANDEM();
	OPEN();
	Own at, second, from;
	std::vector<Own *> all = { &at, &second, &from };
	fi_addr_t h, other, k[2];
	uint64_t key;

	OK(open_own(at, nullptr));
	second.info = at.info;
	second.domain = at.domain;
	second.av = av(at.domain);
	second.cq = cq(at.domain);
	h = handle(at, ONE);
	other = handle(second, TWO);
	EXPECT_EQ(h, other);
	OK(enable(at));
	OK(enable(second));
	OK(of_both(from, k));
	ASSERT_EQ(0, reg(at, h, FI_AUTH_KEY, &key));
	OK(has(from, by_key(from, at, k[0]), key, 0, all));
	OK(has(from, by_key(from, second, k[1]), key, FI_EACCES, all));
}

TEST_F(RegionKeys, OnlyEndpointsOfTheKey)
{
	/* fi_mr(3) 2.1, auth_key 1: only peers that use the key of the region
	 * reach it. */
	ONLY_TANDEM();
	OPEN();
	Own a, b;
	std::vector<Own *> all = { &a, &b };
	uint64_t same, other, any;

	OK(open_own(a, ONE));
	OK(open_own(b, ONE));
	OK(enable(a));
	OK(enable(b));
	for (bool swapped : { false, true }) {
		Own &at = swapped ? b : a, &from = swapped ? a : b;
		fi_addr_t to = insert(from.av, at.ep);
		fi_addr_t self = insert(at.av, at.ep);

		ASSERT_EQ(0, reg(at.domain, ONE, strlen(ONE), 0, &same));
		ASSERT_EQ(0, reg(at.domain, TWO, strlen(TWO), 0, &other));
		ASSERT_EQ(0, reg(at.domain, nullptr, 0, 0, &any));
		OK(has(from, to, same, 0, all));
		OK(has(from, to, other, FI_EACCES, all));
		OK(has(from, to, any, 0, all));
		OK(has(at, self, same, 0, all));
		OK(has(at, self, other, FI_EACCES, all));
	}
}

TEST_F(RegionKeys, EndpointsWithoutAKeyDoNotReachARegionOfOne)
{
	/* fi_mr(3) 2.1, auth_key 1: the same, of a peer without a key. */
	uint64_t key;

	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, reg(rx()->domain, ONE, strlen(ONE), 0, &key));
	for (auto *from : senders()) {
		struct tdt_comp c;

		ASSERT_EQ(0, fi_write(from->ep, mine.data(), 8, nullptr,
				      addr(from, rx()), 0, key, this));
		ASSERT_EQ(0, tdt_wait(from, this, &c));
		EXPECT_EQ(FI_EACCES, c.err);
	}
	EXPECT_EQ(7u, region[0]);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_REMOTE_READ and FI_REMOTE_WRITE of an endpoint: peers read and write its
 * domain's regions through it only as far as it was granted.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

const uint64_t KEY = 0x99;
const uint64_t BOTH = FI_REMOTE_READ | FI_REMOTE_WRITE;

class RmaRight : public Case
{
protected:
	struct fid_mr *mr = nullptr;
	uint64_t region[16384];

	RmaRight()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
		attr.no_enable = 1;
		for (uint64_t &v : region)
			v = 7;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Case::TearDown();
	}

	static void meet(struct tdt_ep *a, struct tdt_ep *b)
	{
		ASSERT_EQ(1, fi_av_insert(a->av, b->name, 1,
					  &a->peers[b->index], 0, nullptr));
	}

	/* A world whose receiver asked for @caps, with a region for all. */
	void open_with(uint64_t caps)
	{
		uint64_t asked = caps | FI_MSG | FI_TAGGED;
		struct fi_info *hints, *info = nullptr;

		OPEN();
		ASSERT_EQ(0, tdt_ep_close(rx()));
		hints = tdt_hints(&attr);
		hints->caps = asked;
		ASSERT_EQ(0, fi_getinfo(TDT_API, attr.node, attr.service,
					FI_SOURCE, hints, &info));
		fi_freeinfo(hints);
		std::swap(w->info->caps, info->caps);
		std::swap(*w->info->tx_attr, *info->tx_attr);
		std::swap(*w->info->rx_attr, *info->rx_attr);
		ASSERT_EQ(0, tdt_ep_open(rx()));
		std::swap(w->info->caps, info->caps);
		std::swap(*w->info->tx_attr, *info->tx_attr);
		std::swap(*w->info->rx_attr, *info->rx_attr);
		fi_freeinfo(info);
		for (size_t i = 0; i < w->count; i++)
			ASSERT_EQ(0, tdt_ep_enable(ep(i)));
		for (auto *from : senders()) {
			OK(meet(from, rx()));
			OK(meet(rx(), from));
		}
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, region, sizeof(region),
				       BOTH, 0, KEY, 0, &mr, nullptr));
	}

	/* The result of a call that was accepted: 0 or a positive fi_errno. */
	template <typename F> int outcome(struct tdt_ep *from, F call)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct tdt_comp c;
		ssize_t ret;

		do {
			ret = call();
			tdt_progress(w);
		} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
		EXPECT_EQ(0, ret);
		if (ret)
			return -1;
		EXPECT_EQ(0, tdt_wait(from, this, &c));
		return c.err;
	}

	/* Every kind of access ends as the rights @granted say. */
	void has(uint64_t granted)
	{
		int write = granted & FI_REMOTE_WRITE ? 0 : FI_EACCES;
		int read = granted & FI_REMOTE_READ ? 0 : FI_EACCES;
		std::vector<uint64_t> buf(16384, 9);
		uint64_t one = 1, was = 0, *p = buf.data();

		for (auto *from : senders()) {
			fi_addr_t to = addr(from, rx());

			for (size_t len : { size_t(8), size_t(128 << 10) }) {
				EXPECT_EQ(write,
					  outcome(from,
						  [&] {
							  return fi_write(
								  from->ep, p,
								  len, nullptr,
								  to, 0, KEY,
								  this);
						  }))
					<< len;
				EXPECT_EQ(write ? 7u : 9u, region[0]);
				EXPECT_EQ(read,
					  outcome(from,
						  [&] {
							  return fi_read(
								  from->ep, p,
								  len, nullptr,
								  to, 0, KEY,
								  this);
						  }))
					<< len;
			}
			EXPECT_EQ(write, outcome(from, [&] {
					  return fi_atomic(from->ep, &one, 1,
							   nullptr, to, 8, KEY,
							   FI_UINT64, FI_SUM,
							   this);
				  }));
			EXPECT_EQ(read ? read : write, outcome(from, [&] {
					  return fi_fetch_atomic(
						  from->ep, &one, 1, nullptr,
						  &was, nullptr, to, 8, KEY,
						  FI_UINT64, FI_SUM, this);
				  }));
		}
		if (write) {
			for (uint64_t v : region)
				ASSERT_EQ(7u, v);
		}
	}
};

TEST_F(RmaRight, AnEndpointForMessagesIsNoTarget)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 21 and 22: An application asks for
	 * FI_REMOTE_READ and FI_REMOTE_WRITE to have an endpoint that others
	 * read or write. */
	ONLY_TANDEM();
	OK(open_with(0));
	EXPECT_FALSE(rx()->info->caps & BOTH);
	OK(has(0));
}

TEST_F(RmaRight, WhoNamesNoDirectionHasAll)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 23: FI_RMA: without a direction all
	 * are meant. */
	ONLY_TANDEM();
	OK(open_with(FI_RMA));
	OK(has(BOTH));
}

TEST_F(RmaRight, AtomicsAloneAreEnough)
{
	ONLY_TANDEM();
	OK(open_with(FI_ATOMIC));
	OK(has(BOTH));
}

TEST_F(RmaRight, AnInitiatorIsNoTarget)
{
	ONLY_TANDEM();
	OK(open_with(FI_RMA | FI_READ | FI_WRITE));
	OK(has(0));
}

TEST_F(RmaRight, OneDirection)
{
	ONLY_TANDEM();
	OK(open_with(FI_RMA | FI_ATOMIC | FI_REMOTE_READ));
	OK(has(FI_REMOTE_READ));
}

TEST_F(RmaRight, TheOtherDirection)
{
	ONLY_TANDEM();
	OK(open_with(FI_RMA | FI_ATOMIC | FI_REMOTE_WRITE));
	OK(has(FI_REMOTE_WRITE));
}

} // namespace

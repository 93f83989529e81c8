/* SPDX-License-Identifier: BSD-2-Clause */
/* The address vector when memory is out: fi_av(3), and nothing is leaked. */
#include "tests/contract/av_fixture.h"

extern "C" {
#include "av/locality.h"
#include "av/set.h"
#include "tests/harness/fault.h"
}
#include "tests/harness/log.h"

namespace
{

using namespace tdt;

class AvFault : public AvAlone
{
protected:
	void SetUp() override
	{
		if (!tdt_alloc_can_fail())
			GTEST_SKIP() << "linked without the wrappers";
		tdt_log_expect("");
	}
};

TEST_F(AvFault, OpenWithEachAllocationFailing)
{
	const uint64_t flags[] = { 0, FI_EVENT, FI_AV_USER_ID,
				   FI_EVENT | FI_AV_USER_ID };

	for (uint64_t f : flags) {
		for (unsigned nth = 1;; nth++) {
			struct fi_av_attr a;
			int ret;

			memset(&a, 0, sizeof(a));
			a.flags = f;
			a.count = 100;
			tdt_alloc_fail(nth, 0);
			ret = try_open(FI_SOCKADDR_IN, &a);
			if (!tdt_alloc_stop()) {
				ASSERT_EQ(0, ret);
				EXPECT_LT(3u, nth);
				close();
				break;
			}
			ASSERT_EQ(-FI_ENOMEM, ret);
			ASSERT_EQ(nullptr, av);
		}
	}
}

TEST_F(AvFault, SetsWithEachAllocationFailing)
{
	struct fi_av_set_attr all;
	struct fid_av_set *set;
	fi_addr_t a[100];

	open(FI_SOCKADDR_IN, 0);
	for (uint16_t i = 0; i < 100; i++)
		ASSERT_EQ(1, one(in4("192.0.2.1", uint16_t(i + 1)), &a[i]));
	memset(&all, 0, sizeof(all));
	all.flags = FI_UNIVERSE;
	for (unsigned nth = 1;; nth++) {
		tdt_alloc_fail(nth, 0);
		int ret = fi_av_set(av, &all, &set, nullptr);

		if (!tdt_alloc_stop()) {
			ASSERT_EQ(0, ret);
			EXPECT_EQ(4u, nth);
			break;
		}
		ASSERT_EQ(-FI_ENOMEM, ret);
	}
	ASSERT_EQ(0, fi_av_set_remove(set, 99));
	ASSERT_EQ(1, one(in4("192.0.2.2", 1), &a[0]));
	ASSERT_EQ(1, one(in4("192.0.2.2", 2), &a[1]));
	ASSERT_EQ(100u, a[0]);
	for (fi_addr_t i = 102; i < 130; i++)
		ASSERT_EQ(1, one(in4("192.0.2.2", uint16_t(i)), &a[2]));
	tdt_alloc_fail(1, 0);
	EXPECT_EQ(-FI_ENOMEM, fi_av_set_insert(set, 128));
	EXPECT_EQ(1u, tdt_alloc_stop());
	EXPECT_EQ(0, fi_av_set_insert(set, 128));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_insert(set, 128));
	EXPECT_EQ(0, fi_close(&set->fid));
}

TEST_F(AvFault, InsertFailsAlone)
{
	/* Each is in, or told of. */
	std::vector<struct sockaddr_in> s;
	std::vector<fi_addr_t> a(2000);
	std::vector<int> err(2000);

	for (uint16_t i = 0; i < 2000; i++)
		s.push_back(in4("192.0.2.1", uint16_t(i + 1)));
	for (unsigned nth = 1; nth < 30; nth++) {
		size_t in = 0;

		open(FI_SOCKADDR_IN, 0);
		for (size_t i = 0; i < a.size(); i++)
			a[i] = 7000 + i;
		tdt_alloc_fail(nth, 1);
		int ret = fi_av_insert(av, s.data(), s.size(), a.data(),
				       FI_SYNC_ERR | FI_AV_USER_ID, err.data());
		unsigned failed = tdt_alloc_stop();

		for (size_t i = 0; i < s.size(); i++) {
			ASSERT_EQ(err[i] != 0, a[i] == FI_ADDR_NOTAVAIL);
			ASSERT_TRUE(!err[i] || err[i] == FI_ENOMEM);
			if (err[i])
				continue;
			in++;
			ASSERT_EQ("192.0.2.1:" + std::to_string(i + 1),
				  at(a[i]));
			ASSERT_EQ(7000 + i,
				  tdm_user_id(tdm_av_user_ids(tav), a[i]));
		}
		ASSERT_EQ(ret, int(in));
		close();
		if (!failed) {
			EXPECT_EQ(s.size(), in);
			break;
		}
	}
}

TEST_F(AvFault, QueuedInsertIsRefused)
{
	/* fi_av(3) 1.20, 2.1, RETURN VALUES 2: an insertion that cannot begin
	 * is a negative errno. And nothing else happens. */
	struct sockaddr_in s = in4("192.0.2.9", 1);
	fi_addr_t a = 9;

	names.hosts["host"] = "192.0.2.1";
	names.block();
	open_event();
	for (unsigned nth = 1; nth < 3; nth++) {
		tdm_locality_filter(); /* fresh: it is not read again below */
		tdt_alloc_fail(nth, 0);
		int ret = fi_av_insertsvc(av, "host", "1", &a, 0, nullptr);
		tdt_alloc_stop();
		ASSERT_EQ(-FI_ENOMEM, ret);
	}
	ASSERT_EQ(0, fi_av_insertsvc(av, "host", "1", &a, 0, nullptr));
	names.wait_asked();
	for (unsigned nth = 1; nth < 4; nth++) {
		tdm_locality_filter(); /* fresh: it is not read again below */
		tdt_alloc_fail(nth, 0);
		int ret = one(s, &a);
		tdt_alloc_stop();
		ASSERT_EQ(-FI_ENOMEM, ret);
	}
	names.let_go();
	EXPECT_EQ(1u, next().data);
	EXPECT_TRUE(no_event());
	EXPECT_EQ((Texts{ "192.0.2.1:1" }), all());
}

} // namespace

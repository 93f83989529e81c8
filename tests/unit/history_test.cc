/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts of paths that have ended, when there is no memory for them:
 * fi_tandem(7), REPORT.
 */
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tests/harness/fault.h"
#include "tests/harness/test_ep.h"

extern "C" {
#include "tcp/history.h"
#include "tcp/report.h"
#include "tcp/root.h"
}

namespace
{

class HistoryTest : public testing::Test
{
protected:
	struct tdm_root *root = nullptr;
	struct tdm_pair *pair = nullptr;

	void SetUp() override
	{
		root = tdt_ep_new();
		ASSERT_NE(nullptr, root);
		pair = tdm_pair_new();
		ASSERT_NE(nullptr, pair);
	}

	void TearDown() override
	{
		free(pair->history);
		free(pair);
		tdt_ep_free(root);
	}

	void end_life(bool memory)
	{
		struct tdm_peer_event event;

		memset(&event, 0, sizeof(event));
		event.err = FI_ESHUTDOWN;
		event.tx_msgs = 3;
		tdt_alloc_fail(!memory, 1);
		tdm_history_end_local(root, pair, &event);
		tdt_alloc_stop();
	}

	std::string report()
	{
		tdm_env.report = TDM_FORM_PLAIN;
		testing::internal::CaptureStderr();
		tdm_report_print(root);
		tdm_env.report = TDM_FORM_NONE;
		return testing::internal::GetCapturedStderr();
	}
};

} // namespace

TEST_F(HistoryTest, WithoutMemoryTheReportSaysSo)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	end_life(false);
	end_life(false);
	EXPECT_NE(
		std::string::npos,
		report().find("; no memory for the counts of 2 that ended\n"));
	/* Those for which there is memory later are kept. */
	end_life(true);
	ASSERT_NE(nullptr, pair->history);
	EXPECT_EQ(3u, pair->history->shm.tx_msgs);
	EXPECT_EQ(2u, root->lives_lost);
}

TEST_F(HistoryTest, WithMemoryItSaysNothing)
{
	end_life(true);
	EXPECT_EQ(std::string::npos, report().find("no memory"));
}

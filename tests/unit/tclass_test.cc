/* SPDX-License-Identifier: BSD-2-Clause */
/* The code point of a traffic class: fi_tandem(7), LIMITS. */
#include <gtest/gtest.h>
#include <rdma/fabric.h>

extern "C" {
#include "tcp/wire/tclass.h"
}

namespace
{

TEST(TrafficClass, LabelsHaveTheCodePointsOfTheRfcs)
{
	EXPECT_EQ(0, tdm_tclass_dscp(FI_TC_BEST_EFFORT));
	EXPECT_EQ(18, tdm_tclass_dscp(FI_TC_LOW_LATENCY));
	EXPECT_EQ(46, tdm_tclass_dscp(FI_TC_DEDICATED_ACCESS));
	EXPECT_EQ(10, tdm_tclass_dscp(FI_TC_BULK_DATA));
	EXPECT_EQ(1, tdm_tclass_dscp(FI_TC_SCAVENGER));
	EXPECT_EQ(48, tdm_tclass_dscp(FI_TC_NETWORK_CTRL));
}

TEST(TrafficClass, CodePointsAreUsedAsTheyAre)
{
	for (uint8_t dscp = 0; dscp < 64; dscp++)
		EXPECT_EQ(dscp, tdm_tclass_dscp(fi_tc_dscp_set(dscp)));
}

TEST(TrafficClass, OthersHaveNone)
{
	EXPECT_EQ(-1, tdm_tclass_dscp(FI_TC_UNSPEC));
	EXPECT_EQ(-1, tdm_tclass_dscp(fi_tc_dscp_set(64)));
	EXPECT_EQ(-1, tdm_tclass_dscp(fi_tc_dscp_set(255)));
	EXPECT_EQ(-1, tdm_tclass_dscp(FI_TC_NETWORK_CTRL + 1));
	EXPECT_EQ(-1, tdm_tclass_dscp(1u << 31));
}

} // namespace

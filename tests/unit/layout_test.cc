/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes and offsets that other processes, other machines, or the speed of the
 * library depend on. A change here is a change of a protocol or of a promise.
 */
#include <cstddef>

#include <gtest/gtest.h>

extern "C" {
#include "av/addr.h"
#include "av/table.h"
#include "peer/srx_priv.h"
#include "shm/record.h"
#include "shm/region.h"
#include "tcp/wire/greeting.h"
#include "base/atomic.h"
#include "tdm_provider.h"
}

namespace
{

TEST(Layout, Leaf)
{
	EXPECT_EQ(4u, sizeof(tdm_a32));
	EXPECT_EQ(8u, sizeof(tdm_a64));
	EXPECT_EQ(32u, sizeof(struct tdm_addr));
	EXPECT_EQ(16u, sizeof(struct tdm_table_entry));
}

TEST(Layout, PostedReceiveUsesTwoLines)
{
	EXPECT_EQ(128u, sizeof(struct tdm_srx_entry));
	EXPECT_EQ(0u, offsetof(struct tdm_srx_entry, item));
	EXPECT_LE(offsetof(struct tdm_match_item, bucket) +
			  sizeof(struct tdm_list),
		  64u)
		<< "a search reads a second line of items that it passes";
}

TEST(Layout, ShmSegment)
{
	EXPECT_EQ(1024u, sizeof(struct tdm_shm_seg));
	EXPECT_EQ(0u, offsetof(struct tdm_shm_seg, magic));
	EXPECT_EQ(8u, offsetof(struct tdm_shm_seg, version));
	EXPECT_EQ(12u, offsetof(struct tdm_shm_seg, slots));
	EXPECT_EQ(16u, offsetof(struct tdm_shm_seg, bytes));
	EXPECT_EQ(20u, offsetof(struct tdm_shm_seg, gen));
	EXPECT_EQ(24u, offsetof(struct tdm_shm_seg, incarnation));
	EXPECT_EQ(128u, offsetof(struct tdm_shm_seg, consumed));
	EXPECT_EQ(256u, offsetof(struct tdm_shm_seg, bell));
	EXPECT_EQ(384u, offsetof(struct tdm_shm_seg, bounce_consumed));
	EXPECT_EQ(512u, offsetof(struct tdm_shm_seg, bounce_produced));
}

TEST(Layout, ShmRecords)
{
	EXPECT_EQ(128, TDM_SHM_SLOT_BYTES);
	EXPECT_EQ(16, TDM_SHM_HEAD_BYTES);
	EXPECT_EQ(96u, sizeof(struct tdm_shm_rts));
	EXPECT_EQ(16u, sizeof(struct tdm_shm_pull_body));
	EXPECT_EQ(32u, sizeof(struct tdm_shm_chunk));
	EXPECT_EQ(16u, sizeof(struct tdm_shm_msg_head));
	EXPECT_EQ(16u, offsetof(struct tdm_shm_hello, version_least));
	EXPECT_EQ(20u, offsetof(struct tdm_shm_hello, features));
	EXPECT_EQ(24u, offsetof(struct tdm_shm_hello, incarnation));
	EXPECT_EQ(0x0004020302000001ull, tdm_shm_word0(0x02000001, 3, 2, 4));
}

TEST(Layout, ShmRecordSlots)
{
	EXPECT_EQ(1u, tdm_shm_rec_slots(0));
	EXPECT_EQ(1u, tdm_shm_rec_slots(112));
	EXPECT_EQ(2u, tdm_shm_rec_slots(113));
	EXPECT_EQ(2u, tdm_shm_rec_slots(240));
	EXPECT_EQ(3u, tdm_shm_rec_slots(241));
}

TEST(Layout, Wire)
{
	EXPECT_EQ(128, TDM_WIRE_GREETING_BYTES);
	EXPECT_EQ(8, TDM_WIRE_PREFIX_BYTES);
	EXPECT_EQ(48, TDM_WIRE_HEAD_BYTES);
	EXPECT_EQ(1, TDM_WIRE_EAGER);
	EXPECT_EQ(7, TDM_WIRE_GOODBYE);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll sets without transports: memory, and what the values count. */
#include <gtest/gtest.h>

#include "fake_engine.h"

extern "C" {
#include "peer/cntr.h"
#include "peer/pollset.h"
#include "tests/harness/fault.h"
}

namespace
{

class Pollset : public testing::Test
{
protected:
	tdt::FakeEngine engine;
	struct tdm_pollset *set = nullptr;
	struct fid_poll *fid = nullptr;

	void open()
	{
		ASSERT_EQ(tdm_pollset_open(&engine.engine, nullptr, &set), 0);
		fid = tdm_pollset_fid(set);
	}

	void TearDown() override
	{
		if (fid) {
			EXPECT_EQ(fi_close(&fid->fid), 0);
		}
	}
};

TEST_F(Pollset, MemoryIsOut)
{
	struct tdm_cntr *cntr;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	tdt_alloc_fail(1, 1);
	EXPECT_EQ(tdm_pollset_open(&engine.engine, nullptr, &set), -FI_ENOMEM);
	EXPECT_EQ(tdt_alloc_stop(), 1u);
	EXPECT_EQ(set, nullptr);
	open();
	ASSERT_EQ(tdm_cntr_open(&engine.engine, nullptr, nullptr, &cntr), 0);
	tdt_alloc_fail(1, 1);
	EXPECT_EQ(fid->ops->poll_add(fid, &tdm_cntr_fid(cntr)->fid, 0),
		  -FI_ENOMEM);
	EXPECT_EQ(tdt_alloc_stop(), 1u);
	EXPECT_EQ(fi_close(&tdm_cntr_fid(cntr)->fid), 0) << "not a member";
}

/*
 * fi_poll(3) 2.1, fi_poll 1: Two sets learn of a counter's change, each once.
 */
TEST_F(Pollset, SetsDoNotTakeNewsFromEachOther)
{
	struct tdm_pollset *other;
	struct fid_peer_cntr *peer;
	struct tdm_cntr *cntr;
	struct fid_poll *two;
	void *found[2];

	open();
	ASSERT_EQ(tdm_pollset_open(&engine.engine, nullptr, &other), 0);
	two = tdm_pollset_fid(other);
	ASSERT_EQ(tdm_cntr_open(&engine.engine, nullptr, this, &cntr), 0);
	peer = tdm_cntr_export(cntr, TDM_TRANSPORT_TCP);
	for (struct fid_poll *p : { fid, two }) {
		ASSERT_EQ(p->ops->poll_add(p, &tdm_cntr_fid(cntr)->fid, 0), 0);
		EXPECT_EQ(p->ops->poll(p, found, 2), 0);
	}
	engine.on_progress = [&] {
		engine.on_progress = nullptr;
		peer->owner_ops->incerr(peer);
	};
	for (struct fid_poll *p : { fid, two }) {
		EXPECT_EQ(p->ops->poll(p, found, 2), 1);
		EXPECT_EQ(found[0], this);
		EXPECT_EQ(p->ops->poll(p, found, 2), 0);
	}
	EXPECT_EQ(engine.passes, 6);
	for (struct fid_poll *p : { fid, two })
		ASSERT_EQ(p->ops->poll_del(p, &tdm_cntr_fid(cntr)->fid, 0), 0);
	EXPECT_EQ(fi_close(&two->fid), 0);
	EXPECT_EQ(fi_close(&tdm_cntr_fid(cntr)->fid), 0);
}

} // namespace

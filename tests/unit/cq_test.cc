/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion queue: what is written comes out, once, in order, in the
 * application's format; errors in their place; nothing lost; blocking reads.
 */
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "fake_engine.h"

extern "C" {
#include "peer/cq.h"
#include "tests/harness/fault.h"
#include "tests/harness/log.h"
#include <rdma/fi_domain.h>
}

namespace
{

using tdt::FakeEngine;
using tdt::readable;

void *ctx(uint64_t n)
{
	return reinterpret_cast<void *>(n);
}

class Cq : public testing::Test
{
protected:
	FakeEngine engine;
	struct tdm_cq *cq = nullptr;
	struct fid_cq *fid = nullptr;
	struct fid_peer_cq *peer = nullptr;

	int open(struct fi_cq_attr attr, int source = 0)
	{
		int ret = tdm_cq_open(&engine.engine, &attr, source, ctx(77),
				      &cq);

		granted = attr;
		if (!ret) {
			fid = tdm_cq_fid(cq);
			peer = tdm_cq_export(cq, TDM_TRANSPORT_TCP);
		}
		return ret;
	}

	void must_open(enum fi_cq_format format, size_t size = 0,
		       enum fi_wait_obj obj = FI_WAIT_NONE, int source = 0)
	{
		struct fi_cq_attr attr = {};

		attr.format = format;
		attr.size = size;
		attr.wait_obj = obj;
		ASSERT_EQ(open(attr, source), 0);
	}

	/* Entry @n, every field told apart. */
	ssize_t write(uint64_t n)
	{
		ssize_t ret = 0;

		engine.locked([&] { ret = write_held(n); });
		return ret;
	}

	ssize_t write_held(uint64_t n)
	{
		return peer->owner_ops->write(peer, ctx(n), n + 1, n + 2,
					      ctx(n + 3), n + 4, n + 5, n + 6);
	}

	ssize_t write_err(uint64_t n, void *data = nullptr, size_t len = 0)
	{
		struct fi_cq_err_entry e = {};
		ssize_t ret = 0;

		e.op_context = ctx(n);
		e.flags = FI_RECV;
		e.err = FI_ECANCELED;
		e.prov_errno = static_cast<int>(n);
		e.olen = 9;
		e.src_addr = 5;
		e.err_data = data;
		e.err_data_size = len;
		engine.locked(
			[&] { ret = peer->owner_ops->writeerr(peer, &e); });
		return ret;
	}

	/* Read one entry of format CONTEXT; the context or the error. */
	int64_t next()
	{
		struct fi_cq_entry e = {};
		ssize_t ret = fi_cq_read(fid, &e, 1);

		return ret == 1 ? reinterpret_cast<int64_t>(e.op_context) : ret;
	}

	void TearDown() override
	{
		if (fid) {
			EXPECT_EQ(fi_close(&fid->fid), 0);
		}
	}

	struct fi_cq_attr granted = {};
};

/* fi_cq(3), format: each structure has the fields of the smaller ones. */
TEST_F(Cq, FormatContext)
{
	struct fi_cq_entry e[2] = { { ctx(1) }, { ctx(2) } };

	must_open(FI_CQ_FORMAT_CONTEXT);
	write(10);
	EXPECT_EQ(fi_cq_read(fid, e, 2), 1);
	EXPECT_EQ(e[0].op_context, ctx(10));
	EXPECT_EQ(e[1].op_context, ctx(2));
}

TEST_F(Cq, FormatMsg)
{
	struct fi_cq_msg_entry e[2];

	must_open(FI_CQ_FORMAT_MSG);
	memset(e, 0xee, sizeof(e));
	write(10);
	EXPECT_EQ(fi_cq_read(fid, e, 2), 1);
	EXPECT_EQ(e[0].op_context, ctx(10));
	EXPECT_EQ(e[0].flags, 11u);
	EXPECT_EQ(e[0].len, 12u);
	EXPECT_EQ(e[1].flags, 0xeeeeeeeeeeeeeeeeu);
}

TEST_F(Cq, FormatData)
{
	struct fi_cq_data_entry e[2];

	must_open(FI_CQ_FORMAT_DATA);
	memset(e, 0xee, sizeof(e));
	write(10);
	EXPECT_EQ(fi_cq_read(fid, e, 2), 1);
	EXPECT_EQ(e[0].op_context, ctx(10));
	EXPECT_EQ(e[0].flags, 11u);
	EXPECT_EQ(e[0].len, 12u);
	EXPECT_EQ(e[0].buf, ctx(13));
	EXPECT_EQ(e[0].data, 14u);
	EXPECT_EQ(e[1].op_context, ctx(0xeeeeeeeeeeeeeeeeu));
}

TEST_F(Cq, FormatTagged)
{
	struct fi_cq_tagged_entry e[2];

	must_open(FI_CQ_FORMAT_TAGGED);
	memset(e, 0xee, sizeof(e));
	write(10);
	write(20);
	EXPECT_EQ(fi_cq_read(fid, e, 2), 2);
	EXPECT_EQ(e[0].op_context, ctx(10));
	EXPECT_EQ(e[0].flags, 11u);
	EXPECT_EQ(e[0].len, 12u);
	EXPECT_EQ(e[0].buf, ctx(13));
	EXPECT_EQ(e[0].data, 14u);
	EXPECT_EQ(e[0].tag, 15u);
	EXPECT_EQ(e[1].op_context, ctx(20));
	EXPECT_EQ(e[1].tag, 25u);
}

TEST_F(Cq, UnspecIsContextAndIsWrittenBack)
{
	must_open(FI_CQ_FORMAT_UNSPEC, 0, FI_WAIT_UNSPEC);
	EXPECT_EQ(granted.format, FI_CQ_FORMAT_CONTEXT);
	EXPECT_EQ(granted.wait_obj, FI_WAIT_FD);
	EXPECT_GT(granted.size, 0u);
	write(1);
	EXPECT_EQ(next(), 1);
}

TEST_F(Cq, OpensWithAllDefaults)
{
	ASSERT_EQ(tdm_cq_open(&engine.engine, nullptr, 0, ctx(77), &cq), 0);
	fid = tdm_cq_fid(cq);
	EXPECT_EQ(fid->fid.fclass, static_cast<size_t>(FI_CLASS_CQ));
	EXPECT_EQ(fid->fid.context, ctx(77));
	EXPECT_EQ(tdm_cq_from_fid(fid), cq);
	EXPECT_EQ(fi_cq_sread(fid, nullptr, 0, nullptr, 0), -FI_ENOSYS);
	EXPECT_EQ(fi_cq_signal(fid), -FI_ENOSYS);
}

TEST_F(Cq, RefusesWhatItDoesNotKnow)
{
	struct fi_cq_attr attr = {};

	attr.format = static_cast<enum fi_cq_format>(42);
	EXPECT_EQ(open(attr), -FI_EINVAL);
	attr = {};
	attr.size = SIZE_MAX;
	EXPECT_EQ(open(attr), -FI_EINVAL);
	attr = {};
	attr.flags = FI_PEER;
	EXPECT_EQ(open(attr), -FI_EINVAL);
	attr = {};
	attr.wait_obj = FI_WAIT_FD;
	attr.wait_cond = static_cast<enum fi_cq_wait_cond>(9);
	EXPECT_EQ(open(attr), -FI_EINVAL);
	attr = {};
	attr.wait_obj = FI_WAIT_MUTEX_COND;
	EXPECT_EQ(open(attr), -FI_ENOSYS);
	attr.wait_obj = FI_WAIT_SET;
	EXPECT_EQ(open(attr), -FI_ENOSYS);
	attr.wait_obj = static_cast<enum fi_wait_obj>(99);
	EXPECT_EQ(open(attr), -FI_EINVAL);
}

/* attr->size is the least number of entries. */
TEST_F(Cq, GrantsEverySizeAsked)
{
	const size_t sizes[] = { 0, 1, 2, 3, 100, 65536, 131072, 1u << 20 };

	for (size_t size : sizes) {
		must_open(FI_CQ_FORMAT_TAGGED, size);
		EXPECT_GE(granted.size, size);
		ASSERT_EQ(fi_close(&fid->fid), 0);
		fid = nullptr;
	}
}

TEST_F(Cq, EmptyReadsTryOnePassOfProgress)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(engine.passes, 1);
	engine.on_progress = [&] {
		write_held(5);
	};
	EXPECT_EQ(next(), 5);
	EXPECT_EQ(engine.passes, 2);
	write(6);
	EXPECT_EQ(next(), 6);
	EXPECT_EQ(engine.passes, 2) << "nothing was missing";
}

TEST_F(Cq, CountZeroIsProgressOnly)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_EQ(fi_cq_read(fid, nullptr, 0), -FI_EAGAIN);
	EXPECT_EQ(engine.passes, 1);
	write(1);
	EXPECT_EQ(fi_cq_read(fid, nullptr, 0), 0);
	EXPECT_EQ(engine.passes, 2);
	EXPECT_EQ(next(), 1);
	write_err(2);
	EXPECT_EQ(fi_cq_read(fid, nullptr, 0), -FI_EAVAIL);
}

/* No completion is lost however long nobody reads; order is kept. */
TEST_F(Cq, OverflowKeepsEverythingInOrder)
{
	const int64_t total = 5000;
	struct fi_cq_tagged_entry e[37];
	int64_t want = 0, written = 0;

	must_open(FI_CQ_FORMAT_TAGGED, 4, FI_WAIT_NONE, 1);
	while (written < total)
		ASSERT_EQ(write(static_cast<uint64_t>(written++)), 0);
	while (want < total) {
		fi_addr_t src[37];
		ssize_t n = fi_cq_readfrom(fid, e, 37, src);

		ASSERT_GT(n, 0) << want;
		for (ssize_t i = 0; i < n; i++, want++) {
			uint64_t w = static_cast<uint64_t>(want);

			ASSERT_EQ(e[i].op_context, ctx(w));
			ASSERT_EQ(e[i].tag, w + 5);
			ASSERT_EQ(src[i], w + 6);
		}
	}
	EXPECT_EQ(fi_cq_read(fid, e, 37), -FI_EAGAIN);
}

/* Reads and writes of changing batch sizes around a small ring. */
TEST_F(Cq, MixedBatchesNeverReorder)
{
	struct fi_cq_entry e[64];
	uint64_t seed = 12345, written = 0, want = 0;

	must_open(FI_CQ_FORMAT_CONTEXT, 8);
	for (int round = 0; round < 20000; round++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		size_t w = (seed >> 33) % 24, r = 1 + (seed >> 43) % 40;

		while (w--)
			ASSERT_EQ(write(written++), 0);
		ssize_t n = fi_cq_read(fid, e, r);
		if (n == -FI_EAGAIN)
			n = 0;
		ASSERT_GE(n, 0);
		ASSERT_EQ(static_cast<uint64_t>(n),
			  std::min<uint64_t>(r, written - want));
		for (ssize_t i = 0; i < n; i++)
			ASSERT_EQ(e[i].op_context, ctx(want++));
	}
}

/* fi_cq(3): -FI_EAVAIL when the topmost completion is an error entry. */
TEST_F(Cq, ErrorsKeepTheirPlace)
{
	struct fi_cq_entry e[8];
	struct fi_cq_err_entry err = {};

	must_open(FI_CQ_FORMAT_CONTEXT, 4);
	write(1);
	write(2);
	write_err(100);
	write_err(101);
	for (uint64_t n = 3; n < 10; n++)
		write(n);
	EXPECT_EQ(fi_cq_readerr(fid, &err, 0), -FI_EAGAIN);
	EXPECT_EQ(fi_cq_read(fid, e, 8), 2);
	EXPECT_EQ(e[1].op_context, ctx(2));
	EXPECT_EQ(fi_cq_read(fid, e, 8), -FI_EAVAIL);
	EXPECT_EQ(fi_cq_read(fid, e, 8), -FI_EAVAIL);
	EXPECT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.op_context, ctx(100));
	EXPECT_EQ(err.err, FI_ECANCELED);
	EXPECT_EQ(err.prov_errno, 100);
	EXPECT_EQ(err.flags, FI_RECV);
	EXPECT_EQ(err.olen, 9u);
	EXPECT_EQ(err.src_addr, 5u);
	EXPECT_EQ(fi_cq_read(fid, e, 8), -FI_EAVAIL);
	EXPECT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.op_context, ctx(101));
	EXPECT_EQ(fi_cq_readerr(fid, &err, 0), -FI_EAGAIN);
	EXPECT_EQ(fi_cq_read(fid, e, 8), 7);
	EXPECT_EQ(e[0].op_context, ctx(3));
	EXPECT_EQ(e[6].op_context, ctx(9));
	EXPECT_EQ(next(), -FI_EAGAIN);
}

TEST_F(Cq, ErrorInTheOverflowKeepsItsPlace)
{
	struct fi_cq_err_entry err = {};

	must_open(FI_CQ_FORMAT_CONTEXT, 2);
	for (uint64_t n = 0; n < 1000; n++) {
		write(2 * n);
		if (n % 100 == 7)
			write_err(2 * n + 1);
	}
	for (int64_t n = 0; n < 1000; n++) {
		ASSERT_EQ(next(), 2 * n);
		if (n % 100 != 7)
			continue;
		ASSERT_EQ(next(), -FI_EAVAIL);
		ASSERT_EQ(fi_cq_readerr(fid, &err, 0), 1);
		ASSERT_EQ(err.op_context,
			  ctx(static_cast<uint64_t>(2 * n + 1)));
	}
	EXPECT_EQ(next(), -FI_EAGAIN);
}

/* fi_cq(3), err_data_size: a buffer of the caller's gets a copy. */
TEST_F(Cq, ReaderrCopiesToTheCallersBuffer)
{
	char data[8] = "abcdefg", mine[4];
	struct fi_cq_err_entry err = {};

	must_open(FI_CQ_FORMAT_CONTEXT);
	write_err(1, data, sizeof(data));
	write_err(2);
	memset(data, 0, sizeof(data));
	err.err_data = mine;
	err.err_data_size = sizeof(mine);
	ASSERT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.err_data, mine);
	EXPECT_EQ(err.err_data_size, sizeof(mine));
	EXPECT_EQ(memcmp(mine, "abcd", 4), 0);
	err.err_data_size = sizeof(mine);
	ASSERT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.err_data, mine);
	EXPECT_EQ(err.err_data_size, 0u);
}

/* err_data_size 0: the provider's buffer, valid until the next read. */
TEST_F(Cq, ReaderrLendsItsOwnBuffer)
{
	char data[8] = "abcdefg";
	struct fi_cq_err_entry err = {};

	must_open(FI_CQ_FORMAT_CONTEXT);
	write_err(1, data, sizeof(data));
	write_err(2);
	ASSERT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	ASSERT_NE(err.err_data, nullptr);
	EXPECT_NE(err.err_data, data);
	EXPECT_EQ(err.err_data_size, sizeof(data));
	EXPECT_STREQ(static_cast<char *>(err.err_data), "abcdefg");
	err = {};
	ASSERT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.err_data, nullptr);
	EXPECT_EQ(err.err_data_size, 0u);
	EXPECT_EQ(fi_cq_readerr(fid, nullptr, 0), -FI_EINVAL);
}

/* src_addr came with 1.20, err_data_size with 1.5. */
TEST_F(Cq, OldApplicationsHaveShorterErrorEntries)
{
	struct fi_cq_err_entry err;
	char data[2] = "x";

	engine.engine.api_version = FI_VERSION(1, 19);
	must_open(FI_CQ_FORMAT_CONTEXT);
	write_err(1);
	write_err(2, data, sizeof(data));
	memset(&err, 0, sizeof(err));
	err.src_addr = 123;
	ASSERT_EQ(fid->ops->readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.src_addr, 123u);
	engine.engine.api_version = FI_VERSION(1, 4);
	err.err_data_size = 321;
	ASSERT_EQ(fid->ops->readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.err_data_size, 321u);
	EXPECT_STREQ(static_cast<char *>(err.err_data), "x");
}

TEST_F(Cq, UnreadErrorsAreFreedAtClose)
{
	char data[64] = {};

	must_open(FI_CQ_FORMAT_CONTEXT, 1);
	for (uint64_t n = 0; n < 40; n++)
		write_err(n, data, sizeof(data));
	for (uint64_t n = 0; n < 2000; n++)
		write(n);
}

TEST_F(Cq, ReadfromGivesSources)
{
	struct fi_cq_entry e[2];
	fi_addr_t src[2];

	must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_NONE, 1);
	write(10);
	write(20);
	EXPECT_EQ(fi_cq_readfrom(fid, e, 2, src), 2);
	EXPECT_EQ(src[0], 16u);
	EXPECT_EQ(src[1], 26u);
	write(30);
	EXPECT_EQ(next(), 30);
}

/* fi_cq(3): without FI_SOURCE the source is FI_ADDR_NOTAVAIL. */
TEST_F(Cq, ReadfromWithoutSource)
{
	struct fi_cq_entry e;
	fi_addr_t src = 1;

	must_open(FI_CQ_FORMAT_CONTEXT);
	write(10);
	EXPECT_EQ(fi_cq_readfrom(fid, &e, 1, &src), 1);
	EXPECT_EQ(src, FI_ADDR_NOTAVAIL);
	write(11);
	EXPECT_EQ(fi_cq_readfrom(fid, &e, 1, nullptr), 1);
}

TEST_F(Cq, EveryTransportHasAnExport)
{
	struct fid_peer_cq *local;

	must_open(FI_CQ_FORMAT_CONTEXT);
	local = tdm_cq_export(cq, TDM_TRANSPORT_LOCAL);
	EXPECT_NE(local, peer);
	EXPECT_EQ(local->fid.fclass, static_cast<size_t>(FI_CLASS_PEER_CQ));
	EXPECT_EQ(peer->fid.fclass, static_cast<size_t>(FI_CLASS_PEER_CQ));
	EXPECT_EQ(peer->owner_ops->size, sizeof(struct fi_ops_cq_owner));
	write(1);
	engine.locked([&] {
		local->owner_ops->write(local, ctx(2), 0, 0, nullptr, 0, 0, 0);
	});
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(next(), 2);
}

TEST_F(Cq, StrerrorNamesTheCode)
{
	char buf[8] = "zzzzzzz";

	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_STREQ(fi_cq_strerror(fid, FI_ECANCELED, nullptr, nullptr, 0),
		     fi_strerror(FI_ECANCELED));
	fi_cq_strerror(fid, FI_ECANCELED, nullptr, buf, sizeof(buf));
	EXPECT_EQ(strncmp(buf, fi_strerror(FI_ECANCELED), 7), 0);
	EXPECT_EQ(buf[7], 0);
}

/* fi_cq(3): -FI_EBUSY while resources are associated. */
TEST_F(Cq, CloseIsBusyWhileHeld)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	engine.locked([&] { tdm_cq_get(cq); });
	EXPECT_EQ(fi_close(&fid->fid), -FI_EBUSY);
	engine.locked([&] { tdm_cq_put(cq); });
}

struct LocalCq {
	struct fid_cq fid = {};
	struct fi_ops ops = {};
	int result = 0;
	int closes = 0;

	LocalCq()
	{
		ops.size = sizeof(ops);
		ops.close = [](struct fid *f) {
			LocalCq *self = static_cast<LocalCq *>(f->context);

			self->closes++;
			return self->result;
		};
		fid.fid.ops = &ops;
		fid.fid.context = this;
	}
};

TEST_F(Cq, CloseClosesThePeersQueueFirst)
{
	LocalCq local;
	int closed = 0;

	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_EQ(tdm_cq_local(cq), nullptr);
	tdm_cq_set_local(cq, &local.fid);
	EXPECT_EQ(tdm_cq_local(cq), &local.fid);
	tdm_cq_on_close(
		cq, [](void *arg) { ++*static_cast<int *>(arg); }, &closed);
	local.result = -FI_EBUSY;
	EXPECT_EQ(fi_close(&fid->fid), -FI_EBUSY);
	EXPECT_EQ(closed, 0);
	write(4);
	EXPECT_EQ(next(), 4) << "still usable";
	local.result = 0;
	EXPECT_EQ(fi_close(&fid->fid), 0);
	fid = nullptr;
	EXPECT_EQ(local.closes, 2);
	EXPECT_EQ(closed, 1);
}

TEST_F(Cq, WhatIsNotOfferedSaysSo)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_EQ(fid->fid.ops->bind(&fid->fid, nullptr, 0), -FI_ENOSYS);
	EXPECT_EQ(fid->fid.ops->ops_open(&fid->fid, "x", 0, nullptr, nullptr),
		  -FI_ENOSYS);
	EXPECT_EQ(fi_control(&fid->fid, FI_ENABLE, nullptr), -FI_ENOSYS);
	EXPECT_EQ(fi_close(&peer->fid), -FI_ENOSYS);
}

TEST_F(Cq, WorksWithoutALock)
{
	FakeEngine bare(0);
	struct fi_cq_attr attr = {};
	struct fi_cq_entry e;

	attr.format = FI_CQ_FORMAT_CONTEXT;
	ASSERT_EQ(tdm_cq_open(&bare.engine, &attr, 0, nullptr, &cq), 0);
	fid = tdm_cq_fid(cq);
	peer = tdm_cq_export(cq, TDM_TRANSPORT_TCP);
	write_held(3);
	EXPECT_EQ(fi_cq_read(fid, &e, 1), 1);
	EXPECT_EQ(fi_close(&fid->fid), 0);
	fid = nullptr;
}

/* ---- memory runs out ---------------------------------------------------- */

TEST_F(Cq, OpenSurvivesEveryFailedAllocation)
{
	struct fi_cq_attr attr = {};
	unsigned nth;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	for (nth = 1; nth < 20; nth++) {
		tdt_alloc_fail(nth, 0);
		int ret = open(attr, 1);
		if (!tdt_alloc_stop()) {
			EXPECT_EQ(ret, 0);
			break;
		}
		EXPECT_EQ(ret, -FI_ENOMEM);
		EXPECT_EQ(fid, nullptr);
	}
	EXPECT_LT(nth, 20u);
}

/* fi_cq(3), NOTES: what is kept is read, then reads say -FI_EOVERRUN. */
TEST_F(Cq, WithoutMemoryItIsOverrunAfterWhatItHas)
{
	struct fi_cq_err_entry err = {};
	int64_t kept = 0;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	tdt_log_expect("completions are lost");
	must_open(FI_CQ_FORMAT_CONTEXT, 4);
	tdt_alloc_fail(1, 1);
	while (write(static_cast<uint64_t>(kept)) == 0)
		kept++;
	tdt_alloc_stop();
	EXPECT_GE(kept, 4 + 256) << "the reserve";
	EXPECT_EQ(write(1), -FI_EOVERRUN);
	EXPECT_EQ(write_err(1), -FI_EOVERRUN);
	for (int64_t n = 0; n < kept; n++)
		ASSERT_EQ(next(), n);
	EXPECT_EQ(next(), -FI_EOVERRUN);
	EXPECT_EQ(write(1), -FI_EOVERRUN) << "nothing behind the gap";
	EXPECT_EQ(next(), -FI_EOVERRUN);
	EXPECT_EQ(fi_cq_readerr(fid, &err, 0), -FI_EOVERRUN);
}

TEST_F(Cq, WithoutMemoryAnErrorLosesItsDataOnly)
{
	struct fi_cq_err_entry err = {};
	char data[4] = "abc";

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	must_open(FI_CQ_FORMAT_CONTEXT);
	tdt_alloc_fail(1, 1);
	EXPECT_EQ(write_err(1, data, sizeof(data)), 0);
	tdt_alloc_stop();
	EXPECT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.op_context, ctx(1));
	EXPECT_EQ(err.err_data_size, 0u);
}

/* ---- blocking reads ----------------------------------------------------- */

class CqWait : public Cq, public testing::WithParamInterface<enum fi_wait_obj>
{
protected:
	void must_open_wait(enum fi_cq_wait_cond cond = FI_CQ_COND_NONE)
	{
		struct fi_cq_attr attr = {};

		attr.format = FI_CQ_FORMAT_CONTEXT;
		attr.wait_obj = GetParam();
		attr.wait_cond = cond;
		ASSERT_EQ(open(attr), 0);
	}

	int64_t snext(int timeout, const void *cond = nullptr)
	{
		struct fi_cq_entry e = {};
		ssize_t ret = fi_cq_sread(fid, &e, 1, cond, timeout);

		return ret == 1 ? reinterpret_cast<int64_t>(e.op_context) : ret;
	}

	bool has_fd() const
	{
		return GetParam() != FI_WAIT_YIELD;
	}

	/* Until @more threads have been let to sleep since @before. */
	void until_asleep(int before, int more = 1)
	{
		for (int now = before; has_fd() && now < before + more;) {
			engine.locked([&] { now = engine.arms; });
			std::this_thread::yield();
		}
	}
};

TEST_P(CqWait, TimeoutEndsWithEagain)
{
	must_open_wait();
	EXPECT_EQ(snext(0), -FI_EAGAIN);
	EXPECT_EQ(snext(1), -FI_EAGAIN);
	EXPECT_EQ(snext(20), -FI_EAGAIN);
}

TEST_P(CqWait, GivesWhatIsThere)
{
	must_open_wait();
	write(1);
	EXPECT_EQ(snext(-1), 1);
	engine.on_progress = [&] {
		write_held(2);
	};
	EXPECT_EQ(snext(-1), 2);
	engine.on_progress = nullptr;
	write_err(3);
	EXPECT_EQ(snext(-1), -FI_EAVAIL);
}

/* An entry written by another thread ends the sleep. */
TEST_P(CqWait, EntryWakes)
{
	must_open_wait();
	for (int64_t n = 0; n < 200; n++) {
		int before = engine.arms;
		std::thread t([&] {
			if (n % 2)
				until_asleep(before);
			write(static_cast<uint64_t>(n));
		});

		EXPECT_EQ(snext(-1), n);
		t.join();
	}
}

TEST_P(CqWait, ErrorWakes)
{
	must_open_wait();
	std::thread t([&] {
		until_asleep(0);
		write_err(7);
	});

	EXPECT_EQ(snext(-1), -FI_EAVAIL);
	t.join();
}

/* Work for a transport makes the sleeper run progress. */
TEST_P(CqWait, EngineWakes)
{
	must_open_wait();
	for (int64_t n = 0; n < 200; n++) {
		bool work = false;
		int before = engine.arms;
		std::thread t([&] {
			if (n % 2)
				until_asleep(before);
			engine.locked([&] { work = true; });
			engine.kick();
		});

		engine.locked([&] {
			engine.on_progress = [&] {
				if (work)
					write_held(static_cast<uint64_t>(n));
				work = false;
			};
		});
		EXPECT_EQ(snext(-1), n);
		t.join();
	}
}

/* fi_cq_signal unblocks a thread; one given before counts as well. */
TEST_P(CqWait, SignalEndsOneRead)
{
	must_open_wait();
	EXPECT_EQ(fi_cq_signal(fid), 0);
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
	EXPECT_EQ(snext(0), -FI_EAGAIN);
	const int before = engine.arms;
	std::thread t([&] {
		until_asleep(before);
		fi_cq_signal(fid);
	});
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
	t.join();
	write(1);
	EXPECT_EQ(fi_cq_signal(fid), 0);
	EXPECT_EQ(snext(-1), 1) << "data comes first";
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
}

/* FI_CQ_COND_THRESHOLD: so many entries end the wait. */
TEST_P(CqWait, ThresholdCounts)
{
	struct fi_cq_entry e[8];
	size_t want = 3;

	must_open_wait(FI_CQ_COND_THRESHOLD);
	write(1);
	write(2);
	EXPECT_EQ(fi_cq_sread(fid, e, 8, &want, 1), 2)
		<< "time over: what there is";
	std::thread t([&] {
		for (uint64_t n = 0; n < 3; n++)
			write(n);
	});
	EXPECT_EQ(fi_cq_sread(fid, e, 8, &want, -1), 3);
	t.join();
	write(1);
	EXPECT_EQ(fi_cq_sread(fid, e, 8, nullptr, -1), 1);
}

/* Two sleepers with different conditions: nobody takes the other's signal. */
TEST_P(CqWait, SleepersDoNotStealWakeups)
{
	const int rounds = 100;

	must_open_wait(FI_CQ_COND_THRESHOLD);
	for (int round = 0; round < rounds; round++) {
		const int before = engine.arms;
		ssize_t big = 0, small = 0;
		std::thread a([&] {
			struct fi_cq_entry e[4];
			size_t want = 4;

			big = fi_cq_sread(fid, e, 4, &want, -1);
		});
		std::thread b([&] {
			struct fi_cq_entry e;

			small = fi_cq_sread(fid, &e, 1, nullptr, -1);
		});

		/* Both sleep; one entry is enough for b only. */
		until_asleep(before, 2);
		write(1);
		b.join();
		for (uint64_t n = 0; n < 4; n++)
			write(n);
		a.join();
		EXPECT_EQ(small, 1);
		EXPECT_EQ(big, 4);
	}
}

/* Many readers, many writers: each entry is read once. */
TEST_P(CqWait, ReadersShareAllEntries)
{
	const uint64_t each = 2000;
	std::vector<std::thread> threads;
	uint64_t got[3] = {}, sum[3] = {};

	must_open_wait();
	for (int i = 0; i < 3; i++)
		threads.emplace_back([&, i] {
			for (;;) {
				int64_t n = snext(-1);

				if (n < 0)
					continue;
				if (n == 0)
					break;
				got[i]++;
				sum[i] += static_cast<uint64_t>(n);
			}
		});
	for (uint64_t i = 0; i < 2; i++)
		threads.emplace_back([&, i] {
			for (uint64_t n = 0; n < each; n++)
				write(1 + i * each + n);
		});
	threads[3].join();
	threads[4].join();
	for (int i = 0; i < 3; i++)
		write(0);
	for (int i = 0; i < 3; i++)
		threads[static_cast<size_t>(i)].join();
	EXPECT_EQ(got[0] + got[1] + got[2], 2 * each);
	EXPECT_EQ(sum[0] + sum[1] + sum[2], each * (2 * each + 1));
}

/* fi_cq(3): a signal that the thread takes ends the call. */
TEST_P(CqWait, InterruptedSleepEnds)
{
	if (!has_fd())
		GTEST_SKIP() << "FI_WAIT_YIELD does not sleep";
	struct sigaction act = {}, old;
	pthread_t self = pthread_self();

	act.sa_handler = [](int) {
	};
	sigaction(SIGUSR1, &act, &old);
	must_open_wait();
	bool done = false;
	std::thread t([&] {
		bool stop = false;

		until_asleep(0);
		while (!stop) {
			pthread_kill(self, SIGUSR1);
			std::this_thread::yield();
			engine.locked([&] { stop = done; });
		}
	});
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
	engine.locked([&] { done = true; });
	t.join();
	sigaction(SIGUSR1, &old, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Objects, CqWait,
			 testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD,
					 FI_WAIT_POLLFD, FI_WAIT_YIELD),
			 [](const auto &info) {
				 switch (info.param) {
				 case FI_WAIT_UNSPEC:
					 return "Unspec";
				 case FI_WAIT_FD:
					 return "Fd";
				 case FI_WAIT_POLLFD:
					 return "Pollfd";
				 default:
					 return "Yield";
				 }
			 });

/* ---- the wait object ---------------------------------------------------- */

/* The loop of fi_trywait(3) with a native wait. */
TEST_F(Cq, WaitFdFollowsTrywait)
{
	enum fi_wait_obj obj = FI_WAIT_NONE;
	int fd = -1;

	must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_FD);
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAITOBJ, &obj), 0);
	EXPECT_EQ(obj, FI_WAIT_FD);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, nullptr), -FI_EINVAL);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	EXPECT_FALSE(readable(fd));
	write(1);
	write(2);
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN) << "unread entries";
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN);
	EXPECT_EQ(next(), 2);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	EXPECT_FALSE(readable(fd)) << "the old signal is taken back";
	engine.kick();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN) << "needs progress";
	EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	write_err(3);
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN);
}

TEST_F(Cq, WaitPollfdTellsItsRoom)
{
	struct pollfd fds[2] = {};
	struct fi_wait_pollfd w = {};

	must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_POLLFD);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), -FI_ETOOSMALL);
	ASSERT_LE(w.nfds, 2u);
	w.fd = fds;
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), 0);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	EXPECT_EQ(poll(fds, w.nfds, 0), 0);
	write(1);
	EXPECT_EQ(poll(fds, w.nfds, 0), 1);
}

TEST_F(Cq, WithoutAWaitObjectThereIsNone)
{
	int fd;

	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EINVAL);
	EXPECT_EQ(engine.fd, -1) << "nobody waits, nobody pays";
}

TEST_F(Cq, UnspecMakesDescriptorsWhenSomebodyWaits)
{
	int fd;

	must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_UNSPEC);
	write(1);
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(engine.fd, -1);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	EXPECT_GE(engine.fd, 0);
}

} // namespace

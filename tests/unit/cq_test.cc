/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion queue: all entries come out, once, in order, in the
 * application's format; errors in their place; nothing lost. Blocking reads are
 * in cq_wait_test.cc.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <netinet/in.h>

#include "cq_fixture.h"

extern "C" {
#include "peer/patience.h"
#include "tests/harness/fault.h"
#include "tests/harness/log.h"
}

namespace
{

using tdt::ctx;
using tdt::FakeEngine;

class Cq : public tdt::CqFixture
{
};

/*
 * fi_cq(3) 2.1, COMPLETION FIELDS 1: Each format has the fields of the smaller
 * ones.
 */
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
	attr.wait_obj = FI_WAIT_SET;
	EXPECT_EQ(open(attr), -FI_EINVAL) << "without a set";
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

/* fi_cq(3) 2.1, fi_cq_read 2: -FI_EAVAIL while the next entry is an error. */
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

/*
 * fi_cq(3) 2.1, COMPLETION FIELDS 12 and 13: A buffer of the caller's gets a
 * copy.
 */
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

/*
 * fi_cq(3) 2.1, fi_cq_readfrom 1: Without FI_SOURCE the source is
 * FI_ADDR_NOTAVAIL.
 */
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

/* fi_tandem(7), FAULTS: the text of the error that was read last. */
TEST_F(Cq, StrerrorNamesThePeerOfTheErrorReadLast)
{
	const std::string at = ": 192.0.2.7:4711", what = fi_strerror(3);
	struct sockaddr_in sin = {};
	struct fi_cq_err_entry err = {};
	char mine[4], text[128];

	sin.sin_family = AF_INET;
	sin.sin_port = htons(4711);
	sin.sin_addr.s_addr = htonl(0xc0000207);
	must_open(FI_CQ_FORMAT_CONTEXT);
	write_err(3, &sin, sizeof(sin));
	write_err(3, &sin, sizeof(sin));
	ASSERT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.err_data_size, sizeof(sin));
	EXPECT_EQ(0, memcmp(err.err_data, &sin, sizeof(sin)));
	EXPECT_EQ(what + at,
		  fi_cq_strerror(fid, 3, err.err_data, text, sizeof(text)));
	EXPECT_EQ(what + at, text);
	/* Other data, or another code: not this error. */
	EXPECT_EQ(what, fi_cq_strerror(fid, 3, nullptr, nullptr, 0));
	EXPECT_STREQ(fi_strerror(FI_EBUSY),
		     fi_cq_strerror(fid, FI_EBUSY, err.err_data, nullptr, 0));
	/* A buffer that is too short for the address names the error too. */
	err.err_data = mine;
	err.err_data_size = sizeof(mine);
	ASSERT_EQ(fi_cq_readerr(fid, &err, 0), 1);
	EXPECT_EQ(err.err_data_size, sizeof(mine));
	EXPECT_EQ(0, memcmp(mine, &sin, sizeof(mine)));
	EXPECT_EQ(what + at, fi_cq_strerror(fid, 3, mine, nullptr, 0));
}

/* fi_cq(3) 2.1, fi_close 2: -FI_EBUSY while a queue is in use. */
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

/*
 * fi_cq(3) 2.1, NOTES 2: After the entries that were kept, reads say
 * -FI_EOVERRUN.
 */
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

uint64_t frozen_ns;
unsigned yields;

/*
 * fi_tandem(7), PROGRESS: a thread that polls for long in vain offers the
 * processor to others, without the lock. As long as something comes, no thread
 * does.
 */
TEST_F(Cq, PollingInVainGivesTheCoreAway)
{
	struct fi_cq_entry e;

	must_open(FI_CQ_FORMAT_CONTEXT);
	frozen_ns = 1000;
	tdm_patience = {};
	yields = 0;
	tdm_os.now_ns = [] {
		return frozen_ns;
	};
	tdm_os.yield = [] {
		yields++;
		return 0;
	};
	for (int i = 0; i < 4000; i++)
		ASSERT_EQ(fi_cq_read(fid, &e, 1), -FI_EAGAIN);
	EXPECT_EQ(yields, 0u) << "no time has passed";
	frozen_ns += 2 * TDM_VAIN_NS;
	for (int i = 0; i < 10 * TDM_VAIN_CALLS; i++)
		ASSERT_EQ(fi_cq_read(fid, &e, 1), -FI_EAGAIN);
	EXPECT_EQ(yields, 10u);
	yields = 0;
	for (int i = 0; i < 20 * TDM_VAIN_CALLS; i++) {
		frozen_ns += TDM_VAIN_NS;
		if (!(i % (TDM_VAIN_CALLS - 1))) {
			ASSERT_EQ(write(1), 0);
			ASSERT_EQ(fi_cq_read(fid, &e, 1), 1);
		} else {
			ASSERT_EQ(fi_cq_read(fid, &e, 1), -FI_EAGAIN);
		}
	}
	EXPECT_EQ(yields, 0u);
	tdm_os = tdm_os_system;
}

} // namespace

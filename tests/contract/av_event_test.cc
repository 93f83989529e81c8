/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_av(3), FI_EVENT and fi_av_bind: inserts that tell of their end by events.
 * "1.20", "2.1" and "2-dev" name the three versions of the manual.
 */
#include "tests/contract/av_fixture.h"
#include "tests/harness/log.h"

namespace
{

using namespace tdt;

class AvEvent : public AvAlone
{
};

TEST_F(AvEvent, NoQueueIsEnoeq)
{
	/* fi_av(3) 1.20, 2.1, fi_av_open 16: FI_EVENT: insertion before a queue
	 * is bound is -FI_ENOEQ. */
	struct sockaddr_in s = in4("192.0.2.1", 1);

	open(FI_SOCKADDR_IN, FI_EVENT);
	EXPECT_EQ(-FI_ENOEQ, one(s));
	EXPECT_EQ(-FI_ENOEQ,
		  fi_av_insertsvc(av, "192.0.2.1", "1", nullptr, 0, nullptr));
	EXPECT_EQ(-FI_ENOEQ, fi_av_insertsym(av, "192.0.2.1", 1, "1", 1,
					     nullptr, 0, nullptr));
	EXPECT_EQ("", at(0));
	open_eq();
	ASSERT_EQ(0, bind());
	EXPECT_EQ(0, one(s));
	EXPECT_EQ("192.0.2.1:1", at(0));
}

TEST_F(AvEvent, BindFlagsAreReserved)
{
	/* fi_av(3) 1.20, 2.1, fi_av_bind 1: the flags have to be 0. */
	open(FI_SOCKADDR_IN, FI_EVENT);
	open_eq();
	EXPECT_EQ(-FI_EBADFLAGS, bind(FI_READ));
	EXPECT_EQ(0, bind());
	EXPECT_EQ(-FI_EINVAL, bind());
	EXPECT_EQ(-FI_EINVAL, av->fid.ops->bind(&av->fid, &av->fid, 0));
	EXPECT_EQ(-FI_EINVAL, av->fid.ops->bind(&av->fid, nullptr, 0));
	/* It is in use. */
	EXPECT_EQ(-FI_EBUSY, fi_close(&tdm_eq_fid(eq)->fid));
}

TEST_F(AvEvent, OneEventWithTheNumberInserted)
{
	/* fi_av(3) 1.20, 2.1, fi_av_open 15: FI_EVENT: each call ends in one
	 * event with the call's context and the number inserted; the call
	 * returns 0 when it has begun. */
	struct sockaddr_in s[3] = { in4("192.0.2.1", 1), in4("192.0.2.2", 1),
				    in4("192.0.2.3", 1) };
	fi_addr_t a[3] = { 9, 9, 9 };
	int context;

	open_event();
	ASSERT_EQ(0, fi_av_insert(av, s, 3, a, 0, &context));
	Event e = next();
	EXPECT_EQ(uint32_t(FI_AV_COMPLETE), e.type);
	EXPECT_EQ(3u, e.data);
	EXPECT_EQ(&context, e.context);
	EXPECT_EQ(&av->fid, e.fid);
	EXPECT_TRUE(no_event());
	EXPECT_EQ((Texts{ "192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1" }),
		  all());
	for (size_t i = 0; i < 3; i++)
		EXPECT_EQ(i, a[i]);
	ASSERT_EQ(0, fi_av_insert(av, s, 0, nullptr, 0, nullptr));
	EXPECT_EQ(0u, next().data);
}

TEST_F(AvEvent, AnErrorEntryForEachThatFailed)
{
	/* fi_av(3) 1.20, 2.1, fi_av_open 15: FI_EVENT: an error entry with the
	 * place of each address that failed, then the event. */
	struct sockaddr_in s[4] = { {}, in4("192.0.2.2", 1), {}, {} };
	fi_addr_t a[4] = { 9, 9, 9, 9 };
	int context;

	open_event();
	ASSERT_EQ(0, fi_av_insert(av, s, 4, a, 0, &context));
	for (uint64_t i : { 0, 2, 3 }) {
		Event e = next();

		EXPECT_EQ(FI_EINVAL, e.err);
		EXPECT_EQ(i, e.data);
		EXPECT_EQ(&context, e.context);
		EXPECT_EQ(FI_ADDR_NOTAVAIL, a[i]);
	}
	Event e = next();
	EXPECT_EQ(uint32_t(FI_AV_COMPLETE), e.type);
	EXPECT_EQ(1u, e.data);
	EXPECT_EQ(0u, a[1]);
	EXPECT_TRUE(no_event());
}

TEST_F(AvEvent, EventEvenIfAllFail)
{
	/* fi_av(3) 1.20, 2.1, fi_av_open 15: FI_EVENT: the event comes although
	 * every address failed. However many: the events need no room in the
	 * queue. */
	std::vector<struct sockaddr_in> s(1000);

	open_event(0, 4);
	ASSERT_EQ(0, fi_av_insert(av, s.data(), 1000, nullptr, 0, nullptr));
	for (uint64_t i = 0; i < 1000; i++) {
		Event e = next();

		ASSERT_EQ(i, e.data);
		ASSERT_EQ(FI_EINVAL, e.err);
	}
	EXPECT_EQ(uint32_t(FI_AV_COMPLETE), next().type);
	EXPECT_TRUE(no_event());
}

TEST_F(AvEvent, NamesAreResolvedElsewhere)
{
	/* fi_av(3) 1.20, 2.1, fi_av_open 15: FI_EVENT: insertion goes on after
	 * the call. The call returns while the resolver has not answered. */
	fi_addr_t a = 9;

	names.hosts["host"] = "192.0.2.5";
	names.block();
	open_event();
	ASSERT_EQ(0, fi_av_insertsvc(av, "host", "7", &a, 0, this));
	names.wait_asked();
	EXPECT_TRUE(no_event());
	EXPECT_EQ("", at(0));
	names.let_go();
	Event e = next();
	EXPECT_EQ(uint32_t(FI_AV_COMPLETE), e.type);
	EXPECT_EQ(1u, e.data);
	EXPECT_EQ(this, e.context);
	EXPECT_EQ(0u, a);
	EXPECT_EQ("192.0.2.5:7", at(0));
}

TEST_F(AvEvent, IndicesFollowTheOrderOfTheCalls)
{
	/* fi_av(3) 1.20, 2.1, fi_av_insert 3: indices follow the order of the
	 * calls, whichever ends first. */
	struct sockaddr_in s[2] = { in4("192.0.2.8", 1), {} };
	fi_addr_t a[5] = { 9, 9, 9, 9, 9 };

	names.hosts["n1"] = "192.0.2.1";
	names.hosts["n3"] = "192.0.2.3";
	names.block();
	open_event();
	ASSERT_EQ(0, fi_av_insertsym(av, "n1", 3, "7", 1, a, 0, &names));
	ASSERT_EQ(0, fi_av_insert(av, s, 2, &a[3], 0, &s));
	ASSERT_EQ(0, fi_av_insertsvc(av, "192.0.2.9", "1", &a[4], 0, nullptr));
	memset(s, 0xff, sizeof(s)); /* the addresses were taken */
	names.let_go();
	Event e = next();
	EXPECT_EQ(FI_ENODATA, e.err);
	EXPECT_EQ(1u, e.data);
	EXPECT_EQ(&names, e.context);
	e = next();
	EXPECT_EQ(2u, e.data);
	EXPECT_EQ(&names, e.context);
	e = next();
	EXPECT_EQ(FI_EINVAL, e.err);
	EXPECT_EQ(1u, e.data);
	EXPECT_EQ(1u, next().data);
	EXPECT_EQ(1u, next().data);
	EXPECT_EQ((Texts{ "192.0.2.1:7", "192.0.2.3:7", "192.0.2.8:1",
			  "192.0.2.9:1" }),
		  all());
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[1]);
	EXPECT_EQ(2u, a[3]);
	EXPECT_EQ(3u, a[4]);
	EXPECT_EQ((Texts{ "n1", "n2", "n3" }), names.asked);
}

TEST_F(AvEvent, SyncErrIsForSynchronousInserts)
{
	/* 1.20, 2.1: FI_SYNC_ERR: "This flag applies to synchronous insertions
	 * only". */
	struct sockaddr_in s = in4("192.0.2.1", 1);
	int err = 5;

	open_event();
	EXPECT_EQ(-FI_EINVAL, one(s, nullptr, FI_SYNC_ERR, &err));
	EXPECT_EQ(5, err);
	EXPECT_TRUE(no_event());
}

TEST_F(AvEvent, WhatCloseCutsShortIsCanceled)
{
	/* fi_av(3) 1.20, 2.1, RETURN VALUES 2: addresses given up end with
	 * FI_ECANCELED and FI_ADDR_NOTAVAIL; fi_close leaves the events in
	 * their queue. */
	struct sockaddr_in s = in4("192.0.2.1", 1);
	fi_addr_t a[3] = { 9, 9, 9 };

	names.hosts["n1"] = "192.0.2.1";
	names.hosts["n2"] = "192.0.2.2";
	names.block();
	open_event();
	ASSERT_EQ(0, fi_av_insertsym(av, "n1", 2, "7", 1, a, 0, &names));
	ASSERT_EQ(0, one(s, &a[2], 0, &s));
	names.wait_asked();
	ASSERT_EQ(0, fi_close(&av->fid)); /* waits for no resolver */
	av = nullptr;
	for (uint64_t i : { 0, 1 }) {
		Event e = next();

		EXPECT_EQ(FI_ECANCELED, e.err);
		EXPECT_EQ(i, e.data);
		EXPECT_EQ(&names, e.context);
	}
	EXPECT_EQ(0u, next().data);
	EXPECT_EQ(FI_ECANCELED, next().err);
	Event e = next();
	EXPECT_EQ(uint32_t(FI_AV_COMPLETE), e.type);
	EXPECT_EQ(&s, e.context);
	EXPECT_TRUE(no_event());
	for (fi_addr_t i : a)
		EXPECT_EQ(FI_ADDR_NOTAVAIL, i);
	names.let_go();
	names.wait_idle();
}

TEST_F(AvEvent, NoThreadIsTold)
{
	/* fi_av(3) 1.20, 2.1, RETURN VALUES 2: an insertion that cannot begin
	 * is a negative errno. And nothing else happens. */
	fi_addr_t a = 9;

	open_event();
	auto *start = tdm_os.thread_create;

	tdm_os.thread_create = [](pthread_t *, void *(*)(void *), void *) {
		errno = EAGAIN;
		return -1;
	};
	EXPECT_EQ(-FI_EAGAIN, fi_av_insertsvc(av, "host", "1", &a, 0, nullptr));
	tdm_os.thread_create = start;
	EXPECT_EQ(9u, a);
	EXPECT_TRUE(no_event());
	names.hosts["host"] = "192.0.2.1";
	EXPECT_EQ(0, fi_av_insertsvc(av, "host", "1", &a, 0, nullptr));
	EXPECT_EQ(1u, next().data);
}

TEST_F(AvEvent, ThreadDomainGetsARealLock)
{
	/* fi_tandem(7): the thread is safe at every threading level. */
	names.hosts["host"] = "192.0.2.1";
	engine.lock.enabled = 0;
	open_event();
	ASSERT_EQ(0, fi_av_insertsvc(av, "192.0.2.7", "1", nullptr, 0, this));
	EXPECT_EQ(0, engine.lock.enabled);
	EXPECT_EQ(1u, next().data);
	ASSERT_EQ(0, fi_av_insertsvc(av, "host", "1", nullptr, 0, this));
	EXPECT_EQ(1, engine.lock.enabled);
	EXPECT_EQ(1u, next().data);
}

TEST_F(AvEvent, ManyCallsWhileNamesAreResolved)
{
	/* Nothing is lost between the application and the thread. */
	enum { CALLS = 300 };
	size_t inserted = 0, ends = 0, errors = 0;

	names.hosts["host"] = "192.0.2.1";
	open_event();
	for (int i = 0; i < CALLS; i++) {
		struct sockaddr_in s = in4("192.0.2.9", uint16_t(i + 1));

		ASSERT_EQ(0, fi_av_insertsvc(av, i % 3 ? "host" : "nobody", "1",
					     nullptr, 0, nullptr));
		ASSERT_EQ(0, one(s));
	}
	while (ends < 2 * CALLS) {
		Event e = next();

		if (e.err) {
			errors++;
			continue;
		}
		ends++;
		inserted += e.data;
	}
	EXPECT_EQ(size_t(CALLS) / 3, errors);
	EXPECT_EQ(size_t(CALLS) + CALLS * 2 / 3, inserted);
	EXPECT_TRUE(no_event());
}

} // namespace

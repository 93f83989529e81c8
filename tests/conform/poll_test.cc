/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll sets: fi_poll(3). */
#include "tests/harness/fixture.h"

namespace
{

/*
 * A poll set over the queues of endpoint 0. The wrappers of the header are
 * marked as deprecated, hence the calls through the tables.
 */
class Poll : public Case
{
protected:
	struct fid_poll *set = nullptr;

	Poll()
	{
		attr.cntrs = 1;
	}

	void open_set()
	{
		struct fi_poll_attr pa = {};
		struct fid_domain *d = rx()->domain;

		ASSERT_EQ(0, d->ops->poll_open(d, &pa, &set));
		ASSERT_EQ(static_cast<size_t>(FI_CLASS_POLL), set->fid.fclass);
	}

	int add(struct fid *fid, uint64_t flags = 0)
	{
		return set->ops->poll_add(set, fid, flags);
	}

	int del(struct fid *fid, uint64_t flags = 0)
	{
		return set->ops->poll_del(set, fid, flags);
	}

	int poll(void **context, int count)
	{
		return set->ops->poll(set, context, count);
	}

	/* Poll until something is there, driving the others. */
	int poll_until(void **context, int count)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		int ret;

		while (!(ret = poll(context, count)) && tdt_now_ms() < end) {
			for (size_t i = 1; i < w->count; i++) {
				fi_cq_read(ep(i)->tx_cq, nullptr, 0);
				fi_cq_read(ep(i)->rx_cq, nullptr, 0);
			}
		}
		return ret;
	}

	/* Name the queues, so that a context tells which it is. */
	void name(struct fid *fid)
	{
		fid->context = fid;
	}

	void TearDown() override
	{
		if (set) {
			EXPECT_EQ(0, fi_close(&set->fid));
		}
		Case::TearDown();
	}
};

TEST_F(Poll, CompletionQueueWithAnEntryIsReported)
{
	/* fi_poll(3) 2.1, fi_poll 1: fi_poll returns the context of a queue
	 * that is not empty. */
	void *found[4];

	OPEN();
	OK(open_set());
	name(&rx()->rx_cq->fid);
	name(&rx()->tx_cq->fid);
	ASSERT_EQ(0, add(&rx()->rx_cq->fid));
	ASSERT_EQ(0, add(&rx()->tx_cq->fid));
	ASSERT_EQ(0, add(&rx()->tx_cq->fid)) << "twice changes nothing";
	EXPECT_EQ(0, poll(found, 4));
	for (auto *from : senders()) {
		char out = 'p', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		ASSERT_EQ(1, poll_until(found, 4));
		EXPECT_EQ(rx()->rx_cq, found[0]);
		EXPECT_EQ(1, poll(found, 4)) << "until it is read";
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
		EXPECT_EQ(0, poll(found, 4));

		ASSERT_EQ(0, tdt_recv(from, &in, 1, &in));
		ASSERT_EQ(0, tdt_send(rx(), from, &out, 1, &out));
		ASSERT_EQ(1, poll_until(found, 4));
		EXPECT_EQ(rx()->tx_cq, found[0]);
		OK(done(rx(), &out, FI_SEND | FI_MSG));
		OK(done(from, &in, FI_RECV | FI_MSG));
	}
	ASSERT_EQ(0, del(&rx()->rx_cq->fid));
	ASSERT_EQ(0, del(&rx()->tx_cq->fid));
}

TEST_F(Poll, AnErrorIsReported)
{
	/* fi_poll(3) 2.1, fi_poll 2: fi_poll returns every queue and counter
	 * with something new. */
	void *found[1];
	char in = 0;

	OPEN();
	OK(open_set());
	name(&rx()->rx_cq->fid);
	name(&rx()->rx_cntr->fid);
	ASSERT_EQ(0, add(&rx()->rx_cq->fid));
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	EXPECT_EQ(1, poll(found, 1));
	EXPECT_EQ(rx()->rx_cq, found[0]);
	OK(failed(rx(), &in, FI_ECANCELED));
	EXPECT_EQ(0, poll(found, 1));
	ASSERT_EQ(0, del(&rx()->rx_cq->fid));
}

TEST_F(Poll, CounterThatChangedIsReportedOnce)
{
	/* fi_poll(3) 2.1, fi_poll 1: fi_poll returns the context of a counter
	 * whose values changed since it was last polled, set or added to. */
	void *found[2];

	OPEN();
	OK(open_set());
	name(&rx()->rx_cntr->fid);
	ASSERT_EQ(0, add(&rx()->rx_cntr->fid));
	(void)poll(found, 2);
	EXPECT_EQ(0, poll(found, 2));
	for (auto *from : senders()) {
		char out = 'p', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		ASSERT_EQ(1, poll_until(found, 2));
		EXPECT_EQ(rx()->rx_cntr, found[0]);
		EXPECT_EQ(0, poll(found, 2));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
		EXPECT_EQ(0, poll(found, 2));

		/* The application's own change is none. */
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
		ASSERT_EQ(0, fi_cntr_set(rx()->rx_cntr, 5));
		EXPECT_EQ(0, poll(found, 2));
		ASSERT_EQ(0, fi_cntr_add(rx()->rx_cntr, 5));
		EXPECT_EQ(0, poll(found, 2));
		ASSERT_EQ(0, fi_cntr_adderr(rx()->rx_cntr, 1));
		EXPECT_EQ(1, poll(found, 2));
	}
	ASSERT_EQ(0, del(&rx()->rx_cntr->fid));
}

TEST_F(Poll, RoomForOneContextLearnsOfAll)
{
	/* fi_poll(3) 2.1, fi_poll 1: fi_poll returns at most count contexts. */
	void *found[4], *two[2];
	char in[2] = { 0, 0 };

	OPEN();
	OK(open_set());
	name(&rx()->rx_cq->fid);
	name(&rx()->rx_cntr->fid);
	ASSERT_EQ(0, add(&rx()->rx_cq->fid));
	ASSERT_EQ(0, add(&rx()->rx_cntr->fid));
	(void)poll(found, 4);
	for (auto &one : in) {
		ASSERT_EQ(0, tdt_recv(rx(), &one, 1, &one));
		ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &one));
	}
	ASSERT_EQ(0, fi_cntr_seterr(rx()->rx_cntr, 0));
	ASSERT_EQ(0, poll(nullptr, 0)) << "progress alone";
	ASSERT_EQ(1, poll(&two[0], 1));
	ASSERT_EQ(1, poll(&two[1], 1));
	EXPECT_NE(two[0], two[1]);
	OK(failed(rx(), &in[0], FI_ECANCELED));
	OK(failed(rx(), &in[1], FI_ECANCELED));
	ASSERT_EQ(0, del(&rx()->rx_cq->fid));
	ASSERT_EQ(0, del(&rx()->rx_cntr->fid));
}

TEST_F(Poll, WhatIsAssociatedStays)
{
	/* fi_poll(3) 2.1, fi_close 1: A poll set that others use stays open:
	 * -FI_EBUSY. So does a counter: fi_cntr(3) 2.1, fi_close 1. */
	struct fid_cq *cq = nullptr;
	struct fid_cntr *cntr = nullptr;

	ONLY_TANDEM();
	OPEN();
	OK(open_set());
	ASSERT_EQ(0, fi_cq_open(rx()->domain, nullptr, &cq, nullptr));
	ASSERT_EQ(0, fi_cntr_open(rx()->domain, nullptr, &cntr, nullptr));
	ASSERT_EQ(0, add(&cq->fid));
	ASSERT_EQ(0, add(&cntr->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&cq->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&cntr->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&set->fid));
	ASSERT_EQ(0, del(&cq->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&set->fid));
	ASSERT_EQ(0, del(&cntr->fid));
	EXPECT_EQ(0, fi_close(&cq->fid));
	EXPECT_EQ(0, fi_close(&cntr->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->domain->fid));
}

TEST_F(Poll, WrongArgumentsAreRefused)
{
	/* fi_poll(3) 2.1, fi_poll_open 3: The flags have to be 0. */
	struct fi_poll_attr pa = {};
	struct fid_poll *other = nullptr;
	struct fid_domain *d;
	void *found[1];

	ONLY_TANDEM();
	OPEN();
	OK(open_set());
	d = rx()->domain;
	pa.flags = FI_MORE;
	EXPECT_EQ(-FI_EINVAL, d->ops->poll_open(d, &pa, &other));
	EXPECT_EQ(nullptr, other);
	EXPECT_EQ(-FI_EINVAL, add(&rx()->rx_cq->fid, FI_MORE));
	EXPECT_EQ(-FI_EINVAL, add(nullptr));
	EXPECT_EQ(-FI_EINVAL, add(&rx()->av->fid));
	EXPECT_EQ(-FI_EINVAL, add(&ep(1)->rx_cq->fid)) << "another domain";
	EXPECT_EQ(-FI_EINVAL, add(&ep(1)->rx_cntr->fid));
	EXPECT_EQ(-FI_EINVAL, del(&rx()->rx_cq->fid));
	EXPECT_EQ(-FI_EINVAL, poll(found, -1));
	EXPECT_EQ(-FI_EINVAL, poll(nullptr, 1));
	EXPECT_EQ(-FI_ENOSYS, fi_control(&set->fid, FI_GETWAIT, found));
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait descriptors in event loops of event loops: a library watches the
 * descriptor in an epoll set of its own, gives that set to a framework, and the
 * framework is part of the application's loop. epoll_ctl(2) allows sets of sets
 * up to a depth of five in all.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <vector>

#include "tests/harness/fixture.h"

namespace
{

enum { LEVELS = 3 };

class Nest : public Case
{
protected:
	std::vector<int> sets;

	Nest()
	{
		attr.wait = FI_WAIT_FD;
		attr.cntr_wait = FI_WAIT_FD;
		attr.cntrs = 1;
		attr.eq = 1;
		attr.eq_wait = FI_WAIT_FD;
	}

	void TearDown() override
	{
		for (int fd : sets)
			::close(fd);
		Case::TearDown();
	}

	/* Three epoll sets above the descriptor of @fid; the outermost. */
	int nest(struct fid *fid)
	{
		int fd = -1;

		EXPECT_EQ(0, fi_control(fid, FI_GETWAIT, &fd));
		for (int i = 0; i < LEVELS; i++) {
			struct epoll_event ev = {};
			int set = epoll_create1(EPOLL_CLOEXEC);

			ev.events = EPOLLIN;
			EXPECT_LE(0, set);
			EXPECT_EQ(0, epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev))
				<< "level " << i + 1 << ": " << strerror(errno);
			sets.push_back(set);
			fd = set;
		}
		return fd;
	}

	/* Until fi_trywait(3) lets one sleep on @fid and nothing wakes it. */
	bool asleep(struct fid *fid, int fd)
	{
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct pollfd p = { fd, POLLIN, 0 };

		while (tdt_now_ms() < end) {
			if (fid == &rx()->rx_cntr->fid)
				fi_cntr_read(rx()->rx_cntr);
			if (!fi_trywait(w->fabric, &fid, 1) && !poll(&p, 1, 5))
				return true;
			tdt_progress(w);
		}
		return false;
	}

	/* One message from each sender wakes who sleeps on @fid. */
	void woken(struct fid *fid)
	{
		const int ms = static_cast<int>(tdt_deadline_ms());
		const int fd = nest(fid);

		for (auto *from : senders()) {
			for (int i = 0; i < 5; i++) {
				struct pollfd p = { fd, POLLIN, 0 };
				char out = 'n', in = 0;

				ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
				ASSERT_TRUE(asleep(fid, fd));
				ASSERT_EQ(0,
					  tdt_send(from, rx(), &out, 1, &out));
				fi_cq_read(from->tx_cq, nullptr, 0);
				ASSERT_EQ(1, poll(&p, 1, ms));
				OK(done(rx(), &in, FI_RECV | FI_MSG));
				OK(done(from, &out, FI_SEND | FI_MSG));
				EXPECT_EQ('n', in);
			}
		}
	}
};

/*
 * fi_cq(3) 2.1, fi_cq_open 13 (FI_WAIT_FD): the descriptor is for the calls of
 * the system that wait, epoll(7) among them.
 */
TEST_F(Nest, ACompletionQueueWakesThreeLevels)
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	OK(woken(&rx()->rx_cq->fid));
}

/* fi_cntr(3) 2.1, fi_cntr_open 9: FI_WAIT_FD: as for completion queues. */
TEST_F(Nest, ACounterWakesThreeLevels)
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	OK(woken(&rx()->rx_cntr->fid));
}

/*
 * fi_eq(3) 2.1, fi_eq_open 11: FI_WAIT_FD. fi_domain(3) 2.1, Progress Models
 * (progress) 10: a thread that waits for an event queue makes progress, so what
 * needs progress ends the wait.
 */
TEST_F(Nest, AnEventQueueWakesThreeLevels)
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	OK(woken(&rx()->eq->fid));
}

} // namespace

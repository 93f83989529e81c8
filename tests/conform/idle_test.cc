/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping with many peers: an idle process costs nothing, and each single
 * message wakes it, whichever path it comes by.
 *
 * Counted is what the process did (processor time, sleeps), not how long it
 * took. TANDEM_TEST_WAKEUPS: number of wake-ups, 2000 else.
 */
#include <algorithm>
#include <poll.h>
#include <random>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "tests/harness/fixture.h"
#include "tests/harness/sanitized.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/*
 * The cost of an idle process shows in every try. Costs that the machine adds
 * now and then do not: an interrupt is charged to the process that happens to
 * run.
 */
enum {
	CROWD = 100,
	IDLE_MS = 2000,				/* how long it sleeps */
	IDLE_US = TDT_SANITIZED ? 20000 : 2000, /* processor time meanwhile */
	IDLE_TRIES = 10,
};

void many_files()
{
	struct rlimit l;

	if (!getrlimit(RLIMIT_NOFILE, &l)) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* One more endpoint in the domain of @w, for role crowd. */
struct fid_ep *one_more(struct tdt_world *w, bool tcp)
{
	struct tdt_ep *at = &w->eps[0];
	struct fid_ep *e = nullptr;
	bool off = false;

	if (fi_endpoint(at->domain, w->info, &e, nullptr) ||
	    fi_ep_bind(e, &at->av->fid, 0) ||
	    fi_ep_bind(e, &at->tx_cq->fid,
		       FI_TRANSMIT | FI_SELECTIVE_COMPLETION) ||
	    fi_ep_bind(e, &at->rx_cq->fid, FI_RECV) ||
	    (tcp &&
	     fi_setopt(&e->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED,
		       &off, sizeof(off))) ||
	    fi_enable(e))
		return nullptr;
	return e;
}

int say(struct tdt_ep *at, struct fid_ep *e, fi_addr_t to, char word)
{
	const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	ssize_t ret;

	while ((ret = fi_inject(e, &word, 1, to)) == -FI_EAGAIN &&
	       tdt_now_ms() < end)
		fi_cq_read(at->rx_cq, nullptr, 0);
	return static_cast<int>(ret);
}

/*
 * Many endpoints that each say one word to the parent, and answer each word
 * after a moment. They sleep between. @arg: "tcp" or NULL.
 */
TDT_ROLE(crowd)
{
	static char in[CROWD];
	std::vector<struct fid_ep *> eps;
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	std::minstd_rand rng(5);
	struct tdt_name name;
	fi_addr_t parent;

	many_files();
	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	attr.wait = FI_WAIT_FD;
	if (tdt_world_open(&attr, &w))
		return 1;
	for (size_t i = 0; i < CROWD; i++) {
		struct fid_ep *e = one_more(w, arg != nullptr);

		memset(&name, 0, sizeof(name));
		name.len = sizeof(name.bytes);
		if (!e || fi_getname(&e->fid, name.bytes, &name.len) ||
		    fi_recv(e, &in[i], 1, nullptr, FI_ADDR_UNSPEC, &in[i]) ||
		    tdt_tell(fd, &name, sizeof(name)))
			return 2;
		eps.push_back(e);
	}
	if (tdt_hear_name(fd, &w->eps[0], &parent))
		return 3;
	for (struct fid_ep *e : eps) {
		if (say(&w->eps[0], e, parent, '!'))
			return 4;
	}
	for (;;) {
		struct fi_cq_tagged_entry c;
		ssize_t ret = fi_cq_sread(w->eps[0].rx_cq, &c, 1, nullptr, -1);

		if (ret == -FI_EAGAIN)
			continue;
		if (ret != 1)
			return 5;
		size_t i = static_cast<size_t>(
			static_cast<char *>(c.op_context) - in);
		for (uint64_t n = rng() % 4096; n; n--)
			asm volatile("" ::: "memory");
		if (fi_recv(eps[i], &in[i], 1, nullptr, FI_ADDR_UNSPEC,
			    &in[i]) ||
		    say(&w->eps[0], eps[i], parent, '!'))
			return 6;
	}
}

class Idle : public Case
{
protected:
	struct Crowd {
		struct tdt_child child = { 0, -1 };
		std::vector<fi_addr_t> peers;
	};
	std::vector<Crowd> crowds;
	char in = 0;
	int fd = -1;

	Idle()
	{
		attr.eps = 1;
		attr.no_tcp_only = 1;
		attr.wait = FI_WAIT_FD;
		attr.tx_bind = FI_SELECTIVE_COMPLETION;
	}

	void TearDown() override
	{
		for (Crowd &c : crowds)
			tdt_child_kill(&c.child, SIGKILL);
		Case::TearDown();
	}

	void gather(Crowd *c, const char *arg)
	{
		struct fi_cq_tagged_entry e;

		ASSERT_EQ(0, tdt_child_start(&c->child, "crowd", arg));
		for (int i = 0; i < CROWD; i++) {
			fi_addr_t peer;

			ASSERT_EQ(0, tdt_hear_name(c->child.fd, rx(), &peer));
			c->peers.push_back(peer);
		}
		ASSERT_EQ(0, tdt_tell_name(c->child.fd, rx()));
		for (int i = 0; i < CROWD; i++) {
			ASSERT_EQ(0, fi_recv(rx()->ep, &in, 1, nullptr,
					     FI_ADDR_UNSPEC, &in));
			ASSERT_EQ(1, sleep_in_read(&e, 20000)) << i;
		}
	}

	/* 100 peers in each tier that the path has. */
	void gather_all()
	{
		many_files();
		OPEN();
		ASSERT_EQ(0, fi_control(&rx()->rx_cq->fid, FI_GETWAIT, &fd));
		crowds.resize(tdt_path() == TDT_MIXED ? 2 : 1);
		for (size_t i = 0; i < crowds.size(); i++)
			OK(gather(&crowds[i], i ? "tcp" : nullptr));
	}

	ssize_t sleep_in_read(struct fi_cq_tagged_entry *e, int ms)
	{
		return fi_cq_sread(rx()->rx_cq, e, 1, nullptr, ms);
	}

	/* fi_trywait(3) and poll(2); a timeout is not repeated. */
	ssize_t sleep_in_poll(struct fi_cq_tagged_entry *e, int ms)
	{
		struct fid *fids[1] = { &rx()->rx_cq->fid };
		const uint64_t end = tdt_now_ms() + static_cast<uint64_t>(ms);
		struct pollfd p = { fd, POLLIN, 0 };
		ssize_t ret;

		while ((ret = fi_cq_read(rx()->rx_cq, e, 1)) == -FI_EAGAIN) {
			const uint64_t now = tdt_now_ms();

			if (now >= end)
				return -FI_EAGAIN;
			if (!fi_trywait(w->fabric, fids, 1) &&
			    !poll(&p, 1, static_cast<int>(end - now)))
				return -FI_EAGAIN;
		}
		return ret;
	}

	/* Processor time of @body, us; *@sleeps of its thread. */
	template <typename F> int64_t cost(long *sleeps, F body)
	{
		struct rusage a, b, t;

		getrusage(RUSAGE_THREAD, &t);
		getrusage(RUSAGE_SELF, &a);
		body();
		getrusage(RUSAGE_SELF, &b);
		*sleeps = -t.ru_nvcsw;
		getrusage(RUSAGE_THREAD, &t);
		*sleeps += t.ru_nvcsw;
		timersub(&b.ru_utime, &a.ru_utime, &b.ru_utime);
		timersub(&b.ru_stime, &a.ru_stime, &b.ru_stime);
		timeradd(&b.ru_utime, &b.ru_stime, &b.ru_utime);
		return b.ru_utime.tv_sec * 1000000 + b.ru_utime.tv_usec;
	}

	/* Processor time of @body, us, without what disturbed it; each time
	 * it hardly wakes. */
	template <typename F> int64_t idle_cost(F body)
	{
		int64_t least = INT64_MAX;
		long sleeps;

		for (int i = 0; i < IDLE_TRIES && least > IDLE_US; i++) {
			least = std::min(least, cost(&sleeps, body));
			EXPECT_GE(5, sleeps);
		}
		return least;
	}

	void ends_in_time(const char *what,
			  const std::function<void(int)> &wait);
};

TEST_F(Idle, ManyPeersCostNothing)
{
	/* fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 1: fi_cq_sread blocks.
	 * fi_poll(3) 2.1, fi_trywait 3: fi_trywait says that one may block.
	 * At most 0.1 % of a core (1 % with a sanitizer), and hardly a
	 * wake-up. */
	struct fi_cq_tagged_entry e;

	ONLY_TANDEM();
	OK(gather_all());
	EXPECT_EQ(-FI_EAGAIN, sleep_in_read(&e, 200));
	EXPECT_GE(IDLE_US, idle_cost([&] {
			  EXPECT_EQ(-FI_EAGAIN, sleep_in_read(&e, IDLE_MS));
		  }));
	EXPECT_EQ(-FI_EAGAIN, sleep_in_poll(&e, 10));
	EXPECT_GE(IDLE_US, idle_cost([&] {
			  EXPECT_EQ(-FI_EAGAIN, sleep_in_poll(&e, IDLE_MS));
		  }));
}

TEST_F(Idle, EachSingleMessageWakes)
{
	/* fi_cq(3) 2.1, fi_cq_open 12: A wait object lets an application
	 * block until there is a completion. Both sides sleep until the
	 * other's word. */
	const char *env = getenv("TANDEM_TEST_WAKEUPS");
	const int n = env ? atoi(env) : 2000;
	std::minstd_rand rng(9);

	OK(gather_all());
	for (int i = 0; i < n; i++) {
		Crowd &c = crowds[static_cast<size_t>(i) % crowds.size()];
		struct fi_cq_tagged_entry e;

		ASSERT_EQ(0, fi_recv(rx()->ep, &in, 1, nullptr, FI_ADDR_UNSPEC,
				     &in));
		ASSERT_EQ(0, say(rx(), rx()->ep, c.peers[rng() % CROWD], '?'));
		ASSERT_EQ(1, i / 2 % 2 ? sleep_in_read(&e, 20000) :
					 sleep_in_poll(&e, 20000))
			<< i;
	}
}

/* @wait of so many milliseconds ends in time, and is no loop. */
void Idle::ends_in_time(const char *what, const std::function<void(int)> &wait)
{
	struct timespec a, b;
	int64_t least = INT64_MAX;
	long sleeps;

	wait(100);
	int64_t us = cost(&sleeps, [&] {
		for (int i = 0; i < 20; i++) {
			clock_gettime(CLOCK_MONOTONIC, &a);
			wait(25);
			clock_gettime(CLOCK_MONOTONIC, &b);
			int64_t took = (b.tv_sec - a.tv_sec) * 1000000000 +
				       (b.tv_nsec - a.tv_nsec);
			EXPECT_LE(25000000, took) << what;
			least = std::min(least, took);
		}
	});
	EXPECT_GE(35000000, least) << what << ": at least one was in time";
	EXPECT_GE(60, sleeps) << what;
	EXPECT_GE(50000, us) << what;
}

TEST_F(Idle, DeadlineIsKept)
{
	/* fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 1: fi_cq_sread ends with
	 * a completion, an error or its time-out: not before, and without
	 * looking at the clock all the time. fi_cntr_wait(3) and fi_eq_sread(3)
	 * do the same. */
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry event;
	uint32_t kind;

	attr.cntrs = attr.eq = 1;
	attr.cntr_wait = attr.eq_wait = FI_WAIT_FD;
	OK(gather_all());
	ends_in_time("fi_cq_sread", [&](int ms) {
		EXPECT_EQ(-FI_EAGAIN, sleep_in_read(&e, ms));
	});
	const uint64_t more = fi_cntr_read(rx()->rx_cntr) + 1;
	ends_in_time("fi_cntr_wait", [&](int ms) {
		EXPECT_EQ(-FI_ETIMEDOUT, fi_cntr_wait(rx()->rx_cntr, more, ms));
	});
	EXPECT_EQ(0u, fi_cntr_readerr(rx()->rx_cntr));
	ends_in_time("fi_eq_sread", [&](int ms) {
		EXPECT_EQ(-FI_EAGAIN, fi_eq_sread(rx()->eq, &kind, &event,
						  sizeof(event), ms, 0));
	});
}

} // namespace

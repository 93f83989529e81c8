/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals belong to the application: the provider installs no handler, leaves
 * the mask of its callers alone, and its own threads take no signal.
 */
#include <csignal>
#include <cstdio>
#include <ctime>
#include <set>
#include <string>

#include "tests/harness/entries.h"
#include "tests/harness/fixture.h"

namespace
{

volatile sig_atomic_t ticks;

void tick(int)
{
	ticks = ticks + 1;
}

/* SIGUSR2 each millisecond, to a handler without SA_RESTART. */
class Ticking
{
public:
	Ticking()
	{
		struct sigaction sa = {};
		struct sigevent how = {};
		struct itimerspec each = {};

		ticks = 0;
		sa.sa_handler = tick;
		EXPECT_EQ(0, sigaction(SIGUSR2, &sa, &saved_));
		how.sigev_notify = SIGEV_SIGNAL;
		how.sigev_signo = SIGUSR2;
		EXPECT_EQ(0, timer_create(CLOCK_MONOTONIC, &how, &timer_));
		each.it_value.tv_nsec = each.it_interval.tv_nsec = 1000000;
		EXPECT_EQ(0, timer_settime(timer_, 0, &each, nullptr));
	}

	~Ticking()
	{
		struct sigaction none = {};

		EXPECT_EQ(0, timer_delete(timer_));
		none.sa_handler = SIG_IGN; /* drops one that is pending */
		sigaction(SIGUSR2, &none, nullptr);
		EXPECT_EQ(0, sigaction(SIGUSR2, &saved_, nullptr));
	}

private:
	struct sigaction saved_;
	timer_t timer_;
};

/* The handler of each signal, its flags, and whether the caller blocks it, as text. */
std::string signals()
{
	std::string all;
	sigset_t mask;

	EXPECT_EQ(0, pthread_sigmask(SIG_SETMASK, nullptr, &mask));
	for (int s = 1; s < SIGRTMAX; s++) {
		struct sigaction sa = {};
		char line[128];

		if (sigaction(s, nullptr, &sa))
			continue; /* the C library's own */
		snprintf(line, sizeof(line), "%d %p %x %d\n", s,
			 reinterpret_cast<void *>(sa.sa_handler),
			 static_cast<unsigned>(sa.sa_flags),
			 sigismember(&mask, s));
		all += line;
	}
	return all;
}

/* The signals that thread @task blocks: bit n is signal n + 1. */
unsigned long long blocked(const std::string &task)
{
	std::string path = "/proc/self/task/" + task + "/status";
	unsigned long long mask = 0;
	FILE *f = fopen(path.c_str(), "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "SigBlk: %llx", &mask);
	if (f)
		fclose(f);
	return mask;
}

class Signals : public Case
{
protected:
	/* One message of each kind from each sender. */
	void exchange_all()
	{
		for (auto *from : senders()) {
			for (size_t len :
			     { 0, 1, 100, 4000, 70000, 300000, 2 << 20 })
				OK(exchange(from, len));
		}
	}

	void exchange(struct tdt_ep *from, size_t len)
	{
		Bytes out = filled(len, 3), in(len);
		struct iovec ov = iov_of(out.data(), len);
		struct iovec iv = iov_of(in.data(), len);

		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 1, 0, &in));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
		OK(done(from, &out, FI_SEND | FI_TAGGED));
		EXPECT_EQ(out, in);
	}

	/* Threads that came since @before take no signal. Returns their number. */
	size_t threads_since(const std::set<std::string> &before)
	{
		size_t n = 0;

		for (const std::string &task : tdt_entries("/proc/self/task")) {
			if (before.count(task))
				continue;
			n++;
			for (int s = 1; s < 32; s++) {
				if (s == SIGKILL || s == SIGSTOP)
					continue;
				EXPECT_TRUE(blocked(task) >> (s - 1) & 1)
					<< "signal " << s;
			}
		}
		return n;
	}
};

TEST_F(Signals, O11_AreTheApplicationsAlone)
{
	/* A timer whose handler interrupts each system call harms nothing. */
	const uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	for (enum fi_progress mode : { FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO }) {
		const std::set<std::string> threads =
			tdt_entries("/proc/self/task");
		Ticking ticking;
		const std::string before = signals();

		attr.progress = mode;
		attr.wait = attr.cntr_wait = attr.eq_wait = FI_WAIT_FD;
		attr.cntrs = attr.eq = 1;
		OPEN();
		EXPECT_EQ(before, signals());
		do {
			OK(exchange_all());
			EXPECT_EQ(before, signals());
		} while (ticks < 100 && tdt_now_ms() < end);
		EXPECT_LE(100, ticks);
		size_t own = threads_since(threads);
		if (mode == FI_PROGRESS_AUTO &&
		    !strcmp(tdt_prov_name(), "tandem")) {
			EXPECT_NE(0u, own);
		}
		close();
		EXPECT_EQ(before, signals());
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injects survive their sender: fi_tandem(7), LOCALITY, fi_close(3).
 * Senders are processes of their own, which close and end before the receiver
 * has posted a receive.
 */
#include <csignal>

#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

enum {
	LEN = 4096,
	/* More than FI_TANDEM_UNEXP_MAX of the receiver has room for. */
	FULL = 300,
	MORE = 10,
	REGION = MORE * LEN,
	/* fi_tandem(7), LIMITS: the longest wait of fi_close. */
	MOST_MS = 60000,
};

const uint64_t KEY = 0x1eaf;

/* An order of the receiver to its sender. */
struct Order {
	/* 's': send, 't': send what is taken at once, 'w': write, 'g': greet,
	 * 'c': close. */
	char what;
	uint32_t from, to;
};

struct tdt_world *sender_world(int fd, fi_addr_t *to)
{
	const char *arg = getenv("TDT_ARG");
	struct tdt_world *w = nullptr;
	struct fi_info *hints, *info;
	struct tdt_attr attr;

	tdt_attr_init(&attr);
	attr.caps = FI_MSG | FI_TAGGED | FI_RMA;
	attr.eps = 1;
	attr.no_tcp_only = !arg || strcmp(arg, "tcp");
	attr.no_enable = 1;
	if (tdt_world_open(&attr, &w))
		return nullptr;
	hints = tdt_hints(&attr);
	hints->tx_attr->inject_size = LEN;
	if (fi_getinfo(TDT_API, attr.node, attr.service, FI_SOURCE, hints,
		       &info))
		return nullptr;
	*w->info->tx_attr = *info->tx_attr;
	fi_freeinfo(info);
	fi_freeinfo(hints);
	if (tdt_ep_close(&w->eps[0]) || tdt_ep_open(&w->eps[0]) ||
	    tdt_ep_enable(&w->eps[0]))
		return nullptr;
	if (tdt_tell_name(fd, &w->eps[0]) || tdt_hear_name(fd, &w->eps[0], to))
		return nullptr;
	return w;
}

/* A message with a completion: the path is agreed then. */
int greet(struct tdt_world *w, fi_addr_t to)
{
	struct tdt_op op = op_of(TDT_SEND, 0, w, 1);

	op.addr = to;
	op.context = w;
	return tdt_post(&w->eps[0], &op) || tdt_wait(&w->eps[0], w, nullptr);
}

/* Inject message or write @i; repeat the call while it says -FI_EAGAIN. */
int put(struct tdt_world *w, fi_addr_t to, char what, uint32_t i)
{
	const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	static char buf[LEN];
	ssize_t ret;

	tdt_fill(buf, LEN, i);
	do {
		ret = what == 'w' ? fi_inject_write(w->eps[0].ep, buf, LEN, to,
						    (uint64_t)i * LEN, KEY) :
		      i % 2	  ? fi_tinject(w->eps[0].ep, buf, LEN, to, i) :
			      fi_tinjectdata(w->eps[0].ep, buf, LEN, i, to, i);
	} while (ret == -FI_EAGAIN && what != 't' && tdt_now_ms() < end);
	memset(buf, 0x77, LEN);
	return (int)ret;
}

TDT_ROLE(leaver)
{
	struct Order order;
	fi_addr_t to;
	struct tdt_world *w = sender_world(fd, &to);

	(void)arg;
	if (!w || greet(w, to))
		return 1;
	while (tdt_hear(fd, &order, sizeof(order)) == sizeof(order)) {
		int ret = 0;

		if (order.what == 'g')
			ret = greet(w, to);
		for (uint32_t i = order.from; !ret && i < order.to; i++)
			ret = put(w, to, order.what, i);
		if (order.what == 't' && ret == -FI_EAGAIN)
			ret = 0;
		if (order.what == 'c') {
			uint64_t ms = tdt_now_ms();

			ret = fi_close(&w->eps[0].ep->fid);
			w->eps[0].ep = nullptr;
			ms = tdt_now_ms() - ms;
			tdt_tell(fd, &ms, sizeof(ms));
			return ret ? 2 : tdt_world_close(w);
		}
		tdt_tell(fd, &ret, sizeof(ret));
	}
	return 3;
}

class Leave : public Case
{
protected:
	struct tdt_child child = { 0, -1 };
	struct fid_mr *mr = nullptr;
	Bytes region = Bytes(REGION);

	void TearDown() override
	{
		tdt_child_kill(&child, SIGKILL);
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		mr = nullptr;
		unsetenv("FI_TANDEM_UNEXP_MAX");
		unsetenv("FI_TANDEM_PEER_TIMEOUT");
		Case::TearDown();
	}

	void start(const char *tier)
	{
		fi_addr_t peer;
		char in;

		ASSERT_EQ(0, tdt_child_start(&child, "leaver", tier));
		ASSERT_EQ(0, tdt_hear_name(child.fd, rx(), &peer));
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_tell_name(child.fd, rx()));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
	}

	void open_region()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA;
		OPEN();
		ASSERT_EQ(0,
			  fi_mr_reg(rx()->domain, region.data(), region.size(),
				    FI_REMOTE_WRITE, 0, KEY, 0, &mr, nullptr));
	}

	void tell(char what, uint32_t from = 0, uint32_t to = 0)
	{
		struct Order order;

		memset(&order, 0, sizeof(order));
		order.what = what;
		order.from = from;
		order.to = to;
		ASSERT_EQ(0, tdt_tell(child.fd, &order, sizeof(order)));
	}

	/* Have messages [@from, @to) sent; make progress meanwhile, or not. */
	void sent(uint32_t from, uint32_t to, bool progress, char what = 's')
	{
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t n = -EAGAIN;
		int ret = -1;

		OK(tell(what, from, to));
		while (progress && n == -EAGAIN && tdt_now_ms() < end) {
			tdt_progress(w);
			n = tdt_hear_now(child.fd, &ret, sizeof(ret));
		}
		if (!progress)
			n = tdt_hear(child.fd, &ret, sizeof(ret));
		ASSERT_EQ(static_cast<ssize_t>(sizeof(ret)), n);
		ASSERT_EQ(0, ret);
	}

	/* All that was sent has left its process. */
	void greeted()
	{
		char in;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		OK(sent(0, 0, true, 'g'));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
	}

	/* The sender closes and its process ends. Out: how long fi_close
	 * took. */
	void gone(bool progress, uint64_t *ms = nullptr)
	{
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		uint64_t took = 0;
		ssize_t n = -EAGAIN;

		OK(tell('c'));
		while (progress && n == -EAGAIN && tdt_now_ms() < end) {
			tdt_progress(w);
			n = tdt_hear_now(child.fd, &took, sizeof(took));
		}
		if (!progress)
			n = tdt_hear(child.fd, &took, sizeof(took));
		ASSERT_EQ(static_cast<ssize_t>(sizeof(took)), n);
		ASSERT_EQ(0, tdt_child_wait(&child));
		if (ms)
			*ms = took;
	}

	/* Receive messages [0, @n), in the order they were sent. */
	void take(uint32_t n)
	{
		Bytes in(LEN);
		struct iovec v = iov_of(in.data(), in.size());

		for (uint32_t i = 0; i < n; i++) {
			struct tdt_comp c;

			std::fill(in.begin(), in.end(), 0);
			SCOPED_TRACE(i);
			ASSERT_EQ(0, tdt_trecv(rx(), &v, 0, ~0ull, &in));
			OK(done(rx(), &in,
				FI_RECV | FI_TAGGED |
					(i % 2 ? 0 : FI_REMOTE_CQ_DATA),
				&c));
			EXPECT_EQ(i, c.tag);
			ASSERT_EQ(-1, tdt_differs(in.data(), LEN, i)) << i;
		}
	}

	/* The tiers the path has. */
	std::vector<const char *> tiers()
	{
		if (tdt_path() == TDT_MIXED)
			return { nullptr, "tcp" };
		return { nullptr };
	}
};

TEST_F(Leave, InjectsArriveAlthoughTheirProcessHasEnded)
{
	/* fi_msg(3) 2.1, fi_inject 1: the buffer is the caller's when the call
	 * returns, so nothing depends on the caller any more. The receiver is
	 * full, so they were announced; it neither posts a receive nor makes
	 * progress until the sender's process has ended. */
	ONLY_TANDEM();
	setenv("FI_TANDEM_UNEXP_MAX", "1048576", 1);
	for (const char *tier : tiers()) {
		OPEN();
		OK(start(tier));
		OK(sent(0, FULL, true));
		OK(greeted());
		OK(sent(FULL, FULL + MORE, false));
		OK(gone(false));
		OK(take(FULL + MORE));
		close();
	}
}

TEST_F(Leave, InjectsOfAnySumArriveWhileTheReceiverMakesProgress)
{
	/* The same; the sender closes while most of them are in its process.
	 * Over TCP closing takes until the receiver's host has them. */
	ONLY_TANDEM();
	setenv("FI_TANDEM_UNEXP_MAX", "1048576", 1);
	for (const char *tier : tiers()) {
		OPEN();
		OK(start(tier));
		OK(sent(0, 4 * FULL, true));
		OK(gone(true));
		OK(take(4 * FULL));
		close();
	}
}

TEST_F(Leave, InjectedWritesArriveToo)
{
	/* fi_rma(3) 2.1, fi_inject_write 1: the buffer is the caller's at
	 * return. They are many for a target that makes no progress, so some
	 * are announced. */
	ONLY_TANDEM();
	for (const char *tier : tiers()) {
		OK(open_region());
		OK(start(tier));
		OK(sent(0, MORE, false, 'w'));
		OK(gone(false));
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		for (uint32_t i = 0; i < MORE; i++) {
			while (tdt_differs(&region[i * LEN], LEN, i) != -1) {
				ASSERT_LT(tdt_now_ms(), end) << i;
				tdt_progress(w);
			}
		}
		EXPECT_EQ(0, fi_close(&mr->fid));
		mr = nullptr;
		close();
	}
}

TEST_F(Leave, AStoppedReceiverHoldsUpForALimitedTime)
{
	/* fi_tandem(7), LOCALITY: fi_close waits for the peer's host, up to
	 * FI_TANDEM_PEER_TIMEOUT. The receiver makes no progress. */
	ONLY_TANDEM();
	setenv("FI_TANDEM_UNEXP_MAX", "1048576", 1);
	setenv("FI_TANDEM_PEER_TIMEOUT", "2", 1);
	for (const char *tier : tiers()) {
		uint64_t ms;

		OPEN();
		OK(start(tier));
		OK(sent(0, FULL, true));
		OK(greeted());
		OK(sent(FULL, 2 * FULL, false, 't'));
		OK(gone(false, &ms));
		EXPECT_GT(uint64_t(MOST_MS), ms);
		close();
	}
}

TEST_F(Leave, ADeadReceiverHoldsUpNobody)
{
	/* The same: nobody waits for a process that is gone. */
	ONLY_TANDEM();
	setenv("FI_TANDEM_UNEXP_MAX", "1048576", 1);
	setenv("FI_TANDEM_PEER_TIMEOUT", "86400", 1);
	for (const char *tier : tiers()) {
		uint64_t ms;

		OPEN();
		OK(start(tier));
		OK(sent(0, 2 * FULL, true));
		EXPECT_EQ(0, fi_close(&rx()->ep->fid));
		rx()->ep = nullptr;
		OK(gone(false, &ms));
		EXPECT_GT(uint64_t(MOST_MS), ms);
		close();
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_THREAD_SAFE: eight threads, each with another kind of call, on the same
 * endpoints, queues, vectors and domains.
 */
#include <atomic>
#include <thread>

#include <netinet/in.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

enum { JOBS = 8, EACH = 200, WORDS = 64 };

/* An operation: @error is how it must end, and @ended how often it did. */
struct Posted {
	int error = 0;
	std::atomic<int> ended{ 0 };
};

class ThreadSafe : public Case
{
protected:
	struct tdt_ep *from = nullptr;
	struct fid_mr *mr = nullptr;
	uint64_t memory[WORDS] = {};
	std::atomic<int> wrong{ 0 };
	uint64_t end = 0;

	ThreadSafe()
	{
		attr.caps |= FI_RMA | FI_ATOMIC;
		attr.threading = FI_THREAD_SAFE;
		attr.wait = attr.cntr_wait = FI_WAIT_FD;
		attr.cntrs = 1;
	}

	/* Each thread calls it; what is wrong is counted. */
	void expect(bool right)
	{
		wrong += !right;
	}

	void ended(void *context, int error)
	{
		auto *p = static_cast<Posted *>(context);

		expect(p && p->error == error);
		if (p)
			p->ended++;
	}

	void look(struct fid_cq *cq)
	{
		struct fi_cq_tagged_entry e = {};
		struct fi_cq_err_entry err = {};
		ssize_t n = fi_cq_read(cq, &e, 1);

		if (n == 1)
			ended(e.op_context, 0);
		else if (n == -FI_EAVAIL &&
			 (n = fi_cq_readerr(cq, &err, 0)) == 1)
			ended(err.op_context, err.err);
		else
			expect(n == -FI_EAGAIN);
	}

	void look_at_all()
	{
		for (struct tdt_ep *at : { rx(), from }) {
			look(at->rx_cq);
			look(at->tx_cq);
		}
	}

	/* Post by @call, and see to it that the operation ends. */
	void play(Posted &p, const std::function<ssize_t()> &call)
	{
		ssize_t ret;

		while ((ret = call()) == -FI_EAGAIN && tdt_now_ms() < end)
			look_at_all();
		expect(!ret);
		while (!ret && !p.ended && tdt_now_ms() < end)
			look_at_all();
	}

	void job(int number, Posted &p, uint64_t i);
	void one_sided(int number, Posted &p, uint64_t i);
	void withdrawn(Posted &p);
	void peeked(Posted &p);
	void address();
	void region(uint64_t i);
	void run();
};

void ThreadSafe::one_sided(int number, Posted &p, uint64_t i)
{
	fi_addr_t to = addr(from, rx());
	uint64_t word = number == 2 ? 1 : i, old = 0;

	play(p, [&] {
		if (number == 0)
			return fi_write(from->ep, &word, 8, nullptr, to, 8, 1,
					&p);
		if (number == 1)
			return fi_read(from->ep, &old, 8, nullptr, to, 16, 1,
				       &p);
		return fi_fetch_atomic(from->ep, &word, 1, nullptr, &old,
				       nullptr, to, 0, 1, FI_UINT64, FI_SUM,
				       &p);
	});
	expect(old == (number == 0 ? 0 : number == 1 ? 16u : i));
}

void ThreadSafe::withdrawn(Posted &p)
{
	char in = 0;

	p.error = FI_ECANCELED;
	play(p, [&] {
		ssize_t ret = fi_trecv(rx()->ep, &in, 1, nullptr,
				       FI_ADDR_UNSPEC, 3, 0, &p);

		if (!ret)
			expect(!fi_cancel(&rx()->ep->fid, &p));
		return ret;
	});
}

void ThreadSafe::peeked(Posted &p)
{
	struct fi_msg_tagged m = {};

	p.error = FI_ENOMSG;
	m.addr = FI_ADDR_UNSPEC;
	m.tag = 4;
	m.context = &p;
	play(p, [&] { return fi_trecvmsg(rx()->ep, &m, FI_PEEK); });
}

void ThreadSafe::address()
{
	struct sockaddr_in sin;
	fi_addr_t third = FI_ADDR_NOTAVAIL;

	memcpy(&sin, rx()->name, sizeof(sin));
	sin.sin_port = htons(1);
	expect(fi_av_insert(from->av, &sin, 1, &third, 0, nullptr) == 1);
	expect(!fi_av_remove(from->av, &third, 1, 0));
}

void ThreadSafe::region(uint64_t i)
{
	struct fid_mr *own = nullptr;

	expect(!fi_mr_reg(rx()->domain, memory, sizeof(memory),
			  FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 100 + i, 0, &own,
			  nullptr));
	expect(own && !fi_close(&own->fid));
}

void ThreadSafe::job(int number, Posted &p, uint64_t i)
{
	switch (number) {
	case 3:
		return withdrawn(p);
	case 4:
		return peeked(p);
	case 5:
		p.ended = 1;
		return address();
	case 6:
		p.ended = 1;
		return region(i);
	case 7:
		p.ended = 1;
		expect(!fi_cq_signal(rx()->rx_cq));
		look_at_all();
		expect(fi_cntr_readerr(from->tx_cntr) == 0);
		return expect(fi_cntr_read(from->tx_cntr) <= 3 * EACH);
	default:
		return one_sided(number, p, i);
	}
}

void ThreadSafe::run()
{
	std::vector<Posted> posted(JOBS * EACH);
	std::vector<std::thread> all;
	const uint64_t before = fi_cntr_read(from->tx_cntr);

	memset(memory, 0, sizeof(memory));
	memory[2] = 16;
	for (int number = 0; number < JOBS; number++) {
		all.emplace_back([&, number] {
			for (uint64_t i = 0; i < EACH; i++)
				job(number, posted[(size_t)number * EACH + i],
				    i);
		});
	}
	for (auto &t : all)
		t.join();
	EXPECT_EQ(0, wrong);
	for (size_t i = 0; i < posted.size(); i++)
		EXPECT_EQ(1, posted[i].ended) << i / EACH;
	EXPECT_EQ(static_cast<uint64_t>(EACH), memory[0]);
	EXPECT_EQ(static_cast<uint64_t>(EACH - 1), memory[1]);
	EXPECT_EQ(before, fi_cntr_read(from->tx_cntr)); /* of sends alone */
}

TEST_F(ThreadSafe, A16_EachKindOfCallBesideTheOthers)
{
	/* fi_domain(3) 2.1, Multi-threading Support (threading) 7:
	 * FI_THREAD_SAFE: any thread may use any object at any time. Each
	 * operation ends once, as it would alone. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	ASSERT_EQ(0, fi_mr_reg(rx()->domain, memory, sizeof(memory),
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr,
			       nullptr));
	end = tdt_now_ms() + tdt_deadline_ms();
	for (auto *sender : senders()) {
		from = sender;
		run();
	}
	EXPECT_EQ(0, fi_close(&mr->fid));
}

TEST_F(ThreadSafe, A16_OneOfTwoReadersGetsAnErrorEntry)
{
	/* fi_cq(3) 2.1, fi_cq_readerr: an entry is read once; who comes second
	 * gets -FI_EAGAIN. */
	OPEN();
	for (int round = 0; round < 200; round++) {
		struct fi_cq_tagged_entry e;
		struct fi_msg_tagged m = {};
		std::atomic<int> there{ 0 };
		ssize_t got[2] = { 0, 0 };
		std::vector<std::thread> two;

		m.addr = FI_ADDR_UNSPEC;
		m.context = &m;
		ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m, FI_PEEK));
		ASSERT_EQ(-FI_EAVAIL, keep_on([&]() -> ssize_t {
			return fi_cq_read(rx()->rx_cq, &e, 1);
		}));
		for (ssize_t &result : got) {
			two.emplace_back([&] {
				struct fi_cq_err_entry err = {};

				there++;
				while (there < 2)
					std::this_thread::yield();
				result = fi_cq_readerr(rx()->rx_cq, &err, 0);
				EXPECT_TRUE(result != 1 ||
					    (err.err == FI_ENOMSG &&
					     err.op_context == &m));
			});
		}
		for (auto &t : two)
			t.join();
		EXPECT_EQ(1, std::max(got[0], got[1])) << round;
		EXPECT_EQ(-FI_EAGAIN, std::min(got[0], got[1])) << round;
	}
}

} // namespace

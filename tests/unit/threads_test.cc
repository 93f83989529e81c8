/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two endpoints, each driven by a thread of its own, as two processes would
 * be; over shared memory through one mapping of each segment, so that the
 * thread sanitizer sees what one side writes and the other reads. And many
 * threads on one endpoint (FI_THREAD_SAFE).
 */
#include <atomic>
#include <thread>
#include <vector>

#include "tests/harness/fixture.h"

extern "C" {
#include "base/env.h"
#include "tests/harness/one_map.h"
struct fi_provider *fi_prov_ini(void);
}

namespace
{

struct Mode {
	const char *name;
	enum tdm_shm_mode shm;
	int cma;
};

class Threads : public testing::TestWithParam<Mode>
{
protected:
	struct fi_provider *prov = fi_prov_ini();
	struct tdm_env saved = tdm_env;
	struct tdt_world *w[2] = { nullptr, nullptr };

	void SetUp() override
	{
		tdm_env.shm = GetParam().shm;
		tdm_env.cma = GetParam().cma;
		tdt_one_map_install();
		for (auto &one : w) {
			struct tdt_attr attr;

			tdt_attr_init(&attr);
			attr.eps = 1;
			attr.prov = prov;
			attr.no_tcp_only = 1;
			ASSERT_EQ(0, tdt_world_open(&attr, &one))
				<< tdt_error();
		}
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(1,
				  fi_av_insert(ep(i)->av, ep(!i)->name, 1,
					       &ep(i)->peers[1], 0, nullptr));
		}
	}

	void TearDown() override
	{
		for (auto &one : w) {
			if (one) {
				EXPECT_EQ(0, tdt_world_close(one))
					<< tdt_error();
			}
		}
		tdt_one_map_remove();
		tdm_env = saved;
	}

	struct tdt_ep *ep(int i)
	{
		return &w[i]->eps[0];
	}

	/* Keep the other side's operations going until both are done. */
	void linger(int i, std::atomic<int> &done)
	{
		done++;
		while (done < 2)
			tdt_progress(w[i]);
	}
};

TEST_P(Threads, ExchangeInBothDirections)
{
	/* Under the thread sanitizer: no data race is reported. */
	static const size_t sizes[] = { 0,    1,     48, 49,  500, 4000,
					9000, 70000, 8,	 300, 1,   200000 };
	const int rounds = 60;
	std::atomic<int> done(0);

	auto side = [&](int i) {
		for (int k = 0; k < rounds; k++) {
			for (size_t len : sizes) {
				uint32_t seed = static_cast<uint32_t>(k + i);
				Bytes out = filled(len, seed), in(len);
				struct iovec iv = iov_of(in.data(), len);
				struct tdt_op op =
					op_of(TDT_SEND, 1, out.data(), len);

				op.addr = ep(i)->peers[1];
				op.tag = len;
				op.context = &out;
				EXPECT_EQ(0, tdt_post(ep(i), &op));
				EXPECT_EQ(0,
					  tdt_trecv(ep(i), &iv, len, 0, &in));
				EXPECT_EQ(0, tdt_wait(ep(i), &in, nullptr));
				EXPECT_EQ(0, tdt_wait(ep(i), &out, nullptr));
				EXPECT_EQ(-1, tdt_differs(in.data(), len,
							  (uint32_t)(k + !i)));
			}
		}
		linger(i, done);
	};
	std::thread a(side, 0), b(side, 1);
	a.join();
	b.join();
	if (GetParam().shm != TDM_SHM_OFF) {
		EXPECT_NE(0u, tdt_one_map_shared());
	}
}

TEST_P(Threads, FloodOneWay)
{
	/* The ring fills, grows and wraps around; nothing is lost. */
	const uint32_t n = 20000;
	std::atomic<int> done(0);

	auto sender = [&] {
		for (uint32_t i = 0; i < n; i++) {
			struct tdt_op op = op_of(TDT_INJECT, 0, &i, sizeof(i));

			op.addr = ep(0)->peers[1];
			ASSERT_EQ(0, tdt_post(ep(0), &op));
		}
		linger(0, done);
	};
	auto receiver = [&] {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t in = ~0u;

			ASSERT_EQ(0, tdt_recv(ep(1), &in, sizeof(in), &in));
			ASSERT_EQ(0, tdt_wait(ep(1), &in, nullptr));
			ASSERT_EQ(i, in);
		}
		linger(1, done);
	};
	std::thread a(sender), b(receiver);
	a.join();
	b.join();
}

TEST_P(Threads, ManyUseOneEndpoint)
{
	/* fi_domain(3) 2.1, Multi-threading Support (threading) 7:
	 * FI_THREAD_SAFE: any thread may use any object at any time. */
	const int threads = 4, n = 300;
	std::atomic<int> sent(0), received(0);

	/* Contexts tell the direction: even for sends, odd for receives. */
	auto reader = [&](int i) {
		struct fi_cq_tagged_entry e[4];
		ssize_t k;

		for (struct fid_cq *cq : { ep(i)->tx_cq, ep(i)->rx_cq }) {
			while ((k = fi_cq_read(cq, e, 4)) > 0) {
				if (cq == ep(i)->tx_cq)
					sent += static_cast<int>(k);
				else
					received += static_cast<int>(k);
			}
			ASSERT_EQ(-FI_EAGAIN, k);
		}
	};
	auto worker = [&](int t) {
		std::vector<Bytes> bufs(n, Bytes(t % 2 ? 4000 : 40));
		const char out[40] = { 0 };
		int side = t & 1;

		for (int i = 0; i < n; i++) {
			ssize_t ret;

			while ((ret = fi_recv(ep(!side)->ep, bufs[i].data(),
					      bufs[i].size(), nullptr,
					      FI_ADDR_UNSPEC, nullptr)) ==
			       -FI_EAGAIN)
				reader(!side);
			ASSERT_EQ(0, ret);
			while ((ret = fi_send(ep(side)->ep, out, sizeof(out),
					      nullptr, ep(side)->peers[1],
					      nullptr)) == -FI_EAGAIN) {
				reader(side);
				reader(!side);
			}
			ASSERT_EQ(0, ret);
			reader(i & 1);
		}
		/* The buffers stay until all receives have ended. */
		while (sent < threads * n || received < threads * n) {
			reader(0);
			reader(1);
		}
	};
	std::vector<std::thread> list;

	for (int t = 0; t < threads; t++)
		list.emplace_back(worker, t);
	for (auto &t : list)
		t.join();
	EXPECT_EQ(threads * n, sent);
	EXPECT_EQ(threads * n, received);
}

INSTANTIATE_TEST_SUITE_P(Paths, Threads,
			 testing::Values(Mode{ "cma", TDM_SHM_AUTO, 1 },
					 Mode{ "bounce", TDM_SHM_AUTO, 0 },
					 Mode{ "tcp", TDM_SHM_OFF, 0 }),
			 [](const testing::TestParamInfo<Mode> &p) {
				 return p.param.name;
			 });

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scalable endpoints, fi_endpoint(3) "SCALABLE ENDPOINTS", and fi_rx_addr of
 * fi_av(3). One receives, those of the world's other domains send.
 */
#include <netinet/in.h>

#include <atomic>
#include <thread>

#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include "parts.h"

namespace
{

/* A scalable endpoint in the domain of one of the world's endpoints. */
struct Sep {
	static const int N = 3, BITS = 2;
	struct tdt_ep *home = nullptr;
	struct fid_ep *ep = nullptr, *tx[N] = {}, *rx[N] = {};
	struct fid_cq *txq[N] = {}, *rxq[N] = {};
	struct fid_cntr *sent = nullptr, *got = nullptr;
	struct fid_av *av = nullptr;
	fi_addr_t peer = FI_ADDR_NOTAVAIL; /* the receiver */
};

class Scalable : public Parts
{
protected:
	std::vector<Sep> seps; /* [0] receives */

	Scalable()
	{
		attr.caps |= FI_NAMED_RX_CTX | FI_RMA;
	}

	void raise(bool with_rx = true)
	{
		OPEN();
		seps.resize(w->count);
		for (size_t i = 0; i < w->count; i++)
			ASSERT_NO_FATAL_FAILURE(open_sep(&seps[i], ep(i)));
		for (size_t i = 0; i < w->count; i++) {
			for (int k = 0; k < Sep::N; k++) {
				ASSERT_NO_FATAL_FAILURE(open_tx(&seps[i], k));
				if (with_rx) {
					ASSERT_NO_FATAL_FAILURE(
						open_rx(&seps[i], k));
				}
			}
			ASSERT_EQ(0, fi_enable(seps[i].ep));
		}
		for (size_t i = 1; i < w->count; i++)
			seps[i].peer = insert(seps[i].av, seps[0].ep);
	}

	void open_sep(Sep *s, struct tdt_ep *home)
	{
		struct fi_info *n = info([](struct fi_info *i) {
			i->ep_attr->tx_ctx_cnt = Sep::N;
			i->ep_attr->rx_ctx_cnt = Sep::N;
		});

		s->home = home;
		s->av = av(home->domain, Sep::BITS);
		for (int k = 0; k < Sep::N; k++) {
			s->txq[k] = cq(home->domain);
			s->rxq[k] = cq(home->domain);
		}
		ASSERT_EQ(0, fi_scalable_ep(home->domain, n, &s->ep, nullptr));
		fi_freeinfo(n);
		made.push_back(&s->ep->fid);
		tier_of(home, s->ep);
		ASSERT_EQ(0, fi_scalable_ep_bind(s->ep, &s->av->fid, 0));
	}

	void open_tx(Sep *s, int k)
	{
		ASSERT_EQ(0,
			  fi_tx_context(s->ep, k, nullptr, &s->tx[k], nullptr));
		made.push_back(&s->tx[k]->fid);
		ASSERT_EQ(0,
			  fi_ep_bind(s->tx[k], &s->txq[k]->fid, FI_TRANSMIT));
		ASSERT_EQ(0, fi_enable(s->tx[k]));
	}

	void open_rx(Sep *s, int k)
	{
		ASSERT_EQ(0,
			  fi_rx_context(s->ep, k, nullptr, &s->rx[k], nullptr));
		made.push_back(&s->rx[k]->fid);
		ASSERT_EQ(0, fi_ep_bind(s->rx[k], &s->rxq[k]->fid, FI_RECV));
		ASSERT_EQ(0, fi_enable(s->rx[k]));
	}

	static fi_addr_t named(const Sep &from, int k)
	{
		return fi_rx_addr(from.peer, k, Sep::BITS);
	}

	/* One message from @from's context @i to the receiver's @k. */
	void message(Sep &from, int i, int k, size_t len, bool tagged,
		     bool expected)
	{
		Bytes out = filled(len, (uint32_t)(i * 8 + k)), in(len);
		uint64_t tag = tagged ? 77 : 0;
		Entry x;
		auto post = [&] {
			ASSERT_EQ(0, tagged ? fi_trecv(seps[0].rx[k], in.data(),
						       len, nullptr,
						       FI_ADDR_UNSPEC, tag, 0,
						       &in) :
					      fi_recv(seps[0].rx[k], in.data(),
						      len, nullptr,
						      FI_ADDR_UNSPEC, &in));
		};

		if (expected)
			post();
		ASSERT_EQ(0, tagged ? fi_tsend(from.tx[i], out.data(), len,
					       nullptr, named(from, k), tag,
					       &out) :
				      fi_send(from.tx[i], out.data(), len,
					      nullptr, named(from, k), &out))
			<< "the context has room, so the send is taken";
		if (!expected) {
			tdt_settle(w, 5);
			post();
		}
		x = next(seps[0].rxq[k]);
		ASSERT_EQ(1, x.ret);
		EXPECT_EQ(&in, x.e.op_context);
		EXPECT_EQ(len, x.e.len);
		EXPECT_EQ(tag, x.e.tag);
		EXPECT_EQ(-1,
			  tdt_differs(in.data(), len, (uint32_t)(i * 8 + k)));
		x = next(from.txq[i]);
		ASSERT_EQ(1, x.ret);
		EXPECT_EQ(&out, x.e.op_context);
		EXPECT_EQ(uint64_t(FI_SEND | (tagged ? FI_TAGGED : FI_MSG)),
			  x.e.flags);
	}

	void all_empty()
	{
		tdt_progress(w);
		for (Sep &s : seps) {
			for (int k = 0; k < Sep::N; k++) {
				empty(s.txq[k]);
				empty(s.rxq[k]);
			}
		}
	}
};

TEST_F(Scalable, EachContextReachesEachContext)
{
	/* fi_av(3) 2.1, fi_rx_addr 1: The address has a receive context of the
	 * target. Matching and completions are the context's. */
	OK(raise());
	for (size_t s = 1; s < seps.size(); s++) {
		for (size_t len : { size_t(0), size_t(8), size_t(3000),
				    size_t(20000), size_t(300000) }) {
			for (int i = 0; i < Sep::N; i++) {
				for (int k = 0; k < Sep::N; k++) {
					OK(message(seps[s], i, k, len, i == k,
						   (i + k) % 2));
				}
			}
		}
	}
	all_empty();
}

TEST_F(Scalable, MessagesWaitForAContextThatIsNotOpenYet)
{
	char out = 9, in = 0;

	OK(raise(false));
	for (size_t s = 1; s < seps.size(); s++) {
		for (int k = 0; k < Sep::N; k++) {
			ASSERT_EQ(0, fi_send(seps[s].tx[0], &out, 1, nullptr,
					     named(seps[s], k), &out));
		}
	}
	tdt_settle(w, 20);
	for (int k = 0; k < Sep::N; k++) {
		OK(open_rx(&seps[0], k));
		for (size_t s = 1; s < seps.size(); s++) {
			ASSERT_EQ(0, fi_recv(seps[0].rx[k], &in, 1, nullptr,
					     FI_ADDR_UNSPEC, &in));
			EXPECT_EQ(1, next(seps[0].rxq[k]).ret);
		}
	}
}

TEST_F(Scalable, OrderWithinAContext)
{
	/* FI_ORDER_SAS per context, while sends to others go between. */
	const int COUNT = 400;
	std::vector<int> out(COUNT * Sep::N), in(COUNT * Sep::N, -1);

	attr.tx_size = 4096;
	OK(raise());
	Sep &from = seps[seps.size() - 1];
	for (int n = 0; n < COUNT; n++) {
		for (int k = 0; k < Sep::N; k++) {
			int at = n * Sep::N + k;

			out[(size_t)at] = n;
			ASSERT_EQ(0, keep_on([&] {
					  return fi_send(from.tx[0],
							 &out[(size_t)at],
							 sizeof(int), nullptr,
							 named(from, k),
							 nullptr);
				  }));
			ASSERT_EQ(0, keep_on([&] {
					  return fi_recv(seps[0].rx[k],
							 &in[(size_t)at],
							 sizeof(int), nullptr,
							 FI_ADDR_UNSPEC,
							 &in[(size_t)at]);
				  }));
		}
	}
	for (int k = 0; k < Sep::N; k++) {
		for (int n = 0; n < COUNT; n++) {
			Entry x = next(seps[0].rxq[k]);
			ASSERT_EQ(1, x.ret);
			ASSERT_EQ(n, *static_cast<int *>(x.e.op_context));
		}
	}
	for (int n = 0; n < COUNT * Sep::N; n++)
		ASSERT_EQ(1, next(from.txq[0]).ret);
	all_empty();
}

TEST_F(Scalable, SourcesAndDirectedReceives)
{
	/* FI_SOURCE gives the address of the scalable endpoint; it is learned
	 * for all contexts when it is inserted. */
	char out = 1, in = 0;
	Entry x;

	OK(raise());
	for (size_t s = 1; s < seps.size(); s++) {
		fi_addr_t src;

		ASSERT_EQ(0, fi_send(seps[s].tx[1], &out, 1, nullptr,
				     named(seps[s], 2), &out));
		ASSERT_EQ(0, fi_send(seps[s].tx[1], &out, 1, nullptr,
				     named(seps[s], 1), &out));
		EXPECT_EQ(1, next(seps[s].txq[1]).ret);
		EXPECT_EQ(1, next(seps[s].txq[1]).ret);
		tdt_settle(w, 20);
		src = insert(seps[0].av, seps[s].ep);
		for (int k : { 1, 2 }) {
			ASSERT_EQ(0, fi_recv(seps[0].rx[k], &in, 1, nullptr,
					     src, &in));
			x = next(seps[0].rxq[k]);
			ASSERT_EQ(1, x.ret);
			EXPECT_EQ(src, x.src);
		}
		EXPECT_EQ(-FI_EINVAL, fi_recv(seps[0].rx[0], &in, 1, nullptr,
					      src + 10, &in));
	}
}

TEST_F(Scalable, AContextThePeerDoesNotHave)
{
	/* At once where the peer is known, else by an error entry. */
	char out = 1;
	Entry x;

	OK(raise());
	for (size_t s = 1; s < seps.size(); s++) {
		ssize_t ret = fi_send(seps[s].tx[0], &out, 1, nullptr,
				      named(seps[s], Sep::N), &out);

		if (!ret) {
			x = next(seps[s].txq[0]);
			ASSERT_EQ(-FI_EAVAIL, x.ret);
			EXPECT_EQ(FI_EADDRNOTAVAIL, x.err.err);
			EXPECT_EQ(&out, x.err.op_context);
		} else {
			EXPECT_EQ(-FI_EADDRNOTAVAIL, ret);
		}
		OK(message(seps[s], 0, 1, 8, false, true));
		EXPECT_EQ(-FI_EADDRNOTAVAIL,
			  fi_send(seps[s].tx[0], &out, 1, nullptr,
				  named(seps[s], Sep::N), &out));
		OK(message(seps[s], 0, 0, 8, false, true));
	}
}

TEST_F(Scalable, WithUsualEndpoints)
{
	/* A usual endpoint names contexts as well, and has one itself. */
	struct tdt_ep *from;
	struct fid_ep *plain;
	struct fid_cq *q;
	struct fi_info *n;
	fi_addr_t to;
	char out = 1, in = 0;
	Entry x;

	OK(raise());
	from = senders()[0];
	q = cq(from->domain);
	n = info();
	ASSERT_EQ(0, fi_endpoint(from->domain, n, &plain, nullptr));
	fi_freeinfo(n);
	made.push_back(&plain->fid);
	ASSERT_EQ(0, fi_ep_bind(plain, &seps[1].av->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(plain, &q->fid, FI_TRANSMIT | FI_RECV));
	ASSERT_EQ(0, fi_enable(plain));
	for (int k : { 0, 2, 2, 1, 0 }) {
		ASSERT_EQ(0, fi_recv(seps[0].rx[k], &in, 1, nullptr,
				     FI_ADDR_UNSPEC, &in));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_send(plain, &out, 1, nullptr,
						 named(seps[1], k), &out);
			  }));
		EXPECT_EQ(1, next(seps[0].rxq[k]).ret);
		EXPECT_EQ(1, next(q).ret);
	}
	to = insert(seps[0].av, plain);
	ASSERT_EQ(0, fi_recv(plain, &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	ASSERT_EQ(0, fi_send(seps[0].tx[2], &out, 1, nullptr, to, &out));
	EXPECT_EQ(1, next(q).ret);
	EXPECT_EQ(1, next(seps[0].txq[2]).ret);
	x.ret = fi_send(seps[0].tx[2], &out, 1, nullptr,
			fi_rx_addr(to, 1, Sep::BITS), &out);
	EXPECT_EQ(-FI_EADDRNOTAVAIL, x.ret);
}

TEST_F(Scalable, InjectCountersAndLevels)
{
	/* Counters of a context count its operations and nothing else. */
	struct fid_cntr *sent, *got;
	char out = 1, in = 0;
	struct iovec iov = iov_of(&out, 1);
	struct fi_msg m;

	OK(raise());
	for (size_t s = 1; s < seps.size(); s++) {
		Sep &from = seps[s];

		sent = cntr(from.home->domain);
		got = cntr(rx()->domain);
		/* Counters are taken late. */
		ASSERT_EQ(0, fi_ep_bind(from.tx[1], &sent->fid, FI_SEND));
		if (s == 1) {
			ASSERT_EQ(0, fi_ep_bind(seps[0].rx[2], &got->fid,
						FI_RECV));
		}
		ASSERT_EQ(0, fi_recv(seps[0].rx[2], &in, 1, nullptr,
				     FI_ADDR_UNSPEC, &in));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_inject(from.tx[1], &out, 1,
						   named(from, 2));
			  }));
		EXPECT_EQ(1, next(seps[0].rxq[2]).ret);
		memset(&m, 0, sizeof(m));
		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = named(from, 2);
		m.context = &out;
		ASSERT_EQ(0, fi_recv(seps[0].rx[2], &in, 1, nullptr,
				     FI_ADDR_UNSPEC, &in));
		ASSERT_EQ(0, fi_sendmsg(from.tx[1], &m, FI_DELIVERY_COMPLETE));
		EXPECT_EQ(1, next(seps[0].rxq[2]).ret);
		EXPECT_EQ(1, next(from.txq[1]).ret);
		EXPECT_EQ(2u, fi_cntr_read(sent));
		if (s == 1) {
			EXPECT_EQ(2u, fi_cntr_read(got));
		}
		empty(from.txq[1]);
	}
}

TEST_F(Scalable, WritesTellTheContext)
{
	/* The remote CQ data of a write goes to the context that is named. */
	char region[64] = "", out[8] = "written";
	struct fid_mr *mr;
	Entry x;

	OK(raise());
	ASSERT_EQ(0, fi_mr_reg(rx()->domain, region, sizeof(region),
			       FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 1, 0, &mr,
			       nullptr));
	for (size_t s = 1; s < seps.size(); s++) {
		for (int k = 0; k < Sep::N; k++) {
			memset(region, 0, sizeof(region));
			ASSERT_EQ(0,
				  fi_writedata(seps[s].tx[k], out, sizeof(out),
					       nullptr, 0xda7a,
					       named(seps[s], k), 8, 1, out));
			x = next(seps[0].rxq[k]);
			ASSERT_EQ(1, x.ret);
			EXPECT_EQ(0xda7au, x.e.data);
			x = next(seps[s].txq[k]);
			ASSERT_EQ(1, x.ret);
			EXPECT_STREQ("written", region + 8);
			memset(out, 0, sizeof(out));
			ASSERT_EQ(0, fi_read(seps[s].tx[k], out, sizeof(out),
					     nullptr, named(seps[s], k), 8, 1,
					     out));
			EXPECT_EQ(1, next(seps[s].txq[k]).ret);
			EXPECT_STREQ("written", out);
		}
	}
	EXPECT_EQ(0, fi_close(&mr->fid));
	all_empty();
}

TEST_F(Scalable, AtomicOperationsOfContexts)
{
	/* Those of all transmit contexts, at all receive contexts, are atomic
	 * with each other; each ends in its own context, also when it was posted
	 * before the path was agreed. */
	const uint64_t one = 1;
	uint64_t region = 0, was[16] = { 0 };
	struct fid_mr *mr;
	Entry x;

	attr.caps |= FI_ATOMIC;
	OK(raise());
	ASSERT_EQ(0, fi_mr_reg(rx()->domain, &region, sizeof(region),
			       FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 1, 0, &mr,
			       nullptr));
	for (size_t s = 1; s < seps.size(); s++) {
		uint64_t before = region;

		for (int k = 0; k < Sep::N; k++) {
			uint64_t injected = 1;

			ASSERT_EQ(0, fi_inject_atomic(seps[s].tx[k], &injected,
						      1, named(seps[s], k), 0,
						      1, FI_UINT64, FI_SUM));
			injected = 1000;
			ASSERT_EQ(0,
				  fi_fetch_atomic(seps[s].tx[k], &one, 1,
						  nullptr, &was[k], nullptr,
						  named(seps[s], k), 0, 1,
						  FI_UINT64, FI_SUM, &was[k]));
		}
		for (int k = 0; k < Sep::N; k++) {
			x = next(seps[s].txq[k]);
			ASSERT_EQ(1, x.ret);
			EXPECT_EQ(&was[k], x.e.op_context);
			EXPECT_EQ(uint64_t(FI_ATOMIC | FI_READ), x.e.flags);
		}
		EXPECT_EQ(before + 2 * Sep::N, region);
	}
	EXPECT_EQ(0, fi_close(&mr->fid));
	all_empty();
}

TEST_F(Scalable, OpeningAndClosing)
{
	/* fi_endpoint(3) 2.1, fi_close 2: A scalable endpoint whose contexts
	 * are open stays open: -FI_EBUSY. */
	struct fid_ep *ctx;
	struct fi_tx_attr ta;
	char b = 0;

	OK(raise());
	Sep &s = seps[0];
	EXPECT_EQ(-FI_EBUSY, fi_close(&s.ep->fid));
	EXPECT_EQ(-FI_EBUSY, fi_tx_context(s.ep, 0, nullptr, &ctx, nullptr));
	EXPECT_EQ(-FI_EBUSY, fi_rx_context(s.ep, 0, nullptr, &ctx, nullptr));
	EXPECT_EQ(-FI_EINVAL,
		  fi_tx_context(s.ep, Sep::N, nullptr, &ctx, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_rx_context(s.ep, -1, nullptr, &ctx, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_send(s.ep, &b, 1, nullptr, 0, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_recv(s.ep, &b, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_recv(s.tx[0], &b, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_send(s.rx[0], &b, 1, nullptr, 0, &b));
	/* One that is closed can be opened again, with less. */
	ASSERT_EQ(0, fi_recv(s.rx[1], &b, 1, nullptr, FI_ADDR_UNSPEC, &b));
	ASSERT_EQ(0, drop(&s.rx[1]->fid));
	OK(open_rx(&s, 1));
	ASSERT_EQ(0, drop(&s.tx[1]->fid));
	memset(&ta, 0, sizeof(ta));
	ta.size = 2;
	ta.caps = FI_MSG;
	ASSERT_EQ(0, fi_tx_context(s.ep, 1, &ta, &ctx, nullptr));
	EXPECT_EQ(2u, ta.size);
	EXPECT_EQ(w->info->tx_attr->inject_size, ta.inject_size)
		<< "what was left open is inherited";
	EXPECT_EQ(-FI_EOPBADSTATE, fi_send(ctx, &b, 1, nullptr, 0, &b));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(ctx));
	EXPECT_EQ(-FI_EINVAL, fi_ep_bind(ctx, &s.txq[1]->fid, FI_RECV));
	ASSERT_EQ(0, fi_ep_bind(ctx, &s.txq[1]->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_enable(ctx));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_tsend(ctx, &b, 1, nullptr, 0, 0, nullptr));
	EXPECT_EQ(0, fi_close(&ctx->fid));
}

int has_begun(void *arg)
{
	auto *b = static_cast<Bytes *>(arg);

	return (*b)[0] || (*b)[1] || (*b)[2];
}

TEST_F(Scalable, AContextThatClosesPostsNothingMore)
{
	/* The message that is on its way into a buffer ends while the context
	 * closes, and sets off a receive that was held, fi_trigger(3): it is
	 * gone, as posted receives are. */
	const size_t len = 8 << 20;
	struct fi_triggered_context2 held = {};
	std::atomic<bool> stop{ false };
	uint32_t late = 0, out = 7, in = 0;
	struct iovec iov = { &late, 4 };
	struct fi_msg m = {};
	Entry x;

	ONLY_TANDEM();
	attr.caps |= FI_TRIGGER;
	OK(raise());
	Sep &to = seps[0], &from = seps[1];
	struct fid_cntr *c = cntr(to.home->domain);
	Bytes sent = filled(len, 1), got(len);

	ASSERT_EQ(0, fi_ep_bind(to.rx[0], &c->fid, FI_RECV));
	held.event_type = FI_TRIGGER_THRESHOLD;
	held.trigger.threshold.cntr = c;
	held.trigger.threshold.threshold = 1;
	m.msg_iov = &iov;
	m.iov_count = 1;
	m.addr = FI_ADDR_UNSPEC;
	m.context = &held;
	ASSERT_EQ(0, fi_recvmsg(to.rx[0], &m, FI_TRIGGER));
	ASSERT_EQ(0, fi_recv(to.rx[0], got.data(), len, nullptr, FI_ADDR_UNSPEC,
			     &got));
	ASSERT_EQ(0, fi_send(from.tx[0], sent.data(), len, nullptr,
			     named(from, 0), &sent));
	ASSERT_EQ(0, tdt_wait_until(w, has_begun, &got));
	std::thread other([&] {
		struct fi_cq_tagged_entry e;

		while (!stop)
			fi_cq_read(from.txq[0], &e, 1);
	});
	EXPECT_EQ(0, drop(&to.rx[0]->fid));
	stop = true;
	other.join();
	/* The next one's messages are the next one's. */
	OK(open_rx(&to, 0));
	ASSERT_EQ(0, fi_inject(from.tx[0], &out, 4, named(from, 0)));
	tdt_settle(w, 5);
	ASSERT_EQ(0, fi_recv(to.rx[0], &in, 4, nullptr, FI_ADDR_UNSPEC, &in));
	do {
		x = next(to.rxq[0]);
		ASSERT_EQ(1, x.ret);
	} while (x.e.op_context != &in);
	EXPECT_EQ(7u, in);
	EXPECT_EQ(0u, late);
}

TEST_F(Scalable, NothingIsPostedToTheWhole)
{
	/* fi_endpoint(3) 2.1, fi_tx_context 1: A transmit context is like an
	 * endpoint that only sends; the whole has neither queue, with exact
	 * directed receives as without. */
	char b = 0;

	ONLY_TANDEM();
	attr.caps |= FI_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV;
	OK(raise());
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_recv(seps[1].ep, &b, 1, nullptr, seps[1].peer, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_trecv(seps[1].ep, &b, 1, nullptr,
					   seps[1].peer, 0, 0, nullptr));
}

TEST_F(Scalable, SendsThatWaitEnd)
{
	/* To an address nobody has: the sends fill the context, can be
	 * cancelled, and end when the address is removed. */
	struct sockaddr_in nobody;
	fi_addr_t to;
	char out[3] = {};
	Entry x;

	ONLY_TANDEM();
	if (tdt_path() == TDT_REMOTE)
		GTEST_SKIP() << "TCP queues while it connects";
	OK(raise());
	Sep &s = seps[1];
	memset(&nobody, 0, sizeof(nobody));
	memcpy(&nobody, w->eps[0].name, sizeof(nobody));
	nobody.sin_port = htons(1);
	ASSERT_EQ(1, fi_av_insert(s.av, &nobody, 1, &to, 0, nullptr));
	for (char &o : out)
		ASSERT_EQ(0, fi_send(s.tx[0], &o, 1, nullptr, to, &o));
	EXPECT_EQ(-FI_ENOENT, fi_cancel(&s.tx[1]->fid, &out[1]));
	EXPECT_EQ(0, fi_cancel(&s.tx[0]->fid, &out[1]));
	x = next(s.txq[0]);
	ASSERT_EQ(-FI_EAVAIL, x.ret);
	EXPECT_EQ(FI_ECANCELED, x.err.err);
	EXPECT_EQ(&out[1], x.err.op_context);
	/* Others go on meanwhile. */
	OK(message(s, 0, 1, 100, false, true));
	ASSERT_EQ(0, fi_av_remove(s.av, &to, 1, 0));
	for (int i = 0; i < 2; i++) {
		x = next(s.txq[0]);
		ASSERT_EQ(-FI_EAVAIL, x.ret);
		EXPECT_EQ(FI_ECONNABORTED, x.err.err);
	}
	/*
	 * Operations that still wait when their context closes are discarded.
	 */
	ASSERT_EQ(1, fi_av_insert(s.av, &nobody, 1, &to, 0, nullptr));
	ASSERT_EQ(0, fi_send(s.tx[0], &out[0], 1, nullptr, to, &out[0]));
	EXPECT_EQ(0, drop(&s.tx[0]->fid));
	empty(s.txq[0]);
}

TEST_F(Scalable, SendsThatWereAnnouncedAreCancelled)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: On a transmit context, too, a send
	 * that no receive has matched ends by fi_cancel, whatever path it
	 * took. */
	Bytes out = filled(1 << 20, 1);
	Entry x;

	OK(raise());
	for (size_t i = 1; i < seps.size(); i++) {
		Sep &s = seps[i];

		OK(message(s, 0, 0, 100, true, true));
		ASSERT_EQ(0, fi_tsend(s.tx[0], out.data(), out.size(), nullptr,
				      named(s, 0), 9, &out));
		tdt_settle(w, 5);
		EXPECT_EQ(-FI_ENOENT, fi_cancel(&s.tx[1]->fid, &out));
		ASSERT_EQ(0, fi_cancel(&s.tx[0]->fid, &out));
		x = next(s.txq[0]);
		ASSERT_EQ(-FI_EAVAIL, x.ret);
		EXPECT_EQ(FI_ECANCELED, x.err.err);
		EXPECT_EQ(&out, x.err.op_context);
		/* The message is gone from the peer, too. */
		OK(message(s, 0, 0, 100, true, true));
	}
	OK(all_empty());
}

TEST_F(Scalable, AContextThatClosesLeavesItsInjects)
{
	/* fi_msg(3) 2.1, fi_inject 1: The buffer is the application's again
	 * when the call returns. So nothing that it still has keeps a context
	 * from closing, however long the peer takes to post a receive; programs
	 * end like this without waiting for each other. */
	uint32_t out, in = 0;
	struct iovec iov = { &out, 4 };
	struct fi_msg m = {};
	Entry x;

	OK(raise());
	m.msg_iov = &iov;
	m.iov_count = 1;
	for (size_t i = 1; i < seps.size(); i++) {
		Sep &s = seps[i];

		OK(message(s, 0, 0, 100, false, true));
		out = 5 + (uint32_t)i;
		m.addr = named(s, 0);
		ASSERT_EQ(0, fi_sendmsg(s.tx[0], &m,
					FI_INJECT | FI_DELIVERY_COMPLETE));
		out = 0;
		ASSERT_EQ(0, drop(&s.tx[0]->fid));
		tdt_settle(w, 5);
		ASSERT_EQ(0, fi_recv(seps[0].rx[0], &in, 4, nullptr,
				     FI_ADDR_UNSPEC, &in));
		x = next(seps[0].rxq[0]);
		ASSERT_EQ(1, x.ret);
		EXPECT_EQ(5 + i, in);
		OK(open_tx(&s, 0));
		OK(message(s, 0, 0, 100, false, true));
	}
	OK(all_empty());
}

TEST_F(Scalable, InjectsThatWaitAreSentBeforeItCloses)
{
	/* fi_msg(3) 2.1, fi_inject 1, as above, for more injects than the way
	 * to the peer has room for: the peer makes no progress until the
	 * endpoint is being closed. */
	const uint32_t n = 300;

	OK(raise());
	for (size_t i = 1; i < seps.size(); i++) {
		Sep &s = seps[i];
		std::atomic<bool> closed{ false };

		OK(message(s, 0, 0, 100, false, true));
		for (uint32_t k = 0; k < n; k++)
			ASSERT_EQ(0, fi_inject(s.tx[0], &k, 4, named(s, 0)));
		std::thread closer([&] {
			for (int k = 0; k < Sep::N; k++) {
				EXPECT_EQ(0, drop(&s.tx[k]->fid));
				EXPECT_EQ(0, drop(&s.rx[k]->fid));
			}
			EXPECT_EQ(0, drop(&s.ep->fid));
			closed = true;
		});
		while (!closed)
			fi_cq_read(seps[0].rxq[0], nullptr, 0);
		closer.join();
		for (uint32_t k = 0; k < n; k++) {
			uint32_t in = n;

			ASSERT_EQ(0, fi_recv(seps[0].rx[0], &in, 4, nullptr,
					     FI_ADDR_UNSPEC, &in));
			ASSERT_EQ(1, next(seps[0].rxq[0]).ret);
			ASSERT_EQ(k, in);
		}
	}
}

class ScalableGroups : public Scalable
{
protected:
	static const int G = 3;

	ScalableGroups()
	{
		attr.max_group = 1000;
	}

	static uint32_t group(int g)
	{
		static const uint32_t id[G] = { 0, 7, 1000 };

		return id[g];
	}
};

TEST_F(Scalable, ContextsTellTheSharedMemoryOptionOfTheirEndpoint)
{
	/* fi_tandem(7), OPTIONS: a context has the value of its endpoint, and
	 * cannot change it. */
	bool permitted = false;
	size_t len = sizeof(permitted);
	Sep s;

	ONLY_TANDEM();
	OPEN();
	ASSERT_NO_FATAL_FAILURE(open_sep(&s, ep(0)));
	ASSERT_EQ(0,
		  fi_setopt(&s.ep->fid, FI_OPT_ENDPOINT,
			    FI_OPT_SHARED_MEMORY_PERMITTED, &permitted, len));
	ASSERT_NO_FATAL_FAILURE(open_tx(&s, 0));
	ASSERT_NO_FATAL_FAILURE(open_rx(&s, 0));
	for (struct fid_ep *ctx : { s.tx[0], s.rx[0] }) {
		permitted = true;
		EXPECT_EQ(0, fi_getopt(&ctx->fid, FI_OPT_ENDPOINT,
				       FI_OPT_SHARED_MEMORY_PERMITTED,
				       &permitted, &len));
		EXPECT_FALSE(permitted);
		EXPECT_EQ(-FI_ENOPROTOOPT,
			  fi_setopt(&ctx->fid, FI_OPT_ENDPOINT,
				    FI_OPT_SHARED_MEMORY_PERMITTED, &permitted,
				    sizeof(permitted)));
	}
}

TEST_F(ScalableGroups, ContextAndGroupBothCount)
{
	/* fi_av(3) 2.1, fi_rx_addr 1 and fi_group_addr 1: fi_rx_addr() says the
	 * context, fi_group_addr() the group. Each message finds the receive of
	 * its context and its group. */
	ONLY_TANDEM();
	OK(raise());
	for (size_t s = 1; s < seps.size(); s++) {
		uint32_t in[Sep::N][G] = {}, out[Sep::N][G];

		for (int k = 0; k < Sep::N; k++) {
			for (int g = G - 1; g >= 0; g--)
				ASSERT_EQ(0, fi_trecv(seps[0].rx[k], &in[k][g],
						      4, nullptr,
						      fi_group_addr(UINT32_MAX,
								    group(g)),
						      7, 0, &in[k][g]));
		}
		for (int i = 0; i < Sep::N * G; i++) {
			/* Neither context nor group stays the same. */
			int k = i % Sep::N, g = (i + i / Sep::N) % G;
			fi_addr_t to =
				fi_group_addr(named(seps[s], k), group(g));
			Entry x;

			out[k][g] = (uint32_t)(1 + k * G + g);
			ASSERT_EQ(0, fi_tsend(seps[s].tx[0], &out[k][g], 4,
					      nullptr, to, 7, &out[k][g]));
			x = next(seps[0].rxq[k]);
			ASSERT_EQ(1, x.ret);
			EXPECT_EQ(&in[k][g], x.e.op_context);
			EXPECT_EQ(out[k][g], in[k][g]);
			x = next(seps[s].txq[0]);
			ASSERT_EQ(1, x.ret);
		}
	}
	OK(all_empty());
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared contexts and aliases, fi_endpoint(3): fi_srx_context, fi_stx_context,
 * fi_ep_alias.
 */
#include "parts.h"

namespace
{

void share_rx(struct fi_info *i)
{
	i->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
}

class Srx : public Parts
{
protected:
	struct fid_ep *srx = nullptr;
	static const size_t EPS = 3;
	struct fid_ep *at[EPS] = {};
	struct fid_cq *tx[EPS] = {}, *rxq[EPS] = {};

	/* rx()'s domain gets a context with EPS endpoints, CQs each. */
	void share()
	{
		struct fid_domain *d = rx()->domain;

		ASSERT_EQ(0, fi_srx_context(d, nullptr, &srx, nullptr));
		made.push_back(&srx->fid);
		for (size_t i = 0; i < EPS; i++) {
			tx[i] = cq(d);
			rxq[i] = cq(d);
		}
		for (size_t i = 0; i < EPS; i++) {
			ASSERT_NO_FATAL_FAILURE(bound(&at[i], i));
			ASSERT_EQ(0, fi_enable(at[i]));
		}
	}

	void bound(struct fid_ep **ep, size_t i)
	{
		struct fi_info *n = info(share_rx);

		ASSERT_EQ(0, fi_endpoint(rx()->domain, n, ep, nullptr));
		fi_freeinfo(n);
		made.push_back(&(*ep)->fid);
		ASSERT_EQ(0, fi_ep_bind(*ep, &rx()->av->fid, 0));
		ASSERT_EQ(0, fi_ep_bind(*ep, &tx[i]->fid, FI_TRANSMIT));
		ASSERT_EQ(0, fi_ep_bind(*ep, &rxq[i]->fid, FI_RECV));
		ASSERT_EQ(0, fi_ep_bind(*ep, &srx->fid, 0));
	}

	ssize_t send(struct tdt_ep *from, size_t i, const void *buf, size_t len,
		     uint64_t tag, bool tagged)
	{
		fi_addr_t to = insert(from->av, at[i]);

		return keep_on([&] {
			return tagged ? fi_tsend(from->ep, buf, len, nullptr,
						 to, tag, nullptr) :
					fi_send(from->ep, buf, len, nullptr, to,
						nullptr);
		});
	}

	void sent(struct tdt_ep *from)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait_next(from, 0, &c));
		EXPECT_EQ(0, c.err);
	}
};

TEST_F(Srx, ReceivesAreForAllCompletionsForOne)
{
	/* fi_endpoint(3) 2.1, SHARED CONTEXTS 3: Buffers of a shared receive
	 * context serve all its endpoints; each reports to its own queue. */
	OPEN();
	OK(share());
	for (struct tdt_ep *from : senders()) {
		for (size_t len :
		     { size_t(0), size_t(8), size_t(5000), size_t(200000) }) {
			for (size_t i = 0; i < EPS; i++) {
				bool tagged = i % 2;
				Bytes out = filled(len, (uint32_t)i), in(len);
				Entry x;

				if (len == 8) {
					/* Unexpected. */
					ASSERT_EQ(0, send(from, i, out.data(),
							  len, i, tagged));
					tdt_progress(w);
				}
				ASSERT_EQ(0, tagged ? fi_trecv(srx, in.data(),
							       len, nullptr,
							       FI_ADDR_UNSPEC,
							       i, 0, &in) :
						      fi_recv(srx, in.data(),
							      len, nullptr,
							      FI_ADDR_UNSPEC,
							      &in));
				if (len != 8) {
					ASSERT_EQ(0, send(from, i, out.data(),
							  len, i, tagged));
				}
				x = next(rxq[i]);
				ASSERT_EQ(1, x.ret);
				EXPECT_EQ(&in, x.e.op_context);
				EXPECT_EQ(len, x.e.len);
				EXPECT_EQ(addr(rx(), from), x.src);
				EXPECT_EQ(-1, tdt_differs(in.data(), len,
							  (uint32_t)i));
				OK(sent(from));
			}
		}
	}
	for (size_t i = 0; i < EPS; i++)
		empty(rxq[i]);
}

TEST_F(Srx, EndpointsAmongThemselves)
{
	/* Endpoints of one context may talk to each other and themselves. */
	char out = 7, in = 0;
	Entry x;

	OPEN();
	OK(share());
	for (size_t i = 0; i < EPS; i++) {
		for (size_t k = 0; k < EPS; k++) {
			fi_addr_t to = insert(rx()->av, at[k]);

			ASSERT_EQ(0, fi_recv(srx, &in, 1, nullptr,
					     FI_ADDR_UNSPEC, &in));
			ASSERT_EQ(0, keep_on([&] {
					  return fi_send(at[i], &out, 1,
							 nullptr, to, &out);
				  }));
			x = next(rxq[k]);
			ASSERT_EQ(1, x.ret);
			x = next(tx[i]);
			ASSERT_EQ(1, x.ret);
		}
	}
}

TEST_F(Srx, MultiRecvIsReleasedOnce)
{
	/* fi_msg(3) 2.1, FLAGS 6 and 7: FI_MULTI_RECV: the buffer is released
	 * once. The parts may be of several endpoints. */
	Bytes buf(4096), out = filled(1000, 1);
	struct iovec iov = iov_of(buf.data(), buf.size());
	struct fi_msg m;
	size_t min = 1000, released = 0, got = 0;

	OPEN();
	OK(share());
	memset(&m, 0, sizeof(m));
	m.msg_iov = &iov;
	m.iov_count = 1;
	m.addr = FI_ADDR_UNSPEC;
	m.context = &buf;
	ASSERT_EQ(0, fi_setopt(&srx->fid, FI_OPT_ENDPOINT,
			       FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	ASSERT_EQ(0, fi_recvmsg(srx, &m, FI_MULTI_RECV));
	for (size_t i = 0; i < 4; i++) {
		ASSERT_EQ(0, send(senders()[0], i % EPS, out.data(), 1000, 0,
				  false));
		Entry x = next(rxq[i % EPS]);
		ASSERT_EQ(1, x.ret);
		EXPECT_EQ(&buf, x.e.op_context);
		got++;
		OK(sent(senders()[0]));
	}
	/* The fourth left 96 bytes: released where the last part ended. */
	Entry x = next(rxq[0]);
	ASSERT_EQ(1, x.ret);
	released += !!(x.e.flags & FI_MULTI_RECV);
	EXPECT_EQ(1u, released);
	EXPECT_EQ(4u, got);
	for (size_t i = 0; i < EPS; i++)
		empty(rxq[i]);
}

TEST_F(Srx, CancelIsReportedAtTheFirstEndpoint)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: A receive that was cancelled has an
	 * error entry. */
	char in;
	Entry x;

	OPEN();
	OK(share());
	ASSERT_EQ(0, fi_recv(srx, &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	EXPECT_EQ(-FI_ENOENT, fi_cancel(&at[0]->fid, &in));
	EXPECT_EQ(0, fi_cancel(&srx->fid, &in));
	x = next(rxq[0]);
	ASSERT_EQ(-FI_EAVAIL, x.ret);
	EXPECT_EQ(FI_ECANCELED, x.err.err);
	EXPECT_EQ(&in, x.err.op_context);
}

TEST_F(Srx, SendsOfItsEndpointsAreCancelled)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: fi_cancel is about operations of the
	 * endpoint, whatever it shares: a send that was announced and that no
	 * receive has matched ends by it, and a receive of the context with the
	 * same context does not. */
	Bytes out = filled(1 << 20, 1);
	char in;
	Entry x;

	OPEN();
	OK(share());
	for (auto *to : senders()) {
		fi_addr_t addr = insert(rx()->av, to->ep);

		ASSERT_EQ(0,
			  fi_recv(srx, &in, 1, nullptr, FI_ADDR_UNSPEC, &out));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_tsend(at[0], out.data(), out.size(),
						  nullptr, addr, 5, &out);
			  }));
		tdt_settle(w, 5);
		ASSERT_EQ(0, fi_cancel(&at[0]->fid, &out));
		x = next(tx[0]);
		ASSERT_EQ(-FI_EAVAIL, x.ret);
		EXPECT_EQ(FI_ECANCELED, x.err.err);
		EXPECT_EQ(&out, x.err.op_context);
		empty(rxq[0]);
		EXPECT_EQ(-FI_ENOENT, fi_cancel(&at[0]->fid, &out));
		ASSERT_EQ(0, fi_cancel(&srx->fid, &out));
		EXPECT_EQ(-FI_EAVAIL, next(rxq[0]).ret);
	}
}

TEST_F(Srx, ClosingOneEndpointLeavesTheOthers)
{
	/* fi_endpoint(3) 2.1, fi_close 3: Messages that waited for the endpoint
	 * are discarded. Receives of the context stay. */
	char out = 5, in = 0;
	Entry x;

	OPEN();
	OK(share());
	ASSERT_EQ(0, send(senders()[0], 0, &out, 1, 0, false));
	ASSERT_EQ(0, send(senders()[0], 1, &out, 1, 0, false));
	OK(sent(senders()[0]));
	OK(sent(senders()[0]));
	tdt_settle(w, 50);
	ASSERT_EQ(0, drop(&at[0]->fid));
	ASSERT_EQ(0, fi_recv(srx, &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	x = next(rxq[1]);
	ASSERT_EQ(1, x.ret);
	ASSERT_EQ(0, fi_recv(srx, &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	ASSERT_EQ(0, send(senders()[0], 2, &out, 1, 0, false));
	x = next(rxq[2]);
	ASSERT_EQ(1, x.ret);
	OK(sent(senders()[0]));
	empty(rxq[0]);
}

TEST_F(Srx, WhatIsBoundAndInWhatOrder)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 2: Shared contexts that an endpoint
	 * uses are bound to it; endpoints of one receive context have one
	 * address vector. */
	struct fid_ep *ep, *other;
	struct fid_av *av2;
	struct fi_info *n;
	char in;

	OPEN();
	OK(share());
	av2 = av(rx()->domain);
	EXPECT_EQ(-FI_EBUSY, fi_close(&srx->fid));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_recv(at[0], &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	n = info(share_rx);
	ASSERT_EQ(0, fi_endpoint(rx()->domain, n, &ep, nullptr));
	ASSERT_EQ(0, fi_ep_bind(ep, &av2->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(ep, &tx[0]->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_ep_bind(ep, &rxq[0]->fid, FI_RECV));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_enable(ep)) << "without its context";
	ASSERT_EQ(0, fi_ep_bind(ep, &srx->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_ep_bind(ep, &srx->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_enable(ep)) << "another AV";
	EXPECT_EQ(0, fi_close(&ep->fid));
	/* Not asked for; of another domain. */
	EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(rx()->ep, &srx->fid, 0));
	ASSERT_EQ(0, fi_endpoint(senders()[0]->domain, n, &other, nullptr));
	EXPECT_EQ(-FI_EDOMAIN, fi_ep_bind(other, &srx->fid, 0));
	EXPECT_EQ(0, fi_close(&other->fid));
	fi_freeinfo(n);
}

TEST_F(Srx, AnotherAddressVectorOnceAllHaveLeft)
{
	struct fid_av *av2;
	struct fid_ep *ep;
	struct fi_info *n;

	OPEN();
	OK(share());
	for (struct fid_ep *e : at)
		ASSERT_EQ(0, drop(&e->fid));
	av2 = av(rx()->domain);
	n = info(share_rx);
	ASSERT_EQ(0, fi_endpoint(rx()->domain, n, &ep, nullptr));
	fi_freeinfo(n);
	ASSERT_EQ(0, fi_ep_bind(ep, &av2->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(ep, &tx[0]->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_ep_bind(ep, &rxq[0]->fid, FI_RECV));
	ASSERT_EQ(0, fi_ep_bind(ep, &srx->fid, 0));
	EXPECT_EQ(0, fi_enable(ep));
	EXPECT_EQ(0, fi_close(&ep->fid));
}

TEST_F(Srx, AttributesOfTheContext)
{
	/* fi_srx_context: the actual attributes are written back. */
	struct fi_rx_attr a;
	struct fid_ep *ctx;
	char in;

	OPEN();
	memset(&a, 0, sizeof(a));
	a.size = 2;
	ASSERT_EQ(0, fi_srx_context(rx()->domain, &a, &ctx, nullptr));
	made.push_back(&ctx->fid);
	EXPECT_EQ(2u, a.size);
	EXPECT_TRUE(a.caps & FI_RECV);
	/* The size is what is promised; more are taken. */
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(0,
			  fi_recv(ctx, &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_send(ctx, &in, 1, nullptr, 0, &in));
	a.size = SIZE_MAX;
	ASSERT_EQ(0, fi_srx_context(rx()->domain, &a, &ctx, nullptr));
	made.push_back(&ctx->fid);
	EXPECT_EQ(SIZE_MAX, a.size);
	a.iov_limit = SIZE_MAX;
	EXPECT_EQ(-FI_EINVAL, fi_srx_context(rx()->domain, &a, &ctx, nullptr));
}

class Stx : public Parts
{
};

TEST_F(Stx, EndpointsShareIt)
{
	/* fi_endpoint(3) 2.1, SHARED CONTEXTS 2: Operations are posted to the
	 * endpoint and complete in its queues, also with a shared transmit
	 * context. */
	struct tdt_ep *from;
	struct fid_stx *stx;
	struct fid_ep *ep[2];
	struct fid_cq *q[2];
	struct fi_info *n;
	char out = 3, in = 0;

	OPEN();
	from = senders()[0];
	ASSERT_EQ(0, fi_stx_context(from->domain, w->info->tx_attr, &stx,
				    nullptr));
	made.push_back(&stx->fid);
	n = info([](struct fi_info *i) {
		i->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	});
	for (int i = 0; i < 2; i++) {
		q[i] = cq(from->domain);
		ASSERT_EQ(0, fi_endpoint(from->domain, n, &ep[i], nullptr));
		made.push_back(&ep[i]->fid);
		ASSERT_EQ(0, fi_ep_bind(ep[i], &from->av->fid, 0));
		ASSERT_EQ(0,
			  fi_ep_bind(ep[i], &q[i]->fid, FI_TRANSMIT | FI_RECV));
		EXPECT_EQ(-FI_EOPBADSTATE, fi_enable(ep[i]));
		ASSERT_EQ(0, fi_ep_bind(ep[i], &stx->fid, 0));
		ASSERT_EQ(0, fi_enable(ep[i]));
	}
	fi_freeinfo(n);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_send(ep[i], &out, 1, nullptr,
						 addr(from, rx()), &out);
			  }));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(1, next(q[i]).ret);
	}
}

TEST_F(Stx, ClosesBeforeItsEndpoints)
{
	/* fi_tandem(7), CONTEXTS: a shared transmit context may be closed while
	 * endpoints are bound to it; they go on sending. Sandia OpenSHMEM
	 * closes in this order. */
	struct tdt_ep *from;
	struct fid_stx *stx;
	struct fid_ep *ep;
	struct fid_cq *q;
	struct fi_info *n;
	char out = 5, in = 0;

	OPEN();
	ONLY_TANDEM();
	from = senders()[0];
	ASSERT_EQ(0, fi_stx_context(from->domain, w->info->tx_attr, &stx,
				    nullptr));
	n = info([](struct fi_info *i) {
		i->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	});
	q = cq(from->domain);
	ASSERT_EQ(0, fi_endpoint(from->domain, n, &ep, nullptr));
	fi_freeinfo(n);
	made.push_back(&ep->fid);
	ASSERT_EQ(0, fi_ep_bind(ep, &from->av->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(ep, &q->fid, FI_TRANSMIT | FI_RECV));
	ASSERT_EQ(0, fi_ep_bind(ep, &stx->fid, 0));
	ASSERT_EQ(0, fi_enable(ep));
	ASSERT_EQ(0, fi_close(&stx->fid));
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, keep_on([&] {
			  return fi_send(ep, &out, 1, nullptr, addr(from, rx()),
					 &out);
		  }));
	OK(done(rx(), &in, FI_RECV | FI_MSG));
	EXPECT_EQ(1, next(q).ret);
	EXPECT_EQ(5, in);
}

class Alias : public Parts
{
};

TEST_F(Alias, DiffersByItsFlags)
{
	/* fi_endpoint(3) 2.1, fi_ep_alias 1: An alias differs from its endpoint
	 * by its default flags. */
	struct tdt_ep *from;
	struct fid_ep *alias;
	char out = 1, in = 0;

	attr.tx_bind = FI_SELECTIVE_COMPLETION;
	attr.rx_bind = FI_SELECTIVE_COMPLETION;
	OPEN();
	for (struct tdt_ep *f : senders()) {
		from = f;
		ASSERT_EQ(0, fi_ep_alias(from->ep, &alias,
					 FI_TRANSMIT | FI_COMPLETION));
		made.push_back(&alias->fid);
		for (struct fid_ep *by : { from->ep, alias }) {
			struct fi_msg m;
			struct iovec iov = iov_of(&in, 1);

			memset(&m, 0, sizeof(m));
			m.msg_iov = &iov;
			m.iov_count = 1;
			m.addr = FI_ADDR_UNSPEC;
			m.context = &in;
			ASSERT_EQ(0, fi_recvmsg(rx()->ep, &m, FI_COMPLETION));
			ASSERT_EQ(0, keep_on([&] {
					  return fi_send(by, &out, 1, nullptr,
							 addr(from, rx()), by);
				  }));
			OK(done(rx(), &in, FI_RECV | FI_MSG));
		}
		OK(done(from, alias, FI_SEND | FI_MSG));
	}
}

TEST_F(Alias, ReceivesForItsEndpoint)
{
	struct fid_ep *alias;
	char out = 1, in = 0;

	OPEN();
	ASSERT_EQ(0, fi_ep_alias(rx()->ep, &alias, FI_RECV));
	made.push_back(&alias->fid);
	ASSERT_EQ(0, fi_recv(alias, &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	ASSERT_EQ(0, tdt_send(senders()[0], rx(), &out, 1, &out));
	OK(done(rx(), &in, FI_RECV | FI_MSG));
	OK(done(senders()[0], &out, FI_SEND | FI_MSG));
	ASSERT_EQ(0, fi_recv(alias, &in, 1, nullptr, FI_ADDR_UNSPEC, &in));
	EXPECT_EQ(0, fi_cancel(&alias->fid, &in));
	OK(failed(rx(), &in, FI_ECANCELED));
}

TEST_F(Alias, FlagsAndClosing)
{
	/* fi_endpoint(3) 2.1, fi_ep_alias 2: The flags of an alias name one
	 * direction; an endpoint stays open while it has aliases. */
	struct fid_ep *alias, *two;
	uint64_t flags;

	OPEN();
	EXPECT_EQ(-FI_EINVAL, fi_ep_alias(rx()->ep, &alias, 0));
	EXPECT_EQ(-FI_EINVAL,
		  fi_ep_alias(rx()->ep, &alias, FI_TRANSMIT | FI_RECV));
	EXPECT_EQ(-FI_EBADFLAGS,
		  fi_ep_alias(rx()->ep, &alias, FI_TRANSMIT | FI_PEEK));
	ASSERT_EQ(0, fi_ep_alias(rx()->ep, &alias, FI_TRANSMIT | FI_INJECT));
	ASSERT_EQ(0, fi_ep_alias(alias, &two, FI_RECV));
	flags = FI_TRANSMIT;
	EXPECT_EQ(0, fi_control(&two->fid, FI_GETOPSFLAG, &flags));
	EXPECT_EQ(uint64_t(FI_INJECT), flags);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	EXPECT_EQ(0, fi_control(&two->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT;
	EXPECT_EQ(0, fi_control(&two->fid, FI_GETOPSFLAG, &flags));
	EXPECT_EQ(uint64_t(FI_DELIVERY_COMPLETE), flags);
	flags = FI_TRANSMIT;
	EXPECT_EQ(0, fi_control(&rx()->ep->fid, FI_GETOPSFLAG, &flags));
	EXPECT_EQ(0u, flags) << "the endpoint's own";
	flags = 0;
	EXPECT_EQ(-FI_EINVAL, fi_control(&two->fid, FI_GETOPSFLAG, &flags));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->ep->fid));
	EXPECT_EQ(0, fi_close(&alias->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->ep->fid));
	EXPECT_EQ(0, fi_close(&two->fid));
}

TEST_F(Alias, MadeBeforeTheEndpointIsEnabled)
{
	struct fid_ep *alias, *ep;
	struct fid_cq *q;
	struct fi_info *n;
	char out = 1, in = 0;

	OPEN();
	q = cq(senders()[0]->domain);
	n = info();
	ASSERT_EQ(0, fi_endpoint(senders()[0]->domain, n, &ep, nullptr));
	fi_freeinfo(n);
	made.push_back(&ep->fid);
	ASSERT_EQ(0, fi_ep_alias(ep, &alias, FI_TRANSMIT));
	made.push_back(&alias->fid);
	EXPECT_EQ(-FI_EOPBADSTATE,
		  fi_send(alias, &out, 1, nullptr, 0, nullptr));
	ASSERT_EQ(0, fi_ep_bind(alias, &senders()[0]->av->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(ep, &q->fid, FI_TRANSMIT | FI_RECV));
	ASSERT_EQ(0, fi_enable(alias));
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, keep_on([&] {
			  return fi_send(alias, &out, 1, nullptr,
					 addr(senders()[0], rx()), nullptr);
		  }));
	OK(done(rx(), &in, FI_RECV | FI_MSG));
	EXPECT_EQ(1, next(q).ret);
}

} // namespace

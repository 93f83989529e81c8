/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bad arguments get the error their manual page names, and change nothing:
 * traffic goes on as if the call had not been made. Those that every data call
 * can be given are in badcall_test.cc.
 */
#include <arpa/inet.h>
#include <climits>
#include <netinet/in.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>

#include "tests/harness/fixture.h"

namespace
{

class BadArg : public Case
{
protected:
	/* Nothing was posted or sent: the next message is the next one. */
	void works(struct tdt_ep *from)
	{
		char out[2] = { 'b', 'c' }, in[2] = { 0, 0 };

		for (int i = 0; i < 2; i++) {
			struct tdt_op s = op_of(TDT_SEND, i, &out[i], 1);
			struct tdt_op r = op_of(TDT_RECV, i, &in[i], 1);

			s.addr = addr(from, rx());
			s.context = &out[i];
			r.context = &in[i];
			ASSERT_EQ(0, tdt_post(rx(), &r));
			ASSERT_EQ(0, tdt_post(from, &s));
			OK(done(rx(), &in[i],
				FI_RECV | (i ? FI_TAGGED : FI_MSG)));
			OK(done(from, &out[i],
				FI_SEND | (i ? FI_TAGGED : FI_MSG)));
			EXPECT_EQ(out[i], in[i]);
		}
		tdt_progress(w);
		EXPECT_EQ(0u, tdt_pending(w));
	}

	void all_work()
	{
		for (auto *from : senders())
			OK(works(from));
	}
};

TEST_F(BadArg, MessageTooLong)
{
	/* fi_msg(3) 2.1, ARGUMENTS 3: A message has any length from 0 to
	 * max_msg_size. */
	char buf[8] = { 0 };

	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		size_t most = from->info->ep_attr->max_msg_size;

		if (most == SIZE_MAX)
			continue;
		for (int tagged = 0; tagged < 2; tagged++) {
			for (int c = TDT_SEND; c <= TDT_SENDDATA; c++) {
				struct tdt_op op =
					op_of(static_cast<enum tdt_call>(c),
					      tagged, buf, most + 1);

				op.addr = addr(from, rx());
				EXPECT_EQ(-FI_EMSGSIZE,
					  tdt_post_once(from, &op))
					<< tdt_call_name(op.call);
			}
		}
	}
	OK(all_work());
}

TEST_F(BadArg, InjectTooLong)
{
	/* fi_msg(3) 2.1, fi_inject 2: fi_inject takes messages up to
	 * inject_size. */
	OPEN();
	size_t most = rx()->info->tx_attr->inject_size;
	Bytes buf(most + 1);
	for (auto *from : senders()) {
		for (int tagged = 0; tagged < 2; tagged++) {
			for (enum tdt_call c :
			     { TDT_INJECT, TDT_INJECTDATA, TDT_SENDMSG }) {
				struct tdt_op op =
					op_of(c, tagged, buf.data(), most + 1);

				op.addr = addr(from, rx());
				op.flags = FI_INJECT;
				EXPECT_EQ(-FI_EMSGSIZE,
					  tdt_post_once(from, &op))
					<< tdt_call_name(c);
			}
		}
	}
	OK(all_work());
}

TEST_F(BadArg, EmptyMessageMayHaveNoBuffer)
{
	/* fi_msg(3) 2.1, ARGUMENTS 3: Transfers of 0 bytes are valid. */
	OPEN();
	for (auto *from : senders()) {
		for (int c = TDT_SEND; c <= TDT_INJECTDATA; c++) {
			auto call = static_cast<enum tdt_call>(c);
			struct tdt_op s = op_of(call, 1, nullptr, 0);
			struct tdt_op r = op_of(TDT_RECVV, 1, nullptr, 0);
			struct tdt_comp got;

			s.addr = addr(from, rx());
			s.context = &s;
			r.context = &r;
			ASSERT_EQ(0, tdt_post(rx(), &r));
			ASSERT_EQ(0, tdt_post(from, &s)) << tdt_call_name(call);
			ASSERT_EQ(0, tdt_wait(rx(), &r, &got));
			EXPECT_EQ(0, got.err);
			EXPECT_EQ(0u, got.len);
			if (c != TDT_INJECT && c != TDT_INJECTDATA) {
				ASSERT_EQ(0, tdt_wait(from, &s, nullptr));
			}
		}
	}
}

TEST_F(BadArg, ClaimOfNothing)
{
	/* fi_tagged(3) 2.1, FLAGS 17: FI_CLAIM without FI_PEEK is for a message
	 * claimed earlier. Without one it is an error, whatever the context
	 * holds. */
	struct fi_context2 ctx;
	char buf;
	struct tdt_op op = op_of(TDT_RECVMSG, 1, &buf, 1);

	ONLY_TANDEM();
	OPEN();
	memset(&ctx, 0, sizeof(ctx));
	op.flags = FI_CLAIM;
	op.context = &ctx;
	EXPECT_EQ(-FI_EINVAL, tdt_post_once(rx(), &op));
	op.flags = FI_DISCARD;
	EXPECT_GT(0, tdt_post_once(rx(), &op));
	OK(all_work());
}

TEST_F(BadArg, AddressOutOfRange)
{
	/* fi_av(3) 2.1, fi_av_remove 1: A removed fi_addr_t is no address of an
	 * operation: -FI_EINVAL. */
	char buf = 0;

	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		fi_addr_t gone = w->count - 1;

		ASSERT_EQ(0, tdt_warm_up(w));
		ASSERT_EQ(0, fi_av_remove(from->av, &gone, 1, 0));
		for (fi_addr_t a :
		     { gone, fi_addr_t(w->count), fi_addr_t(1) << 32,
		       fi_addr_t(1) << 63, FI_ADDR_UNSPEC }) {
			for (int tagged = 0; tagged < 2; tagged++) {
				for (int c = 0; c <= TDT_INJECTDATA; c++) {
					auto call =
						static_cast<enum tdt_call>(c);
					struct tdt_op op =
						op_of(call, tagged, &buf, 1);

					op.addr = a;
					EXPECT_EQ(-FI_EINVAL,
						  tdt_post_once(from, &op))
						<< tdt_call_name(call) << a;
				}
			}
		}
		ASSERT_EQ(1, fi_av_insert(from->av, ep(w->count - 1)->name, 1,
					  &gone, 0, nullptr));
	}
	OK(all_work());
}

TEST_F(BadArg, DirectedReceiveFromNobody)
{
	/* As above, for the source of a receive (FI_DIRECTED_RECV). */
	char buf = 0;

	ONLY_TANDEM();
	OPEN();
	for (fi_addr_t a : { fi_addr_t(w->count), fi_addr_t(1) << 40 }) {
		for (int tagged = 0; tagged < 2; tagged++) {
			struct tdt_op op = op_of(TDT_RECV, tagged, &buf, 1);

			op.addr = a;
			op.context = &buf;
			EXPECT_EQ(-FI_EINVAL, tdt_post_once(rx(), &op));
		}
	}
	OK(all_work());
}

TEST_F(BadArg, CapabilitiesThatWereNotAskedFor)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 34: Only the primary capabilities
	 * that were asked for have to work; FI_SEND or FI_RECV alone make an
	 * endpoint of one direction. */
	char buf = 0;

	ONLY_TANDEM();
	attr.caps = FI_MSG;
	OPEN();
	for (int c = 0; c < TDT_CALLS; c++) {
		auto call = static_cast<enum tdt_call>(c);
		struct tdt_op op = op_of(call, 1, &buf, 1);
		ssize_t ret;

		op.addr = c < TDT_RECV ? addr(rx(), ep(1)) : FI_ADDR_UNSPEC;
		op.context = &buf;
		ret = tdt_post(rx(), &op);
		EXPECT_TRUE(ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
			<< "t" << tdt_call_name(call) << " " << ret;
	}
	tdt_settle(w, 5);
	for (size_t i = 0; i < w->count; i++)
		w->eps[i].comp_count = 0;
}

class NotReady : public Case
{
protected:
	NotReady()
	{
		attr.eps = 1;
		attr.no_enable = 1;
	}

	void nothing_posts()
	{
		char buf = 0;

		for (int tagged = 0; tagged < 2; tagged++) {
			for (int c = 0; c < TDT_CALLS; c++) {
				auto call = static_cast<enum tdt_call>(c);
				struct tdt_op op = op_of(call, tagged, &buf, 1);

				op.addr = 0;
				EXPECT_EQ(-FI_EOPBADSTATE,
					  tdt_post_once(rx(), &op))
					<< tdt_call_name(call);
			}
		}
	}

	/* An endpoint with nothing bound. */
	struct fid_ep *bare()
	{
		struct fid_ep *e = nullptr;

		EXPECT_EQ(0, fi_endpoint(rx()->domain, rx()->info, &e, this));
		return e;
	}
};

TEST_F(NotReady, WhatIsNotOfferedSaysSo)
{
	/* fi_atomic(3) 2.1, ERRORS 2: An operation that the endpoint has no
	 * atomics for is -FI_EOPNOTSUPP. So are collective operations: neither
	 * was granted. */
	ONLY_TANDEM();
	OPEN();
	uint64_t a = 0, b = 0, c = 0;
	size_t n = 1;

	ASSERT_EQ(0, tdt_ep_enable(rx()));
	struct fid_ep *e = rx()->ep;
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_atomic(e, &a, 1, nullptr, 0, 0, 0,
					    FI_UINT64, FI_SUM, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_inject_atomic(e, &a, 1, 0, 0, 0, FI_UINT64, FI_SUM));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_fetch_atomic(e, &a, 1, nullptr, &b, nullptr, 0, 0, 0,
				  FI_UINT64, FI_SUM, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_compare_atomic(e, &a, 1, nullptr, &b, nullptr, &c, nullptr,
				    0, 0, 0, FI_UINT64, FI_CSWAP, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_atomicvalid(e, FI_UINT64, FI_SUM, &n));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_fetch_atomicvalid(e, FI_UINT64, FI_SUM, &n));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_compare_atomicvalid(e, FI_UINT64, FI_CSWAP, &n));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_barrier(e, 0, nullptr));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_broadcast(e, &a, 1, nullptr, 0, 0, FI_UINT64, 0, nullptr));
}

TEST_F(NotReady, DisabledEndpointPostsNothing)
{
	/* fi_msg(3) 2.1, DESCRIPTION 3: Nothing is posted to an endpoint that
	 * is not enabled. fi_endpoint(3) 2.1, ERRORS 3: -FI_EOPBADSTATE. */
	ONLY_TANDEM();
	OPEN();
	OK(nothing_posts());
	ASSERT_EQ(0, tdt_ep_enable(rx()));
}

TEST_F(NotReady, EnableNeedsAnAv)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 2: An endpoint without connections
	 * needs an address vector: -FI_ENOAV. */
	ONLY_TANDEM();
	OPEN();
	struct fid_ep *e = bare();

	ASSERT_NE(nullptr, e);
	ASSERT_EQ(0, fi_ep_bind(e, &rx()->rx_cq->fid, FI_TRANSMIT | FI_RECV));
	EXPECT_EQ(-FI_ENOAV, fi_enable(e));
	EXPECT_EQ(0, fi_close(&e->fid));
}

TEST_F(NotReady, EnableNeedsCqs)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 3: Every operation that an endpoint
	 * may begin needs a queue for its completion: -FI_ENOCQ. */
	ONLY_TANDEM();
	OPEN();
	for (uint64_t flags : { 0ull, FI_TRANSMIT, FI_RECV }) {
		struct fid_ep *e = bare();

		ASSERT_NE(nullptr, e);
		ASSERT_EQ(0, fi_ep_bind(e, &rx()->av->fid, 0));
		if (flags) {
			ASSERT_EQ(0, fi_ep_bind(e, &rx()->rx_cq->fid, flags));
		}
		EXPECT_EQ(-FI_ENOCQ, fi_enable(e));
		EXPECT_EQ(0, fi_close(&e->fid));
	}
}

TEST_F(NotReady, BindTakesTheRightObjectsOnce)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 17: An endpoint has one queue and one
	 * counter for each kind of operation. */
	ONLY_TANDEM();
	OPEN();
	struct fid_ep *e = bare();

	ASSERT_NE(nullptr, e);
	EXPECT_GT(0, fi_ep_bind(e, &rx()->rx_cq->fid, 1ull << 62));
	EXPECT_GT(0, fi_ep_bind(e, &rx()->rx_cq->fid, 0));
	EXPECT_GT(0, fi_ep_bind(e, &rx()->domain->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(e, &rx()->rx_cq->fid, FI_RECV));
	EXPECT_GT(0, fi_ep_bind(e, &rx()->tx_cq->fid, FI_RECV));
	ASSERT_EQ(0, fi_ep_bind(e, &rx()->tx_cq->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_ep_bind(e, &rx()->av->fid, 0));
	EXPECT_GT(0, fi_ep_bind(e, &rx()->av->fid, 0));
	EXPECT_EQ(0, fi_enable(e));
	EXPECT_EQ(0, fi_close(&e->fid));
}

TEST_F(NotReady, EnabledEndpointBindsNoMore)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 2: Queues, vector and shared contexts
	 * are bound before the endpoint is enabled. Counters are taken later as
	 * well, fi_tandem(7), CONTEXTS. */
	struct fi_cq_attr a;
	struct fid_cq *cq;

	ONLY_TANDEM();
	OPEN();
	memset(&a, 0, sizeof(a));
	ASSERT_EQ(0, tdt_ep_enable(rx()));
	ASSERT_EQ(0, fi_cq_open(rx()->domain, &a, &cq, nullptr));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(rx()->ep, &cq->fid, FI_TRANSMIT));
	EXPECT_EQ(0, fi_close(&cq->fid));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(rx()->ep, &rx()->av->fid, 0));
}

TEST_F(NotReady, ForeignAddressCannotBeEnabled)
{
	/* fi_tandem(7): "fi_enable(3) returns -FI_EADDRINUSE or
	 * -FI_EADDRNOTAVAIL if the address cannot be bound." */
	ONLY_TANDEM();
	attr.node = "192.0.2.77";
	tdt_log_expect("");
	if (tdt_world_open(&attr, &w)) {
		w = nullptr;
		return; /* refused before that is as good */
	}
	EXPECT_EQ(-FI_EADDRNOTAVAIL, fi_enable(rx()->ep));
	EXPECT_EQ(-FI_EADDRNOTAVAIL, fi_enable(rx()->ep));
}

TEST_F(NotReady, PortInUse)
{
	/* As above; nothing is leaked and a later fi_enable may succeed. */
	struct sockaddr_in *sin;
	struct fid_ep *e = nullptr;
	struct fi_info *info;

	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	ASSERT_EQ(0, tdt_ep_enable(rx()));
	info = fi_dupinfo(rx()->info);
	ASSERT_NE(nullptr, info);
	ASSERT_EQ(sizeof(*sin), info->src_addrlen);
	memcpy(info->src_addr, rx()->name, sizeof(*sin));
	EXPECT_EQ(0, fi_endpoint(rx()->domain, info, &e, nullptr));
	ASSERT_NE(nullptr, e);
	ASSERT_EQ(0, fi_ep_bind(e, &rx()->rx_cq->fid, FI_TRANSMIT | FI_RECV));
	ASSERT_EQ(0, fi_ep_bind(e, &rx()->av->fid, 0));
	EXPECT_EQ(-FI_EADDRINUSE, fi_enable(e));
	EXPECT_EQ(0, fi_close(&rx()->ep->fid));
	rx()->ep = nullptr;
	EXPECT_EQ(0, fi_enable(e));
	EXPECT_EQ(0, fi_close(&e->fid));
	fi_freeinfo(info);
}

TEST_F(NotReady, GetnameTruncates)
{
	/* fi_cm(3) 2.1, fi_getname / fi_getpeer 1: addrlen becomes the size
	 * needed, also when the buffer is too small: -FI_ETOOSMALL. */
	unsigned char name[64];
	size_t len;

	OPEN();
	ASSERT_EQ(0, tdt_ep_enable(rx()));
	for (size_t room : { 0u, 1u, 8u, 15u }) {
		len = room;
		memset(name, 0xcc, sizeof(name));
		EXPECT_EQ(-FI_ETOOSMALL,
			  fi_getname(&rx()->ep->fid, name, &len));
		EXPECT_EQ(16u, len);
		EXPECT_EQ(0xcc, name[room]);
	}
	len = 0;
	EXPECT_EQ(-FI_ETOOSMALL, fi_getname(&rx()->ep->fid, nullptr, &len));
	EXPECT_EQ(16u, len);
}

TEST_F(NotReady, OptionsNobodyHas)
{
	/* fi_endpoint(3) 2.1, RETURN VALUES 1: An option that the provider does
	 * not have is -FI_ENOPROTOOPT. */
	size_t v = 1, len = sizeof(v);

	OPEN();
	EXPECT_EQ(-FI_ENOPROTOOPT, fi_setopt(&rx()->ep->fid, FI_OPT_ENDPOINT,
					     9999, &v, sizeof(v)));
	EXPECT_EQ(-FI_ENOPROTOOPT,
		  fi_getopt(&rx()->ep->fid, FI_OPT_ENDPOINT, 9999, &v, &len));
	EXPECT_EQ(-FI_ENOPROTOOPT,
		  fi_setopt(&rx()->ep->fid, 77, FI_OPT_MIN_MULTI_RECV, &v,
			    sizeof(v)));
}

TEST_F(NotReady, QueueAttributesNobodyHas)
{
	/* fi_cq(3) 2.1, fi_cq_open 6 and 12: Formats and wait objects are
	 * values of a list. All others are refused. */
	struct fi_cq_attr a;
	struct fid_cq *cq = nullptr;

	ONLY_TANDEM();
	OPEN();
	memset(&a, 0, sizeof(a));
	a.format = static_cast<enum fi_cq_format>(99);
	EXPECT_GT(0, fi_cq_open(rx()->domain, &a, &cq, nullptr));
	memset(&a, 0, sizeof(a));
	a.wait_obj = static_cast<enum fi_wait_obj>(99);
	EXPECT_GT(0, fi_cq_open(rx()->domain, &a, &cq, nullptr));
	memset(&a, 0, sizeof(a));
	a.wait_obj = FI_WAIT_SET;
	EXPECT_EQ(-FI_EINVAL, fi_cq_open(rx()->domain, &a, &cq, nullptr))
		<< "no set given";
	memset(&a, 0, sizeof(a));
	a.size = SIZE_MAX;
	EXPECT_GT(0, fi_cq_open(rx()->domain, &a, &cq, nullptr));
	memset(&a, 0, sizeof(a));
	a.flags = FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_cq_open(rx()->domain, &a, &cq, nullptr))
		<< "fi_peer(3): providers that do not support peer CQs";
	EXPECT_EQ(nullptr, cq);
}

} // namespace

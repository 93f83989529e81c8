/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects that must be bound to an endpoint before it is enabled, and those
 * that may be bound later, fi_ep_bind(3) and fi_enable(3), in the order in
 * which applications do it.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/drive.h"
#include "tests/harness/fixture.h"
#include "tests/harness/raw.h"

namespace
{

const uint64_t ONE_SIDED = FI_RMA | FI_ATOMIC;

class Bind : public Raw
{
protected:
	fi_addr_t insert(struct fid_av *a, struct fid_ep *ep)
	{
		char name[64];
		size_t len = sizeof(name);
		fi_addr_t addr = FI_ADDR_NOTAVAIL;

		EXPECT_EQ(0, fi_getname(&ep->fid, name, &len));
		EXPECT_EQ(1, fi_av_insert(a, name, 1, &addr, 0, nullptr));
		return addr;
	}

	/* Repeat @call while it gives -FI_EAGAIN. */
	template <typename F> ssize_t keep_on(struct fid_cq *q, F call)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		do {
			ret = call();
			fi_cq_read(q, nullptr, 0);
		} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
		return ret;
	}

	/* One completion of @q. */
	bool completed(struct fid_cq *q)
	{
		struct fi_cq_tagged_entry e;

		return keep_on(q, [&] { return fi_cq_read(q, &e, 1); }) == 1;
	}
};

TEST_F(Bind, OneSidedTargetsNeedNoQueue)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 3: An endpoint needs queues for the
	 * operations that it initiates. One without FI_MSG and FI_TAGGED
	 * initiates no receive. Data that a write brings along goes nowhere
	 * then. */
	uint64_t memory[2] = { 0, 0 }, value = 5;
	struct fid_ep *from, *to;
	struct fid_mr *mr;
	fi_addr_t addr;

	ONLY_TANDEM();
	hints->caps = ONE_SIDED;
	ASSERT_EQ(0, get());
	info->caps |= FI_SEND | FI_RECV; /* directions of what it has not */
	open_domain();
	struct fid_av *a = av();
	struct fid_cq *q = cq();
	ASSERT_EQ(0, fi_mr_reg(domain, memory, sizeof(memory),
			       FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 7, 0, &mr,
			       nullptr));
	keep(mr);
	from = endpoint();
	to = endpoint();
	ASSERT_TRUE(from && to);
	ASSERT_EQ(0, fi_ep_bind(from, &a->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(from, &q->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_enable(from));
	ASSERT_EQ(0, fi_ep_bind(to, &a->fid, 0));
	ASSERT_EQ(0, fi_enable(to));
	addr = insert(a, to);
	ASSERT_EQ(0, keep_on(q, [&] {
			  return fi_writedata(from, &value, 8, nullptr, 77,
					      addr, 0, 7, nullptr);
		  }));
	EXPECT_TRUE(completed(q));
	ASSERT_EQ(0, keep_on(q, [&] {
			  return fi_atomic(from, &value, 1, nullptr, addr, 8, 7,
					   FI_UINT64, FI_SUM, nullptr);
		  }));
	EXPECT_TRUE(completed(q));
	EXPECT_EQ(5u, memory[0]);
	EXPECT_EQ(5u, memory[1]);
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_recv(to, &value, 8, nullptr, FI_ADDR_UNSPEC, nullptr));
}

TEST_F(Bind, OneSidedReceiveContextsNeedNoQueue)
{
	/* The same of contexts of a scalable endpoint. */
	uint64_t memory = 0, value = 9;
	struct fid_ep *sep, *tx, *rx;
	struct fid_mr *mr;
	fi_addr_t addr;

	ONLY_TANDEM();
	hints->caps = ONE_SIDED;
	ASSERT_EQ(0, get());
	open_domain();
	struct fid_av *a = av();
	struct fid_cq *q = cq();
	ASSERT_EQ(0, fi_scalable_ep(domain, info, &sep, nullptr));
	keep(sep);
	ASSERT_EQ(0, fi_scalable_ep_bind(sep, &a->fid, 0));
	ASSERT_EQ(0, fi_tx_context(sep, 0, nullptr, &tx, nullptr));
	keep(tx);
	ASSERT_EQ(0, fi_rx_context(sep, 0, nullptr, &rx, nullptr));
	keep(rx);
	EXPECT_EQ(-FI_ENOCQ, fi_enable(tx)) << "it writes and reads";
	ASSERT_EQ(0, fi_ep_bind(tx, &q->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_enable(tx));
	ASSERT_EQ(0, fi_enable(rx));
	ASSERT_EQ(0, fi_enable(sep));
	ASSERT_EQ(0, fi_mr_reg(domain, &memory, 8, FI_REMOTE_WRITE, 0, 7, 0,
			       &mr, nullptr));
	keep(mr);
	addr = insert(a, sep);
	ASSERT_EQ(0, keep_on(q, [&] {
			  return fi_writedata(tx, &value, 8, nullptr, 77, addr,
					      0, 7, nullptr);
		  }));
	EXPECT_TRUE(completed(q));
	EXPECT_EQ(9u, memory);
}

TEST_F(Bind, SharedTransmitContextsMayComeLate)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 2: Shared contexts are bound before
	 * the endpoint is enabled. fi_tandem(7), CONTEXTS: an endpoint with a
	 * queue of its own may be bound to a shared transmit context, also when
	 * it is enabled. */
	char out = 4, in = 0;
	struct fid_stx *stx, *other;
	struct fid_ep *ep;
	fi_addr_t addr;

	ONLY_TANDEM();
	hints->caps = FI_MSG;
	ASSERT_EQ(0, get());
	open_domain();
	struct fid_av *a = av();
	struct fid_cq *q = cq();
	ASSERT_EQ(0, fi_stx_context(domain, nullptr, &stx, nullptr));
	keep(stx);
	ASSERT_EQ(0, fi_stx_context(domain, nullptr, &other, nullptr));
	keep(other);
	ep = endpoint();
	ASSERT_NE(nullptr, ep);
	ASSERT_EQ(0, fi_ep_bind(ep, &a->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(ep, &q->fid, FI_TRANSMIT | FI_RECV));
	ASSERT_EQ(0, fi_enable(ep));
	ASSERT_EQ(0, fi_ep_bind(ep, &stx->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_ep_bind(ep, &other->fid, 0)) << "it has one";
	EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(ep, &a->fid, 0));
	addr = insert(a, ep);
	ASSERT_EQ(0, fi_recv(ep, &in, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
	ASSERT_EQ(0, keep_on(q, [&] {
			  return fi_send(ep, &out, 1, nullptr, addr, nullptr);
		  }));
	EXPECT_TRUE(completed(q));
	EXPECT_TRUE(completed(q));
	EXPECT_EQ(4, in);
}

} // namespace

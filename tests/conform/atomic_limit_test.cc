/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations, fi_atomic(3): what is refused, by whom; modifiers, limits,
 * and other endpoints than the usual ones.
 */
#include <rdma/fi_rma.h>

#include "atomic.h"

namespace
{

using namespace atomic_test;

class AtomicLimit : public Atomic
{
};

TEST_F(AtomicLimit, A8_WhatWasNotGrantedIsRefused)
{
	/* fi_mr(3) 2.1, access 1: A peer may do with a region what its access
	 * allows. Else FI_EACCES at the initiator, no byte changes at the
	 * target, and the pair goes on. */
	OPEN();
	for (auto *from : senders()) {
		for (int c = 0; c < CALLS; c++) {
			Op o;

			o.call = Call(c);
			OK(expose(16, 1));
			o.key = KEY + 1;
			OK(refused(from, o, FI_EACCES));
			o.key = KEY;
			for (uint64_t at :
			     { uint64_t(121), uint64_t(128), ~uint64_t(0),
			       ~uint64_t(0) - 7, uint64_t(1) << 63 }) {
				o.at = at;
				OK(refused(from, o, FI_EACCES));
			}
			o.at = 120;
			o.count = 2;
			OK(refused(from, o, FI_EACCES));
			o.at = 0;
			o.count = 1;
			access = FI_REMOTE_READ;
			OK(expose(16, 1));
			OK(refused(from, o, FI_EACCES));
			access = FI_REMOTE_WRITE;
			if (fetches(o.call)) {
				OK(expose(16, 1));
				OK(refused(from, o, FI_EACCES));
			}
			access |= FI_REMOTE_READ;
			OK(expose(16, 1));
			hide();
			OK(refused(from, o, FI_EACCES));
		}
		OK(expose(16, 1));
		OK(behind(from));
		OK(fence(from));
	}
}

TEST_F(AtomicLimit, ReadingNeedsNoRightToWrite)
{
	/* fi_mr(3) 2.1, access 6 and 7: FI_REMOTE_READ is for operations that
	 * only read, FI_REMOTE_WRITE for those that write. */
	const uint64_t one = 1;
	uint64_t x = 0;
	Op o;

	OPEN();
	for (auto *from : senders()) {
		access = FI_REMOTE_READ;
		OK(expose(1, 42));
		o.call = FETCH;
		o.op = FI_ATOMIC_READ;
		o.result = &x;
		OK(run(from, o));
		EXPECT_EQ(42u, x);
		access = FI_REMOTE_WRITE;
		OK(expose(1, 42));
		Op add;
		add.call = WRITE;
		add.buf = &one;
		OK(run(from, add));
		EXPECT_EQ(43u, word(0));
	}
}

TEST_F(AtomicLimit, A10_CallsThatMakeNoSense)
{
	/* fi_atomic(3) 2.1, ERRORS 2 and 3: -FI_EOPNOTSUPP for an operation
	 * that there is not, -FI_EMSGSIZE for too many elements. All else are
	 * bad arguments. Nothing is sent. */
	uint64_t buf[2] = { 1, 1 }, cmp[2] = { 1, 1 }, res[2] = { 0, 0 };
	struct fi_ioc none = ioc(nullptr, 1), b = ioc(buf, 1);
	struct fi_ioc two = ioc(buf, 2), r = ioc(res, 1), c = ioc(cmp, 1);
	struct fi_msg_atomic m;
	struct fid_ep *e;
	fi_addr_t to;

	OPEN();
	size_t most = ep(1)->info->tx_attr->rma_iov_limit;
	std::vector<struct fi_rma_ioc> where(most + 1, { 0, 1, KEY });
	OK(expose(4, 1));
	e = ep(1)->ep;
	to = addr(ep(1), rx());
	std::vector<struct fi_ioc> many(ep(1)->info->tx_attr->iov_limit + 1, b);
	for (int k = 0; k < CALLS; k++) {
		Op o;

		SCOPED_TRACE(names[k]);
		o.call = Call(k);
		o.op = compares(o.call) ? FI_CSWAP : FI_SUM;
		o.count = 0;
		EXPECT_EQ(-FI_EINVAL, once(e, to, o, nullptr));
		o.count = SIZE_MAX;
		o.buf = buf;
		o.compare = cmp;
		o.result = res;
		if (k != WRITEV && k != FETCHV && k != COMPAREV) {
			EXPECT_EQ(-FI_EMSGSIZE, once(e, to, o, nullptr));
		}
		o.count = 2;
		o.buf = nullptr;
		EXPECT_EQ(-FI_EINVAL, once(e, to, o, nullptr));
		o.buf = buf;
		o.type = static_cast<enum fi_datatype>(99);
		EXPECT_EQ(-FI_EOPNOTSUPP, once(e, to, o, nullptr));
		o.type = static_cast<enum fi_datatype>(127);
		EXPECT_EQ(-FI_EOPNOTSUPP, once(e, to, o, nullptr));
		o.type = FI_DOUBLE_COMPLEX;
		o.op = compares(o.call) ? FI_CSWAP_LT : FI_MIN;
		EXPECT_EQ(-FI_EOPNOTSUPP, once(e, to, o, nullptr));
	}
	EXPECT_EQ(-FI_EINVAL,
		  fi_atomicv(e, many.data(), nullptr, many.size(), to, 0, KEY,
			     FI_UINT64, FI_SUM, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_atomicv(e, &none, nullptr, 1, to, 0, KEY,
					 FI_UINT64, FI_SUM, nullptr));
	EXPECT_EQ(-FI_EINVAL,
		  fi_fetch_atomicv(e, &two, nullptr, 1, &r, nullptr, 1, to, 0,
				   KEY, FI_UINT64, FI_SUM, nullptr))
		<< "fewer results than values";
	EXPECT_EQ(-FI_EINVAL,
		  fi_compare_atomicv(e, &two, nullptr, 1, &c, nullptr, 1, &two,
				     nullptr, 1, to, 0, KEY, FI_UINT64,
				     FI_CSWAP, nullptr));
	memset(&m, 0, sizeof(m));
	m.msg_iov = &b;
	m.iov_count = 1;
	m.addr = to;
	m.rma_iov = where.data();
	m.datatype = FI_UINT64;
	m.op = FI_SUM;
	for (size_t n : { size_t(0), size_t(2), most + 1 }) {
		m.rma_iov_count = n; /* of one value here */
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(e, &m, 0));
	}
	m.rma_iov_count = 1;
	where[0].count = 2;
	EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(e, &m, 0));
	where[0].count = 1;
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_atomicmsg(e, &m, FI_TAGGED));
	EXPECT_EQ(-FI_EBADFLAGS, fi_atomicmsg(e, &m, FI_REMOTE_CQ_DATA));
	EXPECT_EQ(-FI_EBADFLAGS, fi_atomicmsg(e, &m, FI_MULTI_RECV));
	EXPECT_EQ(-FI_EINVAL, fi_atomic(e, buf, 1, nullptr, to + 77, 0, KEY,
					FI_UINT64, FI_SUM, nullptr));
	EXPECT_TRUE(intact(1));
}

TEST_F(AtomicLimit, InjectedOperandsAreFreeAtOnce)
{
	/* fi_atomic(3) 2.1, FLAGS 4: FI_INJECT: the operands are the caller's
	 * again when the call returns; fi_inject_atomic has no completion, but
	 * a failure is told. */
	Op o;

	OPEN();
	for (auto *from : senders()) {
		/* fi_tandem(7), LIMITS: operands of 1024 bytes. */
		size_t most = 1024 / 8;
		std::vector<uint64_t> big(most + 1, 1);
		struct tdt_comp c;

		OK(expose(most));
		for (int i = 0; i < 100; i++) {
			uint64_t x = 3, cmp = 0, res = 5;
			Op swap;

			o = Op();
			o.call = INJECT;
			o.buf = &x;
			ASSERT_EQ(0, post(from, o, nullptr));
			x = 1000000;
			swap.call = COMPAREMSG;
			swap.flags = FI_INJECT | FI_COMPLETION;
			swap.op = FI_CSWAP;
			uint64_t two[2] = { 8, 8 }, is[2] = { 0, 0 }, was[2];
			swap.buf = two;
			swap.compare = is;
			swap.result = was;
			swap.count = 2;
			swap.at = 8;
			ASSERT_EQ(0, post(from, swap, &res));
			two[0] = two[1] = 99;
			is[0] = is[1] = 99;
			OK(done(from, &res, FI_ATOMIC | FI_READ));
			EXPECT_EQ(8u, word(1));
			(void)cmp;
		}
		OK(behind(from));
		EXPECT_EQ(300u, word(0));
		o.buf = big.data();
		o.count = most;
		ASSERT_EQ(0, post(from, o, nullptr));
		o.count = most + 1;
		EXPECT_EQ(-FI_EMSGSIZE,
			  once(from->ep, addr(from, rx()), o, nullptr));
		o.call = FETCHMSG;
		o.result = big.data();
		o.flags = FI_INJECT;
		EXPECT_EQ(-FI_EMSGSIZE,
			  once(from->ep, addr(from, rx()), o, nullptr));
		OK(behind(from));
		o = Op();
		o.call = INJECT;
		o.buf = big.data();
		o.key = KEY + 5;
		ASSERT_EQ(0, post(from, o, nullptr));
		ASSERT_EQ(0, tdt_wait_next(from, 0, &c));
		EXPECT_EQ(FI_EACCES, c.err);
	}
}

TEST_F(AtomicLimit, SelectiveCompletion)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 6: FI_SELECTIVE_COMPLETION: only an
	 * operation with FI_COMPLETION has an entry. */
	const uint64_t one = 1;
	uint64_t x = 0;

	attr.tx_bind = FI_SELECTIVE_COMPLETION;
	OPEN();
	for (auto *from : senders()) {
		Op quiet, told;

		OK(expose(1));
		quiet.buf = told.buf = &one;
		quiet.result = told.result = &x;
		for (Call c : { WRITE, WRITEV, FETCH }) {
			quiet.call = c;
			ASSERT_EQ(0, post(from, quiet, &quiet));
		}
		quiet.call = WRITEMSG;
		quiet.flags = 0;
		ASSERT_EQ(0, post(from, quiet, &quiet));
		told.call = FETCHMSG;
		told.flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
		ASSERT_EQ(0, post(from, told, &told));
		OK(done(from, &told, FI_ATOMIC | FI_READ));
		EXPECT_EQ(5u, word(0));
		EXPECT_EQ(4u, x);
		EXPECT_EQ(0u, tdt_pending(w));
	}
}

TEST_F(AtomicLimit, FencedOperations)
{
	/* fi_atomic(3) 2.1, FLAGS 5: FI_FENCE: earlier operations to the same
	 * peer complete first. */
	const uint64_t one = 1;
	uint64_t x[10];

	attr.caps |= FI_FENCE;
	OPEN();
	for (auto *from : senders()) {
		OK(expose(1));
		for (uint64_t i = 0; i < 10; i++) {
			Op add, get;

			add.call = WRITEMSG;
			add.buf = &one;
			add.flags = FI_COMPLETION | FI_MORE;
			get.call = FETCHMSG;
			get.op = FI_ATOMIC_READ;
			get.result = &x[i];
			get.flags = FI_COMPLETION | FI_FENCE;
			ASSERT_EQ(0, post(from, add, &add));
			ASSERT_EQ(0, post(from, get, &get));
			/* It was taken, so the other one has ended, unless
			 * both were kept until there is a path. */
			if (i) {
				EXPECT_EQ(i + 1, word(0));
			}
			OK(done(from, &add, FI_ATOMIC | FI_WRITE));
			OK(done(from, &get, FI_ATOMIC | FI_READ));
			EXPECT_EQ(i + 1, x[i]);
		}
	}
}

TEST_F(AtomicLimit, ALateFenceNeedsTheCapability)
{
	const uint64_t one = 1;
	Op o;

	OPEN();
	o.call = WRITEMSG;
	o.buf = &one;
	o.flags = FI_FENCE;
	EXPECT_EQ(-FI_EBADFLAGS,
		  once(ep(1)->ep, addr(ep(1), rx()), o, nullptr));
}

TEST_F(AtomicLimit, R02_AFullCqRefuses)
{
	/* fi_domain(3) 2.1, Resource Management (resource_mgmt) 11:
	 * FI_RM_ENABLED: operations whose entries a full queue could not take
	 * are refused until it is read. Nothing is lost. */
	const uint64_t one = 1;
	const size_t size = 8;

	ONLY_TANDEM();
	attr.cq_size = size;
	attr.tx_size = size;
	OPEN();
	for (auto *from : senders()) {
		size_t n = 0;
		uint64_t x;
		Op add, get;

		OK(expose(1));
		add.buf = &one;
		get.call = FETCH;
		get.buf = &one;
		get.result = &x;
		OK(run(from, add));
		/* Its queue is not read, the others make progress. */
		for (int idle = 0; idle < 20000; idle++) {
			struct fi_cq_tagged_entry e;

			if (!once(from->ep, addr(from, rx()), n % 2 ? add : get,
				  &add)) {
				idle = 0;
				n++;
			}
			EXPECT_EQ(-FI_EAGAIN, fi_cq_read(rx()->rx_cq, &e, 1));
			ASSERT_GE(2 * size, n);
		}
		EXPECT_LE(size, n);
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, tdt_wait(from, &add, nullptr));
		EXPECT_EQ(n + 1, word(0));
		OK(run(from, get));
		EXPECT_EQ(n + 1, x);
	}
}

TEST_F(AtomicLimit, TheCapabilityAlone)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 2: FI_ATOMIC without a direction
	 * means both sides of reads and writes. */
	const uint64_t one = 1;
	uint64_t x = 0;
	Op o;

	attr.caps = FI_ATOMIC;
	OPEN();
	EXPECT_EQ(uint64_t(FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
			   FI_REMOTE_WRITE),
		  rx()->info->caps &
			  (FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
			   FI_REMOTE_WRITE | FI_RMA | FI_MSG | FI_SEND));
	OK(expose(1));
	o.call = FETCH;
	o.buf = &one;
	o.result = &x;
	for (auto *from : senders()) {
		OK(run(from, o));
		EXPECT_EQ(-FI_EOPNOTSUPP,
			  fi_read(from->ep, &x, 8, nullptr, addr(from, rx()), 0,
				  KEY, nullptr));
	}
	EXPECT_EQ(senders().size(), word(0));
}

TEST_F(AtomicLimit, OneSideOnly)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 2: FI_READ alone leaves atomic
	 * operations that read, FI_WRITE alone those that write. */
	const uint64_t one = 1;
	uint64_t x = 0;
	size_t n = 0;

	for (uint64_t side : { FI_READ, FI_WRITE }) {
		attr.caps = FI_MSG | FI_ATOMIC | side | FI_REMOTE_READ |
			    FI_REMOTE_WRITE;
		OPEN();
		OK(expose(1));
		for (auto *from : senders()) {
			Op o;

			o.buf = &one;
			o.result = &x;
			for (Call c : { WRITE, INJECT, FETCH }) {
				bool ok = fetches(c) == (side == FI_READ);

				o.call = c;
				if (ok && c != INJECT) {
					OK(run(from, o));
				}
				if (!ok) {
					EXPECT_EQ(-FI_EOPNOTSUPP,
						  once(from->ep,
						       addr(from, rx()), o,
						       nullptr));
				}
				EXPECT_EQ(ok ? 0 : -FI_EOPNOTSUPP,
					  valid(from->ep, c, FI_UINT64, FI_SUM,
						&n));
			}
		}
		hide();
		close();
	}
}

TEST_F(AtomicLimit, LoweredSizesAreKept)
{
	/* fi_endpoint(3) 2.1, fi_getopt / fi_setopt 13 and 17:
	 * FI_OPT_MAX_ATOMIC_SIZE and FI_OPT_INJECT_ATOMIC_SIZE limit what one
	 * operation may transfer or inject. */
	std::vector<uint64_t> buf(128, 1), cmp(128, 1), res(128);
	size_t most = 64, inject = 16, n = 0;

	ONLY_TANDEM();
	attr.no_enable = 1;
	OPEN();
	for (size_t i = 0; i < w->count; i++) {
		struct fid *f = &ep(i)->ep->fid;
		size_t is = 0, len = sizeof(is);

		EXPECT_EQ(0, fi_getopt(f, FI_OPT_ENDPOINT,
				       FI_OPT_MAX_ATOMIC_SIZE, &is, &len));
		EXPECT_EQ(1024u, is);
		EXPECT_EQ(0, fi_getopt(f, FI_OPT_ENDPOINT,
				       FI_OPT_INJECT_ATOMIC_SIZE, &is, &len));
		EXPECT_EQ(1024u, is); /* fi_tandem(7), LIMITS */
		ASSERT_EQ(0,
			  fi_setopt(f, FI_OPT_ENDPOINT, FI_OPT_MAX_ATOMIC_SIZE,
				    &most, sizeof(most)));
		ASSERT_EQ(0, fi_setopt(f, FI_OPT_ENDPOINT,
				       FI_OPT_INJECT_ATOMIC_SIZE, &inject,
				       sizeof(inject)));
		ASSERT_EQ(0, tdt_ep_enable(ep(i)));
	}
	OK(expose(128));
	for (auto *from : senders()) {
		const struct {
			Call call;
			enum fi_op op;
			size_t most;
		} all[] = { { INJECT, FI_SUM, 2 },
			    { WRITE, FI_SUM, 8 },
			    { FETCH, FI_SUM, 8 },
			    { FETCH, FI_ATOMIC_READ, 8 },
			    { COMPARE, FI_CSWAP, 4 } };
		fi_addr_t to = FI_ADDR_NOTAVAIL;

		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1, &to, 0,
					  nullptr));
		for (auto &a : all) {
			Op o;

			o.call = a.call;
			o.op = a.op;
			o.buf = buf.data();
			o.compare = cmp.data();
			o.result = res.data();
			o.count = a.most;
			if (a.call != INJECT) {
				ASSERT_EQ(0, valid(from->ep, a.call, FI_UINT64,
						   a.op, &n));
				EXPECT_EQ(a.most, n);
			}
			ASSERT_EQ(0, keep_on([&] {
					  return once(from->ep, to, o, &o);
				  }));
			if (a.call != INJECT) {
				OK(done(from, &o, flags_of(a.call)));
			}
			o.count++;
			EXPECT_EQ(-FI_EMSGSIZE, once(from->ep, to, o, &o));
		}
	}
}

TEST_F(AtomicLimit, OfItsOwnMemory)
{
	/* An endpoint may be its own target, and is atomic with the others. */
	const uint64_t one = 1;
	uint64_t x = 0;
	fi_addr_t self;
	Op o;

	OPEN();
	OK(expose(1));
	ASSERT_EQ(1, fi_av_insert(rx()->av, rx()->name, 1, &self, 0, nullptr));
	o.call = FETCH;
	o.buf = &one;
	o.result = &x;
	for (uint64_t i = 0; i < 20; i++) {
		ASSERT_EQ(0,
			  keep_on([&] { return once(rx()->ep, self, o, &o); }));
		for (auto *from : senders()) {
			Op add;

			add.buf = &one;
			OK(run(from, add));
		}
		OK(done(rx(), &o, FI_ATOMIC | FI_READ));
	}
	EXPECT_EQ(20 * w->count, word(0));
}

TEST_F(AtomicLimit, ByAnAlias)
{
	/* fi_endpoint(3) 2.1, fi_ep_alias 1: An alias has other default flags;
	 * the endpoint is the same. */
	const uint64_t one = 1;
	struct fid_ep *alias;
	uint64_t x = 0;

	OPEN();
	OK(expose(1));
	for (auto *from : senders()) {
		Op o;

		ASSERT_EQ(0, fi_ep_alias(from->ep, &alias,
					 FI_TRANSMIT | FI_DELIVERY_COMPLETE));
		made.push_back(&alias->fid);
		o.call = FETCH;
		o.buf = &one;
		o.result = &x;
		ASSERT_EQ(0, keep_on([&] {
				  return once(alias, addr(from, rx()), o, &o);
			  }));
		OK(done(from, &o, FI_ATOMIC | FI_READ));
	}
	EXPECT_EQ(senders().size(), word(0));
	close_parts();
}

TEST_F(AtomicLimit, ATargetThatGoes)
{
	/* fi_tandem(7), FAULTS: "Each operation ends exactly once." */
	const uint64_t one = 1;
	const size_t n = 20;

	OPEN();
	OK(expose(1));
	for (auto *from : senders())
		OK(behind(from));
	for (auto *from : senders()) {
		for (size_t i = 0; i < n; i++) {
			static uint64_t back[64];
			Op o;

			o.call = i % 2 ? FETCH : WRITE;
			o.buf = &one;
			o.result = &back[i];
			ASSERT_EQ(0, once(from->ep, addr(from, rx()), o,
					  &back[i]));
		}
	}
	hide();
	ASSERT_EQ(0, tdt_ep_close(rx()));
	for (auto *from : senders()) {
		for (size_t i = 0; i < n; i++) {
			struct tdt_comp c;

			ASSERT_EQ(0, tdt_wait_next(from, 0, &c));
			EXPECT_TRUE(!c.err || c.err == FI_ECONNRESET ||
				    c.err == FI_EACCES)
				<< fi_strerror(c.err);
		}
	}
}

TEST_F(AtomicLimit, NeedsTheCapability)
{
	/* fi_atomic(3) 2.1, ERRORS 2: -FI_EOPNOTSUPP from an endpoint that has
	 * no atomics. */
	uint64_t buf = 1, res = 0;

	attr.caps = FI_MSG | FI_TAGGED | FI_RMA;
	OPEN();
	EXPECT_FALSE(rx()->info->caps & FI_ATOMIC);
	for (int c = 0; c < CALLS; c++) {
		Op o;
		size_t n = 0;

		o.call = Call(c);
		o.op = compares(o.call) ? FI_CSWAP : FI_SUM;
		o.buf = &buf;
		o.compare = &buf;
		o.result = &res;
		EXPECT_EQ(-FI_EOPNOTSUPP,
			  once(ep(1)->ep, addr(ep(1), rx()), o, nullptr))
			<< names[c];
		EXPECT_EQ(-FI_EOPNOTSUPP,
			  valid(ep(1)->ep, o.call, FI_UINT64, o.op, &n));
	}
}

} // namespace

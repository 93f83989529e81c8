/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of what waits for a counter: triggered operations, deferred work. */
#ifndef TDT_TRIGGER_H
#define TDT_TRIGGER_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include "parts.h"

namespace trigger_test
{

const uint64_t KEY = 0x7219;

struct reach {
	struct fid_cntr *cntr;
	uint64_t value, errors;
};

inline int reached(void *arg)
{
	auto *r = static_cast<struct reach *>(arg);

	return fi_cntr_read(r->cntr) >= r->value &&
	       fi_cntr_readerr(r->cntr) >= r->errors;
}

/* An atomic operation on two words at @at: +2, +2, or 9 where there is 4. */
struct Amo {
	enum fi_op_type kind;
	uint64_t at;
	uint64_t operand[2], compare[2], result[2];
	struct fi_ioc buf, other, back;
	struct fi_rma_ioc where;
	struct fi_msg_atomic m;

	Amo(enum fi_op_type kind, uint64_t at)
		: kind(kind), at(at), operand{ 2, 2 }, compare{ 4, 4 }, result{}
	{
		if (kind == FI_OP_COMPARE_ATOMIC)
			operand[0] = operand[1] = 9;
	}

	/* The arguments of a call. */
	void name(fi_addr_t to, void *context)
	{
		buf = { operand, 2 };
		other = { compare, 2 };
		back = { result, 2 };
		where = { at, 2, KEY };
		m = {};
		m.msg_iov = &buf;
		m.iov_count = 1;
		m.addr = to;
		m.rma_iov = &where;
		m.rma_iov_count = 1;
		m.datatype = FI_UINT64;
		m.op = kind == FI_OP_COMPARE_ATOMIC ? FI_CSWAP : FI_SUM;
		m.context = context;
	}

	/* No argument is looked at later: fi_trigger(3) 2.1, DESCRIPTION 4, has
	 * only the context remain. */
	void forget()
	{
		memset(&buf, 0xee, sizeof(buf));
		memset(&other, 0xee, sizeof(other));
		memset(&back, 0xee, sizeof(back));
		memset(&where, 0xee, sizeof(where));
		memset(&m, 0xee, sizeof(m));
	}
};

class Trigger : public Parts
{
protected:
	/* Valid until the operation has ended. */
	std::vector<std::unique_ptr<struct fi_triggered_context2>> contexts;
	struct fid_mr *mr = nullptr;
	unsigned char region[4096];

	Trigger()
	{
		attr.cntrs = 1;
		attr.caps |= FI_TRIGGER | FI_RMA | FI_ATOMIC;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Parts::TearDown();
	}

	void expose()
	{
		memset(region, 0, sizeof(region));
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, region, sizeof(region),
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
				       0, &mr, nullptr));
	}

	void *when(struct fid_cntr *c, size_t threshold)
	{
		contexts.push_back(
			std::make_unique<struct fi_triggered_context2>());
		auto *x = contexts.back().get();

		memset(x, 0, sizeof(*x));
		x->event_type = FI_TRIGGER_THRESHOLD;
		x->trigger.threshold.cntr = c;
		x->trigger.threshold.threshold = threshold;
		return x;
	}

	void count(struct fid_cntr *c, uint64_t value, uint64_t errors = 0)
	{
		struct reach r = { c, value, errors };

		ASSERT_EQ(0, tdt_wait_until(w, reached, &r))
			<< fi_cntr_read(c) << " of " << value;
		EXPECT_EQ(value, fi_cntr_read(c));
		EXPECT_EQ(errors, fi_cntr_readerr(c));
	}

	/* @len bytes at @buf to @to, or from there, with FI_TRIGGER. */
	ssize_t sendmsg(struct fid_ep *at, void *buf, size_t len, fi_addr_t to,
			void *context, uint64_t flags = FI_TRIGGER)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_msg m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = to;
		m.context = context;
		ssize_t ret = fi_sendmsg(at, &m, flags);

		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	ssize_t recvmsg(struct fid_ep *at, void *buf, size_t len, void *context,
			uint64_t flags = FI_TRIGGER)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_msg m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = FI_ADDR_UNSPEC;
		m.context = context;
		ssize_t ret = fi_recvmsg(at, &m, flags);

		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	ssize_t tagmsg(bool send, struct fid_ep *at, void *buf, size_t len,
		       fi_addr_t addr, uint64_t tag, void *context,
		       uint64_t flags = FI_TRIGGER)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_msg_tagged m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = addr;
		m.tag = tag;
		m.context = context;
		ssize_t ret = send ? fi_tsendmsg(at, &m, flags) :
				     fi_trecvmsg(at, &m, flags);

		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	ssize_t rmamsg(bool write, struct fid_ep *at, void *buf, size_t len,
		       fi_addr_t to, uint64_t place, void *context,
		       uint64_t flags = FI_TRIGGER)
	{
		struct fi_rma_iov there = { place, len, KEY };
		struct iovec iov = iov_of(buf, len);
		struct fi_msg_rma m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.rma_iov = &there;
		m.rma_iov_count = 1;
		m.addr = to;
		m.context = context;
		ssize_t ret = write ? fi_writemsg(at, &m, flags) :
				      fi_readmsg(at, &m, flags);

		memset(&there, 0xee, sizeof(there));
		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	uint64_t &word(size_t i)
	{
		return reinterpret_cast<uint64_t *>(region)[i];
	}

	/* One operation of each kind on words of the region. */
	ssize_t amomsg(struct tdt_ep *from, struct Amo *a, void *context,
		       uint64_t flags = FI_TRIGGER)
	{
		struct fid_ep *at = from->ep;
		ssize_t ret;

		a->name(addr(from, rx()), context);
		ret = a->kind == FI_OP_ATOMIC ?
			      fi_atomicmsg(at, &a->m, flags) :
		      a->kind == FI_OP_FETCH_ATOMIC ?
			      fi_fetch_atomicmsg(at, &a->m, &a->back, nullptr,
						 1, flags) :
			      fi_compare_atomicmsg(at, &a->m, &a->other,
						   nullptr, 1, &a->back,
						   nullptr, 1, flags);
		a->forget();
		return ret;
	}

	/* All that was to happen by now has happened, and nothing else. */
	void quiet(struct tdt_ep *from)
	{
		OK(fence(from));
		EXPECT_EQ(0u, tdt_pending(w));
	}
};

class Work : public Trigger
{
protected:
	struct fi_deferred_work work = {};

	int queue(struct tdt_ep *at)
	{
		return fi_control(&at->domain->fid, FI_QUEUE_WORK, &work);
	}

	void begin(struct fid_cntr *by, uint64_t threshold,
		   struct fid_cntr *counts)
	{
		work.triggering_cntr = by;
		work.threshold = threshold;
		work.completion_cntr = counts;
	}

	/* All that describes it is gone when the call returns. */
	int msg(struct tdt_ep *at, enum fi_op_type type, void *buf, size_t len,
		fi_addr_t peer, void *context, uint64_t flags = 0)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_op_msg op = {};
		int ret;

		op.ep = at->ep;
		op.flags = flags;
		op.msg.msg_iov = &iov;
		op.msg.iov_count = 1;
		op.msg.addr = peer;
		op.msg.context = context;
		work.op_type = type;
		work.op.msg = &op;
		ret = queue(at);
		memset(&op, 0xee, sizeof(op));
		memset(&iov, 0xee, sizeof(iov));
		return ret;
	}

	int tagged(struct tdt_ep *at, enum fi_op_type type, void *buf,
		   size_t len, fi_addr_t peer, void *context,
		   uint64_t flags = 0)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_op_tagged op = {};

		op.ep = at->ep;
		op.flags = flags;
		op.msg.msg_iov = &iov;
		op.msg.iov_count = 1;
		op.msg.addr = peer;
		op.msg.tag = 9;
		op.msg.context = context;
		work.op_type = type;
		work.op.tagged = &op;
		return queue(at);
	}

	int rma(struct tdt_ep *at, enum fi_op_type type, void *buf, size_t len,
		uint64_t key, void *context, uint64_t flags = 0)
	{
		struct fi_rma_iov there = { 0, len, key };
		struct iovec iov = iov_of(buf, len);
		struct fi_op_rma op = {};

		op.ep = at->ep;
		op.flags = flags;
		op.msg.msg_iov = &iov;
		op.msg.iov_count = 1;
		op.msg.rma_iov = &there;
		op.msg.rma_iov_count = 1;
		op.msg.addr = addr(at, rx());
		op.msg.context = context;
		work.op_type = type;
		work.op.rma = &op;
		return queue(at);
	}

	int amo(struct tdt_ep *at, struct Amo *a, void *context,
		uint64_t flags = 0)
	{
		struct fi_op_atomic base = {};
		struct fi_op_fetch_atomic fetch = {};
		struct fi_op_compare_atomic compare = {};
		int ret;

		a->name(addr(at, rx()), context);
		base.ep = fetch.ep = compare.ep = at->ep;
		base.flags = fetch.flags = compare.flags = flags;
		base.msg = fetch.msg = compare.msg = a->m;
		fetch.fetch.msg_iov = compare.fetch.msg_iov = &a->back;
		fetch.fetch.iov_count = compare.fetch.iov_count = 1;
		compare.compare.msg_iov = &a->other;
		compare.compare.iov_count = 1;
		work.op_type = a->kind;
		if (a->kind == FI_OP_ATOMIC)
			work.op.atomic = &base;
		else if (a->kind == FI_OP_FETCH_ATOMIC)
			work.op.fetch_atomic = &fetch;
		else
			work.op.compare_atomic = &compare;
		ret = queue(at);
		a->forget();
		return ret;
	}

	int change(struct tdt_ep *at, enum fi_op_type type, struct fid_cntr *c,
		   uint64_t value)
	{
		struct fi_op_cntr op = { c, value };

		work.op_type = type;
		work.op.cntr = &op;
		return queue(at);
	}
};

} // namespace trigger_test

#endif /* TDT_TRIGGER_H */

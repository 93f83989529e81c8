/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations for tests: the calls of fi_atomic(3) in one form. */
#ifndef TDT_ATOMIC_H
#define TDT_ATOMIC_H

#include <algorithm>

#include <rdma/fi_atomic.h>

#include "parts.h"

namespace atomic_test
{

enum Call {
	WRITE,
	WRITEV,
	WRITEMSG,
	INJECT,
	FETCH,
	FETCHV,
	FETCHMSG,
	COMPARE,
	COMPAREV,
	COMPAREMSG,
	CALLS
};

inline const char *const names[CALLS] = {
	"write",  "writev",   "writemsg", "inject",   "fetch",
	"fetchv", "fetchmsg", "compare",  "comparev", "comparemsg",
};

const uint64_t KEY = 0x4712;

/* One operation; buf, compare and result hold count values. */
struct Op {
	Call call = WRITE;
	enum fi_datatype type = FI_UINT64;
	enum fi_op op = FI_SUM;
	const void *buf = nullptr;
	const void *compare = nullptr;
	void *result = nullptr;
	size_t count = 1, size = 8;
	uint64_t at = 0, key = KEY, flags = FI_COMPLETION;
};

inline struct fi_ioc ioc(const void *p, size_t count)
{
	struct fi_ioc i;

	i.addr = const_cast<void *>(p);
	i.count = count;
	return i;
}

class Atomic : public Parts
{
protected:
	struct fid_mr *mr = nullptr;
	std::vector<uint64_t> region;
	uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;

	Atomic()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_ATOMIC;
	}

	void TearDown() override
	{
		hide();
		Parts::TearDown();
	}

	void hide()
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		mr = nullptr;
	}

	/* The target region, on rx(): @words words of @value. */
	void expose(size_t words, uint64_t value = 0)
	{
		hide();
		region.assign(words + 2, 0xa5a5a5a5a5a5a5a5);
		std::fill(region.begin() + 1, region.end() - 1, value);
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, &region[1], words * 8,
				       access, 0, KEY, 0, &mr, nullptr));
	}

	uint64_t &word(size_t i)
	{
		return region[1 + i];
	}

	/* Nothing but @words words from @at on differ from @value. */
	bool intact(uint64_t value, size_t at = 0, size_t words = 0)
	{
		for (size_t i = 1; i + 1 < region.size(); i++) {
			if ((i < at + 1 || i >= at + 1 + words) &&
			    region[i] != value)
				return false;
		}
		return region.front() == 0xa5a5a5a5a5a5a5a5 &&
		       region.back() == 0xa5a5a5a5a5a5a5a5;
	}

	static bool compares(Call c)
	{
		return c >= COMPARE;
	}
	static bool fetches(Call c)
	{
		return c >= FETCH;
	}
	static uint64_t flags_of(Call c)
	{
		return FI_ATOMIC | (fetches(c) ? FI_READ : FI_WRITE);
	}

	/* Vectors are cut in two where there are two values. */
	static void cut(const Op &o, const void *p, struct fi_ioc *v)
	{
		/* A test may ask for more than there is memory. */
		auto at = reinterpret_cast<uintptr_t>(p);
		size_t half = o.count / 2;

		v[0] = ioc(p, half);
		v[1] = ioc(p ? reinterpret_cast<void *>(at + half * o.size) : p,
			   o.count - half);
	}

	ssize_t once(struct fid_ep *e, fi_addr_t to, const Op &o, void *context)
	{
		struct fi_ioc b[2], c[2], r[2];
		struct fi_rma_ioc where = { o.at, o.count, o.key };
		struct fi_msg_atomic m;

		cut(o, o.buf, b);
		cut(o, o.compare, c);
		cut(o, o.result, r);
		memset(&m, 0, sizeof(m));
		m.msg_iov = b;
		m.iov_count = 2;
		m.addr = to;
		m.rma_iov = &where;
		m.rma_iov_count = 1;
		m.datatype = o.type;
		m.op = o.op;
		m.context = context;
		switch (o.call) {
		case WRITE:
			return fi_atomic(e, o.buf, o.count, nullptr, to, o.at,
					 o.key, o.type, o.op, context);
		case WRITEV:
			return fi_atomicv(e, b, nullptr, 2, to, o.at, o.key,
					  o.type, o.op, context);
		case WRITEMSG:
			return fi_atomicmsg(e, &m, o.flags);
		case INJECT:
			return fi_inject_atomic(e, o.buf, o.count, to, o.at,
						o.key, o.type, o.op);
		case FETCH:
			return fi_fetch_atomic(e, o.buf, o.count, nullptr,
					       o.result, nullptr, to, o.at,
					       o.key, o.type, o.op, context);
		case FETCHV:
			return fi_fetch_atomicv(e, b, nullptr, 2, r, nullptr, 2,
						to, o.at, o.key, o.type, o.op,
						context);
		case FETCHMSG:
			return fi_fetch_atomicmsg(e, &m, r, nullptr, 2,
						  o.flags);
		case COMPARE:
			return fi_compare_atomic(e, o.buf, o.count, nullptr,
						 o.compare, nullptr, o.result,
						 nullptr, to, o.at, o.key,
						 o.type, o.op, context);
		case COMPAREV:
			return fi_compare_atomicv(e, b, nullptr, 2, c, nullptr,
						  2, r, nullptr, 2, to, o.at,
						  o.key, o.type, o.op, context);
		default:
			return fi_compare_atomicmsg(e, &m, c, nullptr, 2, r,
						    nullptr, 2, o.flags);
		}
	}

	ssize_t post(struct tdt_ep *from, const Op &o, void *context)
	{
		return keep_on([&] {
			return once(from->ep, addr(from, rx()), o, context);
		});
	}

	/* Post @o and wait for its end; an inject has none that is told. */
	void run(struct tdt_ep *from, const Op &o)
	{
		char context;

		ASSERT_EQ(0, post(from, o, &context)) << names[o.call];
		if (o.call == INJECT) {
			OK(behind(from));
		} else {
			OK(done(from, &context, flags_of(o.call)));
		}
	}

	/* All of @from's operations before have been carried out. */
	void behind(struct tdt_ep *from)
	{
		uint64_t x = 0;
		Op o;

		o.call = FETCH;
		o.op = FI_ATOMIC_READ;
		o.result = &x;
		OK(run(from, o));
	}

	int valid(struct fid_ep *e, Call c, int type, int op, size_t *count)
	{
		auto t = static_cast<enum fi_datatype>(type);
		auto o = static_cast<enum fi_op>(op);

		return compares(c) ? fi_compare_atomicvalid(e, t, o, count) :
		       fetches(c)  ? fi_fetch_atomicvalid(e, t, o, count) :
				     fi_atomicvalid(e, t, o, count);
	}

	static int query(struct fid_domain *d, Call c, int type, int op,
			 struct fi_atomic_attr *a, uint64_t more = 0)
	{
		return fi_query_atomic(d, static_cast<enum fi_datatype>(type),
				       static_cast<enum fi_op>(op), a,
				       more | (compares(c) ? FI_COMPARE_ATOMIC :
					       fetches(c)  ? FI_FETCH_ATOMIC :
							     0));
	}

	/* An operation that ends with @err; nothing changes anywhere. */
	void refused(struct tdt_ep *from, Op o, int err)
	{
		std::vector<uint64_t> buf(o.count, 3), cmp(o.count, 1),
			result(o.count, 0x77);
		struct tdt_comp c;

		SCOPED_TRACE(testing::Message()
			     << names[o.call] << " at " << o.at);
		o.buf = buf.data();
		o.compare = cmp.data();
		o.result = result.data();
		if (compares(o.call))
			o.op = FI_CSWAP;
		ASSERT_EQ(0, post(from, o, &o));
		ASSERT_EQ(0, o.call == INJECT ? tdt_wait_next(from, 0, &c) :
						tdt_wait(from, &o, &c));
		EXPECT_EQ(err, c.err) << fi_strerror(c.err);
		EXPECT_EQ(flags_of(o.call), c.flags);
		EXPECT_TRUE(intact(1));
		EXPECT_EQ(std::vector<uint64_t>(o.count, 0x77), result);
	}
};

} // namespace atomic_test

#endif /* TDT_ATOMIC_H */

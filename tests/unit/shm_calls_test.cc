/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call that starts a transfer at an endpoint of the shared-memory peer,
 * made by an owner that is not ours: what arrives, what completes, and that a
 * vector with an element that is NULL is refused. Owners may leave out calls
 * that they do not need; ours leaves out most of these. fi_msg(3), fi_tagged(3),
 * fi_rma(3), fi_atomic(3).
 */
#include <algorithm>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "shm_world.h"

#include "tests/harness/mock_rma.h"

using namespace shm_test;

namespace
{

const uint64_t TAG = 0x7a6, DATA = 0xda7a, KEY = 77, WHERE = 8;
const size_t LEN = 32, FIRST = 5; /* bytes, and those of the first element */
const size_t VALUES = 4;	  /* of an atomic operation */

/* The arguments of a call of fi_msg(3), fi_tagged(3) or fi_rma(3). */
struct args {
	struct fid_ep *ep;
	fi_addr_t to;
	const struct iovec *iov;
	size_t count;
	void *context;

	/* Calls that take one buffer take the first. */
	void *buf() const
	{
		return iov->iov_base;
	}

	size_t len() const
	{
		return iov->iov_len;
	}

	struct fi_msg msg() const
	{
		struct fi_msg m = {};

		m.msg_iov = iov;
		m.iov_count = count;
		m.addr = to;
		m.context = context;
		m.data = DATA;
		return m;
	}

	struct fi_msg_tagged tmsg() const
	{
		struct fi_msg_tagged m = {};

		m.msg_iov = iov;
		m.iov_count = count;
		m.addr = to;
		m.tag = TAG;
		m.context = context;
		m.data = DATA;
		return m;
	}

	ssize_t rma(ssize_t (*call)(struct fid_ep *, const struct fi_msg_rma *,
				    uint64_t),
		    uint64_t flags) const
	{
		struct fi_rma_iov at = { WHERE, LEN, KEY };
		struct fi_msg_rma m = {};

		m.msg_iov = iov;
		m.iov_count = count;
		m.addr = to;
		m.rma_iov = &at;
		m.rma_iov_count = 1;
		m.context = context;
		m.data = DATA;
		return call(ep, &m, flags);
	}
};

/* UNCHECKED: the shortest calls trust their owner's look at the buffer. */
enum { VECTOR = 1, INJECT = 2, WITH_DATA = 4, UNCHECKED = 8 };

struct call {
	const char *name;
	uint64_t op; /* flags of the entry at the caller */
	int what;
	ssize_t (*post)(const args &x);
};

const uint64_t SEND = FI_MSG | FI_SEND, TSEND = FI_TAGGED | FI_SEND;
const uint64_t WRITE = FI_RMA | FI_WRITE, READ = FI_RMA | FI_READ;

const call messages[] = {
	{ "send", SEND, 0,
	  [](const args &x) {
		  return fi_send(x.ep, x.buf(), x.len(), nullptr, x.to,
				 x.context);
	  } },
	{ "sendv", SEND, VECTOR,
	  [](const args &x) {
		  return fi_sendv(x.ep, x.iov, nullptr, x.count, x.to,
				  x.context);
	  } },
	{ "sendmsg", SEND, VECTOR | WITH_DATA,
	  [](const args &x) {
		  struct fi_msg m = x.msg();

		  return fi_sendmsg(x.ep, &m, FI_REMOTE_CQ_DATA);
	  } },
	{ "senddata", SEND, WITH_DATA,
	  [](const args &x) {
		  return fi_senddata(x.ep, x.buf(), x.len(), nullptr, DATA,
				     x.to, x.context);
	  } },
	{ "inject", SEND, INJECT | UNCHECKED,
	  [](const args &x) {
		  return fi_inject(x.ep, x.buf(), x.len(), x.to);
	  } },
	{ "injectdata", SEND, INJECT | WITH_DATA | UNCHECKED,
	  [](const args &x) {
		  return fi_injectdata(x.ep, x.buf(), x.len(), DATA, x.to);
	  } },
	{ "tsend", TSEND, 0,
	  [](const args &x) {
		  return fi_tsend(x.ep, x.buf(), x.len(), nullptr, x.to, TAG,
				  x.context);
	  } },
	{ "tsendv", TSEND, VECTOR,
	  [](const args &x) {
		  return fi_tsendv(x.ep, x.iov, nullptr, x.count, x.to, TAG,
				   x.context);
	  } },
	{ "tsendmsg", TSEND, VECTOR | WITH_DATA,
	  [](const args &x) {
		  struct fi_msg_tagged m = x.tmsg();

		  return fi_tsendmsg(x.ep, &m, FI_REMOTE_CQ_DATA);
	  } },
	{ "tsenddata", TSEND, WITH_DATA,
	  [](const args &x) {
		  return fi_tsenddata(x.ep, x.buf(), x.len(), nullptr, DATA,
				      x.to, TAG, x.context);
	  } },
	{ "tinject", TSEND, INJECT | UNCHECKED,
	  [](const args &x) {
		  return fi_tinject(x.ep, x.buf(), x.len(), x.to, TAG);
	  } },
	{ "tinjectdata", TSEND, INJECT | WITH_DATA | UNCHECKED,
	  [](const args &x) {
		  return fi_tinjectdata(x.ep, x.buf(), x.len(), DATA, x.to,
					TAG);
	  } },
};

const call one_sided[] = {
	{ "read", READ, 0,
	  [](const args &x) {
		  return fi_read(x.ep, x.buf(), x.len(), nullptr, x.to, WHERE,
				 KEY, x.context);
	  } },
	{ "readv", READ, VECTOR,
	  [](const args &x) {
		  return fi_readv(x.ep, x.iov, nullptr, x.count, x.to, WHERE,
				  KEY, x.context);
	  } },
	{ "readmsg", READ, VECTOR,
	  [](const args &x) {
		  return x.rma(fi_readmsg, 0);
	  } },
	{ "write", WRITE, 0,
	  [](const args &x) {
		  return fi_write(x.ep, x.buf(), x.len(), nullptr, x.to, WHERE,
				  KEY, x.context);
	  } },
	{ "writev", WRITE, VECTOR,
	  [](const args &x) {
		  return fi_writev(x.ep, x.iov, nullptr, x.count, x.to, WHERE,
				   KEY, x.context);
	  } },
	{ "writemsg", WRITE, VECTOR | WITH_DATA,
	  [](const args &x) {
		  return x.rma(fi_writemsg, FI_REMOTE_CQ_DATA);
	  } },
	{ "writedata", WRITE, WITH_DATA,
	  [](const args &x) {
		  return fi_writedata(x.ep, x.buf(), x.len(), nullptr, DATA,
				      x.to, WHERE, KEY, x.context);
	  } },
	{ "inject_write", WRITE, INJECT,
	  [](const args &x) {
		  return fi_inject_write(x.ep, x.buf(), x.len(), x.to, WHERE,
					 KEY);
	  } },
	{ "inject_writedata", WRITE, INJECT | WITH_DATA,
	  [](const args &x) {
		  return fi_inject_writedata(x.ep, x.buf(), x.len(), DATA, x.to,
					     WHERE, KEY);
	  } },
};

/* The arguments of a call of fi_atomic(3): 64-bit values. */
struct amo_args {
	struct fid_ep *ep;
	fi_addr_t to;
	struct fi_ioc *iov, *compare, *result;
	size_t count; /* of each vector */
	void *context;
	struct fi_rma_ioc at;

	struct fi_msg_atomic msg(enum fi_op op)
	{
		struct fi_msg_atomic m = {};

		at = { WHERE, VALUES, KEY };
		m.msg_iov = iov;
		m.iov_count = count;
		m.addr = to;
		m.rma_iov = &at;
		m.rma_iov_count = 1;
		m.datatype = FI_UINT64;
		m.op = op;
		m.context = context;
		return m;
	}
};

struct amo_call {
	const char *name;
	int what;
	int vectors; /* 1: operands; 2: results too; 3: compared values too */
	ssize_t (*post)(amo_args &x);
};

const amo_call atomics[] = {
	{ "atomic", 0, 1,
	  [](amo_args &x) {
		  return fi_atomic(x.ep, x.iov->addr, x.iov->count, nullptr,
				   x.to, WHERE, KEY, FI_UINT64, FI_SUM,
				   x.context);
	  } },
	{ "atomicv", VECTOR, 1,
	  [](amo_args &x) {
		  return fi_atomicv(x.ep, x.iov, nullptr, x.count, x.to, WHERE,
				    KEY, FI_UINT64, FI_SUM, x.context);
	  } },
	{ "atomicmsg", VECTOR, 1,
	  [](amo_args &x) {
		  struct fi_msg_atomic m = x.msg(FI_SUM);

		  return fi_atomicmsg(x.ep, &m, 0);
	  } },
	{ "inject_atomic", INJECT, 1,
	  [](amo_args &x) {
		  return fi_inject_atomic(x.ep, x.iov->addr, x.iov->count, x.to,
					  WHERE, KEY, FI_UINT64, FI_SUM);
	  } },
	{ "fetch_atomic", 0, 2,
	  [](amo_args &x) {
		  return fi_fetch_atomic(x.ep, x.iov->addr, x.iov->count,
					 nullptr, x.result->addr, nullptr, x.to,
					 WHERE, KEY, FI_UINT64, FI_SUM,
					 x.context);
	  } },
	{ "fetch_atomicv", VECTOR, 2,
	  [](amo_args &x) {
		  return fi_fetch_atomicv(x.ep, x.iov, nullptr, x.count,
					  x.result, nullptr, x.count, x.to,
					  WHERE, KEY, FI_UINT64, FI_SUM,
					  x.context);
	  } },
	{ "fetch_atomicmsg", VECTOR, 2,
	  [](amo_args &x) {
		  struct fi_msg_atomic m = x.msg(FI_SUM);

		  return fi_fetch_atomicmsg(x.ep, &m, x.result, nullptr,
					    x.count, 0);
	  } },
	{ "compare_atomic", 0, 3,
	  [](amo_args &x) {
		  return fi_compare_atomic(x.ep, x.iov->addr, x.iov->count,
					   nullptr, x.compare->addr, nullptr,
					   x.result->addr, nullptr, x.to, WHERE,
					   KEY, FI_UINT64, FI_CSWAP, x.context);
	  } },
	{ "compare_atomicv", VECTOR, 3,
	  [](amo_args &x) {
		  return fi_compare_atomicv(x.ep, x.iov, nullptr, x.count,
					    x.compare, nullptr, x.count,
					    x.result, nullptr, x.count, x.to,
					    WHERE, KEY, FI_UINT64, FI_CSWAP,
					    x.context);
	  } },
	{ "compare_atomicmsg", VECTOR, 3,
	  [](amo_args &x) {
		  struct fi_msg_atomic m = x.msg(FI_CSWAP);

		  return fi_compare_atomicmsg(x.ep, &m, x.compare, nullptr,
					      x.count, x.result, nullptr,
					      x.count, 0);
	  } },
};

} // namespace

/* Two endpoints; every call but the injects writes an entry. */
class ShmCallsTest : public PairTest
{
protected:
	std::vector<unsigned char> memory;

	void SetUp() override
	{
		ShmTest::SetUp();
		make(0, 0);
		meet();
	}

	/* A region of b around the @len bytes at WHERE. */
	void region(size_t len)
	{
		memory = pattern(WHERE + len + 8, 3);
		tdt_region_add(b, KEY, memory.data(), memory.size(),
			       FI_REMOTE_READ | FI_REMOTE_WRITE);
	}

	/* Has the one operation of a ended, here and there? */
	bool one_sided_ended() const
	{
		return a->rma[TDT_READ].value + a->rma[TDT_WRITE].value == 1 &&
		       b->rma[TDT_REMOTE_READ].value +
				       b->rma[TDT_REMOTE_WRITE].value ==
			       1;
	}

	void forget()
	{
		a->dones = b->dones = 0;
		for (auto &c : a->rma)
			c.value = 0;
		for (auto &c : b->rma)
			c.value = 0;
	}

	/* The entry of a call with @flags at a, if it is to write one. */
	void caller_has(uint64_t flags, int what, const void *context)
	{
		ASSERT_EQ(a->dones, what & INJECT ? 0u : 1u);
		if (!a->dones)
			return;
		EXPECT_EQ(a->done[0].err, 0);
		EXPECT_EQ(a->done[0].context, context);
		EXPECT_EQ(a->done[0].flags, flags);
	}

	/* @buf as one element, or as two. */
	static args args_of(struct tdt_owner *o, fi_addr_t to, const call &c,
			    void *buf, struct iovec *iov, void *context)
	{
		if (!(c.what & VECTOR)) {
			iov[0] = { buf, LEN };
			return { o->ep, to, iov, 1, context };
		}
		iov[0] = { buf, FIRST };
		iov[1] = { static_cast<char *>(buf) + FIRST, LEN - FIRST };
		return { o->ep, to, iov, 2, context };
	}

	/* @c with each element NULL in turn does nothing. */
	void null_is_refused(const call &c, const args &x, struct iovec *iov)
	{
		if (c.what & UNCHECKED)
			return;
		for (size_t i = 0; i < x.count; i++) {
			struct iovec was = iov[i];

			iov[i].iov_base = nullptr;
			EXPECT_EQ(retry([&] { return c.post(x); }), -FI_EINVAL)
				<< i;
			iov[i] = was;
		}
	}

	void amo_null_is_refused(const amo_call &c, amo_args x)
	{
		struct fi_ioc *vectors[] = { x.iov, x.result, x.compare };

		for (int v = 0; v < c.vectors; v++) {
			for (size_t i = 0; i < x.count; i++) {
				struct fi_ioc was = vectors[v][i];

				vectors[v][i].addr = nullptr;
				EXPECT_EQ(retry([&] { return c.post(x); }),
					  -FI_EINVAL)
					<< v << " " << i;
				vectors[v][i] = was;
			}
		}
	}
};

TEST_F(ShmCallsTest, EachCallThatSendsAMessage)
{
	for (const call &c : messages) {
		SCOPED_TRACE(c.name);
		auto out = pattern(LEN, unsigned(&c - messages) + 1);
		std::vector<unsigned char> in(LEN + 1, 0xee);
		struct iovec iov[2], to = { in.data(), in.size() };
		int tagged = c.op & FI_TAGGED ? 1 : 0;
		struct tdt_recv r = { tagged, &to, 1,  FI_ADDR_UNSPEC,
				      TAG,    0,   &in };
		args x = args_of(a, to_b, c, out.data(), iov, &out);
		uint64_t sends = a->sends;

		tdt_owner_recv(b, &r);
		null_is_refused(c, x, iov);
		ASSERT_EQ(retry([&] { return c.post(x); }), 0);
		ASSERT_TRUE(
			until([&] { return b->dones && a->sends > sends; }));
		caller_has(c.op, c.what, &out);
		ASSERT_EQ(b->dones, 1u);
		EXPECT_EQ(a->sends, sends + 1);
		const struct tdt_done &d = b->done[0];
		EXPECT_EQ(d.err, 0);
		EXPECT_EQ(d.context, &in);
		EXPECT_EQ(d.flags,
			  ((c.op & ~uint64_t(FI_SEND)) | FI_RECV |
			   (c.what & WITH_DATA ? FI_REMOTE_CQ_DATA : 0)));
		EXPECT_EQ(d.len, LEN);
		EXPECT_EQ(d.src, id_a);
		EXPECT_EQ(d.tag, tagged ? TAG : 0);
		if (c.what & WITH_DATA) {
			EXPECT_EQ(d.data, DATA);
		}
		EXPECT_EQ(in[LEN], 0xee);
		in.pop_back();
		EXPECT_EQ(in, out);
		forget();
	}
}

/* A message with data fills a slot at 104 bytes, one without at 112. */
TEST_F(ShmCallsTest, DataComesWithMessagesOfEachLengthAroundASlot)
{
	const size_t most = 120;

	for (size_t i = 0; i < 4 * (most + 1); i++) {
		const size_t len = i / 4;
		const bool inject = i & 1, late = i & 2;
		auto out = pattern(len, unsigned(i));
		std::vector<unsigned char> in(most, 0xee);
		struct iovec to = { in.data(), in.size() };
		struct tdt_recv r = { 1, &to, 1, FI_ADDR_UNSPEC, TAG, 0, &in };

		SCOPED_TRACE(i);
		if (!late)
			tdt_owner_recv(b, &r);
		ASSERT_EQ(retry([&] {
				  return inject ?
						 fi_tinjectdata(a->ep,
								out.data(), len,
								DATA + i, to_b,
								TAG) :
						 fi_tsenddata(a->ep, out.data(),
							      len, nullptr,
							      DATA + i, to_b,
							      TAG, &out);
			  }),
			  0);
		if (late) {
			for (int k = 0; k < 10; k++)
				tdt_owner_progress(b);
			tdt_owner_recv(b, &r);
		}
		ASSERT_TRUE(until([&] { return b->dones > 0; }));
		EXPECT_EQ(b->done[0].err, 0);
		EXPECT_EQ(b->done[0].len, len);
		EXPECT_EQ(b->done[0].data, DATA + i);
		EXPECT_TRUE(b->done[0].flags & FI_REMOTE_CQ_DATA);
		EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
		EXPECT_EQ(in[len < most ? len : most - 1],
			  len < most ? 0xee : out.back());
		forget();
	}
}

TEST_F(ShmCallsTest, EachOneSidedCall)
{
	for (const call &c : one_sided) {
		SCOPED_TRACE(c.name);
		auto buf = pattern(LEN, unsigned(&c - one_sided) + 20);
		bool reads = c.op & FI_READ;
		struct iovec iov[2];
		args x = args_of(a, to_b, c, buf.data(), iov, &buf);

		region(LEN);
		auto want = memory;
		if (!reads)
			std::copy(buf.begin(), buf.end(), &want[WHERE]);
		null_is_refused(c, x, iov);
		ASSERT_EQ(retry([&] { return c.post(x); }), 0);
		ASSERT_TRUE(until([&] { return one_sided_ended(); }));
		caller_has(c.op, c.what, &buf);
		EXPECT_EQ(memory, want);
		EXPECT_TRUE(std::equal(buf.begin(), buf.end(), &want[WHERE]));
		EXPECT_EQ(a->rma[TDT_READ].value, reads ? 1u : 0u);
		EXPECT_EQ(b->rma[TDT_REMOTE_READ].value, reads ? 1u : 0u);
		ASSERT_EQ(b->dones, c.what & WITH_DATA ? 1u : 0u);
		if (b->dones) {
			EXPECT_EQ(b->done[0].err, 0);
			EXPECT_EQ(b->done[0].flags,
				  uint64_t(FI_RMA | FI_REMOTE_WRITE |
					   FI_REMOTE_CQ_DATA));
			EXPECT_EQ(b->done[0].data, DATA);
			EXPECT_EQ(b->done[0].src, id_a);
		}
		tdt_region_close(b, KEY);
		forget();
	}
}

TEST_F(ShmCallsTest, EachAtomicCall)
{
	for (const amo_call &c : atomics) {
		SCOPED_TRACE(c.name);
		uint64_t was[VALUES] = { 10, 20, 30, 40 };
		uint64_t buf[VALUES] = { 1, 2, 3, 4 }, res[VALUES] = {};
		uint64_t cmp[VALUES] = { 10, 0, 0, 40 }, now[VALUES];
		size_t n = c.what & VECTOR ? 2 : 1;
		struct fi_ioc iov[] = { { buf, 1 }, { buf + 1, VALUES - 1 } };
		struct fi_ioc compare[] = { { cmp, VALUES - 1 },
					    { cmp + VALUES - 1, 1 } };
		struct fi_ioc result[] = { { res, 2 },
					   { res + 2, VALUES - 2 } };
		amo_args x = { a->ep, to_b, iov, compare, result, n, buf, {} };

		if (n == 1)
			iov->count = compare->count = result->count = VALUES;
		region(sizeof(was));
		memcpy(&memory[WHERE], was, sizeof(was));
		amo_null_is_refused(c, x);
		ASSERT_EQ(retry([&] { return c.post(x); }), 0);
		ASSERT_TRUE(until([&] { return one_sided_ended(); }));
		caller_has(FI_ATOMIC | (c.vectors > 1 ? FI_READ : FI_WRITE),
			   c.what, buf);
		memcpy(now, &memory[WHERE], sizeof(now));
		for (size_t i = 0; i < VALUES; i++) {
			uint64_t swapped = cmp[i] == was[i] ? buf[i] : was[i];

			EXPECT_EQ(now[i],
				  c.vectors == 3 ? swapped : was[i] + buf[i]);
			EXPECT_EQ(res[i], c.vectors > 1 ? was[i] : 0);
		}
		EXPECT_EQ(b->dones, 0u);
		tdt_region_close(b, KEY);
		forget();
	}
}

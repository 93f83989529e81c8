/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bad arguments of the data calls as one table: every call of fi_msg(3),
 * fi_tagged(3), fi_rma(3) and fi_atomic(3) gets every bad vector, flag and
 * address, and answers with the same code as all others.
 *
 * The codes: -FI_EINVAL for what cannot be an argument, -FI_EMSGSIZE for more
 * bytes than a transfer may have, -FI_EBADFLAGS for flags (fi_tandem(7),
 * LIMITS).
 */
#include <functional>
#include <map>
#include <set>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

const uint64_t KEY = 0x77, TAG = 5;

/* The arguments of a call. */
struct Args {
	struct fid_ep *ep;
	fi_addr_t to;
	const struct iovec *iov;
	size_t count;
	uint64_t flags;
	void *context;

	/* The vector in values of 8 bytes; one that is too long stays so. */
	std::vector<struct fi_ioc> iocs() const
	{
		std::vector<struct fi_ioc> list;

		for (size_t i = 0; iov && i < count && i < 64; i++)
			list.push_back({ iov[i].iov_base,
					 iov[i].iov_len == SIZE_MAX ?
						 SIZE_MAX :
						 iov[i].iov_len / 8 });
		return list;
	}
};

struct Call {
	const char *name;
	unsigned kind;
	std::function<ssize_t(const Args &)> post;
};

enum {
	VECTOR = 1,    /* takes a vector */
	FLAGS = 2,     /* takes flags */
	ADDRESSED = 4, /* to somebody: not a receive */
	ATOMIC = 8,    /* the family: one of these four */
	MSG = 16,
	TAGGED = 32,
	RMA = 64,
	INJECT = 128,
	FAMILY = ATOMIC | MSG | TAGGED | RMA,
};

const void *base(const Args &a)
{
	return a.iov->iov_base;
}

size_t len(const Args &a)
{
	return a.iov->iov_len;
}

struct fi_msg msg_of(const Args &a)
{
	return { a.iov, nullptr, a.count, a.to, a.context, 0 };
}

struct fi_msg_tagged tagged_of(const Args &a)
{
	return { a.iov, nullptr, a.count, a.to, TAG, 0, a.context, 0 };
}

#define MSG_CALL(call)                                                         \
	[](const Args &a) {                                                    \
		struct fi_msg m = msg_of(a);                                   \
		return call(a.ep, &m, a.flags);                                \
	}
#define TAGGED_CALL(call)                                                      \
	[](const Args &a) {                                                    \
		struct fi_msg_tagged m = tagged_of(a);                         \
		return call(a.ep, &m, a.flags);                                \
	}
#define RMA_CALL(call)                                                         \
	[](const Args &a) {                                                    \
		size_t bytes = 0;                                              \
		for (size_t i = 0; a.iov && i < a.count && i < 64; i++)        \
			bytes += a.iov[i].iov_len;                             \
		struct fi_rma_iov at = { 0, bytes, KEY };                      \
		struct fi_msg_rma m = { a.iov, nullptr, a.count,   a.to,       \
					&at,   1,	a.context, 0 };        \
		return call(a.ep, &m, a.flags);                                \
	}

/* The same vector in the place of every operand and of the result. */
struct Amo {
	std::vector<struct fi_ioc> ioc;
	struct fi_rma_ioc at = { 0, 1, KEY };
	struct fi_msg_atomic m = {};

	Amo(const Args &a, enum fi_op op) : ioc(a.iocs())
	{
		size_t values = 0;

		/* As many there as here, unless there are none or too many. */
		for (const struct fi_ioc &i : ioc)
			values += i.count;
		at.count = values ? values : 1;
		m.msg_iov = data(a);
		m.iov_count = a.count;
		m.addr = a.to;
		m.rma_iov = &at;
		m.rma_iov_count = 1;
		m.datatype = FI_UINT64;
		m.op = op;
		m.context = a.context;
	}
	struct fi_ioc *data(const Args &a)
	{
		return a.iov ? ioc.data() : nullptr;
	}
};

const Call calls[] = {
	{ "send", ADDRESSED | MSG,
	  [](const Args &a) {
		  return fi_send(a.ep, base(a), len(a), nullptr, a.to,
				 a.context);
	  } },
	{ "sendv", VECTOR | ADDRESSED | MSG,
	  [](const Args &a) {
		  return fi_sendv(a.ep, a.iov, nullptr, a.count, a.to,
				  a.context);
	  } },
	{ "sendmsg", VECTOR | FLAGS | ADDRESSED | MSG, MSG_CALL(fi_sendmsg) },
	{ "senddata", ADDRESSED | MSG,
	  [](const Args &a) {
		  return fi_senddata(a.ep, base(a), len(a), nullptr, 0, a.to,
				     a.context);
	  } },
	{ "inject", ADDRESSED | MSG | INJECT,
	  [](const Args &a) {
		  return fi_inject(a.ep, base(a), len(a), a.to);
	  } },
	{ "injectdata", ADDRESSED | MSG | INJECT,
	  [](const Args &a) {
		  return fi_injectdata(a.ep, base(a), len(a), 0, a.to);
	  } },
	{ "recv", MSG,
	  [](const Args &a) {
		  return fi_recv(a.ep, a.iov->iov_base, len(a), nullptr, a.to,
				 a.context);
	  } },
	{ "recvv", VECTOR | MSG,
	  [](const Args &a) {
		  return fi_recvv(a.ep, a.iov, nullptr, a.count, a.to,
				  a.context);
	  } },
	{ "recvmsg", VECTOR | FLAGS | MSG, MSG_CALL(fi_recvmsg) },
	{ "tsend", ADDRESSED | TAGGED,
	  [](const Args &a) {
		  return fi_tsend(a.ep, base(a), len(a), nullptr, a.to, TAG,
				  a.context);
	  } },
	{ "tsendv", VECTOR | ADDRESSED | TAGGED,
	  [](const Args &a) {
		  return fi_tsendv(a.ep, a.iov, nullptr, a.count, a.to, TAG,
				   a.context);
	  } },
	{ "tsendmsg", VECTOR | FLAGS | ADDRESSED | TAGGED,
	  TAGGED_CALL(fi_tsendmsg) },
	{ "tsenddata", ADDRESSED | TAGGED,
	  [](const Args &a) {
		  return fi_tsenddata(a.ep, base(a), len(a), nullptr, 0, a.to,
				      TAG, a.context);
	  } },
	{ "tinject", ADDRESSED | TAGGED | INJECT,
	  [](const Args &a) {
		  return fi_tinject(a.ep, base(a), len(a), a.to, TAG);
	  } },
	{ "tinjectdata", ADDRESSED | TAGGED | INJECT,
	  [](const Args &a) {
		  return fi_tinjectdata(a.ep, base(a), len(a), 0, a.to, TAG);
	  } },
	{ "trecv", TAGGED,
	  [](const Args &a) {
		  return fi_trecv(a.ep, a.iov->iov_base, len(a), nullptr, a.to,
				  TAG, 0, a.context);
	  } },
	{ "trecvv", VECTOR | TAGGED,
	  [](const Args &a) {
		  return fi_trecvv(a.ep, a.iov, nullptr, a.count, a.to, TAG, 0,
				   a.context);
	  } },
	{ "trecvmsg", VECTOR | FLAGS | TAGGED, TAGGED_CALL(fi_trecvmsg) },
	{ "read", ADDRESSED | RMA,
	  [](const Args &a) {
		  return fi_read(a.ep, a.iov->iov_base, len(a), nullptr, a.to,
				 0, KEY, a.context);
	  } },
	{ "readv", VECTOR | ADDRESSED | RMA,
	  [](const Args &a) {
		  return fi_readv(a.ep, a.iov, nullptr, a.count, a.to, 0, KEY,
				  a.context);
	  } },
	{ "readmsg", VECTOR | FLAGS | ADDRESSED | RMA, RMA_CALL(fi_readmsg) },
	{ "write", ADDRESSED | RMA,
	  [](const Args &a) {
		  return fi_write(a.ep, base(a), len(a), nullptr, a.to, 0, KEY,
				  a.context);
	  } },
	{ "writev", VECTOR | ADDRESSED | RMA,
	  [](const Args &a) {
		  return fi_writev(a.ep, a.iov, nullptr, a.count, a.to, 0, KEY,
				   a.context);
	  } },
	{ "writemsg", VECTOR | FLAGS | ADDRESSED | RMA, RMA_CALL(fi_writemsg) },
	{ "writedata", ADDRESSED | RMA,
	  [](const Args &a) {
		  return fi_writedata(a.ep, base(a), len(a), nullptr, 0, a.to,
				      0, KEY, a.context);
	  } },
	{ "inject_write", ADDRESSED | RMA | INJECT,
	  [](const Args &a) {
		  return fi_inject_write(a.ep, base(a), len(a), a.to, 0, KEY);
	  } },
	{ "inject_writedata", ADDRESSED | RMA | INJECT,
	  [](const Args &a) {
		  return fi_inject_writedata(a.ep, base(a), len(a), 0, a.to, 0,
					     KEY);
	  } },
	{ "atomic", ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  return fi_atomic(a.ep, base(a), a.iocs()[0].count, nullptr,
				   a.to, 0, KEY, FI_UINT64, FI_SUM, a.context);
	  } },
	{ "inject_atomic", ADDRESSED | ATOMIC | INJECT,
	  [](const Args &a) {
		  return fi_inject_atomic(a.ep, base(a), a.iocs()[0].count,
					  a.to, 0, KEY, FI_UINT64, FI_SUM);
	  } },
	{ "atomicv", VECTOR | ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  Amo x(a, FI_SUM);
		  return fi_atomicv(a.ep, x.data(a), nullptr, a.count, a.to, 0,
				    KEY, FI_UINT64, FI_SUM, a.context);
	  } },
	{ "atomicmsg", VECTOR | FLAGS | ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  Amo x(a, FI_SUM);
		  return fi_atomicmsg(a.ep, &x.m, a.flags);
	  } },
	{ "fetch_atomic", ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  return fi_fetch_atomic(a.ep, base(a), a.iocs()[0].count,
					 nullptr, a.iov->iov_base, nullptr,
					 a.to, 0, KEY, FI_UINT64, FI_SUM,
					 a.context);
	  } },
	{ "fetch_atomicv", VECTOR | ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  Amo x(a, FI_SUM);
		  return fi_fetch_atomicv(a.ep, x.data(a), nullptr, a.count,
					  x.data(a), nullptr, a.count, a.to, 0,
					  KEY, FI_UINT64, FI_SUM, a.context);
	  } },
	{ "fetch_atomicmsg", VECTOR | FLAGS | ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  Amo x(a, FI_SUM);
		  return fi_fetch_atomicmsg(a.ep, &x.m, x.data(a), nullptr,
					    a.count, a.flags);
	  } },
	{ "compare_atomic", ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  return fi_compare_atomic(a.ep, base(a), a.iocs()[0].count,
					   nullptr, base(a), nullptr,
					   a.iov->iov_base, nullptr, a.to, 0,
					   KEY, FI_UINT64, FI_CSWAP, a.context);
	  } },
	{ "compare_atomicv", VECTOR | ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  Amo x(a, FI_CSWAP);
		  return fi_compare_atomicv(a.ep, x.data(a), nullptr, a.count,
					    x.data(a), nullptr, a.count,
					    x.data(a), nullptr, a.count, a.to,
					    0, KEY, FI_UINT64, FI_CSWAP,
					    a.context);
	  } },
	{ "compare_atomicmsg", VECTOR | FLAGS | ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  Amo x(a, FI_CSWAP);
		  return fi_compare_atomicmsg(a.ep, &x.m, x.data(a), nullptr,
					      a.count, x.data(a), nullptr,
					      a.count, a.flags);
	  } },
};

class BadCall : public Case
{
protected:
	struct fid_mr *mr = nullptr;
	uint64_t region[8] = {}, mem[64] = {};

	BadCall()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	}

	void start()
	{
		OPEN();
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, region, sizeof(region),
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
				       0, &mr, nullptr));
		ASSERT_EQ(0, tdt_warm_up(w));
	}

	void TearDown() override
	{
		/* Nothing was posted or sent: a message goes to its receive. */
		for (auto *from :
		     w ? senders() : std::vector<struct tdt_ep *>()) {
			OK(fence(from));
		}
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		for (uint64_t v : region)
			EXPECT_EQ(0u, v);
		Case::TearDown();
	}

	/* Every call of all of @kind is refused with @err. */
	void refused(unsigned kind, const std::vector<struct iovec> &iov,
		     size_t count, int err, const char *what, unsigned but = 0)
	{
		for (auto *from : senders()) {
			Args a = { from->ep,
				   addr(from, rx()),
				   iov.empty() ? nullptr : iov.data(),
				   count,
				   0,
				   this };

			for (const Call &c : calls) {
				if ((c.kind & kind) != kind || c.kind & but)
					continue;
				EXPECT_EQ(-err, c.post(a))
					<< "fi_" << c.name << ": " << what;
			}
		}
	}
};

/* Does the name of @c have @part, at its end if @end? */
bool has(const Call &c, const std::string &part, bool end = false)
{
	const std::string name = c.name;
	size_t at = end ? name.rfind(part) : name.find(part);

	return at != std::string::npos &&
	       (!end || at + part.size() == name.size());
}

/* The calls in a table of libfabric, after its size. */
template <class Ops> size_t slots()
{
	return (sizeof(Ops) - sizeof(size_t)) / sizeof(void (*)());
}

TEST(BadCalls, EveryCallHasItsRow)
{
	/* A test that selects rows by their kind gets all of that kind. */
	std::map<unsigned, size_t> rows;
	std::set<std::string> names;

	for (const Call &c : calls) {
		bool message = has(c, "msg", true);

		rows[c.kind & FAMILY]++;
		EXPECT_TRUE(names.insert(c.name).second) << c.name;
		EXPECT_EQ(message, !!(c.kind & FLAGS)) << c.name;
		EXPECT_EQ(message ||
				  (has(c, "v", true) && !has(c, "recv", true)),
			  !!(c.kind & VECTOR))
			<< c.name;
		EXPECT_EQ(has(c, "inject"), !!(c.kind & INJECT)) << c.name;
		EXPECT_NE(has(c, "recv"), !!(c.kind & ADDRESSED)) << c.name;
	}
	EXPECT_EQ(slots<struct fi_ops_msg>(), rows[MSG]);
	EXPECT_EQ(slots<struct fi_ops_tagged>(), rows[TAGGED]);
	EXPECT_EQ(slots<struct fi_ops_rma>(), rows[RMA]);
	/* Three of them ask what there is: fi_atomicvalid() and its like. */
	EXPECT_EQ(slots<struct fi_ops_atomic>() - 3, rows[ATOMIC]);
	EXPECT_EQ(4u, rows.size());
}

TEST_F(BadCall, VectorsThatAreNone)
{
	/* fi_msg(3) 2.1, ARGUMENTS 4 and 5: A vector has as many entries as the
	 * count says. fi_endpoint(3) 2.1, iov_limit 1: how many there may
	 * be. */
	ONLY_TANDEM();
	OK(start());
	size_t most = rx()->info->tx_attr->iov_limit;
	const struct iovec good = iov_of(mem, 8), null = iov_of(nullptr, 8);
	std::vector<struct iovec> many(most + 1, good), late(most, good);

	late.back() = null;
	refused(VECTOR, {}, 1, FI_EINVAL, "no vector");
	refused(VECTOR, {}, most, FI_EINVAL, "no vector of the most elements");
	refused(VECTOR, { null }, 1, FI_EINVAL, "element without memory");
	refused(VECTOR, { good, null }, 2, FI_EINVAL, "second without memory");
	refused(VECTOR, late, most, FI_EINVAL, "last without memory");
	refused(VECTOR, many, most + 1, FI_EINVAL, "one element too many");
	refused(VECTOR, {}, SIZE_MAX, FI_EINVAL, "no vector, endless");
	refused(VECTOR | ATOMIC, { good }, 0, FI_EINVAL, "no value");
}

TEST_F(BadCall, VectorsThatAreTooLong)
{
	/* fi_endpoint(3) 2.1, max_msg_size - Max Message Size 1: the longest
	 * transfer. The sum of a vector is the length of one. */
	ONLY_TANDEM();
	OK(start());
	const struct iovec all = iov_of(mem, SIZE_MAX), one = iov_of(mem, 8);
	const struct iovec half = iov_of(mem, SIZE_MAX / 2 + 1);

	refused(VECTOR, { all }, 1, FI_EMSGSIZE, "longer than any");
	refused(VECTOR, { all, one }, 2, FI_EMSGSIZE, "overflows");
	refused(VECTOR, { one, all }, 2, FI_EMSGSIZE, "overflows at the end");
	refused(VECTOR, { half, half }, 2, FI_EMSGSIZE, "sum is 0");
}

TEST_F(BadCall, BuffersThatAreNone)
{
	ONLY_TANDEM();
	OK(start());
	refused(0, { iov_of(nullptr, 8) }, 1, FI_EINVAL, "NULL");
}

TEST_F(BadCall, BuffersThatAreTooLong)
{
	/* fi_endpoint(3), max_msg_size: as for vectors, receives included. */
	ONLY_TANDEM();
	OK(start());
	for (size_t len : { size_t(SIZE_MAX), size_t(SIZE_MAX) / 2 + 1 })
		refused(0, { iov_of(mem, len) }, 1, FI_EMSGSIZE, "long");
}

/*
 * The flags that the sections FLAGS of fi_msg(3), fi_tagged(3), fi_rma(3) and
 * fi_atomic(3) list for @c, FI_FENCE apart, which was not granted.
 */
uint64_t taken(const Call &c)
{
	const uint64_t level = FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
			       FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
	const uint64_t all = FI_COMPLETION | FI_MORE;

	if (!(c.kind & ADDRESSED))
		return all | FI_AUTH_KEY |
		       (c.kind & MSG ? FI_MULTI_RECV :
				       FI_PEEK | FI_CLAIM | FI_DISCARD);
	if (c.kind & ATOMIC)
		return all | level | FI_INJECT | FI_TAGGED;
	if (c.name == std::string("readmsg"))
		return all | level;
	return all | level | FI_INJECT | FI_REMOTE_CQ_DATA;
}

TEST_F(BadCall, Flags)
{
	/* Each bit that the call does not take. FI_TAGGED is for atomic
	 * operations on tagged receive buffers, fi_atomic(3) 2.1, FLAGS 7,
	 * which no provider has to offer. */
	ONLY_TANDEM();
	OK(start());
	const struct iovec good = iov_of(mem, 8);

	for (auto *from : senders()) {
		for (const Call &c : calls) {
			for (int bit = 0; bit < 64 && c.kind & FLAGS; bit++) {
				Args a = { from->ep, addr(from, rx()), &good,
					   1,	     1ull << bit,      this };

				if (!(a.flags & taken(c))) {
					EXPECT_EQ(-FI_EBADFLAGS, c.post(a))
						<< c.name << " bit " << bit;
				}
				if (a.flags == FI_TAGGED && c.kind & ATOMIC) {
					EXPECT_EQ(-FI_EOPNOTSUPP, c.post(a))
						<< c.name;
				}
			}
		}
	}
}

TEST_F(BadCall, InjectsThatAreTooLong)
{
	/* fi_endpoint(3) 2.1, inject_size 1: the most bytes that a call may
	 * inject, be it by its name or by FI_INJECT. */
	ONLY_TANDEM();
	OK(start());
	size_t most = rx()->info->tx_attr->inject_size;

	std::vector<char> big(most + 8);
	const struct iovec more = iov_of(big.data(), big.size());
	for (auto *from : senders()) {
		for (const Call &c : calls) {
			Args a = { from->ep, addr(from, rx()), &more,
				   1,	     FI_INJECT,	       this };

			if (c.kind & INJECT ||
			    (c.kind & FLAGS && taken(c) & FI_INJECT)) {
				EXPECT_EQ(-FI_EMSGSIZE, c.post(a)) << c.name;
			}
		}
	}
}

TEST_F(BadCall, Addresses)
{
	/* fi_av(3) 2.1, DESCRIPTION 1: An fi_addr_t is what an insertion
	 * returned. fi_getinfo(3) 2.1, CAPABILITIES 5: With FI_DIRECTED_RECV,
	 * that of a receive is its source; FI_ADDR_UNSPEC is any source. */
	ONLY_TANDEM();
	attr.caps |= FI_DIRECTED_RECV;
	OK(start());
	const struct iovec good = iov_of(mem, 8);

	for (auto *from : senders()) {
		for (fi_addr_t to :
		     { fi_addr_t(w->count), fi_addr_t(1) << 32,
		       fi_addr_t(1) << 63, fi_addr_t(FI_ADDR_UNSPEC) }) {
			for (const Call &c : calls) {
				Args a = { from->ep, to, &good, 1, 0, this };

				if (c.kind & ADDRESSED ||
				    to != FI_ADDR_UNSPEC) {
					EXPECT_EQ(-FI_EINVAL, c.post(a))
						<< c.name << " " << to;
				}
			}
		}
	}
}

TEST_F(BadCall, PlacesAtTheTarget)
{
	/* fi_rma(3) 2.1, fi_writemsg 1, and fi_atomic(3) 2.1, Base Atomic
	 * Functions 5: The ranges at the target are as long as the buffers
	 * here. fi_endpoint(3) 2.1, rma_iov_limit 1: how many there may be. */
	ONLY_TANDEM();
	OK(start());
	size_t most = rx()->info->tx_attr->rma_iov_limit;
	const struct iovec good = iov_of(mem, 8);
	std::vector<struct fi_rma_iov> at(most + 1, { 0, 8, KEY });
	struct fi_rma_iov other = { 0, 9, KEY };
	struct fi_rma_ioc values = { 0, 1, KEY }, none = { 0, 0, KEY };
	struct fi_ioc ioc = { mem, 1 };

	for (auto *from : senders()) {
		struct fi_msg_rma m = {
			&good, nullptr, 1, addr(from, rx()), nullptr, 1, this, 0
		};
		struct fi_msg_atomic x = { &ioc,      nullptr,
					   1,	      addr(from, rx()),
					   nullptr,   1,
					   FI_UINT64, FI_SUM,
					   this,      0 };
		auto both = [&](const char *what) {
			EXPECT_EQ(-FI_EINVAL, fi_writemsg(from->ep, &m, 0))
				<< what;
			EXPECT_EQ(-FI_EINVAL, fi_readmsg(from->ep, &m, 0))
				<< what;
		};

		both("no vector");
		m.rma_iov = at.data();
		m.rma_iov_count = 0;
		both("of no element");
		m.rma_iov_count = most + 1;
		both("too many");
		m.rma_iov_count = SIZE_MAX;
		both("endless");
		m.rma_iov = &other;
		m.rma_iov_count = 1;
		both("another length");
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(from->ep, &x, 0));
		x.rma_iov = &values;
		x.rma_iov_count = 0;
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(from->ep, &x, 0));
		x.rma_iov_count = SIZE_MAX;
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(from->ep, &x, 0));
		x.rma_iov = &none;
		x.rma_iov_count = 1;
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(from->ep, &x, 0));
	}
}

TEST_F(BadCall, ElementsWithoutBytesMayBeNull)
{
	/* fi_msg(3) 2.1, ARGUMENTS 3: Transfers of 0 bytes are valid; then no
	 * byte of a buffer is touched. */
	ONLY_TANDEM();
	OK(start());
	const struct iovec empty = iov_of(nullptr, 0);
	const struct iovec mixed[2] = { empty, iov_of(mem, 8) };
	char ctx;

	for (auto *from : senders()) {
		for (const Call &c : calls) {
			uint64_t reads = c.name[0] == 'r';
			Args a = { from->ep, addr(from, rx()), &empty,
				   1,	     FI_COMPLETION,    &ctx };

			if ((c.kind & (VECTOR | ADDRESSED | ATOMIC)) !=
				    (VECTOR | ADDRESSED) ||
			    strstr(c.name, "send"))
				continue;
			for (int k = 0; k < 3; k++) {
				if (k == 1)
					a.count = 0;
				if (k == 2) {
					a.iov = mixed;
					a.count = 2;
				}
				ASSERT_EQ(0, c.post(a)) << c.name;
				OK(done(from, &ctx,
					FI_RMA | (reads ? FI_READ : FI_WRITE)));
			}
		}
	}
}

/* An endpoint that takes no call, whatever its arguments. */
class NoCall : public Case
{
protected:
	uint64_t mem = 0;

	void refused(unsigned but, int err)
	{
		const struct iovec good = iov_of(&mem, sizeof(mem));
		Args a = { rx()->ep, 0, &good, 1, 0, this };

		for (const Call &c : calls) {
			if (!(c.kind & but)) {
				EXPECT_EQ(-err, c.post(a)) << c.name;
			}
		}
	}
};

TEST_F(NoCall, DisabledEndpoint)
{
	/* fi_endpoint(3) 2.1, fi_enable 1: an endpoint moves data once it is
	 * enabled. */
	ONLY_TANDEM();
	attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	attr.eps = 1;
	attr.no_enable = 1;
	OPEN();
	refused(0, FI_EOPBADSTATE);
	ASSERT_EQ(0, tdt_ep_enable(rx()));
}

TEST_F(NoCall, FamiliesThatWereNotAskedFor)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 34: capabilities that were not asked
	 * for need not work, and here do not. */
	ONLY_TANDEM();
	for (auto family :
	     { std::make_pair(MSG, FI_MSG), std::make_pair(TAGGED, FI_TAGGED),
	       std::make_pair(RMA, FI_RMA),
	       std::make_pair(ATOMIC, FI_ATOMIC) }) {
		attr.caps = family.second;
		OPEN();
		refused(family.first, FI_EOPNOTSUPP);
		tdt_world_close(w);
		w = nullptr;
	}
}

} // namespace

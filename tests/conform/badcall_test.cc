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

	/* The vector in values of 8 bytes; what is too long stays so. */
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
	ATOMIC = 8,
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
	{ "send", ADDRESSED,
	  [](const Args &a) {
		  return fi_send(a.ep, base(a), len(a), nullptr, a.to,
				 a.context);
	  } },
	{ "sendv", VECTOR | ADDRESSED,
	  [](const Args &a) {
		  return fi_sendv(a.ep, a.iov, nullptr, a.count, a.to,
				  a.context);
	  } },
	{ "sendmsg", VECTOR | FLAGS | ADDRESSED, MSG_CALL(fi_sendmsg) },
	{ "senddata", ADDRESSED,
	  [](const Args &a) {
		  return fi_senddata(a.ep, base(a), len(a), nullptr, 0, a.to,
				     a.context);
	  } },
	{ "inject", ADDRESSED,
	  [](const Args &a) {
		  return fi_inject(a.ep, base(a), len(a), a.to);
	  } },
	{ "injectdata", ADDRESSED,
	  [](const Args &a) {
		  return fi_injectdata(a.ep, base(a), len(a), 0, a.to);
	  } },
	{ "recv", 0,
	  [](const Args &a) {
		  return fi_recv(a.ep, a.iov->iov_base, len(a), nullptr,
				 FI_ADDR_UNSPEC, a.context);
	  } },
	{ "recvv", VECTOR,
	  [](const Args &a) {
		  return fi_recvv(a.ep, a.iov, nullptr, a.count, FI_ADDR_UNSPEC,
				  a.context);
	  } },
	{ "recvmsg", VECTOR | FLAGS, MSG_CALL(fi_recvmsg) },
	{ "tsend", ADDRESSED,
	  [](const Args &a) {
		  return fi_tsend(a.ep, base(a), len(a), nullptr, a.to, TAG,
				  a.context);
	  } },
	{ "tsendv", VECTOR | ADDRESSED,
	  [](const Args &a) {
		  return fi_tsendv(a.ep, a.iov, nullptr, a.count, a.to, TAG,
				   a.context);
	  } },
	{ "tsendmsg", VECTOR | FLAGS | ADDRESSED, TAGGED_CALL(fi_tsendmsg) },
	{ "tsenddata", ADDRESSED,
	  [](const Args &a) {
		  return fi_tsenddata(a.ep, base(a), len(a), nullptr, 0, a.to,
				      TAG, a.context);
	  } },
	{ "tinject", ADDRESSED,
	  [](const Args &a) {
		  return fi_tinject(a.ep, base(a), len(a), a.to, TAG);
	  } },
	{ "tinjectdata", ADDRESSED,
	  [](const Args &a) {
		  return fi_tinjectdata(a.ep, base(a), len(a), 0, a.to, TAG);
	  } },
	{ "trecv", 0,
	  [](const Args &a) {
		  return fi_trecv(a.ep, a.iov->iov_base, len(a), nullptr,
				  FI_ADDR_UNSPEC, TAG, 0, a.context);
	  } },
	{ "trecvv", VECTOR,
	  [](const Args &a) {
		  return fi_trecvv(a.ep, a.iov, nullptr, a.count,
				   FI_ADDR_UNSPEC, TAG, 0, a.context);
	  } },
	{ "trecvmsg", VECTOR | FLAGS, TAGGED_CALL(fi_trecvmsg) },
	{ "read", ADDRESSED,
	  [](const Args &a) {
		  return fi_read(a.ep, a.iov->iov_base, len(a), nullptr, a.to,
				 0, KEY, a.context);
	  } },
	{ "readv", VECTOR | ADDRESSED,
	  [](const Args &a) {
		  return fi_readv(a.ep, a.iov, nullptr, a.count, a.to, 0, KEY,
				  a.context);
	  } },
	{ "readmsg", VECTOR | FLAGS | ADDRESSED, RMA_CALL(fi_readmsg) },
	{ "write", ADDRESSED,
	  [](const Args &a) {
		  return fi_write(a.ep, base(a), len(a), nullptr, a.to, 0, KEY,
				  a.context);
	  } },
	{ "writev", VECTOR | ADDRESSED,
	  [](const Args &a) {
		  return fi_writev(a.ep, a.iov, nullptr, a.count, a.to, 0, KEY,
				   a.context);
	  } },
	{ "writemsg", VECTOR | FLAGS | ADDRESSED, RMA_CALL(fi_writemsg) },
	{ "writedata", ADDRESSED,
	  [](const Args &a) {
		  return fi_writedata(a.ep, base(a), len(a), nullptr, 0, a.to,
				      0, KEY, a.context);
	  } },
	{ "inject_write", ADDRESSED,
	  [](const Args &a) {
		  return fi_inject_write(a.ep, base(a), len(a), a.to, 0, KEY);
	  } },
	{ "inject_writedata", ADDRESSED,
	  [](const Args &a) {
		  return fi_inject_writedata(a.ep, base(a), len(a), 0, a.to, 0,
					     KEY);
	  } },
	{ "atomic", ADDRESSED | ATOMIC,
	  [](const Args &a) {
		  return fi_atomic(a.ep, base(a), a.iocs()[0].count, nullptr,
				   a.to, 0, KEY, FI_UINT64, FI_SUM, a.context);
	  } },
	{ "inject_atomic", ADDRESSED | ATOMIC,
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

TEST_F(BadCall, VectorsThatAreNone)
{
	/* fi_msg(3), "msg_iov"/"iov": entries of a vector that the call reads,
	 * iov_count of them; fi_endpoint(3), iov_limit: how many there may be.
	 */
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
	/* fi_endpoint(3), max_msg_size: the longest transfer; the sum of a
	 * vector is the length of one. */
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
	/* A receive may name more room than any message has. */
	ONLY_TANDEM();
	OK(start());
	refused(ADDRESSED, { iov_of(mem, SIZE_MAX) }, 1, FI_EMSGSIZE, "long");
}

TEST_F(BadCall, Flags)
{
	/* fi_msg(3), fi_tagged(3), fi_rma(3), fi_atomic(3), each FLAGS: what
	 * the calls with a message take. 1 << 63 is in none of them. */
	ONLY_TANDEM();
	OK(start());
	const struct iovec good = iov_of(mem, 8);

	for (auto *from : senders()) {
		for (const Call &c : calls) {
			Args a = { from->ep, addr(from, rx()), &good,
				   1,	     1ull << 63,       this };

			if (c.kind & FLAGS) {
				EXPECT_EQ(-FI_EBADFLAGS, c.post(a)) << c.name;
			}
			a.flags = FI_MULTICAST;
			if (c.kind & FLAGS) {
				EXPECT_EQ(-FI_EBADFLAGS, c.post(a)) << c.name;
			}
		}
	}
}

TEST_F(BadCall, Addresses)
{
	/* fi_av(3): an fi_addr_t is what an insertion returned. */
	ONLY_TANDEM();
	OK(start());
	const struct iovec good = iov_of(mem, 8);

	for (auto *from : senders()) {
		for (fi_addr_t to :
		     { fi_addr_t(w->count), fi_addr_t(1) << 32,
		       fi_addr_t(1) << 63, fi_addr_t(FI_ADDR_UNSPEC) }) {
			for (const Call &c : calls) {
				Args a = { from->ep, to, &good, 1, 0, this };

				if (c.kind & ADDRESSED) {
					EXPECT_EQ(-FI_EINVAL, c.post(a))
						<< c.name << " " << to;
				}
			}
		}
	}
}

TEST_F(BadCall, PlacesAtTheTarget)
{
	/* fi_rma(3), fi_atomic(3), rma_iov: as long as what is here; fi_
	 * endpoint(3), rma_iov_limit: how many there may be. */
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
	/* fi_msg(3), len: transfers of 0 bytes are valid, and then no byte of a
	 * buffer is touched. */
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

} // namespace

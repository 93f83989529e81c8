/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vectors of as many elements as are granted: of messages, of what is written
 * and read here, and of the segments of a region.
 */
#include <functional>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

const size_t MOST = 8;
const uint64_t KEY = 0x8888;

/* A vector whose elements lie apart, each with canaries around it. */
class Pieces
{
public:
	explicit Pieces(const std::vector<size_t> &lens)
	{
		for (size_t n : lens) {
			parts_.emplace_back(n);
			len_ += n;
		}
	}

	/* Vectors are taken of it where it stays. */
	std::vector<struct iovec> iov()
	{
		std::vector<struct iovec> v;

		for (Guarded &p : parts_)
			v.push_back(iov_of(p.data(), p.size()));
		return v;
	}

	void fill(uint32_t seed)
	{
		put(filled(len_, seed));
	}

	void put(const Bytes &from)
	{
		size_t at = 0;

		for (Guarded &p : parts_) {
			if (p.size())
				memcpy(p.data(), &from[at], p.size());
			at += p.size();
		}
	}

	Bytes get()
	{
		Bytes all;

		for (Guarded &p : parts_)
			all.insert(all.end(), p.data(), p.data() + p.size());
		return all;
	}

	bool intact() const
	{
		for (const Guarded &p : parts_) {
			if (!p.intact())
				return false;
		}
		return true;
	}

	size_t len() const
	{
		return len_;
	}

private:
	std::vector<Guarded> parts_;
	size_t len_ = 0;
};

/* Lengths of elements: few bytes, around every threshold, long, none. */
const std::vector<std::vector<size_t>> shapes = {
	{ 1, 2, 3, 4, 5, 6, 7, 8 },
	{ 8, 0, 8, 0, 8, 0, 0, 8 },
	{ 40, 41, 42, 43, 44, 45, 46, 47 },
	{ 1000, 1, 1000, 1, 1000, 1, 1000, 1 },
	{ 3000, 3000, 3000, 3000, 5 },
	{ 70000, 1, 70000, 0, 13, 70000, 65536, 3 },
	{ 1 << 20, 5, 1 << 20, 7, 1 << 20, 11, 1 << 20, 1 },
};

class Vector : public Case
{
protected:
	struct fid_mr *mr = nullptr;

	Vector()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
			    FI_RMA_EVENT;
	}

	void TearDown() override
	{
		hide();
		Case::TearDown();
	}

	void hide()
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		mr = nullptr;
	}

	void expose(Pieces &segments)
	{
		std::vector<struct iovec> iov = segments.iov();

		hide();
		ASSERT_EQ(0, fi_mr_regv(rx()->domain, iov.data(), iov.size(),
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					KEY, 0, &mr, nullptr));
	}

	ssize_t send(struct tdt_ep *from, Pieces &p, int tagged, void *context)
	{
		std::vector<struct iovec> v = p.iov();
		fi_addr_t to = addr(from, rx());

		return keep_on([&] {
			return tagged ? fi_tsendv(from->ep, v.data(), nullptr,
						  v.size(), to, 1, context) :
					fi_sendv(from->ep, v.data(), nullptr,
						 v.size(), to, context);
		});
	}

	ssize_t recv(Pieces &p, int tagged, void *context)
	{
		std::vector<struct iovec> v = p.iov();

		return tagged ? fi_trecvv(rx()->ep, v.data(), nullptr, v.size(),
					  FI_ADDR_UNSPEC, 1, 0, context) :
				fi_recvv(rx()->ep, v.data(), nullptr, v.size(),
					 FI_ADDR_UNSPEC, context);
	}

	/* A message from @out into @in, which is posted before or after it. */
	void message(struct tdt_ep *from, Pieces &out, Pieces &in, int tagged,
		     bool late)
	{
		uint64_t kind = tagged ? FI_TAGGED : FI_MSG;

		out.fill(5);
		if (!late) {
			ASSERT_EQ(0, recv(in, tagged, &in));
		}
		ASSERT_EQ(0, send(from, out, tagged, &out));
		if (late) {
			for (int i = 0; i < 20; i++)
				tdt_progress(w);
			ASSERT_EQ(0, recv(in, tagged, &in));
		}
		OK(done(rx(), &in, FI_RECV | kind));
		OK(done(from, &out, FI_SEND | kind));
		EXPECT_EQ(-1, tdt_differs(in.get().data(), out.len(), 5));
		EXPECT_TRUE(in.intact());
		EXPECT_TRUE(out.intact());
	}

	/* One write (or read) between @here and the region at @at. */
	void move(struct tdt_ep *from, Pieces &here, uint64_t at, bool read)
	{
		std::vector<struct iovec> v = here.iov();
		fi_addr_t to = addr(from, rx());

		ASSERT_EQ(0, keep_on([&] {
				  return read ? fi_readv(from->ep, v.data(),
							 nullptr, v.size(), to,
							 at, KEY, &here) :
						fi_writev(from->ep, v.data(),
							  nullptr, v.size(), to,
							  at, KEY, &here);
			  }));
		OK(done(from, &here, FI_RMA | (read ? FI_READ : FI_WRITE)));
		EXPECT_TRUE(here.intact());
	}
};

TEST_F(Vector, TheLimitsAreGranted)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 6: hints are met or refused. */
	ONLY_TANDEM();
	OPEN();
	EXPECT_EQ(MOST, rx()->info->tx_attr->iov_limit);
	EXPECT_EQ(MOST, rx()->info->rx_attr->iov_limit);
	EXPECT_EQ(MOST, rx()->info->domain_attr->mr_iov_limit);
}

TEST_F(Vector, MessagesOfEightElements)
{
	/* fi_msg(3) 2.1, fi_sendv 1 and fi_recvv 1, fi_tagged(3) 2.1, fi_tsendv
	 * 1 and fi_trecvv 1: The elements are one buffer, in their order, on
	 * either side. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t s = 0; s < shapes.size(); s++) {
			for (int tagged = 0; tagged < 2; tagged++) {
				Pieces out(shapes[s]), same(shapes[s]);
				Pieces one({ out.len() }), back(shapes[s]);
				Pieces shifted(
					{ 2, 3, 5, 7, 11, 13, 17, out.len() });

				SCOPED_TRACE(testing::Message()
					     << "shape " << s << ", tagged "
					     << tagged);
				OK(message(from, out, same, tagged, false));
				OK(message(from, out, same, tagged, true));
				OK(message(from, out, shifted, tagged, false));
				OK(message(from, out, shifted, tagged, true));
				OK(message(from, out, one, tagged, true));
				OK(message(from, one, back, tagged, true));
				OK(message(from, one, back, tagged, false));
			}
		}
	}
}

TEST_F(Vector, AMessageThatIsLongerThanItsVector)
{
	/* fi_cq(3) 2.1, COMPLETION FIELDS 9: FI_ETRUNC: as much as fits is
	 * placed, olen is the number of bytes that did not. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t len : { size_t(100), size_t(100000) }) {
			Pieces out({ len, 1, 2, 3, 4, 5, 6, 7 });
			Pieces in({ 3, 1, 4, 1, 5, 9, 2, 6 });
			struct tdt_comp c;

			out.fill(5);
			ASSERT_EQ(0, recv(in, 1, &in));
			ASSERT_EQ(0, send(from, out, 1, &out));
			OK(failed(rx(), &in, FI_ETRUNC, &c));
			EXPECT_EQ(in.len(), c.len);
			EXPECT_EQ(out.len() - in.len(), c.olen);
			ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
			EXPECT_EQ(-1,
				  tdt_differs(in.get().data(), in.len(), 5));
			EXPECT_TRUE(in.intact());
		}
	}
}

TEST_F(Vector, ToItself)
{
	OPEN();
	for (const auto &shape : shapes) {
		Pieces out(shape), in(shape);
		std::vector<struct iovec> v = out.iov();

		out.fill(6);
		ASSERT_EQ(0, recv(in, 0, &in));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_sendv(rx()->ep, v.data(), nullptr,
						  v.size(), addr(rx(), rx()),
						  &out);
			  }));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(rx(), &out, FI_SEND | FI_MSG));
		EXPECT_EQ(-1, tdt_differs(in.get().data(), out.len(), 6));
		EXPECT_TRUE(in.intact());
	}
}

TEST_F(Vector, WhatWaitsIsCancelledAndClaimed)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1, and fi_tagged(3) 2.1, FLAGS 17:
	 * FI_CLAIM: receives with vectors, too. */
	Pieces in({ 1, 2, 3, 4, 5, 6, 7, 8 }), out({ 36 });
	std::vector<struct iovec> v = in.iov();
	struct fi_msg_tagged m;
	struct fi_context ctx;

	OPEN();
	ASSERT_EQ(0, recv(in, 1, &in));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	OK(failed(rx(), &in, FI_ECANCELED));
	for (auto *from : senders()) {
		struct tdt_comp c;

		out.fill(8);
		ASSERT_EQ(0, send(from, out, 1, &out));
		memset(&m, 0, sizeof(m));
		m.addr = FI_ADDR_UNSPEC;
		m.tag = 1;
		m.context = &ctx;
		do {
			ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m,
						 FI_PEEK | FI_CLAIM));
			ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
		} while (c.err == FI_ENOMSG);
		m.msg_iov = v.data();
		m.iov_count = v.size();
		ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m, FI_CLAIM));
		ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
		ASSERT_EQ(0, c.err);
		OK(done(from, &out, FI_SEND | FI_TAGGED));
		EXPECT_EQ(-1, tdt_differs(in.get().data(), 36, 8));
		EXPECT_TRUE(in.intact());
	}
}

TEST_F(Vector, ReceivesThatNobodyMeets)
{
	/* Posted when the endpoint closes: nothing is lost or reported. */
	Pieces in({ 1, 2, 3, 4, 5, 6, 7, 8 });

	OPEN();
	for (int i = 0; i < 40; i++)
		ASSERT_EQ(0, recv(in, i & 1, &in));
}

TEST_F(Vector, WritesAndReadsOfEightElements)
{
	/* fi_rma(3) 2.1, fi_writev 1 and fi_readv 1: the elements and one
	 * remote range. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t s = 0; s < shapes.size(); s++) {
			Pieces out(shapes[s]), in(shapes[s]);
			Pieces region({ out.len() + 10 });

			SCOPED_TRACE(testing::Message() << "shape " << s);
			OK(expose(region));
			out.fill(9);
			OK(move(from, out, 7, false));
			EXPECT_EQ(-1, tdt_differs(region.get().data() + 7,
						  out.len(), 9));
			OK(move(from, in, 7, true));
			EXPECT_EQ(-1,
				  tdt_differs(in.get().data(), in.len(), 9));
			EXPECT_TRUE(region.intact());
		}
	}
}

TEST_F(Vector, RegionsOfEightSegments)
{
	/* fi_mr(3) 2.1, fi_mr_regv 1: Several buffers are one region. Its
	 * offsets begin at the first one and go on in the next. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t s = 0; s < shapes.size(); s++) {
			Pieces region(shapes[s]);
			size_t len = region.len();

			SCOPED_TRACE(testing::Message() << "shape " << s);
			OK(expose(region));
			for (size_t at : { size_t(0), size_t(1), len / 3 }) {
				size_t n = len - 2 * at;
				Pieces out({ n }), in({ n });
				Pieces apart({ 1, 2, 3, n - 6 });
				Bytes want;

				region.fill(1);
				want = region.get();
				out.fill(2);
				memcpy(&want[at], out.get().data(), n);
				OK(move(from, out, at, false));
				EXPECT_EQ(want, region.get());
				EXPECT_TRUE(region.intact());
				OK(move(from, in, at, true));
				EXPECT_EQ(out.get(), in.get());
				OK(move(from, apart, at, true));
				EXPECT_EQ(out.get(), apart.get());
			}
		}
	}
}

TEST_F(Vector, BordersByteByByte)
{
	/* Each place and length around the borders of segments, by the calls
	 * that inject and that bring data; the counter of the region counts. */
	Pieces region({ 3, 1, 0, 5, 2, 7, 4, 6 });
	const size_t len = region.len();
	struct fid_cntr *cntr = nullptr;
	uint64_t n = 0;

	OPEN();
	ASSERT_EQ(0, fi_cntr_open(rx()->domain, nullptr, &cntr, nullptr));
	OK(expose(region));
	ASSERT_EQ(0, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	for (auto *from : senders()) {
		fi_addr_t to = addr(from, rx());

		for (size_t at = 0; at < len; at++) {
			for (size_t k = 1; k <= len - at; k += 3) {
				Bytes out = filled(k, uint32_t(at + k)), want;
				struct tdt_comp c;

				region.fill(1);
				want = region.get();
				memcpy(&want[at], out.data(), k);
				ASSERT_EQ(0, keep_on([&] {
						  return fi_inject_writedata(
							  from->ep, out.data(),
							  k, k, to, at, KEY);
					  }));
				ASSERT_EQ(0, tdt_wait_next(rx(), 1, &c));
				ASSERT_EQ(0, c.err);
				EXPECT_EQ(k, c.data);
				EXPECT_EQ(k, c.len);
				ASSERT_EQ(want, region.get()) << at << " " << k;
				EXPECT_EQ(++n, fi_cntr_read(cntr));
			}
		}
		Pieces past({ 2 });

		std::vector<struct iovec> v = past.iov();
		ASSERT_EQ(0, fi_writev(from->ep, v.data(), nullptr, 1, to,
				       len - 1, KEY, &past));
		OK(failed(from, &past, FI_EACCES));
	}
	EXPECT_TRUE(region.intact());
	EXPECT_EQ(n, fi_cntr_read(cntr));
	hide();
	EXPECT_EQ(0, fi_close(&cntr->fid));
}

TEST_F(Vector, AtomicOperationsAcrossSegments)
{
	/* fi_atomic(3) 2.1, NOTES 1: Each value is atomic, wherever its bytes
	 * are. Vectors of operands and of results have as many elements as
	 * others. */
	Pieces region({ 3, 8, 5, 16, 9, 7, 8, 8 });
	uint64_t add[MOST], was[MOST], value[MOST], next[MOST];
	struct fi_ioc in[MOST], out[MOST], cmp[MOST];

	OPEN();
	OK(expose(region));
	ASSERT_EQ(sizeof(value), region.len());
	for (size_t i = 0; i < MOST; i++) {
		add[i] = i + 1;
		in[i] = { &add[i], 1 };
		out[i] = { &was[i], 1 };
		cmp[i] = { &value[i], 1 };
	}
	for (auto *from : senders()) {
		fi_addr_t to = addr(from, rx());

		region.fill(4);
		memcpy(value, region.get().data(), sizeof(value));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_fetch_atomicv(from->ep, in, nullptr,
							  MOST, out, nullptr,
							  MOST, to, 0, KEY,
							  FI_UINT64, FI_SUM,
							  &was);
			  }));
		OK(done(from, &was, FI_ATOMIC | FI_READ));
		memcpy(next, region.get().data(), sizeof(next));
		for (size_t i = 0; i < MOST; i++) {
			EXPECT_EQ(value[i], was[i]);
			EXPECT_EQ(value[i] + i + 1, next[i]);
			value[i] = i % 2 ? next[i] : 0;
		}
		ASSERT_EQ(0, keep_on([&] {
				  return fi_compare_atomicv(
					  from->ep, in, nullptr, MOST, cmp,
					  nullptr, MOST, out, nullptr, MOST, to,
					  0, KEY, FI_UINT64, FI_CSWAP, &was);
			  }));
		OK(done(from, &was, FI_ATOMIC | FI_READ));
		memcpy(value, region.get().data(), sizeof(value));
		for (size_t i = 0; i < MOST; i++) {
			EXPECT_EQ(next[i], was[i]);
			EXPECT_EQ(i % 2 ? i + 1 : next[i], value[i]);
		}
		EXPECT_TRUE(region.intact());
	}
}

TEST_F(Vector, RegionsThatCannotBe)
{
	/* fi_mr(3) 2.1, iov_count 1: A region has at most mr_iov_limit
	 * buffers. */
	char mem[64];
	const struct iovec good = iov_of(mem, 8), null = iov_of(nullptr, 8);
	const struct iovec none = iov_of(nullptr, 0);
	const struct iovec half = iov_of(mem, SIZE_MAX / 2 + 1);
	const struct iovec all = iov_of(mem, SIZE_MAX);
	const struct {
		const char *what;
		std::vector<struct iovec> iov;
		int err;
	} table[] = {
		{ "none", {}, -FI_EINVAL },
		{ "nine", std::vector<struct iovec>(9, good), -FI_EINVAL },
		{ "eight", std::vector<struct iovec>(8, good), 0 },
		{ "the second is NULL", { good, null }, -FI_EINVAL },
		{ "the first is NULL", { null, good }, -FI_EINVAL },
		{ "NULL without bytes", { none, good, none }, 0 },
		{ "nothing", { none, none }, 0 },
		{ "overflow to 0", { half, half }, -FI_EINVAL },
		{ "overflow", { good, all }, -FI_EINVAL },
	};
	struct fi_mr_attr a;

	ONLY_TANDEM();
	OPEN();
	for (const auto &t : table) {
		SCOPED_TRACE(t.what);
		mr = nullptr;
		EXPECT_EQ(t.err,
			  fi_mr_regv(rx()->domain, t.iov.data(), t.iov.size(),
				     FI_REMOTE_WRITE, 0, KEY, 0, &mr, nullptr));
		EXPECT_EQ(!t.err, mr != nullptr);
		hide();
		memset(&a, 0, sizeof(a));
		a.mr_iov = t.iov.data();
		a.iov_count = t.iov.size();
		a.access = FI_REMOTE_WRITE;
		a.requested_key = KEY;
		EXPECT_EQ(t.err, fi_mr_regattr(rx()->domain, &a, 0, &mr));
		hide();
	}
	EXPECT_EQ(-FI_EINVAL,
		  fi_mr_regv(rx()->domain, nullptr, 2, FI_REMOTE_WRITE, 0, KEY,
			     0, &mr, nullptr));
	EXPECT_EQ(-FI_EINVAL,
		  fi_mr_regv(rx()->domain, &good, SIZE_MAX, FI_REMOTE_WRITE, 0,
			     KEY, 0, &mr, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_mr_regattr(rx()->domain, nullptr, 0, &mr));
}

} // namespace

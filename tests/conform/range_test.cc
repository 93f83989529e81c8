/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on several ranges at the target, fi_rma(3) and fi_atomic(3),
 * rma_iov: one operation that ends once, in regions with keys of their own, all
 * of it or nothing.
 */
#include <functional>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "tests/harness/fixture.h"

namespace
{

const size_t MOST = 8;
const uint64_t KEY = 0x9000;

class Range : public Case
{
protected:
	std::vector<Bytes> memory;
	std::vector<struct fid_mr *> mrs;
	std::vector<struct fid_cntr *> cntrs;

	Range()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
			    FI_RMA_EVENT | FI_TRIGGER;
	}

	void TearDown() override
	{
		hide();
		Case::TearDown();
	}

	void hide()
	{
		for (auto *mr : mrs)
			EXPECT_EQ(0, fi_close(&mr->fid));
		for (auto *c : cntrs)
			EXPECT_EQ(0, fi_close(&c->fid));
		mrs.clear();
		cntrs.clear();
	}

	/* Region @i, of keys KEY + i: each of @len bytes, in three segments. */
	void expose(size_t count, size_t len,
		    uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE)
	{
		hide();
		memory.assign(count, Bytes());
		for (size_t i = 0; i < count; i++) {
			memory[i] = filled(len, uint32_t(i + 1));
			unsigned char *p = memory[i].data();
			struct iovec iov[3] = {
				iov_of(p, len / 3), iov_of(p + len / 3, 1),
				iov_of(p + len / 3 + 1, len - len / 3 - 1)
			};
			struct fid_mr *mr = nullptr;

			ASSERT_EQ(0, fi_mr_regv(rx()->domain, iov, 3, access, 0,
						KEY + i, 0, &mr, nullptr));
			mrs.push_back(mr);
		}
	}

	/* Count what is written to each region. */
	void count()
	{
		for (auto *mr : mrs) {
			struct fid_cntr *c = nullptr;

			ASSERT_EQ(0, fi_cntr_open(rx()->domain, nullptr, &c,
						  nullptr));
			cntrs.push_back(c);
			ASSERT_EQ(0, fi_mr_bind(mr, &c->fid, FI_REMOTE_WRITE));
		}
	}

	/* One call about @ranges; @buf is cut in @pieces. */
	ssize_t post(struct tdt_ep *from, bool read, Bytes &buf,
		     const std::vector<struct fi_rma_iov> &ranges,
		     uint64_t flags = FI_COMPLETION, size_t pieces = 1,
		     uint64_t data = 0)
	{
		std::vector<struct iovec> iov;
		struct fi_msg_rma m;

		for (size_t i = 0; i < pieces; i++) {
			size_t at = i * (buf.size() / pieces);
			size_t n = i + 1 < pieces ? buf.size() / pieces :
						    buf.size() - at;

			iov.push_back(iov_of(buf.data() + at, n));
		}
		memset(&m, 0, sizeof(m));
		m.msg_iov = iov.data();
		m.iov_count = iov.size();
		m.addr = addr(from, rx());
		m.rma_iov = ranges.data();
		m.rma_iov_count = ranges.size();
		m.context = &buf;
		m.data = data;
		return keep_on([&] {
			return read ? fi_readmsg(from->ep, &m, flags) :
				      fi_writemsg(from->ep, &m, flags);
		});
	}

	static size_t total(const std::vector<struct fi_rma_iov> &ranges)
	{
		size_t n = 0;

		for (const auto &r : ranges)
			n += r.len;
		return n;
	}

	/* The memory expected once @buf is written to @ranges. */
	std::vector<Bytes> written(const Bytes &buf,
				   const std::vector<struct fi_rma_iov> &ranges)
	{
		std::vector<Bytes> want = memory;
		size_t at = 0;

		for (const auto &r : ranges) {
			memcpy(&want[r.key - KEY][r.addr], &buf[at], r.len);
			at += r.len;
		}
		return want;
	}

	void write_read(struct tdt_ep *from,
			const std::vector<struct fi_rma_iov> &ranges,
			size_t pieces)
	{
		Bytes out = filled(total(ranges), 77), in(out.size());
		std::vector<Bytes> want = written(out, ranges);

		ASSERT_EQ(0, post(from, false, out, ranges, FI_COMPLETION,
				  pieces));
		OK(done(from, &out, FI_RMA | FI_WRITE));
		EXPECT_TRUE(want == memory);
		ASSERT_EQ(0,
			  post(from, true, in, ranges, FI_COMPLETION, pieces));
		OK(done(from, &in, FI_RMA | FI_READ));
		EXPECT_TRUE(out == in);
	}
};

TEST_F(Range, TheLimitIsGranted)
{
	/* fi_endpoint(3) 2.1, rma_iov_limit 1: how many ranges an operation may
	 * have; fewer if the hints say so. */
	ONLY_TANDEM();
	OPEN();
	EXPECT_EQ(MOST, rx()->info->tx_attr->rma_iov_limit);
}

TEST_F(Range, EightRangesOfEverySize)
{
	/* fi_rma(3) 2.1, fi_writemsg 1 and fi_readmsg 1: The bytes here are
	 * those of the ranges, one range after the other. Each has a key. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t n :
		     { size_t(1), size_t(7), size_t(200), size_t(3000),
		       size_t(20000), size_t(300000) }) {
			SCOPED_TRACE(testing::Message() << n << " bytes each");
			OK(expose(4, 3 * n + 20));
			OK(write_read(from,
				      { { 3, n, KEY },
					{ n + 7, n + 1, KEY + 1 },
					{ n + 5, n, KEY },
					{ 0, n / 2, KEY + 3 },
					{ n, n, KEY + 3 },
					{ 1, n, KEY + 2 },
					{ 0, 1, KEY + 2 },
					{ 2 * n, n, KEY + 2 } },
				      1));
			OK(write_read(from,
				      { { 3, n, KEY }, { 2, n, KEY + 2 } }, 2));
		}
		OK(expose(2, 200000));
		OK(write_read(from,
			      { { 0, 0, KEY },
				{ 9, 100000, KEY },
				{ 7, 0, KEY + 1 },
				{ 3, 50000, KEY + 1 } },
			      8));
	}
}

TEST_F(Range, ToItself)
{
	OPEN();
	for (size_t n : { size_t(9), size_t(100000) }) {
		OK(expose(2, 2 * n));
		OK(write_read(
			rx(),
			{ { n, n, KEY }, { 0, n, KEY + 1 }, { n, n, KEY + 1 } },
			6));
	}
}

TEST_F(Range, OneThatIsRefusedSparesAll)
{
	/* fi_tandem(7): all ranges are checked before a byte is placed. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t n : { size_t(40), size_t(100000) }) {
			for (size_t bad = 0; bad < 3; bad++) {
				std::vector<struct fi_rma_iov> good = {
					{ 0, n, KEY },
					{ 0, n, KEY + 1 },
					{ n, n, KEY },
				};

				OK(expose(3, 2 * n));
				std::vector<Bytes> was = memory;
				OK(count());
				for (int how = 0; how < 4; how++) {
					auto list = good;
					Bytes buf = filled(3 * n, 5),
					      same = buf;

					switch (how) {
					case 0:
						list[bad].key = KEY + 99;
						break;
					case 1:
						list[bad].addr = n + 1;
						break;
					case 2:
						list[bad].addr = ~0ull;
						break;
					default:
						list[bad].addr = 2 * n + 1;
						break;
					}
					ASSERT_EQ(0,
						  post(from, false, buf, list));
					OK(failed(from, &buf, FI_EACCES));
					ASSERT_EQ(0,
						  post(from, true, buf, list));
					OK(failed(from, &buf, FI_EACCES));
					EXPECT_TRUE(same == buf);
				}
				EXPECT_TRUE(was == memory);
				for (auto *c : cntrs)
					EXPECT_EQ(0u, fi_cntr_read(c));
				OK(write_read(from, good, 1));
			}
		}
		OK(expose(2, 64, FI_REMOTE_READ));
		std::vector<Bytes> was = memory;
		Bytes buf = filled(16, 5);
		ASSERT_EQ(0, post(from, false, buf,
				  { { 0, 8, KEY }, { 0, 8, KEY + 1 } }));
		OK(failed(from, &buf, FI_EACCES));
		EXPECT_TRUE(was == memory);
	}
}

TEST_F(Range, EventsAtTheTarget)
{
	/* fi_rma(3) 2.1, FLAGS 2: FI_REMOTE_CQ_DATA, and fi_mr(3) 2.1, FLAGS 2:
	 * FI_RMA_EVENT: it is one operation, whose data comes when all of it is
	 * there. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t n : { size_t(8), size_t(5000), size_t(100000) }) {
			std::vector<struct fi_rma_iov> list = {
				{ 0, n, KEY },
				{ 0, n, KEY + 1 },
				{ n, n, KEY },
			};
			Bytes buf = filled(3 * n, 5);
			struct tdt_comp c;

			OK(expose(3, 2 * n));
			OK(count());
			std::vector<Bytes> want = written(buf, list);
			ASSERT_EQ(0, post(from, false, buf, list,
					  FI_COMPLETION | FI_REMOTE_CQ_DATA |
						  FI_DELIVERY_COMPLETE,
					  1, 4711));
			ASSERT_EQ(0, tdt_wait_next(rx(), 1, &c));
			EXPECT_TRUE(want == memory);
			EXPECT_EQ(0, c.err);
			EXPECT_EQ(4711u, c.data);
			EXPECT_EQ(3 * n, c.len);
			OK(done(from, &buf, FI_RMA | FI_WRITE));
			EXPECT_EQ(1u, fi_cntr_read(cntrs[0]));
			EXPECT_EQ(1u, fi_cntr_read(cntrs[1]));
			EXPECT_EQ(0u, fi_cntr_read(cntrs[2]));
		}
	}
}

TEST_F(Range, InjectedOnesAreFreeAtOnce)
{
	/* fi_rma(3) 2.1, FLAGS 5: FI_INJECT: buffer and list are the caller's
	 * again when the call returns. */
	OPEN();
	for (auto *from : senders()) {
		std::vector<struct fi_rma_iov> list = { { 5, 30, KEY },
							{ 1, 30, KEY + 1 } };
		OK(expose(2, 64));
		for (int i = 0; i < 200; i++) {
			Bytes buf = filled(60, uint32_t(i));
			std::vector<Bytes> want = written(buf, list);

			ASSERT_EQ(0, post(from, false, buf, list,
					  FI_INJECT | FI_COMPLETION));
			memset(buf.data(), 0xee, buf.size());
			OK(done(from, &buf, FI_RMA | FI_WRITE));
			EXPECT_TRUE(want == memory);
		}
	}
}

TEST_F(Range, ManyAtOnce)
{
	/* Short and long ones between each other, each on its own memory. */
	const size_t n = 60;

	OPEN();
	for (auto *from : senders()) {
		std::vector<Bytes> out, in;

		OK(expose(2, n * 40000));
		for (size_t i = 0; i < n; i++) {
			out.push_back(filled(i % 3 ? 100 : 50000, uint32_t(i)));
			in.push_back(Bytes(out.back().size()));
		}
		for (int read = 0; read < 2; read++) {
			std::vector<Bytes> &v = read ? in : out;

			for (size_t i = 0; i < n; i++) {
				size_t half = v[i].size() / 2;

				ASSERT_EQ(0,
					  post(from, read, v[i],
					       { { i * 40000, half, KEY + 1 },
						 { i * 40000, half, KEY } }));
			}
			for (size_t i = 0; i < n; i++)
				OK(done(from, &v[i],
					FI_RMA | (read ? FI_READ : FI_WRITE)));
		}
		EXPECT_TRUE(out == in);
	}
}

TEST_F(Range, RegionsMayGoMeanwhile)
{
	/* fi_tandem(7): closing a region ends the operations on it, and then no
	 * byte of it is touched. */
	const size_t n = 2 << 20;

	OPEN();
	for (auto *from : senders()) {
		for (int read = 0; read < 2; read++) {
			Bytes buf = filled(2 * n, 5);
			struct tdt_comp c;

			OK(expose(2, n));
			OK(count());
			ASSERT_EQ(0,
				  post(from, read, buf,
				       { { 0, n, KEY }, { 0, n, KEY + 1 } }));
			for (int i = 0; i < 3; i++)
				tdt_progress(w);
			ASSERT_EQ(0, fi_close(&mrs[1]->fid));
			mrs.pop_back();
			Bytes gone = memory[1];
			ASSERT_EQ(0, tdt_wait(from, &buf, &c));
			EXPECT_TRUE(!c.err || c.err == FI_EACCES);
			tdt_settle(w, 10);
			EXPECT_TRUE(gone == memory[1]);
		}
	}
}

TEST_F(Range, Triggered)
{
	/* fi_trigger(3) 2.1, DESCRIPTION 4: Only the context has to remain: the
	 * list is the caller's again when the call returns. */
	OPEN();
	for (auto *from : senders()) {
		std::vector<struct fi_rma_iov> list = { { 0, 9, KEY },
							{ 9, 3, KEY + 1 },
							{ 20, 4, KEY } };
		Bytes buf = filled(16, 5);
		struct fi_triggered_context ctx;
		struct fid_cntr *cntr = nullptr;
		struct iovec iov = iov_of(buf.data(), 16);
		struct fi_msg_rma m;

		OK(expose(2, 64));
		std::vector<Bytes> want = written(buf, list), was = memory;
		ASSERT_EQ(0,
			  fi_cntr_open(from->domain, nullptr, &cntr, nullptr));
		memset(&ctx, 0, sizeof(ctx));
		ctx.event_type = FI_TRIGGER_THRESHOLD;
		ctx.trigger.threshold.cntr = cntr;
		ctx.trigger.threshold.threshold = 1;
		memset(&m, 0, sizeof(m));
		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = addr(from, rx());
		m.rma_iov = list.data();
		m.rma_iov_count = list.size();
		m.context = &ctx;
		ASSERT_EQ(0, fi_writemsg(from->ep, &m,
					 FI_TRIGGER | FI_COMPLETION));
		list.assign(3, { 0, 1, 1 });
		tdt_progress(w);
		EXPECT_TRUE(was == memory);
		ASSERT_EQ(0, fi_cntr_add(cntr, 1));
		OK(done(from, &ctx, FI_RMA | FI_WRITE));
		EXPECT_TRUE(want == memory);
		EXPECT_EQ(0, fi_close(&cntr->fid));
	}
}

TEST_F(Range, AtomicOperations)
{
	/* fi_atomic(3) 2.1, Base Atomic Functions 5: The ranges have as many
	 * values as there are operands. */
	uint64_t add[MOST], was[MOST], base[2][16];
	struct fi_rma_ioc where[MOST];
	struct fi_ioc in = { add, MOST }, out = { was, MOST };
	struct fi_msg_atomic m;

	OPEN();
	for (auto *from : senders()) {
		OK(expose(2, sizeof(base[0])));
		OK(count());
		for (size_t i = 0; i < MOST; i++) {
			add[i] = i + 1;
			where[i] = { 8 * (15 - i), 1, KEY + i % 2 };
		}
		for (int k = 0; k < 2; k++)
			memcpy(base[k], memory[size_t(k)].data(),
			       sizeof(base[k]));
		memset(&m, 0, sizeof(m));
		m.msg_iov = &in;
		m.iov_count = 1;
		m.addr = addr(from, rx());
		m.rma_iov = where;
		m.rma_iov_count = MOST;
		m.datatype = FI_UINT64;
		m.op = FI_SUM;
		m.context = &m;
		ASSERT_EQ(0, keep_on([&] {
				  return fi_fetch_atomicmsg(from->ep, &m, &out,
							    nullptr, 1,
							    FI_COMPLETION);
			  }));
		OK(done(from, &m, FI_ATOMIC | FI_READ));
		for (size_t i = 0; i < MOST; i++) {
			uint64_t &v = base[i % 2][15 - i];

			EXPECT_EQ(v, was[i]);
			v += i + 1;
		}
		for (int k = 0; k < 2; k++) {
			EXPECT_EQ(0, memcmp(base[k], memory[size_t(k)].data(),
					    sizeof(base[k])));
			EXPECT_EQ(1u, fi_cntr_read(cntrs[size_t(k)]));
		}
		where[5].key = KEY + 9;
		ASSERT_EQ(0, keep_on([&] {
				  return fi_atomicmsg(from->ep, &m,
						      FI_COMPLETION);
			  }));
		OK(failed(from, &m, FI_EACCES));
		for (int k = 0; k < 2; k++)
			EXPECT_EQ(0, memcmp(base[k], memory[size_t(k)].data(),
					    sizeof(base[k])));
		where[5] = { 0, 2, KEY };
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(from->ep, &m, 0))
			<< "more values there than here";
		where[5].count = 0;
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(from->ep, &m, 0));
		where[4].count = where[5].count = SIZE_MAX;
		EXPECT_EQ(-FI_EINVAL, fi_atomicmsg(from->ep, &m, 0));
	}
}

TEST_F(Range, ListsThatCannotBe)
{
	/* fi_endpoint(3) 2.1, rma_iov_limit 1, and fi_tandem(7), LIMITS: A list
	 * that is empty, too long, or not as long as the buffers is refused. */
	const struct {
		const char *what;
		std::vector<struct fi_rma_iov> list;
		int err;
	} table[] = {
		{ "none", {}, -FI_EINVAL },
		{ "nine", std::vector<struct fi_rma_iov>(9, { 0, 1, KEY }),
		  -FI_EINVAL },
		{ "too short", { { 0, 4, KEY }, { 0, 4, KEY } }, -FI_EINVAL },
		{ "too long", { { 0, 8, KEY }, { 0, 2, KEY } }, -FI_EINVAL },
		{ "overflow",
		  { { 0, SIZE_MAX, KEY }, { 0, 10, KEY } },
		  -FI_EMSGSIZE },
		{ "overflow to the length",
		  { { 0, SIZE_MAX, KEY }, { 0, 10, KEY }, { 0, 1, KEY } },
		  -FI_EMSGSIZE },
	};

	ONLY_TANDEM();
	OPEN();
	OK(expose(1, 64));
	std::vector<Bytes> was = memory;
	for (auto *from : senders()) {
		for (const auto &t : table) {
			Bytes buf = filled(9, 5);

			SCOPED_TRACE(t.what);
			EXPECT_EQ(t.err, post(from, false, buf, t.list));
			EXPECT_EQ(t.err, post(from, true, buf, t.list));
		}
		OK(fence(from));
	}
	EXPECT_TRUE(was == memory);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message order of reads, writes, atomic operations and messages, fi_endpoint(3)
 * msg_order and max_order_*_size, when each side takes its steps in an order
 * that does most harm. Lengths are on both sides of every threshold.
 */
#include <functional>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

const uint64_t KEY = 0x0bde, TAG = 3;
const size_t MOST = 3 << 20;

const uint64_t ORDERS = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS |
			FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_WAS |
			FI_ORDER_SAR | FI_ORDER_SAW;

const size_t lens[] = { 8, 1000, 5000, 70000, MOST };

class RmaOrder : public Case
{
protected:
	struct fid_mr *mr = nullptr;
	Bytes region = Bytes(MOST);
	uint32_t dice = 1;
	char none;

	RmaOrder()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
		attr.no_enable = 1;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Case::TearDown();
	}

	/* A world whose endpoints were granted @order. */
	void start(uint64_t order)
	{
		struct fi_info *hints, *info = nullptr;

		OPEN();
		hints = tdt_hints(&attr);
		hints->tx_attr->msg_order = order;
		hints->rx_attr->msg_order = order;
		ASSERT_EQ(0, fi_getinfo(TDT_API, attr.node, attr.service,
					FI_SOURCE, hints, &info));
		fi_freeinfo(hints);
		ASSERT_EQ(order, info->tx_attr->msg_order & order);
		ASSERT_EQ(order, info->rx_attr->msg_order & order);
		std::swap(*w->info->tx_attr, *info->tx_attr);
		std::swap(*w->info->rx_attr, *info->rx_attr);
		std::swap(*w->info->ep_attr, *info->ep_attr);
		for (size_t i = 0; i < w->count; i++) {
			ASSERT_EQ(0, tdt_ep_close(ep(i)));
			ASSERT_EQ(0, tdt_ep_open(ep(i))) << tdt_error();
			ASSERT_EQ(0, tdt_ep_enable(ep(i)));
		}
		for (size_t i = 0; i < w->count; i++)
			for (size_t k = 0; k < w->count; k++)
				ASSERT_EQ(1,
					  fi_av_insert(ep(i)->av, ep(k)->name,
						       1, &ep(i)->peers[k], 0,
						       nullptr));
		fi_freeinfo(info);
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, region.data(), MOST,
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
				       0, &mr, nullptr));
		ASSERT_EQ(0, tdt_warm_up(w));
	}

	/* A step of one side; which one depends on the dice and @bias. */
	void step(struct tdt_ep *from, unsigned bias)
	{
		dice = dice * 1103515245 + 12345;
		struct tdt_ep *one = (dice >> 16) % 8 < bias ? rx() : from;

		fi_cq_read(one->rx_cq, nullptr, 0);
		fi_cq_read(one->tx_cq, nullptr, 0);
	}

	/* Post until taken, with adverse steps in between. */
	void post(struct tdt_ep *from, unsigned bias,
		  const std::function<ssize_t()> &call)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		while ((ret = call()) == -FI_EAGAIN) {
			ASSERT_LT(tdt_now_ms(), end);
			step(from, bias);
			tdt_progress(w);
		}
		ASSERT_EQ(0, ret);
	}

	void write(struct tdt_ep *from, unsigned bias, const Bytes &buf,
		   size_t at = 0)
	{
		post(from, bias, [&] {
			return fi_write(from->ep, buf.data(), buf.size(),
					nullptr, addr(from, rx()), at, KEY,
					this);
		});
	}

	void read(struct tdt_ep *from, unsigned bias, Bytes &buf, size_t at = 0)
	{
		post(from, bias, [&] {
			return fi_read(from->ep, buf.data(), buf.size(),
				       nullptr, addr(from, rx()), at, KEY,
				       this);
		});
	}

	void ended(struct tdt_ep *from, int n)
	{
		struct tdt_comp c;

		while (n--) {
			ASSERT_EQ(0, tdt_wait(from, this, &c));
			ASSERT_EQ(0, c.err) << fi_strerror(c.err);
		}
	}

	/* Every pair of lengths, over every path, with every schedule. */
	void each(const std::function<void(struct tdt_ep *, size_t, size_t,
					   unsigned)> &body)
	{
		for (auto *from : senders())
			for (size_t a : lens)
				for (size_t b : lens)
					for (unsigned bias : { 0, 4, 8 }) {
						SCOPED_TRACE(testing::Message()
							     << a << " then "
							     << b << ", bias "
							     << bias);
						body(from, a, b, bias);
						if (HasFatalFailure())
							return;
					}
	}
};

TEST_F(RmaOrder, WriteAfterWrite)
{
	/* fi_endpoint(3) 2.1, msg_order - Message Ordering 21: FI_ORDER_WAW,
	 * and Max RMA Ordered Size 7: max_order_waw_size: the later write
	 * counts. */
	OK(start(FI_ORDER_WAW));
	EXPECT_LE(MOST, rx()->info->ep_attr->max_order_waw_size);
	OK(each([&](struct tdt_ep *from, size_t a, size_t b, unsigned bias) {
		Bytes one(a, 1), two(b, 2), three(1, 3);

		OK(write(from, bias, one));
		OK(write(from, bias, two));
		OK(write(from, bias, three));
		OK(ended(from, 3));
		ASSERT_EQ(3, region[0]);
		for (size_t i = 1; i < b; i++)
			ASSERT_EQ(2, region[i]) << i;
		for (size_t i = b; i < a; i++)
			ASSERT_EQ(1, region[i]) << i;
	}));
}

TEST_F(RmaOrder, ReadAfterWrite)
{
	/* FI_ORDER_RAW: a read sees the write that was posted before it. */
	uint8_t v = 0;

	OK(start(FI_ORDER_RAW));
	EXPECT_LE(MOST, rx()->info->ep_attr->max_order_raw_size);
	OK(each([&](struct tdt_ep *from, size_t a, size_t b, unsigned bias) {
		Bytes out(a, ++v), in(b, 0);
		uint64_t add = 0, was = 0, want = v * 0x0101010101010101ull;

		OK(write(from, bias, out));
		OK(read(from, bias, in));
		OK(post(from, bias, [&] {
			return fi_fetch_atomic(from->ep, &add, 1, nullptr, &was,
					       nullptr, addr(from, rx()),
					       a / 8 * 8 - 8, KEY, FI_UINT64,
					       FI_SUM, this);
		}));
		OK(ended(from, 3));
		for (size_t i = 0; i < std::min(a, b); i++)
			ASSERT_EQ(v, in[i]) << i;
		EXPECT_EQ(want, was);
	}));
}

TEST_F(RmaOrder, WriteAfterRead)
{
	/* FI_ORDER_WAR: a read does not see a write posted after it. */
	OK(start(FI_ORDER_WAR));
	EXPECT_LE(MOST, rx()->info->ep_attr->max_order_war_size);
	OK(each([&](struct tdt_ep *from, size_t a, size_t b, unsigned bias) {
		Bytes out(b, 9), in(a, 0);
		uint64_t nines = ~0ull;

		std::fill(region.begin(), region.end(), 4);
		OK(read(from, bias, in));
		OK(write(from, bias, out));
		OK(post(from, bias, [&] {
			return fi_atomic(from->ep, &nines, 1, nullptr,
					 addr(from, rx()), a / 8 * 8 - 8, KEY,
					 FI_UINT64, FI_ATOMIC_WRITE, this);
		}));
		OK(ended(from, 3));
		for (size_t i = 0; i < a; i++)
			ASSERT_EQ(4, in[i]) << i;
	}));
}

TEST_F(RmaOrder, ManySmallReadsBeforeAWrite)
{
	/* The same with more answers than a ring takes. */
	OK(start(FI_ORDER_WAR));
	for (auto *from : senders()) {
		std::vector<Bytes> in(400, Bytes(1000, 0));
		Bytes out(1000, 8);

		std::fill(region.begin(), region.end(), 5);
		for (Bytes &b : in)
			OK(read(from, 2, b));
		OK(write(from, 2, out));
		OK(ended(from, 401));
		for (const Bytes &b : in)
			ASSERT_EQ(Bytes(1000, 5), b);
	}
}

TEST_F(RmaOrder, SendAfterWrite)
{
	/* FI_ORDER_SAW: a target that has received the message has what was
	 * written before it; tagged and not, short and long, and injected. */
	uint8_t v = 100;

	OK(start(FI_ORDER_SAW));
	OK(each([&](struct tdt_ep *from, size_t a, size_t b, unsigned bias) {
		Bytes out(a, ++v), msg(b, 7), in(b);
		int inject = b <= from->info->tx_attr->inject_size;
		char got, sent;
		fi_addr_t to = addr(from, rx());

		ASSERT_EQ(0, fi_trecv(rx()->ep, in.data(), b, nullptr,
				      FI_ADDR_UNSPEC, TAG, 0, &got));
		OK(write(from, bias, out));
		OK(post(from, bias, [&] {
			return inject ? fi_tinject(from->ep, msg.data(), b, to,
						   TAG) :
					fi_tsend(from->ep, msg.data(), b,
						 nullptr, to, TAG, &sent);
		}));
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		while (!rx()->comp_count && tdt_now_ms() < end) {
			step(from, bias);
			tdt_progress(w);
		}
		OK(done(rx(), &got, FI_RECV | FI_TAGGED));
		for (size_t i = 0; i < a; i++)
			ASSERT_EQ(v, region[i]) << i;
		OK(ended(from, 1));
		if (!inject) {
			OK(done(from, &sent, FI_SEND | FI_TAGGED));
		}
	}));
}

TEST_F(RmaOrder, SendAfterRead)
{
	/* FI_ORDER_SAR: a target that has received the message may change what
	 * was read before it. */
	OK(start(FI_ORDER_SAR));
	OK(each([&](struct tdt_ep *from, size_t a, size_t b, unsigned bias) {
		Bytes in(a, 0), msg(b, 7), got(b);
		char ctx, sent;

		std::fill(region.begin(), region.end(), 6);
		ASSERT_EQ(0, tdt_recv(rx(), got.data(), b, &ctx));
		OK(read(from, bias, in));
		OK(post(from, bias, [&] {
			return tdt_send(from, rx(), msg.data(), b, &sent);
		}));
		OK(done(rx(), &ctx, FI_RECV | FI_MSG));
		std::fill(region.begin(), region.end(), 77);
		OK(ended(from, 1));
		OK(done(from, &sent, FI_SEND | FI_MSG));
		for (size_t i = 0; i < a; i++)
			ASSERT_EQ(6, in[i]) << i;
	}));
}

TEST_F(RmaOrder, WriteAfterSendDoesNotWaitForAReceive)
{
	/* FI_ORDER_WAS, FI_ORDER_RAS: a message nobody receives yet holds up no
	 * write and no read. */
	OK(start(ORDERS));
	for (auto *from : senders()) {
		for (size_t len : { size_t(8), size_t(100000) }) {
			Bytes msg(len, 1), got(len), out(len, 2), in(len);
			char ctx, sent;

			OK(post(from, 4, [&] {
				return tdt_send(from, rx(), msg.data(), len,
						&sent);
			}));
			OK(write(from, 4, out));
			OK(read(from, 4, in));
			OK(ended(from, 2));
			EXPECT_EQ(out, in);
			ASSERT_EQ(0, tdt_recv(rx(), got.data(), len, &ctx));
			OK(done(rx(), &ctx, FI_RECV | FI_MSG));
			OK(done(from, &sent, FI_SEND | FI_MSG));
			EXPECT_EQ(msg, got);
		}
	}
}

TEST_F(RmaOrder, BothSidesAtOnceDoNotWaitForEachOther)
{
	/* Long writes with messages behind them, in both directions. */
	Bytes back(MOST);
	struct fid_mr *other = nullptr;

	OK(start(ORDERS));
	struct tdt_ep *from = senders()[0];
	ASSERT_EQ(0, fi_mr_reg(from->domain, back.data(), MOST,
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
			       &other, nullptr));
	for (int round = 1; round <= 20; round++) {
		Bytes out(MOST, uint8_t(round)), in(MOST);
		char a[4], b[4], x = 1, y = 0;
		struct tdt_ep *ends[2] = { from, rx() };

		for (int e = 0; e < 2; e++) {
			struct tdt_ep *o = ends[e], *to = ends[!e];
			char *c = e ? a : b;

			ASSERT_EQ(0, tdt_recv(to, &y, 1, &c[3]));
			OK(post(from, 4, [&] {
				return fi_write(o->ep, out.data(), MOST,
						nullptr, addr(o, to), 0, KEY,
						&c[0]);
			}));
			OK(post(from, 4, [&] {
				return fi_read(o->ep, in.data(), MOST / 2,
					       nullptr, addr(o, to), 0, KEY,
					       &c[1]);
			}));
			OK(post(from, 4,
				[&] { return tdt_send(o, to, &x, 1, &c[2]); }));
		}
		for (int e = 0; e < 2; e++) {
			char *c = e ? a : b;

			OK(done(ends[e], &c[0], FI_RMA | FI_WRITE));
			OK(done(ends[e], &c[1], FI_RMA | FI_READ));
			OK(done(ends[e], &c[2], FI_SEND | FI_MSG));
			OK(done(ends[!e], &c[3], FI_RECV | FI_MSG));
		}
		ASSERT_EQ(out, region);
		ASSERT_EQ(out, back);
	}
	EXPECT_EQ(0, fi_close(&other->fid));
}

TEST_F(RmaOrder, SizesGrantTheirOrder)
{
	/* fi_endpoint(3) 2.1, Max RMA Ordered Size 5 to 7: max_order_raw_size
	 * and its like are the longest for which the order holds. An
	 * application that asks for a size has the order. */
	struct fi_info *hints = tdt_hints(&attr), *info = nullptr;

	ONLY_TANDEM();
	hints->ep_attr->max_order_waw_size = 4096;
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	EXPECT_LE(4096u, info->ep_attr->max_order_waw_size);
	EXPECT_TRUE(info->tx_attr->msg_order & FI_ORDER_WAW);
	EXPECT_FALSE(info->tx_attr->msg_order & FI_ORDER_RAW);
	fi_freeinfo(info);
	hints->ep_attr->max_order_waw_size = 0;
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	EXPECT_FALSE(info->tx_attr->msg_order & ORDERS) << "not asked for";
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_inject and FI_INJECT: fi_msg(3). */
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

class Inject : public Case
{
};

TEST_F(Inject, BufferIsFreeAtReturn)
{
	/* fi_msg(3) 2.1, fi_inject 1: fi_inject: the buffer is the caller's
	 * again on return, and a success has no entry. */
	const size_t n = 200;

	OPEN();
	size_t len = rx()->info->tx_attr->inject_size;
	for (auto *from : senders()) {
		std::vector<Bytes> in(n, Bytes(len));
		Bytes out(len);

		for (auto &b : in)
			ASSERT_EQ(0, tdt_recv(rx(), b.data(), len, &b));
		for (size_t i = 0; i < n; i++) {
			struct tdt_op op =
				op_of(TDT_INJECT, 0, out.data(), len);

			tdt_fill(out.data(), len, (uint32_t)i);
			op.addr = addr(from, rx());
			ASSERT_EQ(0, tdt_post(from, &op));
			memset(out.data(), 0x77, len);
		}
		for (size_t i = 0; i < n; i++) {
			OK(done(rx(), &in[i], FI_RECV | FI_MSG));
			EXPECT_EQ(-1,
				  tdt_differs(in[i].data(), len, (uint32_t)i));
		}
	}
}

TEST_F(Inject, FlagOfSendmsgFreesTheBufferAndCompletes)
{
	/* fi_msg(3) 2.1, FLAGS 5: FI_INJECT: the buffer is the caller's again
	 * on return, whenever the message leaves. */
	OPEN();
	size_t len = rx()->info->tx_attr->inject_size;
	for (auto *from : senders()) {
		for (int tagged = 0; tagged < 2; tagged++) {
			Bytes out = filled(len, 4), in(len);
			struct tdt_op op =
				op_of(TDT_SENDMSG, tagged, out.data(), len);

			op.addr = addr(from, rx());
			op.flags = FI_INJECT | FI_COMPLETION;
			op.context = &out;
			op.pieces = 2;
			ASSERT_EQ(0, tdt_post(from, &op));
			memset(out.data(), 0x55, len);
			op = op_of(TDT_RECV, tagged, in.data(), len);
			op.context = &in;
			ASSERT_EQ(0, tdt_post(rx(), &op));
			OK(done(rx(), &in,
				FI_RECV | (tagged ? FI_TAGGED : FI_MSG)));
			EXPECT_EQ(-1, tdt_differs(in.data(), len, 4));
			OK(done(from, &out,
				FI_SEND | (tagged ? FI_TAGGED : FI_MSG)));
		}
	}
}

TEST_F(Inject, EndpointFlagAppliesToSend)
{
	/* fi_endpoint(3) 2.1, op_flags - Default transmit operation flags 1:
	 * op_flags are the flags of the context's operations. */
	attr.tx_op_flags = FI_INJECT;
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(32, 6), in(32);

		ASSERT_EQ(0, tdt_recv(rx(), in.data(), in.size(), &in));
		ASSERT_EQ(0,
			  tdt_send(from, rx(), out.data(), out.size(), &out));
		memset(out.data(), 0, out.size());
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 6));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(Inject, FirstMessageOfAPairMayBeInjected)
{
	/* fi_msg(3) 2.1, ERRORS 4: An operation that was refused can be
	 * repeated: an inject before the pair is connected is queued or
	 * refused, never lost. */
	OPEN();
	for (auto *from : senders()) {
		char out = 'f', in = 0;
		struct tdt_op op = op_of(TDT_INJECT, 1, &out, 1);

		op.addr = addr(from, rx());
		op.tag = 1;
		ASSERT_EQ(0, tdt_post(from, &op));
		out = 0;
		struct iovec v = iov_of(&in, 1);
		ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
		EXPECT_EQ('f', in);
	}
}

const size_t MOST = 4096;
const uint64_t KEY = 0x1e;

/* An endpoint that asked for the largest inject_size there is. */
class LongInject : public Case
{
protected:
	struct fid_mr *mr = nullptr;
	Bytes region = Bytes(MOST * 64);

	LongInject()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA;
		attr.no_enable = 1;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Case::TearDown();
	}

	void start()
	{
		struct fi_info *hints, *info = nullptr;

		OPEN();
		hints = tdt_hints(&attr);
		hints->tx_attr->inject_size = MOST;
		ASSERT_EQ(0, fi_getinfo(TDT_API, attr.node, attr.service,
					FI_SOURCE, hints, &info));
		fi_freeinfo(hints);
		ASSERT_LE(MOST, info->tx_attr->inject_size);
		*w->info->tx_attr = *info->tx_attr;
		fi_freeinfo(info);
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
		ASSERT_EQ(0,
			  fi_mr_reg(rx()->domain, region.data(), region.size(),
				    FI_REMOTE_WRITE, 0, KEY, 0, &mr, nullptr));
	}
};

TEST_F(LongInject, MessagesOfEveryLength)
{
	/* fi_msg(3) 2.1, fi_inject 1, from the first message of a pair on, with
	 * and without a receive that waits. */
	const size_t lens[] = { 257, 736, 737, 2048, 2049, 4095, MOST };

	ONLY_TANDEM();
	OK(start());
	for (auto *from : senders()) {
		for (int round = 0; round < 2 * 7 * 4; round++) {
			size_t len = lens[round % 7];
			int late = round % 2;
			Bytes out(len), in(len);
			struct tdt_op op = op_of(TDT_INJECT, round % 3 == 0,
						 out.data(), len);
			struct tdt_op r =
				op_of(TDT_RECV, round % 3 == 0, in.data(), len);

			r.context = &in;
			if (!late) {
				ASSERT_EQ(0, tdt_post(rx(), &r));
			}
			tdt_fill(out.data(), len, (uint32_t)round);
			op.addr = addr(from, rx());
			ASSERT_EQ(0, tdt_post(from, &op));
			memset(out.data(), 0x77, len);
			if (late) {
				tdt_progress(w);
				ASSERT_EQ(0, tdt_post(rx(), &r));
			}
			OK(done(rx(), &in,
				FI_RECV | (round % 3 ? FI_MSG : FI_TAGGED)));
			ASSERT_EQ(-1,
				  tdt_differs(in.data(), len, (uint32_t)round))
				<< len;
		}
		char c[MOST + 1] = { 0 };

		EXPECT_EQ(-FI_EMSGSIZE,
			  fi_inject(from->ep, c, MOST + 1, addr(from, rx())));
	}
}

TEST_F(LongInject, WritesFromTheFirstOn)
{
	/* fi_rma(3) 2.1, fi_inject_write 1: The buffer is the caller's at
	 * return, and every byte arrives. */
	const size_t n = 64;

	ONLY_TANDEM();
	OK(start());
	for (auto *from : senders()) {
		Bytes out(MOST);

		std::fill(region.begin(), region.end(), 0);
		for (size_t i = 0; i < n; i++) {
			size_t len = i % 2 ? MOST : 700 + i;
			uint64_t end = tdt_now_ms() + tdt_deadline_ms();
			ssize_t ret;

			tdt_fill(out.data(), len, (uint32_t)i);
			do {
				ret = fi_inject_write(from->ep, out.data(), len,
						      addr(from, rx()),
						      i * MOST, KEY);
				tdt_progress(w);
			} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
			ASSERT_EQ(0, ret);
			memset(out.data(), 0x77, len);
		}
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		for (size_t i = 0; i < n; i++) {
			size_t len = i % 2 ? MOST : 700 + i;

			while (tdt_differs(&region[i * MOST], len,
					   (uint32_t)i) != -1) {
				ASSERT_LT(tdt_now_ms(), end) << i;
				tdt_progress(w);
			}
		}
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_SOURCE_ERR: fi_getinfo(3), and fi_cq(3) FI_EADDRNOTAVAIL. Over both
 * tiers, for messages that find their receive and messages that wait for it.
 */
#include "tests/harness/fixture.h"

namespace
{

class SourceError : public Case,
		    public testing::WithParamInterface<size_t /* bytes */>
{
protected:
	SourceError()
	{
		attr.caps |= FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV;
		attr.no_insert = 1;
	}

	/* The sender knows the receiver, not the other way round. */
	void know(struct tdt_ep *from)
	{
		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1,
					  &from->peers[0], 0, nullptr));
	}

	void send(struct tdt_ep *from, Bytes &out, bool tagged)
	{
		struct tdt_op op =
			op_of(TDT_SEND, tagged, out.data(), out.size());

		op.addr = from->peers[0];
		op.tag = 0x77;
		op.context = &out;
		ASSERT_EQ(0, tdt_post(from, &op));
	}

	void recv(Bytes &in, bool tagged, fi_addr_t src = FI_ADDR_UNSPEC)
	{
		struct tdt_op op =
			op_of(TDT_RECV, tagged, in.data(), in.size());

		op.addr = src;
		op.tag = 0x77;
		op.context = &in;
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}

	/* Wait until earlier messages of @from have arrived. */
	void fence_unknown(struct tdt_ep *from)
	{
		char out = 1, in = 0;
		struct tdt_op op = op_of(TDT_RECV, 1, &in, 1);

		op.tag = 0x99;
		op.context = &in;
		op.addr = FI_ADDR_UNSPEC;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		op = op_of(TDT_SEND, 1, &out, 1);
		op.addr = from->peers[0];
		op.tag = 0x99;
		op.context = &out;
		ASSERT_EQ(0, tdt_post(from, &op));
		OK(failed(rx(), &in, FI_EADDRNOTAVAIL));
		ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
	}

	/* A message of @from ended in @in, whose source is missed. */
	void missed(struct tdt_ep *from, Bytes &in, bool tagged, uint32_t seed)
	{
		struct tdt_comp c;

		OK(failed(rx(), &in, FI_EADDRNOTAVAIL, &c));
		/* fi_cq(3) 2.1, fi_cq_readerr 6: FI_EADDRNOTAVAIL: the message
		 * arrived, and the entry describes it */
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), seed));
		EXPECT_EQ(in.size(), c.len);
		EXPECT_EQ(FI_RECV | (tagged ? FI_TAGGED : FI_MSG), c.flags);
		if (tagged) {
			EXPECT_EQ(0x77u, c.tag);
		}
		EXPECT_EQ(FI_ADDR_NOTAVAIL, c.src);
		/* fi_cq(3) 2.1, fi_cq_readerr 6: err_data has the address of
		 * the source in the format of the fi_info */
		ASSERT_EQ(from->namelen, c.err_data_size);
		EXPECT_EQ(0, memcmp(from->name, c.err_data, from->namelen));
		data = c;
	}

	struct tdt_comp data;
};

TEST_P(SourceError, UnknownSourcesAreReportedWithTheirAddress)
{
	OPEN();
	for (auto *from : senders()) {
		OK(know(from));
		for (int k = 0; k < 4; k++) {
			Bytes out = filled(GetParam(), 5), in(GetParam());

			if (k & 1) {
				OK(recv(in, k & 2));
			}
			OK(send(from, out, k & 2));
			if (!(k & 1)) {
				OK(fence_unknown(from));
				OK(recv(in, k & 2));
			}
			OK(missed(from, in, k & 2, 5));
			ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
		}
	}
}

TEST_P(SourceError, ReportedAddressCanBeInserted)
{
	/* fi_cq(3) 2.1, fi_cq_readerr 6: err_data can be given to
	 * fi_av_insert. */
	OPEN();
	for (auto *from : senders()) {
		Bytes out[3], in[3];
		struct tdt_comp c;
		fi_addr_t src = FI_ADDR_NOTAVAIL;

		OK(know(from));
		for (uint32_t i = 0; i < 3; i++) {
			out[i] = filled(GetParam(), i);
			in[i] = Bytes(GetParam());
		}
		OK(recv(in[0], true));
		OK(send(from, out[0], true));
		OK(missed(from, in[0], true, 0));
		/* One that waits is known by the time it is received. */
		OK(send(from, out[1], true));
		ASSERT_EQ(1, fi_av_insert(rx()->av, data.err_data, 1, &src, 0,
					  nullptr));
		OK(recv(in[1], true, src));
		OK(done(rx(), &in[1], FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(src, c.src);
		OK(recv(in[2], true));
		OK(send(from, out[2], true));
		OK(done(rx(), &in[2], FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(src, c.src);
		EXPECT_EQ(-1, tdt_differs(in[2].data(), in[2].size(), 2));
		/* Removed: unknown again. */
		ASSERT_EQ(0, fi_av_remove(rx()->av, &src, 1, 0));
		for (auto &o : out)
			ASSERT_EQ(0, tdt_wait(from, &o, nullptr));
		OK(recv(in[0], false));
		OK(send(from, out[0], false));
		OK(missed(from, in[0], false, 0));
		ASSERT_EQ(0, tdt_wait(from, &out[0], nullptr));
	}
}

TEST_P(SourceError, WithoutACompletionThereIsNoError)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 6: FI_SELECTIVE_COMPLETION: a
	 * completion that was not asked for is not reported, and the transfer
	 * did not fail. */
	attr.rx_bind = FI_SELECTIVE_COMPLETION;
	attr.cntrs = 1;
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(GetParam(), 5), in(GetParam());
		uint64_t before = fi_cntr_read(rx()->rx_cntr);

		OK(know(from));
		OK(recv(in, true));
		OK(send(from, out, true));
		ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
		for (uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		     fi_cntr_read(rx()->rx_cntr) == before &&
		     tdt_now_ms() < end;)
			tdt_progress(w);
		EXPECT_EQ(before + 1, fi_cntr_read(rx()->rx_cntr));
		EXPECT_EQ(0u, fi_cntr_readerr(rx()->rx_cntr));
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 5));
	}
}

/* In line, eager, and fetched on match. */
INSTANTIATE_TEST_SUITE_P(Sizes, SourceError, testing::Values(8, 3000, 200000),
			 testing::PrintToStringParamName());

class SourceHint : public Case
{
};

TEST_F(SourceHint, GoesWithSourceOnly)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 29: FI_SOURCE_ERR needs FI_SOURCE. */
	struct fi_info *hints, *info = nullptr;

	OPEN();
	hints = tdt_hints(&attr);
	hints->caps = FI_TAGGED | FI_SOURCE_ERR;
	EXPECT_EQ(-FI_ENODATA,
		  fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	hints->caps = FI_TAGGED | FI_SOURCE;
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	EXPECT_EQ(0u, info->caps & FI_SOURCE_ERR);
	EXPECT_EQ(0u, info->rx_attr->caps & FI_SOURCE_ERR);
	fi_freeinfo(info);
	hints->caps = FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR;
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	EXPECT_NE(0u, info->caps & FI_SOURCE_ERR);
	EXPECT_NE(0u, info->rx_attr->caps & FI_SOURCE_ERR);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

} // namespace

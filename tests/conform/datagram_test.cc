/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram endpoints: fi_tandem(7), DATAGRAM ENDPOINTS: datagrams arrive
 * reliably and in order, and may be as long as any message.
 */
#include "parts.h"

namespace
{

class Datagram : public Parts
{
protected:
	static const size_t MANY = 100;

	Datagram()
	{
		attr.type = FI_EP_DGRAM;
	}

	/* @many messages of growing length, one after the other, in order. */
	void stream(struct tdt_ep *from, int tagged, size_t many)
	{
		std::vector<Bytes> out, in(many);

		for (size_t i = 0; i < many; i++) {
			out.push_back(filled(i * i * 31, (uint32_t)i));
			in[i].resize(out[i].size());
			post(rx(), TDT_RECV, tagged, in[i], addr(rx(), from));
		}
		for (size_t i = 0; i < many; i++)
			post(from, TDT_SEND, tagged, out[i], addr(from, rx()));
		for (size_t i = 0; i < many; i++) {
			uint64_t kind = tagged ? FI_TAGGED : FI_MSG;
			struct tdt_comp c;

			OK(done(rx(), &in[i], FI_RECV | kind, &c));
			EXPECT_EQ(out[i].size(), c.len);
			EXPECT_EQ(addr(rx(), from), c.src);
			EXPECT_EQ(-1, tdt_differs(in[i].data(), c.len,
						  (uint32_t)i));
			OK(done(from, &out[i], FI_SEND | kind));
		}
	}

	static void post(struct tdt_ep *at, enum tdt_call call, int tagged,
			 Bytes &buf, fi_addr_t addr)
	{
		struct tdt_op op = op_of(call, tagged, buf.data(), buf.size());

		op.addr = addr;
		op.tag = 5;
		op.context = &buf;
		EXPECT_EQ(0, tdt_post(at, &op));
	}

	void all_stream()
	{
		for (auto *from : senders()) {
			OK(stream(from, 0, MANY));
			OK(stream(from, 1, MANY));
		}
	}
};

TEST_F(Datagram, ArriveInOrderAndWhole)
{
	OPEN();
	EXPECT_EQ(FI_EP_DGRAM, rx()->info->ep_attr->type);
	OK(all_stream());
}

TEST_F(Datagram, ReachReliableEndpointsAndBack)
{
	/* "endpoints of one type exchange messages with those of the other" */
	char to[2] = { 1, 2 }, back[2] = { 0, 0 };

	ONLY_TANDEM();
	attr.no_enable = 1;
	OPEN();
	ASSERT_EQ(0, tdt_ep_close(rx()));
	w->info->ep_attr->type = FI_EP_RDM;
	ASSERT_EQ(0, tdt_ep_open(rx())) << tdt_error();
	for (size_t i = 0; i < w->count; i++)
		ASSERT_EQ(0, tdt_ep_enable(ep(i))) << tdt_error();
	for (size_t i = 0; i < w->count; i++) {
		for (size_t k = 0; k < w->count; k++)
			ASSERT_EQ(1,
				  fi_av_insert(ep(i)->av, ep(k)->name, 1,
					       &ep(i)->peers[k], 0, nullptr));
	}
	OK(all_stream());
	for (auto *from : senders()) {
		ASSERT_EQ(0, tdt_recv(from, &back[1], 1, back));
		ASSERT_EQ(0, tdt_send(rx(), from, &to[1], 1, to));
		OK(done(from, back, FI_RECV | FI_MSG));
		OK(done(rx(), to, FI_SEND | FI_MSG));
		EXPECT_EQ(to[1], back[1]);
		back[1] = 0;
	}
}

TEST_F(Datagram, HaveSharedAndSeveralContextsAndAliases)
{
	/* "what this page says of ... contexts ... holds for both types" */
	struct fi_info *n;
	struct fid_ep *srx, *shared, *scalable, *alias, *part;
	struct fid_stx *stx;

	ONLY_TANDEM();
	OPEN();
	n = info([](struct fi_info *i) {
		i->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		i->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	});
	ASSERT_EQ(0, fi_srx_context(rx()->domain, n->rx_attr, &srx, nullptr));
	made.push_back(&srx->fid);
	ASSERT_EQ(0, fi_stx_context(rx()->domain, n->tx_attr, &stx, nullptr));
	made.push_back(&stx->fid);
	ASSERT_EQ(0, fi_endpoint(rx()->domain, n, &shared, nullptr));
	made.push_back(&shared->fid);
	EXPECT_EQ(0, fi_ep_bind(shared, &srx->fid, 0));
	EXPECT_EQ(0, fi_ep_bind(shared, &stx->fid, 0));
	fi_freeinfo(n);
	n = info([](struct fi_info *i) {
		i->ep_attr->rx_ctx_cnt = 2;
		i->ep_attr->tx_ctx_cnt = 2;
	});
	ASSERT_EQ(0, fi_scalable_ep(rx()->domain, n, &scalable, nullptr));
	made.push_back(&scalable->fid);
	ASSERT_EQ(0, fi_rx_context(scalable, 1, nullptr, &part, nullptr));
	made.push_back(&part->fid);
	fi_freeinfo(n);
	ASSERT_EQ(0, fi_ep_alias(rx()->ep, &alias, FI_RECV | FI_COMPLETION));
	made.push_back(&alias->fid);
}

} // namespace

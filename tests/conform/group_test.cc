/* SPDX-License-Identifier: BSD-2-Clause */
/* Peer groups: fi_av(3) "PEER GROUPS", fi_domain(3) max_group_id. */
#include <cstdlib>

#include "parts.h"

namespace
{

const uint64_t TAG = 0x77;

/* Anybody of a group: fi_tandem(7), GROUPS. */
fi_addr_t anybody(uint32_t group)
{
	return fi_group_addr(UINT32_MAX, group);
}

class Groups : public Parts, public testing::WithParamInterface<size_t>
{
protected:
	Groups()
	{
		attr.max_group = 1000;
	}

	void send(struct tdt_ep *from, uint32_t group, bool tagged, Bytes &out)
	{
		struct tdt_op op =
			op_of(TDT_SEND, tagged, out.data(), out.size());

		op.addr = fi_group_addr(addr(from, rx()), group);
		op.tag = TAG;
		op.context = &out;
		ASSERT_EQ(0, tdt_post(from, &op));
	}

	void recv(fi_addr_t src, bool tagged, Bytes &in)
	{
		struct tdt_op op =
			op_of(TDT_RECV, tagged, in.data(), in.size());

		op.addr = src;
		op.tag = TAG;
		op.context = &in;
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}

	/* @in got what was filled with @seed, from @from. */
	void got(struct tdt_ep *from, Bytes &in, uint32_t seed)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait(rx(), &in, &c));
		ASSERT_EQ(0, c.err) << fi_strerror(c.err);
		EXPECT_EQ(addr(rx(), from), c.src);
		EXPECT_EQ(in.size(), c.len);
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), seed));
	}

	void sent(struct tdt_ep *from, Bytes &out)
	{
		ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
	}

	/* Two groups and group 0; @posted: receives are there first. */
	void three(struct tdt_ep *from, bool tagged, bool directed, bool posted)
	{
		static const uint32_t groups[] = { 0, 7, 1000 };
		fi_addr_t src = addr(rx(), from);
		Bytes out[3], in[3];
		char mark = 0;
		struct iovec v = iov_of(&mark, 1);

		for (int i = 0; i < 3; i++) {
			out[i] = filled(GetParam(), 40 + (uint32_t)i);
			in[i] = Bytes(GetParam());
		}
		for (int i = 2; posted && i >= 0; i--)
			OK(recv(directed  ? fi_group_addr(src, groups[i]) :
				groups[i] ? anybody(groups[i]) :
					    FI_ADDR_UNSPEC,
				tagged, in[i]));
		for (int i = 0; i < 3; i++)
			OK(send(from, groups[i], tagged, out[i]));
		if (!posted) {
			/* A message behind them, of group 0. */
			ASSERT_EQ(0, tdt_trecv(rx(), &v, TAG + 1, 0, &mark));
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, TAG + 1, &mark));
			ASSERT_EQ(0, tdt_wait(rx(), &mark, nullptr));
			ASSERT_EQ(0, tdt_wait(from, &mark, nullptr));
		}
		for (int i = 2; !posted && i >= 0; i--)
			OK(recv(directed ? fi_group_addr(src, groups[i]) :
					   anybody(groups[i]),
				tagged, in[i]));
		for (int i = 0; i < 3; i++) {
			OK(got(from, in[i], 40 + (uint32_t)i));
			OK(sent(from, out[i]));
		}
	}
};

TEST_P(Groups, MessagesMatchReceivesOfTheirGroupOnly)
{
	/* fi_av(3) 2.1, PEER GROUPS 3: A message and the receive that takes it
	 * are of the same group. */
	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		for (int k = 0; k < 8; k++)
			OK(three(from, k & 1, k & 2, k & 4));
	}
}

TEST_P(Groups, WithoutDirectedReceiveTheGroupStillCounts)
{
	ONLY_TANDEM();
	attr.caps &= ~(uint64_t)FI_DIRECTED_RECV;
	OPEN();
	for (auto *from : senders()) {
		OK(three(from, true, false, true));
		OK(three(from, false, true, false));
	}
}

TEST_P(Groups, PeekLooksAtItsGroup)
{
	/* fi_tagged(3) 2.1, FLAGS 15: FI_PEEK, by the same rule. */
	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(GetParam(), 3), in(GetParam());
		struct fi_context2 ctx;
		struct tdt_op op = op_of(TDT_RECVMSG, 1, nullptr, 0);
		struct tdt_comp c;

		OK(send(from, 5, true, out));
		OK(fence(from));
		op.tag = TAG;
		op.flags = FI_PEEK;
		op.context = &ctx;
		op.addr = FI_ADDR_UNSPEC;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(failed(rx(), &ctx, FI_ENOMSG));
		op.addr = anybody(6);
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(failed(rx(), &ctx, FI_ENOMSG));
		op.addr = anybody(5);
		ASSERT_EQ(0, tdt_post(rx(), &op));
		ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
		EXPECT_EQ(0, c.err);
		EXPECT_EQ(addr(rx(), from), c.src);
		OK(recv(fi_group_addr(addr(rx(), from), 5), true, in));
		OK(got(from, in, 3));
		OK(sent(from, out));
	}
}

/* In line, eager, and fetched on match. */
INSTANTIATE_TEST_SUITE_P(Sizes, Groups, testing::Values(8, 3000, 100000),
			 testing::PrintToStringParamName());

class Group : public Groups
{
};

TEST_P(Group, AboveTheMostIsRefused)
{
	/* fi_domain(3) 2.1, Maximum Peer Group Id (max_group_id) 1: The id of a
	 * group is at most max_group_id. */
	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		fi_addr_t to = addr(from, rx());
		char b = 0;

		EXPECT_EQ(-FI_EINVAL, fi_send(from->ep, &b, 1, nullptr,
					      fi_group_addr(to, 1001), &b));
		EXPECT_EQ(-FI_EINVAL, fi_recv(from->ep, &b, 1, nullptr,
					      fi_group_addr(to, 1001), &b));
		EXPECT_EQ(-FI_EINVAL,
			  fi_recv(from->ep, &b, 1, nullptr, anybody(1001), &b));
		EXPECT_EQ(-FI_EINVAL,
			  fi_send(from->ep, &b, 1, nullptr, anybody(1), &b));
		EXPECT_EQ(-FI_EINVAL, fi_recv(from->ep, &b, 1, nullptr,
					      fi_group_addr(77, 1), &b));
	}
}

TEST_P(Group, WidthsThatDoNotFitAreRefused)
{
	/* fi_domain(3) 2.1, Maximum Peer Group Id (max_group_id) 1: A
	 * max_group_id that cannot be had fails fi_getinfo. */
	struct fi_info *hints, *info = nullptr;
	struct fi_av_attr a;
	struct fid_av *v;

	ONLY_TANDEM();
	OPEN();
	hints = tdt_hints(&attr);
	hints->domain_attr->max_group_id = UINT32_MAX;
	EXPECT_EQ(-FI_ENODATA,
		  fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	hints->domain_attr->max_group_id = UINT32_MAX - 1;
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	EXPECT_EQ(UINT32_MAX - 1, info->domain_attr->max_group_id);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	/* 1000 takes 10 of the 32 bits that are not the index's. */
	memset(&a, 0, sizeof(a));
	a.rx_ctx_bits = 23;
	EXPECT_EQ(-FI_EINVAL, fi_av_open(rx()->domain, &a, &v, nullptr));
	a.rx_ctx_bits = 22;
	ASSERT_EQ(0, fi_av_open(rx()->domain, &a, &v, nullptr));
	EXPECT_EQ(0, fi_close(&v->fid));
}

TEST_P(Group, WithoutThemAnAddressHasNone)
{
	attr.max_group = 0;
	OPEN();
	for (auto *from : senders()) {
		char b = 0;

		EXPECT_EQ(-FI_EINVAL,
			  fi_send(from->ep, &b, 1, nullptr,
				  fi_group_addr(addr(from, rx()), 1), &b));
	}
}

TEST_P(Group, PeersWithoutThemAreNotReached)
{
	/* fi_tandem(7), GROUPS: A message with a group for a peer whose domain
	 * has no groups fails with FI_EADDRNOTAVAIL. Group 0 is for
	 * everybody. */
	ONLY_TANDEM();
	attr.max_group = 0;
	attr.caps |= FI_RMA;
	OPEN();
	for (auto *to : senders()) {
		struct fi_info *i = info([](struct fi_info *n) {
			n->domain_attr->max_group_id = 9;
		});
		struct fid_domain *d = nullptr;
		struct fid_ep *e = nullptr;
		char out[2] = { 1, 2 }, in = 0;
		struct tdt_op op = op_of(TDT_RECV, 1, &in, 1);

		ASSERT_EQ(0, fi_domain(w->fabric, i, &d, nullptr));
		made.push_back(&d->fid);
		struct fid_av *v = av(d);
		struct fid_cq *q = cq(d);
		ASSERT_EQ(0, fi_endpoint(d, i, &e, nullptr));
		made.push_back(&e->fid);
		fi_freeinfo(i);
		ASSERT_EQ(0, fi_ep_bind(e, &v->fid, 0));
		ASSERT_EQ(0, fi_ep_bind(e, &q->fid, FI_TRANSMIT | FI_RECV));
		tier_of(to, e);
		ASSERT_EQ(0, fi_enable(e));
		fi_addr_t a = insert(v, to->ep);

		op.addr = FI_ADDR_UNSPEC;
		op.tag = 7;
		op.context = &in;
		ASSERT_EQ(0, tdt_post(to, &op));
		/* Refused while the path is not agreed on. */
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		do {
			ret = fi_tsend(e, &out[0], 1, nullptr,
				       fi_group_addr(a, 3), 7, &out[0]);
			tdt_progress(w);
		} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
		Entry x;

		if (ret) {
			EXPECT_EQ(-FI_EADDRNOTAVAIL, ret);
		} else {
			x = next(q);
			ASSERT_EQ(-FI_EAVAIL, x.ret);
			EXPECT_EQ(FI_EADDRNOTAVAIL, x.err.err);
			EXPECT_EQ(&out[0], x.err.op_context);
		}
		ASSERT_EQ(0, fi_tsend(e, &out[1], 1, nullptr, a, 7, &out[1]));
		x = next(q);
		ASSERT_EQ(1, x.ret);
		EXPECT_EQ(&out[1], x.e.op_context);
		ASSERT_EQ(0, tdt_wait(to, &in, nullptr));
		EXPECT_EQ(2, in);
		/* One-sided operations have no group: this one meets no key. */
		ASSERT_EQ(0, fi_write(e, &out[0], 1, nullptr,
				      fi_group_addr(a, 3), 0, 12345, &in));
		x = next(q);
		ASSERT_EQ(-FI_EAVAIL, x.ret);
		EXPECT_EQ(FI_EACCES, x.err.err);
		EXPECT_EQ(&in, x.err.op_context);
	}
}

/* How many messages the test of streams sends. */
size_t stream_length()
{
	const char *n = getenv("TANDEM_TEST_MESSAGES");

	return n ? strtoul(n, nullptr, 0) : 20000;
}

struct Word {
	uint32_t group, seq;
};

/* Two groups, the same tags, the same processes: nothing crosses. */
TEST_P(Group, StreamsDoNotCross)
{
	static const uint32_t groups[2] = { 3, 900 };
	const size_t n = stream_length(), window = 64;

	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		struct Word out[2][64], in[2][64];
		size_t sent[2] = {}, done[2] = {}, got[2] = {}, posted[2] = {};

		while (got[0] + got[1] < n) {
			for (int g = 0; g < 2; g++) {
				struct tdt_op op;

				if (posted[g] < n / 2 &&
				    posted[g] - got[g] < window) {
					auto *at = &in[g][posted[g] % window];

					op = op_of(TDT_RECV, 1, at,
						   sizeof(*at));
					op.addr = anybody(groups[g]);
					op.tag = posted[g]++ & 3;
					op.context = at;
					ASSERT_EQ(0, tdt_post(rx(), &op));
				}
				if (sent[g] < n / 2 &&
				    sent[g] - done[g] < window) {
					auto *at = &out[g][sent[g] % window];

					*at = { groups[g], (uint32_t)sent[g] };
					op = op_of(TDT_SEND, 1, at,
						   sizeof(*at));
					op.addr = fi_group_addr(
						addr(from, rx()), groups[g]);
					op.tag = sent[g]++ & 3;
					op.context = at;
					ASSERT_EQ(0, tdt_post(from, &op));
				}
			}
			for (int g = 0; g < 2; g++) {
				if (sent[g] - done[g] == window ||
				    (sent[g] == n / 2 && done[g] < sent[g])) {
					auto *o = &out[g][done[g]++ % window];

					ASSERT_EQ(0,
						  tdt_wait(from, o, nullptr));
				}
				if (posted[g] - got[g] < window &&
				    posted[g] < n / 2)
					continue;
				if (got[g] == n / 2)
					continue;
				auto *at = &in[g][got[g] % window];

				ASSERT_EQ(0, tdt_wait(rx(), at, nullptr));
				ASSERT_EQ(groups[g], at->group);
				ASSERT_EQ((uint32_t)got[g], at->seq);
				got[g]++;
			}
		}
		for (int g = 0; g < 2; g++) {
			while (done[g] < sent[g]) {
				auto *o = &out[g][done[g]++ % window];

				ASSERT_EQ(0, tdt_wait(from, o, nullptr));
			}
		}
	}
}

INSTANTIATE_TEST_SUITE_P(One, Group, testing::Values(8),
			 testing::PrintToStringParamName());

} // namespace

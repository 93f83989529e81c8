/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_AV_USER_ID: fi_av(3), "USER IDENTIFIERS FOR ADDRESSES". Completions, errors
 * and peeks report the user's ids; transfers use the fi_addr_t of the vector.
 */
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

class UserId : public Case
{
protected:
	static const uint64_t TAG = 77;

	UserId()
	{
		attr.no_insert = 1;
	}

	/* Any value but an index. */
	static fi_addr_t id_of(const struct tdt_ep *e)
	{
		return 0xabcd000000000000 + e->index;
	}

	void insert(struct tdt_ep *at, const struct tdt_ep *who,
		    uint64_t flags = 0)
	{
		fi_addr_t a = id_of(who);

		ASSERT_EQ(1, fi_av_insert(at->av, who->name, 1, &a, flags,
					  nullptr));
		EXPECT_GT(8u, a) << "an index, whatever the id";
		at->peers[who->index] = a;
	}

	/* The senders know rx(); does rx() know them by ids, or not at all? */
	void meet(bool known = true)
	{
		ONLY_TANDEM();
		OPEN();
		for (auto *from : senders()) {
			OK(insert(from, rx()));
			if (known) {
				OK(insert(rx(), from, FI_AV_USER_ID));
			}
		}
	}

	void post(char *in, size_t len, fi_addr_t src = FI_ADDR_UNSPEC)
	{
		ASSERT_EQ(0, fi_trecv(rx()->ep, in, len, nullptr, src, TAG, 0,
				      in));
	}

	void send(struct tdt_ep *from, const char *out, size_t len = 1)
	{
		struct iovec iov = iov_of(const_cast<char *>(out), len);

		ASSERT_EQ(0, tdt_tsend(from, rx(), &iov, TAG,
				       const_cast<char *>(out)));
	}

	/* The receive of @in reports @id; the send ended, too. */
	void reports(struct tdt_ep *from, char *in, const char *out,
		     fi_addr_t id)
	{
		struct tdt_comp c;

		OK(done(rx(), in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(id, c.src);
		OK(done(from, const_cast<char *>(out), FI_SEND | FI_TAGGED));
	}

	/* Wait until what was sent waits at rx(). */
	void arrived(fi_addr_t want)
	{
		struct fi_context2 ctx;
		struct fi_msg_tagged m;
		struct tdt_comp c;

		memset(&m, 0, sizeof(m));
		m.addr = FI_ADDR_UNSPEC;
		m.tag = TAG;
		m.context = &ctx;
		do {
			ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m, FI_PEEK));
			ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
			tdt_progress(w);
		} while (c.err == FI_ENOMSG);
		ASSERT_EQ(0, c.err);
		EXPECT_EQ(want, c.src);
	}
};

TEST_F(UserId, CompletionsReportIt)
{
	/* fi_av(3) 2.1, fi_av_insert 11: FI_AV_USER_ID: completions report the
	 * id that came with the address. */
	OK(meet());
	for (auto *from : senders()) {
		char out = 1, in = 0;

		OK(post(&in, 1));
		OK(send(from, &out));
		OK(reports(from, &in, &out, id_of(from)));
	}
}

TEST_F(UserId, TheReturnedAddressIsUsedForTransfers)
{
	/* fi_av(3) 2.1, USER IDENTIFIERS FOR ADDRESSES 3: Operations use the
	 * fi_addr_t that the insertion returned. */
	OK(meet());
	for (auto *from : senders()) {
		char out = 1, in = 0, back = 2;
		struct iovec iov = iov_of(&back, 1);

		OK(post(&in, 1, addr(rx(), from)));
		OK(send(from, &out));
		OK(reports(from, &in, &out, id_of(from)));
		ASSERT_EQ(0, fi_trecv(from->ep, &in, 1, nullptr,
				      addr(from, rx()), TAG, 0, &in));
		ASSERT_EQ(0, tdt_tsend(rx(), from, &iov, TAG, &back));
		OK(done(from, &in, FI_RECV | FI_TAGGED));
		OK(done(rx(), &back, FI_SEND | FI_TAGGED));
	}
}

TEST_F(UserId, UnexpectedMessagesAndPeeksReportIt)
{
	/* fi_av(3) 2.1, USER IDENTIFIERS FOR ADDRESSES 1: Completions and
	 * errors report the id in place of the fi_addr_t. */
	OK(meet());
	for (auto *from : senders()) {
		char out = 1, in = 0;

		OK(send(from, &out));
		OK(arrived(id_of(from)));
		OK(post(&in, 1));
		OK(reports(from, &in, &out, id_of(from)));
	}
}

TEST_F(UserId, ErrorsReportIt)
{
	/* As above: "or error event". */
	OK(meet());
	for (auto *from : senders()) {
		char out[64] = {}, in[8];
		struct tdt_comp c;

		OK(post(in, sizeof(in)));
		OK(send(from, out, sizeof(out)));
		OK(failed(rx(), in, FI_ETRUNC, &c));
		EXPECT_EQ(id_of(from), c.src);
		OK(done(from, out, FI_SEND | FI_TAGGED));
	}
}

TEST_F(UserId, SendErrorsReportIt)
{
	/* As above; here the address is where the message did not go. */
	std::vector<char> out(4 << 20);

	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	for (auto *from : senders()) {
		OK(insert(from, rx(), FI_AV_USER_ID));
		OK(insert(rx(), from));
		OK(fence(from));
	}
	for (auto *from : senders())
		OK(send(from, out.data(), out.size()));
	ASSERT_EQ(0, tdt_ep_close(rx()));
	for (auto *from : senders()) {
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait(from, out.data(), &c));
		EXPECT_NE(0, c.err);
		EXPECT_EQ(id_of(rx()), c.src);
	}
}

TEST_F(UserId, KnownLaterReportsItFromThenOn)
{
	/* fi_tandem(7): the source of a message is known from the insert of
	 * its address on. */
	OK(meet(false));
	for (auto *from : senders()) {
		char out = 1, in = 0;

		OK(send(from, &out));
		OK(arrived(FI_ADDR_UNSPEC));
		OK(insert(rx(), from, FI_AV_USER_ID));
		OK(post(&in, 1, addr(rx(), from)));
		OK(reports(from, &in, &out, id_of(from)));
	}
}

TEST_F(UserId, AddressesWithoutOneReportThemselves)
{
	/* fi_av(3) 2.1, fi_av_insert 11: FI_AV_USER_ID of an insertion: the ids
	 * are of the addresses it was given for. */
	bool with = true;

	OK(meet(false));
	for (auto *from : senders()) {
		char out = 1, in = 0;

		OK(insert(rx(), from, with ? FI_AV_USER_ID : 0));
		OK(post(&in, 1));
		OK(send(from, &out));
		OK(reports(from, &in, &out,
			   with ? id_of(from) : addr(rx(), from)));
		with = !with;
	}
}

TEST_F(UserId, InsertedAgainHasNone)
{
	/* fi_tandem(7): the id goes with the address. */
	OK(meet());
	for (auto *from : senders()) {
		char out = 1, in = 0;
		fi_addr_t a = addr(rx(), from);

		OK(fence(from));
		ASSERT_EQ(0, fi_av_remove(rx()->av, &a, 1, 0));
		OK(insert(rx(), from));
		EXPECT_EQ(a, addr(rx(), from));
		OK(post(&in, 1));
		OK(send(from, &out));
		OK(reports(from, &in, &out, a));
	}
}

TEST_F(UserId, OfAVectorOpenedForThem)
{
	/* fi_av(3) 2.1, fi_av_set_user_id 1: Ids are FI_ADDR_NOTAVAIL until
	 * fi_av_set_user_id sets them. */
	attr.av_flags = FI_AV_USER_ID;
	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		char out = 1, in = 0;
		fi_addr_t a, wrong = 5;

		OK(insert(from, rx()));
		OK(insert(rx(), from));
		a = addr(rx(), from);
		EXPECT_EQ(-FI_EINVAL,
			  fi_av_insert(rx()->av, from->name, 1, &wrong,
				       FI_AV_USER_ID, nullptr));
		OK(post(&in, 1, a));
		OK(send(from, &out));
		OK(reports(from, &in, &out, FI_ADDR_NOTAVAIL));
		/* One that waits while the id is given. */
		OK(send(from, &out));
		OK(arrived(FI_ADDR_NOTAVAIL));
		ASSERT_EQ(0, fi_av_set_user_id(rx()->av, a, id_of(from), 0));
		OK(post(&in, 1, a));
		OK(reports(from, &in, &out, id_of(from)));
		ASSERT_EQ(0, fi_av_set_user_id(rx()->av, a, 3, 0));
		OK(post(&in, 1));
		OK(send(from, &out));
		OK(reports(from, &in, &out, 3));
		ASSERT_EQ(0, fi_av_remove(rx()->av, &a, 1, 0));
		EXPECT_EQ(-FI_EINVAL, fi_av_set_user_id(rx()->av, a, 3, 0));
		EXPECT_EQ(-FI_EINVAL,
			  fi_av_set_user_id(rx()->av, FI_ADDR_UNSPEC, 3, 0));
		OK(insert(rx(), from));
		OK(post(&in, 1));
		OK(send(from, &out));
		OK(reports(from, &in, &out, FI_ADDR_NOTAVAIL));
	}
}

TEST_F(UserId, TargetsOfWritesReportIt)
{
	/* "any completion entry": that of a write with data, too. */
	attr.caps |= FI_RMA;
	OK(meet());
	for (auto *from : senders()) {
		char out = 1, in = 0;
		struct fid_mr *mr;
		struct tdt_comp c;

		ASSERT_EQ(0, fi_mr_reg(rx()->domain, &in, 1, FI_REMOTE_WRITE, 0,
				       from->index, 0, &mr, nullptr));
		ssize_t ret;
		do {
			ret = fi_writedata(from->ep, &out, 1, nullptr, 7,
					   addr(from, rx()), 0, from->index,
					   &out);
			tdt_progress(w);
		} while (ret == -FI_EAGAIN);
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, tdt_wait_next(rx(), 1, &c));
		EXPECT_EQ(id_of(from), c.src);
		OK(done(from, &out, FI_WRITE | FI_RMA));
		EXPECT_EQ(0, fi_close(&mr->fid));
	}
}

} // namespace

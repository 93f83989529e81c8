/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that come before their receive: fi_msg(3), fi_tagged(3). */
#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

class Unexpected : public Case
{
protected:
	/* @n tagged messages of @len bytes, tag = number; all have left. */
	void send_all(struct tdt_ep *from, std::vector<Bytes> &out)
	{
		for (size_t i = 0; i < out.size(); i++) {
			struct iovec v = iov_of(out[i].data(), out[i].size());
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, i, &out[i]));
		}
	}

	void receive(size_t tag, size_t len, uint32_t seed)
	{
		Guarded in(len);
		struct iovec v = iov_of(in.data(), len);
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_trecv(rx(), &v, tag, 0, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(len, c.len);
		EXPECT_EQ(-1, tdt_differs(in.data(), len, seed));
		EXPECT_TRUE(in.intact());
	}
};

TEST_F(Unexpected, ManyWaitAndAreTakenInAnyOrder)
{
	/* fi_domain(3) 2.1, Resource Management (resource_mgmt) 5:
	 * FI_RM_ENABLED: the provider looks after its resources: unexpected
	 * messages are not lost. */
	const size_t n = 500;

	OPEN();
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		for (size_t i = 0; i < n; i++)
			out.push_back(filled(i % 97, (uint32_t)i));
		OK(send_all(from, out));
		OK(fence(from));
		for (size_t i = n; i-- > 0;)
			OK(receive(i, out[i].size(), (uint32_t)i));
		for (size_t i = 0; i < n; i++)
			OK(done(from, &out[i], FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, LargeThenPostedMatchesInOrder)
{
	/* fi_tagged(3) 2.1, fi_trecv 1: A receive takes one message. */
	OPEN();
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		for (size_t i = 0; i < 6; i++)
			out.push_back(filled(300000 + i, (uint32_t)i));
		OK(send_all(from, out));
		OK(fence(from));
		for (size_t i = 0; i < out.size(); i++)
			OK(receive(i, out[i].size(), (uint32_t)i));
		for (auto &b : out)
			OK(done(from, &b, FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, NothingStopsTheMessagesBehind)
{
	/* Reading is never switched off because of one message nobody wants:
	 * untagged ones wait while tagged ones pass. */
	const size_t n = 64;

	OPEN();
	for (auto *from : senders()) {
		Bytes big = filled(200000, 3), in(200000);
		std::vector<char> small(n, 's');

		ASSERT_EQ(0,
			  tdt_send(from, rx(), big.data(), big.size(), &big));
		for (auto &s : small)
			ASSERT_EQ(0, tdt_send(from, rx(), &s, 1, &s));
		OK(fence(from));
		ASSERT_EQ(0, tdt_recv(rx(), in.data(), in.size(), &in));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 3));
		OK(done(from, &big, FI_SEND | FI_MSG));
		for (auto &s : small) {
			char c = 0;

			ASSERT_EQ(0, tdt_recv(rx(), &c, 1, &c));
			OK(done(rx(), &c, FI_RECV | FI_MSG));
			EXPECT_EQ('s', c);
			OK(done(from, &s, FI_SEND | FI_MSG));
		}
	}
}

TEST_F(Unexpected, CloseDropsThoseNobodyTook)
{
	/* fi_endpoint(3) 2.1, fi_close 3: fi_close gives up the operations that
	 * are outstanding. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t len : { 1u, 5000u, 400000u }) {
			Bytes out = filled(len, 1);
			struct tdt_op op = op_of(TDT_SEND, 0, out.data(), len);

			op.addr = addr(from, rx());
			op.context = &out;
			ASSERT_EQ(0, tdt_post(from, &op));
			OK(fence(from));
			/* The buffers of pending sends go with this scope. */
			if (len > 5000)
				break;
			OK(done(from, &out, FI_SEND | FI_MSG));
		}
	}
	close();
}

/* The result of sending more messages than a peer may announce. */
struct Announced {
	enum { ALL = 80000 };
	uint64_t taken;	  /* while nothing was received */
	uint64_t gone;	  /* number of the one that was cancelled */
	uint64_t instead; /* of it so many were taken */
	uint64_t sent, received, completed, wrong;
};

class AnnouncedWorld : public Case
{
public:
	void TestBody() override
	{
	}

	void run(struct Announced *a)
	{
		attr.no_tcp_only = 1;
		attr.tx_size = 512;
		OK(open());
		ASSERT_EQ(0, tdt_warm_up(w));
		a->taken = fill(a);
		cancel(a, a->taken - 100 - a->taken % 3);
		a->instead = fill(a);
		post();

		uint64_t end = tdt_now_ms() + tdt_deadline_ms();

		while ((a->received < a->ALL - 1 ||
			a->completed < a->ALL - 1) &&
		       tdt_now_ms() < end) {
			send(a);
			look(a);
		}
		close();
	}

private:
	std::vector<uint64_t> seq = std::vector<uint64_t>(Announced::ALL);
	uint64_t in = 0;

	/* Each third one by fi_tinject. */
	bool send(struct Announced *a)
	{
		struct fid_ep *from = ep(1)->ep;
		fi_addr_t to = addr(ep(1), rx());
		uint64_t i = a->sent;

		if (i == a->ALL)
			return false;
		seq[i] = i + 1;
		ssize_t ret = i % 3 ? fi_tsend(from, &seq[i], 8, nullptr, to, 1,
					       &seq[i]) :
				      fi_tinject(from, &seq[i], 8, to, 1);
		if (ret) {
			a->wrong += ret != -FI_EAGAIN;
			return false;
		}
		a->completed += i % 3 == 0;
		a->sent++;
		return true;
	}

	/* As many as are taken while nothing is received. */
	uint64_t fill(struct Announced *a)
	{
		uint64_t before = a->sent;

		for (int vain = 0; vain < 3000; vain++) {
			if (send(a))
				vain = 0;
			look(a);
		}
		return a->sent - before;
	}

	/* Take back number @i, which was no inject. */
	void cancel(struct Announced *a, uint64_t i)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();

		ASSERT_EQ(0, fi_cancel(&ep(1)->ep->fid, &seq[i]));
		while (!a->gone && tdt_now_ms() < end)
			look(a);
		EXPECT_EQ(i + 1, a->gone);
	}

	void cancelled(struct Announced *a)
	{
		struct fi_cq_err_entry e = {};

		EXPECT_EQ(1, fi_cq_readerr(ep(1)->tx_cq, &e, 0));
		EXPECT_EQ(FI_ECANCELED, e.err);
		EXPECT_EQ(0u, a->gone) << "one was cancelled";
		a->gone = *static_cast<uint64_t *>(e.op_context);
	}

	void post()
	{
		EXPECT_EQ(0, fi_trecv(rx()->ep, &in, 8, nullptr, FI_ADDR_UNSPEC,
				      1, 0, &in));
	}

	void look(struct Announced *a)
	{
		struct fi_cq_tagged_entry e[16];
		ssize_t n = fi_cq_read(ep(1)->tx_cq, e, 16);

		for (ssize_t i = 0; i < n; i++)
			a->completed += e[i].op_context != &in;
		if (n == -FI_EAVAIL)
			cancelled(a);
		else
			a->wrong += n < 0 && n != -FI_EAGAIN;
		n = fi_cq_read(rx()->rx_cq, e, 1);
		a->wrong += n < 0 && n != -FI_EAGAIN;
		if (n != 1)
			return;
		a->wrong += in != next(a) || e[0].op_context != &in;
		if (++a->received < a->ALL - 1)
			post();
	}

	/* The number that comes next. */
	uint64_t next(const struct Announced *a)
	{
		return a->received + 1 + (a->received + 1 >= a->gone);
	}
};

TDT_ROLE(announced)
{
	struct Announced a;
	AnnouncedWorld t;

	(void)arg;
	memset(&a, 0, sizeof(a));
	t.run(&a);
	a.wrong += t.HasFailure();
	return tdt_tell(fd, &a, sizeof(a));
}

TEST_F(Unexpected, AnnouncedOnesAreBoundedAndNoneIsLost)
{
	/* fi_tandem(7), LIMITS: of 65536 messages a peer has been told without
	 * their payload; the rest waits with its sender until it receives. */
	const uint64_t most = 65536, max = 1 << 20, charge = 512, ring = 2040;
	struct tdt_child child = { 0, -1 };
	struct Announced a;

	ONLY_TANDEM();
	memset(&a, 0, sizeof(a));
	setenv("FI_TANDEM_UNEXP_MAX", "1048576", 1);
	EXPECT_EQ(0, tdt_child_start(&child, "announced", nullptr));
	unsetenv("FI_TANDEM_UNEXP_MAX");
	ASSERT_EQ(static_cast<ssize_t>(sizeof(a)),
		  tdt_hear(child.fd, &a, sizeof(a)));
	EXPECT_EQ(0, tdt_child_wait(&child));
	EXPECT_EQ(0u, a.wrong);
	EXPECT_LE(a.taken, most + max / charge + ring + 2 * 512);
	/* The one that was cancelled left its place, and injects may follow. */
	EXPECT_GE(a.instead, 1u);
	EXPECT_LE(a.instead, 3u);
	EXPECT_EQ(static_cast<uint64_t>(Announced::ALL), a.sent);
	EXPECT_EQ(static_cast<uint64_t>(Announced::ALL) - 1, a.received);
	EXPECT_EQ(static_cast<uint64_t>(Announced::ALL) - 1, a.completed);
}

TEST_F(Unexpected, SourceIsReported)
{
	/* fi_cq(3) 2.1, fi_cq_readfrom 1: fi_cq_readfrom reports the source of
	 * what was received. */
	OPEN();
	for (auto *from : senders()) {
		char out = 1, in = 0;
		struct iovec ov = iov_of(&out, 1), iv = iov_of(&in, 1);
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, 77, &out));
		OK(fence(from));
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 77, 0, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(addr(rx(), from), c.src);
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, SourceInsertedLaterIsUsedForDirectedReceive)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 3: An entry whose
	 * address becomes known may match a directed receive. */
	attr.no_insert = 1;
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(64, 5), in(64);
		struct tdt_op op;
		struct tdt_comp c;

		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1,
					  &from->peers[0], 0, nullptr));
		op = op_of(TDT_SEND, 1, out.data(), out.size());
		op.addr = from->peers[0];
		op.tag = 5;
		op.context = &out;
		ASSERT_EQ(0, tdt_post(from, &op));
		OK(fence(from));
		ASSERT_EQ(1,
			  fi_av_insert(rx()->av, from->name, 1,
				       &rx()->peers[from->index], 0, nullptr));
		op = op_of(TDT_RECV, 1, in.data(), in.size());
		op.addr = addr(rx(), from);
		op.tag = 5;
		op.context = &in;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(addr(rx(), from), c.src);
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 5));
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, SourceNotInsertedIsNotAvailable)
{
	/* fi_cq(3) 2.1, fi_cq_readfrom 4: FI_SOURCE without FI_SOURCE_ERR: a
	 * source without an fi_addr_t is FI_ADDR_NOTAVAIL. */
	attr.no_insert = 1;
	OPEN();
	for (auto *from : senders()) {
		char out = 1, in = 0;
		struct tdt_comp c;

		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1,
					  &from->peers[0], 0, nullptr));
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_MSG, &c));
		EXPECT_EQ(FI_ADDR_NOTAVAIL, c.src);
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

} // namespace

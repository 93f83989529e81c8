/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Misuse and races: calls with wrong arguments, in the wrong state, at the
 * wrong time. The tests are numbered; each comment says what must come out.
 */
#include <algorithm>
#include <atomic>
#include <thread>

#include <netinet/in.h>

#include "parts.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/*
 * Endpoint @i of @w sends a long message, and is closed after @passes of
 * progress, while endpoint 0 takes it; its buffer gets other bytes then.
 * Returns what is wrong with what endpoint 0 has, or "".
 */
std::string close_while_read(struct tdt_world *w, size_t i, int passes)
{
	Bytes out(4 << 20, 1), in(out.size(), 0);
	const Bytes sent = out;
	struct iovec ov = iov_of(out.data(), out.size());
	struct iovec iv = iov_of(in.data(), in.size());
	struct tdt_ep *from = &w->eps[i], *to = &w->eps[0];
	struct tdt_comp c;

	if (tdt_warm_up(w) || tdt_trecv(to, &iv, 3, 0, &in) ||
	    tdt_tsend(from, to, &ov, 3, &out))
		return "cannot send";
	for (int k = 0; k < passes; k++)
		tdt_progress(w);
	int closed = -1, ended;
	auto leave = [&] {
		closed = fi_close(&from->ep->fid);
		std::fill(out.begin(), out.end(), 2);
	};
	/* Over TCP it may wait for the receiver to take what is on its way. */
	if (tdt_path() == TDT_REMOTE || i == 2) {
		std::thread other(leave);

		ended = tdt_wait(to, &in, &c);
		other.join();
	} else {
		leave();
		ended = tdt_wait(to, &in, &c);
	}
	from->ep = nullptr;
	from->comp_count = 0;
	if (closed || ended)
		return closed ? "cannot close" : "never ended";
	if (!c.err)
		return in == sent ? "" : "not what was sent";
	return c.err == FI_ECONNRESET || c.err == FI_ECONNABORTED ?
		       "" :
		       fi_strerror(c.err);
}

/* close_while_read() for each sender and number of passes: "" or what failed. */
std::string close_while_read_all()
{
	struct tdt_attr attr;

	tdt_attr_init(&attr);
	for (size_t i = 1; i < attr.eps; i++) {
		for (int passes = 0; passes <= 10; passes++) {
			struct tdt_world *w = nullptr;
			std::string text;

			if (tdt_world_open(&attr, &w))
				return "no world";
			text = close_while_read(w, i, passes);
			if (tdt_world_close(w) && text.empty())
				text = "the rest is not closed";
			if (!text.empty())
				return text + ", sender " + std::to_string(i) +
				       ", passes " + std::to_string(passes);
		}
	}
	return "";
}

/* The same in a process of its own, which has an environment of its own. */
TDT_ROLE(closes_while_read)
{
	char text[128];

	(void)arg;
	snprintf(text, sizeof(text), "%s", close_while_read_all().c_str());
	return tdt_tell(fd, text, sizeof(text)) ? 1 : 0;
}

class Misuse : public Parts
{
protected:
	struct fid_mr *mr = nullptr;

	Misuse()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Parts::TearDown();
	}

	void open_warm()
	{
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
	}
};

TEST_F(Misuse, A01_TooLongIsEmsgsize)
{
	char b[4] = "";
	struct iovec two[2] = { iov_of(b, SIZE_MAX / 2),
				iov_of(b, SIZE_MAX / 2 + 10) };

	OPEN();
	size_t inject = rx()->info->tx_attr->inject_size;
	Bytes over(inject + 1);
	fi_addr_t to = addr(rx(), rx());

	EXPECT_EQ(-FI_EMSGSIZE,
		  fi_send(rx()->ep, b, rx()->info->ep_attr->max_msg_size + 1,
			  nullptr, to, nullptr));
	EXPECT_EQ(-FI_EMSGSIZE,
		  fi_sendv(rx()->ep, two, nullptr, 2, to, nullptr));
	EXPECT_EQ(-FI_EMSGSIZE,
		  fi_inject(rx()->ep, over.data(), over.size(), to));
	EXPECT_EQ(-FI_EMSGSIZE,
		  fi_tinject(rx()->ep, over.data(), over.size(), to, 1));
}

TEST_F(Misuse, A02_WrongVectorsAndFlags)
{
	char b = 1;
	struct fi_msg m;

	OK(open_warm());
	ASSERT_GE(rx()->info->tx_attr->iov_limit, 4u);
	std::vector<struct iovec> many(rx()->info->tx_attr->iov_limit + 1,
				       iov_of(&b, 1));
	fi_addr_t to = addr(rx(), rx());

	EXPECT_EQ(-FI_EINVAL, fi_sendv(rx()->ep, many.data(), nullptr,
				       many.size(), to, &b));
	EXPECT_EQ(-FI_EINVAL, fi_sendv(rx()->ep, nullptr, nullptr, 1, to, &b));
	EXPECT_EQ(-FI_EINVAL, fi_send(rx()->ep, nullptr, 1, nullptr, to, &b));
	EXPECT_EQ(-FI_EINVAL,
		  fi_recv(rx()->ep, nullptr, 1, nullptr, FI_ADDR_UNSPEC, &b));
	memset(&m, 0, sizeof(m));
	m.msg_iov = many.data();
	m.iov_count = 1;
	m.addr = to;
	EXPECT_EQ(-FI_EBADFLAGS, fi_sendmsg(rx()->ep, &m, 1ull << 61));
	EXPECT_EQ(-FI_EBADFLAGS, fi_recvmsg(rx()->ep, &m, 1ull << 61));
	/* An empty message needs no buffer; nothing else was posted. */
	ASSERT_EQ(0, tdt_recv(rx(), nullptr, 0, &b));
	ASSERT_EQ(0, tdt_send(rx(), rx(), nullptr, 0, &to));
	OK(done(rx(), &b, FI_RECV | FI_MSG));
	OK(done(rx(), &to, FI_SEND | FI_MSG));
}

TEST_F(Misuse, A03_NotReadyIsSaid)
{
	struct fid_ep *bare = nullptr;
	char b = 1;

	OPEN();
	ASSERT_EQ(0, fi_endpoint(rx()->domain, rx()->info, &bare, nullptr));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_send(bare, &b, 1, nullptr, 0, nullptr));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_recv(bare, &b, 1, nullptr, 0, nullptr));
	EXPECT_EQ(-FI_ENOAV, fi_enable(bare));
	ASSERT_EQ(0, fi_ep_bind(bare, &rx()->av->fid, 0));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(bare));
	EXPECT_EQ(0, fi_close(&bare->fid));
}

TEST_F(Misuse, A04_EveryTagMaskAndDataIsLegal)
{
	const uint64_t odd[] = {
		0, 1, ~0ull, 1ull << 63, 1ull << 32, 0x5555555555555555ull
	};

	OK(open_warm());
	for (auto *from : senders()) {
		for (uint64_t tag : odd) {
			for (uint64_t ignore : odd) {
				char in = 0, out = 2;
				struct iovec v = iov_of(&in, 1);
				struct tdt_op op =
					op_of(TDT_SENDDATA, 1, &out, 1);
				struct tdt_comp c;

				ASSERT_EQ(0, tdt_trecv(rx(), &v, tag ^ ignore,
						       ignore, &in));
				op.addr = addr(from, rx());
				op.tag = tag;
				op.data = ~tag ^ ignore;
				op.context = &out;
				ASSERT_EQ(0, tdt_post(from, &op));
				ASSERT_EQ(0, tdt_wait(rx(), &in, &c));
				EXPECT_EQ(tag, c.tag);
				EXPECT_EQ(~tag ^ ignore, c.data)
					<< "eight bytes of it";
				ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
			}
		}
	}
}

TEST_F(Misuse, A05_AddressesThatAreNotThere)
{
	uint8_t name[TDT_NAME_BYTES];
	size_t len = sizeof(name);
	fi_addr_t gone[] = { 1000000, FI_ADDR_UNSPEC };
	char b = 1;

	OPEN();
	for (fi_addr_t a : gone) {
		EXPECT_EQ(-FI_EINVAL,
			  fi_send(rx()->ep, &b, 1, nullptr, a, nullptr));
		EXPECT_EQ(-FI_EINVAL, fi_av_lookup(rx()->av, a, name, &len));
		EXPECT_EQ(-FI_EINVAL, fi_av_remove(rx()->av, &a, 1, 0));
	}
}

TEST_F(Misuse, A06_TruncationSparesTheNextMessage)
{
	/* ETRUNC with len placed and olen dropped; the sender succeeds. */
	OK(open_warm());
	for (auto *from : senders()) {
		for (size_t len : { (size_t)40, (size_t)3000, (size_t)50000,
				    (size_t)(1 << 20) }) {
			for (int late = 0; late < 2; late++) {
				Bytes out = filled(len, 5);
				Guarded in(20);
				char next = 'n', got = 0;
				struct iovec v = iov_of(in.data(), 20);
				struct iovec ov = iov_of(out.data(), len);
				struct iovec nv = iov_of(&next, 1);
				struct iovec gv = iov_of(&got, 1);
				struct tdt_comp c;

				if (!late) {
					ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0,
							       &in));
				}
				ASSERT_EQ(0,
					  tdt_tsend(from, rx(), &ov, 1, &out));
				ASSERT_EQ(0,
					  tdt_tsend(from, rx(), &nv, 1, &next));
				if (late) {
					OK(fence(from));
					ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0,
							       &in));
				}
				ASSERT_EQ(0, tdt_trecv(rx(), &gv, 1, 0, &got));
				OK(failed(rx(), &in, FI_ETRUNC, &c));
				EXPECT_EQ(20u, c.len);
				EXPECT_EQ(len - 20, c.olen);
				EXPECT_TRUE(in.intact());
				EXPECT_EQ(-1, tdt_differs(in.data(), 20, 5));
				ASSERT_EQ(0, tdt_wait(rx(), &got, nullptr));
				EXPECT_EQ('n', got);
				OK(done(from, &out, FI_SEND | FI_TAGGED));
				OK(done(from, &next, FI_SEND | FI_TAGGED));
			}
		}
	}
}

TEST_F(Misuse, A07_RegionsThatCannotBe)
{
	struct fid_mr *other = nullptr;
	char b[16];

	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, fi_mr_reg(rx()->domain, b, sizeof(b), FI_REMOTE_READ, 0, 7,
			       0, &mr, nullptr));
	EXPECT_EQ(-FI_ENOKEY,
		  fi_mr_reg(rx()->domain, b, sizeof(b), FI_REMOTE_READ, 0, 7, 0,
			    &other, nullptr));
	EXPECT_EQ(-FI_EBADFLAGS,
		  fi_mr_reg(rx()->domain, b, sizeof(b), FI_REMOTE_READ, 0, 8,
			    1ull << 62, &other, nullptr));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->domain->fid));
}

TEST_F(Misuse, A08_AccessThatWasNotGranted)
{
	/* EACCES at the initiator; the target sees and loses nothing. */
	Guarded region(64);
	char b[32] = "";
	const struct {
		uint64_t at, key;
		size_t len;
	} bad[] = {
		{ 0, 8, 8 },	      /* no such key */
		{ 60, 7, 8 },	      /* over the end */
		{ 64, 7, 1 },	      /* behind it */
		{ ~0ull, 7, 2 },      /* wraps */
		{ ~0ull - 7, 7, 16 }, /* wraps into it */
		{ 1ull << 63, 7, 8 },
	};

	OK(open_warm());
	memset(region.data(), 0x5a, 64);
	ASSERT_EQ(0, fi_mr_reg(rx()->domain, region.data(), 64, FI_REMOTE_WRITE,
			       0, 7, 0, &mr, nullptr));
	for (auto *from : senders()) {
		for (auto &x : bad) {
			ASSERT_EQ(0, keep_on([&] {
					  return fi_write(from->ep, b, x.len,
							  nullptr,
							  addr(from, rx()),
							  x.at, x.key, b);
				  }));
			OK(failed(from, b, FI_EACCES));
		}
		ASSERT_EQ(0, keep_on([&] {
				  return fi_read(from->ep, b, 8, nullptr,
						 addr(from, rx()), 0, 7, b);
			  }));
		OK(failed(from, b, FI_EACCES));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_write(from->ep, nullptr, 0, nullptr,
						  addr(from, rx()), 0, 7, b);
			  }));
		OK(done(from, b, FI_RMA | FI_WRITE));
		OK(fence(from));
	}
	for (size_t i = 0; i < 64; i++)
		ASSERT_EQ(0x5a, region.data()[i]);
}

TEST_F(Misuse, A09_RegionClosedDuringWrites)
{
	/* Each ends well or with EACCES; no byte changes after fi_close. */
	const size_t len = 1 << 20;
	Guarded region(len);
	Bytes out(len, 0xee);

	OK(open_warm());
	for (auto *from : senders()) {
		for (int turn = 0; turn < 8; turn++) {
			struct tdt_comp c;

			memset(region.data(), 0, len);
			ASSERT_EQ(0, fi_mr_reg(rx()->domain, region.data(), len,
					       FI_REMOTE_WRITE, 0, 9, 0, &mr,
					       nullptr));
			ASSERT_EQ(0, keep_on([&] {
					  return fi_write(from->ep, out.data(),
							  len, nullptr,
							  addr(from, rx()), 0,
							  9, &out);
				  }));
			for (int i = 0; i < turn; i++)
				tdt_progress(w);
			ASSERT_EQ(0, fi_close(&mr->fid));
			mr = nullptr;
			Bytes then(region.data(), region.data() + len);

			ASSERT_EQ(0, tdt_wait(from, &out, &c));
			EXPECT_TRUE(!c.err || c.err == FI_EACCES) << c.err;
			if (!c.err) {
				EXPECT_EQ(0xee, then[len - 1]);
			}
			EXPECT_EQ(0, memcmp(then.data(), region.data(), len));
		}
	}
}

TEST_F(Misuse, A09_RegionClosedDuringReads)
{
	/* Each ends with the bytes as they were, or with EACCES. */
	const size_t len = 1 << 20;
	const Bytes was(len, 0x5a);
	Bytes in(len);

	OK(open_warm());
	for (auto *from : senders()) {
		for (int turn = 0; turn < 16; turn++) {
			Guarded region(len);
			struct tdt_comp c;

			memcpy(region.data(), was.data(), len);
			ASSERT_EQ(0, fi_mr_reg(rx()->domain, region.data(), len,
					       FI_REMOTE_READ, 0, 9, 0, &mr,
					       nullptr));
			ASSERT_EQ(0, keep_on([&] {
					  return fi_read(from->ep, in.data(),
							 len, nullptr,
							 addr(from, rx()), 0, 9,
							 &in);
				  }));
			for (int i = 0; i < turn; i++)
				tdt_progress(w);
			ASSERT_EQ(0, fi_close(&mr->fid));
			mr = nullptr;
			memset(region.data(), 0xee, len);
			ASSERT_EQ(0, tdt_wait(from, &in, &c));
			EXPECT_TRUE(!c.err || c.err == FI_EACCES) << c.err;
			if (!c.err) {
				EXPECT_EQ(0,
					  memcmp(was.data(), in.data(), len));
			}
		}
	}
}

TEST_F(Misuse, A11_CancelAgainstCompletion)
{
	/* One of success and FI_ECANCELED; then the buffer is left alone. */
	OK(open_warm());
	for (auto *from : senders()) {
		unsigned ended[2] = { 0, 0 };

		for (int i = 0; i < 300; i++) {
			char in = 0, out = 'o', rest = 0;
			struct iovec v = iov_of(&in, 1), o = iov_of(&out, 1);
			struct iovec r = iov_of(&rest, 1);
			struct tdt_comp c;

			ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0, &in));
			ASSERT_EQ(0, tdt_tsend(from, rx(), &o, 1, &out));
			for (int k = 0; k < i % 4; k++)
				fi_cq_read(rx()->rx_cq, nullptr, 0);
			(void)!fi_cancel(&rx()->ep->fid, &in);
			ASSERT_EQ(0, tdt_wait(rx(), &in, &c));
			ASSERT_TRUE(!c.err || c.err == FI_ECANCELED);
			ended[!!c.err]++;
			if (c.err) {
				ASSERT_EQ(0, tdt_trecv(rx(), &r, 1, 0, &rest));
				ASSERT_EQ(0, tdt_wait(rx(), &rest, nullptr));
				EXPECT_EQ(0, in);
			}
			ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
			ASSERT_EQ(0u, tdt_pending(w));
		}
		EXPECT_GT(ended[0], 0u);
		EXPECT_GT(ended[1], 0u);
	}
}

TEST_F(Misuse, A12_CloseWithReceivesBeingFilled)
{
	/*
	 * Dropped silently; after the return no byte changes, whoever copies.
	 */
	const size_t len = 4 << 20;

	for (int turn = 0; turn < 6; turn++) {
		std::atomic<bool> stop{ false };
		Bytes in(len, 0), out(len, 0xcc);
		struct iovec v = iov_of(in.data(), len);
		struct iovec o = iov_of(out.data(), len);

		OK(open_warm());
		struct tdt_ep *from = senders()[0];

		ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0, &in));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &o, 1, &out));
		std::thread other([&] {
			struct fi_cq_tagged_entry e;

			while (!stop)
				fi_cq_read(from->tx_cq, &e, 1);
		});
		for (int i = 0; i < 3 * turn; i++)
			fi_cq_read(rx()->rx_cq, nullptr, 0);
		EXPECT_EQ(0, fi_close(&rx()->ep->fid));
		rx()->ep = nullptr;
		Bytes then = in;

		std::this_thread::yield();
		for (int i = 0; i < 100; i++)
			fi_cq_read(rx()->rx_cq, nullptr, 0);
		EXPECT_EQ(then, in);
		stop = true;
		other.join();
		for (auto &e : w->eps)
			e.comp_count = 0;
		ASSERT_EQ(0, tdt_world_close(w));
		w = nullptr;
	}
}

TEST_F(Misuse, A12_CloseWithSendsBeingRead)
{
	/* fi_endpoint(3) 2.1, fi_close 3: The buffers of an endpoint that is
	 * closed are the application's again. The receive fails, or has the bytes
	 * that were sent, whether the receiver reads them from the sender's
	 * memory, the sender copies them (FI_TANDEM_CMA=no), or TCP carries
	 * them. */
	struct tdt_child child = { 0, -1 };
	char text[128] = "";

	ONLY_TANDEM();
	EXPECT_EQ("", close_while_read_all());
	setenv("FI_TANDEM_CMA", "no", 1);
	EXPECT_EQ(0, tdt_child_start(&child, "closes_while_read", nullptr));
	unsetenv("FI_TANDEM_CMA");
	EXPECT_EQ(static_cast<ssize_t>(sizeof(text)),
		  tdt_hear(child.fd, text, sizeof(text)));
	EXPECT_STREQ("", text);
	EXPECT_EQ(0, tdt_child_wait(&child));
}

TEST_F(Misuse, A13_CloseInEveryOrder)
{
	/* -FI_EBUSY while something refers to it, then 0. */
	struct fid *fids[4];

	OPEN();
	struct fid_domain *d = rx()->domain;
	int order[] = { 0, 1, 2, 3 };

	do {
		struct fi_av_attr aa;
		struct fid_av *av = nullptr;
		struct fid_cq *c = nullptr;
		struct fi_cq_attr ca;
		struct fi_info *i = info();
		struct fid_ep *e = nullptr;
		struct fid_cntr *n = nullptr;

		memset(&aa, 0, sizeof(aa));
		memset(&ca, 0, sizeof(ca));
		free(i->src_addr);
		i->src_addr = nullptr;
		i->src_addrlen = 0;
		ASSERT_EQ(0, fi_av_open(d, &aa, &av, nullptr));
		ASSERT_EQ(0, fi_cq_open(d, &ca, &c, nullptr));
		ASSERT_EQ(0, fi_cntr_open(d, nullptr, &n, nullptr));
		ASSERT_EQ(0, fi_endpoint(d, i, &e, nullptr));
		fi_freeinfo(i);
		ASSERT_EQ(0, fi_ep_bind(e, &av->fid, 0));
		ASSERT_EQ(0, fi_ep_bind(e, &c->fid, FI_TRANSMIT | FI_RECV));
		ASSERT_EQ(0, fi_ep_bind(e, &n->fid, FI_SEND));
		ASSERT_EQ(0, fi_enable(e));
		fids[0] = &e->fid;
		fids[1] = &c->fid;
		fids[2] = &av->fid;
		fids[3] = &n->fid;
		bool closed[4] = { false, false, false, false };

		for (int round = 0; round < 2; round++) {
			for (int k : order) {
				if (closed[k])
					continue;
				int ret = fi_close(fids[k]);

				if (closed[0] || !k) {
					ASSERT_EQ(0, ret) << k;
				}
				if (ret) {
					ASSERT_EQ(-FI_EBUSY, ret) << k;
				}
				closed[k] = !ret;
			}
		}
		for (bool x : closed)
			ASSERT_TRUE(x);
	} while (std::next_permutation(order, order + 4));
}

TEST_F(Misuse, A14_AddressesInsertedTwiceRemovedAndBack)
{
	/* A duplicate gets an index of its own; operations to a removed one end
	 * with FI_ECONNABORTED; an address can be inserted again. */
	Bytes out(1 << 20);
	char in = 0;

	ONLY_TANDEM();
	OK(open_warm());
	for (auto *from : senders()) {
		struct iovec v = iov_of(out.data(), out.size());
		fi_addr_t again = FI_ADDR_NOTAVAIL, first = addr(from, rx());

		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1, &again, 0,
					  nullptr));
		EXPECT_NE(first, again);
		ASSERT_EQ(0, fi_av_remove(from->av, &again, 1, 0));
		OK(fence(from));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &v, 3, &out));
		tdt_progress(w);
		ASSERT_EQ(0, fi_av_remove(from->av, &first, 1, 0));
		OK(failed(from, &out, FI_ECONNABORTED));
		ASSERT_EQ(1,
			  fi_av_insert(from->av, rx()->name, 1,
				       &from->peers[rx()->index], 0, nullptr));
		/*
		 * The announced message is still queued, and fails when it is
		 * received.
		 */
		struct iovec iv = iov_of(&in, 1);
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 3, 0, &in));
		if (tdt_wait(rx(), &in, &c) == 0) {
			EXPECT_NE(0, c.err);
		}
		OK(fence(from));
	}
}

TEST_F(Misuse, A14_ABufferIsNotReadAfterItsSendWasAborted)
{
	/* The receive fails, or has the bytes that were sent. */
	Bytes out(1 << 20), in(1 << 20);

	ONLY_TANDEM();
	OK(open_warm());
	for (auto *from : senders()) {
		struct iovec v = iov_of(out.data(), out.size());
		struct iovec iv = iov_of(in.data(), in.size());
		fi_addr_t first = addr(from, rx());
		struct tdt_comp c;

		std::fill(out.begin(), out.end(), 1);
		ASSERT_EQ(0, tdt_tsend(from, rx(), &v, 3, &out));
		tdt_progress(w);
		ASSERT_EQ(0, fi_av_remove(from->av, &first, 1, 0));
		OK(failed(from, &out, FI_ECONNABORTED));
		std::fill(out.begin(), out.end(), 2);
		ASSERT_EQ(1,
			  fi_av_insert(from->av, rx()->name, 1,
				       &from->peers[rx()->index], 0, nullptr));
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 3, 0, &in));
		ASSERT_EQ(0, tdt_wait(rx(), &in, &c));
		EXPECT_TRUE(c.err == FI_ECONNABORTED ||
			    (!c.err && in == Bytes(out.size(), 1)))
			<< c.err;
		OK(fence(from));
	}
}

TEST_F(Misuse, A15_PeeksEndOnce)
{
	/* FI_ENOMSG for nothing; claim and discard reach the sender once. */
	struct fi_context ctx;
	struct fi_msg_tagged m;

	OK(open_warm());
	memset(&m, 0, sizeof(m));
	m.addr = FI_ADDR_UNSPEC;
	m.tag = 4;
	m.context = &ctx;
	for (auto *from : senders()) {
		for (size_t len : { (size_t)1, (size_t)(1 << 20) }) {
			for (uint64_t how :
			     { FI_PEEK | FI_DISCARD, FI_PEEK | FI_CLAIM }) {
				Bytes out(len);
				struct iovec v = iov_of(out.data(), len);

				ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m, how));
				OK(failed(rx(), &ctx, FI_ENOMSG));
				ASSERT_EQ(0,
					  tdt_tsend(from, rx(), &v, 4, &out));
				OK(fence(from));
				ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m, how));
				ASSERT_EQ(0, tdt_wait(rx(), &ctx, nullptr));
				if (how & FI_CLAIM) {
					ASSERT_EQ(0,
						  fi_trecvmsg(
							  rx()->ep, &m,
							  FI_CLAIM |
								  FI_DISCARD));
					ASSERT_EQ(0, tdt_wait(rx(), &ctx,
							      nullptr));
				}
				OK(done(from, &out, FI_SEND | FI_TAGGED));
				ASSERT_EQ(0,
					  fi_trecvmsg(rx()->ep, &m, FI_PEEK));
				OK(failed(rx(), &ctx, FI_ENOMSG));
			}
		}
	}
}

TEST_F(Misuse, A16_ManyThreadsOnEverything)
{
	/* FI_THREAD_SAFE: eight threads send, receive and read on the same
	 * objects; each operation ends once. */
	const int threads = 8, each = 200;
	std::atomic<int> sent{ 0 }, got{ 0 }, errors{ 0 };
	std::vector<std::thread> all;
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	attr.threading = FI_THREAD_SAFE;
	OK(open_warm());
	struct tdt_ep *from = senders()[0];

	for (int t = 0; t < threads; t++) {
		all.emplace_back([&, t] {
			std::vector<char> in((size_t)each), out((size_t)each);
			struct fi_cq_tagged_entry e;
			int r = 0, s = 0;

			while ((r < each || s < each || got < threads * each ||
				sent < threads * each) &&
			       tdt_now_ms() < end) {
				if (r < each &&
				    !fi_trecv(rx()->ep, &in[(size_t)r], 1,
					      nullptr, FI_ADDR_UNSPEC,
					      (uint64_t)t, 0, &in[(size_t)r]))
					r++;
				if (s < r &&
				    !fi_tsend(from->ep, &out[(size_t)s], 1,
					      nullptr, addr(from, rx()),
					      (uint64_t)t, &out[(size_t)s]))
					s++;
				ssize_t n = fi_cq_read(rx()->rx_cq, &e, 1);

				got += n == 1;
				errors += n < 0 && n != -FI_EAGAIN;
				n = fi_cq_read(from->tx_cq, &e, 1);
				sent += n == 1;
				errors += n < 0 && n != -FI_EAGAIN;
			}
		});
	}
	for (auto &t : all)
		t.join();
	EXPECT_EQ(0, errors);
	EXPECT_EQ(threads * each, got);
	EXPECT_EQ(threads * each, sent);
}

TEST_F(Misuse, A18_AddressesThatAreNone)
{
	/* Each fails alone; nothing is read beyond what was given. */
	struct sockaddr_in bad[3];
	fi_addr_t got[3];
	int errs[3] = { 0, 0, 0 };
	std::string name(4096, 'x');

	ONLY_TANDEM();
	OPEN();
	for (auto &b : bad)
		memcpy(&b, rx()->name, sizeof(b));
	bad[1].sin_family = AF_UNIX;
	EXPECT_EQ(2, fi_av_insert(rx()->av, bad, 3, got, FI_SYNC_ERR, errs));
	EXPECT_EQ(FI_ADDR_NOTAVAIL, got[1]);
	EXPECT_EQ(0, errs[0]);
	EXPECT_EQ(FI_EINVAL, errs[1]);
	EXPECT_EQ(0, errs[2]);
	EXPECT_LT(fi_av_insertsvc(rx()->av, name.c_str(), "1", got, 0, nullptr),
		  1);
	struct fi_info *i = info();
	struct fid_ep *e = nullptr;

	i->src_addrlen = 3;
	EXPECT_NE(0, fi_endpoint(rx()->domain, i, &e, nullptr));
	fi_freeinfo(i);
}

} // namespace

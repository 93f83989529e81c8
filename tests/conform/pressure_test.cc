/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resource pressure, FI_RM_ENABLED of fi_domain(3): queues that are full,
 * floods, receivers that are slow, waits that end in time. The tests are
 * numbered; each comment says what must come out.
 *
 * Bounds are counts (messages taken, entries met), not times.
 */
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include "parts.h"

extern "C" {
#include "tests/harness/child.h"
#include "tests/harness/holdings.h"
}

namespace
{

class Pressure : public Parts
{
protected:
	Pressure()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_SOURCE;
	}

	void open_warm()
	{
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
	}

	static void step(struct fid_cq *q)
	{
		EXPECT_LE(fi_cq_read(q, nullptr, 0), 0);
	}

	/*
	 * Send the same buffer until nothing is taken any more while only the
	 * sender makes progress. Returns the number taken, @most at most.
	 */
	size_t fill(struct tdt_ep *from, void *buf, size_t len, uint64_t tag,
		    bool inject, size_t most)
	{
		size_t n = 0, vain = 0;
		ssize_t ret;

		while (n < most && vain < 3000) {
			fi_addr_t to = addr(from, rx());

			ret = inject ? fi_tinject(from->ep, buf, len, to, tag) :
				       fi_tsend(from->ep, buf, len, nullptr, to,
						tag, buf);
			EXPECT_TRUE(!ret || ret == -FI_EAGAIN) << ret;
			if (!ret) {
				n++;
				vain = 0;
			} else {
				vain++;
				step(from->tx_cq);
			}
		}
		return n;
	}

	/* Receive @n messages of @tag and let the sends of @from end. */
	void drain(struct tdt_ep *from, size_t n, uint64_t tag, size_t len,
		   const void *sent)
	{
		Bytes in(len + 1);
		struct iovec v = iov_of(in.data(), len);

		for (size_t i = 0; i < n; i++) {
			struct tdt_comp c;

			ASSERT_EQ(0, tdt_trecv(rx(), &v, tag, 0, &in));
			ASSERT_EQ(0, tdt_wait(rx(), &in, &c)) << i;
			ASSERT_EQ(0, c.err);
			ASSERT_EQ(len, c.len);
			if (sent) {
				ASSERT_EQ(0, tdt_wait(from, sent, nullptr));
			}
		}
	}

	static size_t resident_bytes()
	{
		unsigned long size = 0, pages = 0;
		FILE *f = fopen("/proc/self/statm", "r");

		EXPECT_EQ(2, fscanf(f, "%lu %lu", &size, &pages));
		fclose(f);
		return pages * (size_t)sysconf(_SC_PAGESIZE);
	}
};

TEST_F(Pressure, R01_SizesAreWhatIsPromised)
{
	/* rx_attr->size receives are promised, and more are taken. Sends that
	 * wait for their receives do not keep others from being taken. A
	 * caller that only repeats a call, and reads nothing, gets on. */
	const size_t size = 8, n = 64;
	Bytes out = filled(1 << 20, 1);
	std::vector<Bytes> in(n, Bytes(out.size()));
	char small[100] = "", first = 0;

	ONLY_TANDEM();
	attr.tx_size = attr.rx_size = size;
	OK(open_warm());
	for (auto *from : senders()) {
		size_t taken = fill(from, out.data(), out.size(), 5, false, 99);

		EXPECT_EQ(99u, taken) << "long sends that nobody receives";
		/* The last one of all is the first that is wanted. */
		struct iovec last = iov_of(&first, 1);

		ASSERT_EQ(0, tdt_trecv(rx(), &last, 7, 0, &first));
		ASSERT_EQ(1u, fill(from, small, 1, 7, false, 1));
		ASSERT_EQ(0, tdt_wait(rx(), &first, nullptr));
		ASSERT_EQ(0, tdt_wait(from, small, nullptr));
		for (char &c : small)
			ASSERT_EQ(0, fi_recv(rx()->ep, small, 1, nullptr,
					     FI_ADDR_UNSPEC, &c));
		for (char &c : small) {
			ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &c));
			OK(failed(rx(), &c, FI_ECANCELED));
		}
		OK(drain(from, taken, 5, out.size(), out.data()));
		/* Now the sender only repeats the call. */
		size_t posted = 0, sent = 0;
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();

		while (sent < n && tdt_now_ms() < end) {
			while (posted < n &&
			       !fi_trecv(rx()->ep, in[posted].data(),
					 in[posted].size(), nullptr,
					 FI_ADDR_UNSPEC, 6, 0, &in[posted]))
				posted++;
			if (!fi_tsend(from->ep, out.data(), out.size(), nullptr,
				      addr(from, rx()), 6, &out))
				sent++;
			else
				step(rx()->rx_cq);
		}
		ASSERT_EQ(n, sent);
		while (posted < n) {
			struct iovec v =
				iov_of(in[posted].data(), in[posted].size());

			ASSERT_EQ(0, tdt_trecv(rx(), &v, 6, 0, &in[posted]));
			posted++;
		}
		for (size_t i = 0; i < n; i++) {
			ASSERT_EQ(0, tdt_wait(rx(), &in[i], nullptr));
			ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
			EXPECT_EQ(-1,
				  tdt_differs(in[i].data(), in[i].size(), 1));
		}
	}
}

TEST_F(Pressure, R02_CqThatNobodyReadsLosesNothing)
{
	/* No FI_EOVERRUN and no completion lost. Operations that were posted
	 * complete; while the queue is full, new ones are refused. */
	const size_t rounds = 20, batch = 500;
	std::vector<uint64_t> in(batch, 0);
	uint64_t out = 0, never = 0;

	ONLY_TANDEM();
	attr.cq_size = 8;
	OK(open_warm());
	for (auto *from : senders()) {
		for (size_t r = 0; r < rounds; r++) {
			for (size_t i = 0; i < batch; i++)
				ASSERT_EQ(0,
					  fi_recv(rx()->ep, &in[i], 8, nullptr,
						  FI_ADDR_UNSPEC, &in[i]));
			for (size_t i = 0; i < batch; i++) {
				out = r * batch + i + 1;
				ASSERT_EQ(0, keep_on([&] {
						  ssize_t ret = fi_injectdata(
							  from->ep, &out, 8,
							  out,
							  addr(from, rx()));

						  step(rx()->rx_cq);
						  return ret;
					  }));
			}
			uint64_t end = tdt_now_ms() + tdt_deadline_ms();

			while (in[batch - 1] != out && tdt_now_ms() < end) {
				step(from->tx_cq);
				step(rx()->rx_cq);
			}
			EXPECT_EQ(-FI_EAGAIN,
				  fi_recv(rx()->ep, &never, 8, nullptr,
					  FI_ADDR_UNSPEC, &never));
			for (size_t i = 0; i < batch; i++) {
				struct tdt_comp c;

				ASSERT_EQ(0, tdt_wait_next(rx(), 1, &c)) << i;
				ASSERT_EQ(0, c.err);
				ASSERT_EQ((void *)&in[i], c.context);
				ASSERT_EQ(r * batch + i + 1, c.data);
				in[i] = 0;
			}
		}
	}
}

TEST_F(Pressure, R02_SendsStopWhereTheirCqIsFull)
{
	/* As many are taken as the queue is for, and what was under way when it
	 * became full; more once it is read. */
	const size_t size = 8, rounds = 5;
	Bytes out = filled(8, 1);

	ONLY_TANDEM();
	attr.cq_size = size;
	attr.tx_size = size;
	OK(open_warm());
	for (auto *from : senders()) {
		size_t sent = 0;

		for (size_t r = 0; r < rounds; r++) {
			size_t n = fill(from, out.data(), out.size(), 4, false,
					100000);

			EXPECT_LE(size, n);
			EXPECT_GE(2 * size, n);
			for (size_t i = 0; i < n; i++)
				ASSERT_EQ(0,
					  tdt_wait(from, out.data(), nullptr));
			sent += n;
		}
		OK(drain(from, sent, 4, out.size(), nullptr));
	}
}

TEST_F(Pressure, R02_WhateverAddsToAFullCqIsRefused)
{
	/* Errors fill a queue as well; an alias has that of its endpoint. */
	const size_t size = 8;
	Bytes b = filled(8, 1);
	struct fi_msg_tagged m;
	struct fid_ep *alias;

	ONLY_TANDEM();
	attr.cq_size = size;
	attr.tx_size = size;
	attr.caps |= FI_RMA;
	OK(open_warm());
	for (size_t i = 0; i < size; i++) {
		ASSERT_EQ(0, fi_recv(rx()->ep, b.data(), 8, nullptr,
				     FI_ADDR_UNSPEC, &b));
		ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &b));
	}
	ASSERT_EQ(0, fi_ep_alias(rx()->ep, &alias, FI_RECV));
	made.push_back(&alias->fid);
	memset(&m, 0, sizeof(m));
	m.addr = FI_ADDR_UNSPEC;
	for (struct fid_ep *e : { rx()->ep, alias }) {
		EXPECT_EQ(-FI_EAGAIN,
			  fi_recv(e, b.data(), 8, nullptr, FI_ADDR_UNSPEC, &b));
		EXPECT_EQ(-FI_EAGAIN, fi_trecv(e, b.data(), 8, nullptr,
					       FI_ADDR_UNSPEC, 1, 0, &b));
		EXPECT_EQ(-FI_EAGAIN, fi_trecvmsg(e, &m, FI_PEEK));
	}
	for (size_t i = 0; i < size; i++)
		OK(failed(rx(), &b, FI_ECANCELED));
	for (auto *from : senders()) {
		const fi_addr_t to = addr(from, rx());
		size_t n = fill(from, b.data(), 8, 4, false, 100000);

		ASSERT_EQ(0, fi_ep_alias(from->ep, &alias, FI_TRANSMIT));
		made.push_back(&alias->fid);
		for (struct fid_ep *e : { from->ep, alias }) {
			EXPECT_EQ(-FI_EAGAIN,
				  fi_send(e, b.data(), 8, nullptr, to, &b));
			EXPECT_EQ(-FI_EAGAIN,
				  fi_tsend(e, b.data(), 8, nullptr, to, 4, &b));
			EXPECT_EQ(-FI_EAGAIN, fi_write(e, b.data(), 8, nullptr,
						       to, 0, 1, &b));
			EXPECT_EQ(-FI_EAGAIN, fi_read(e, b.data(), 8, nullptr,
						      to, 0, 1, &b));
		}
		OK(drain(from, n, 4, 8, b.data()));
	}
}

TEST_F(Pressure, R03_EqOverrunIsSaidAfterWhatIsThere)
{
	/* fi_eq(3) 2.1, NOTES 1: Writes and, once it is empty, reads give
	 * -FI_EOVERRUN. Data goes on. */
	struct fi_eq_attr ea;
	struct fi_eq_entry e;
	struct fid_eq *eq = nullptr;
	uint32_t event;
	size_t n = 0, got = 0;
	ssize_t ret;

	ONLY_TANDEM();
	tdt_log_expect("overrun");
	memset(&ea, 0, sizeof(ea));
	ea.size = 4;
	ea.flags = FI_WRITE;
	OPEN();
	ASSERT_EQ(0, fi_eq_open(w->fabric, &ea, &eq, nullptr));
	memset(&e, 0, sizeof(e));
	while ((ret = fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0)) > 0 &&
	       n < 100000)
		n++;
	EXPECT_EQ(-FI_EOVERRUN, ret);
	EXPECT_GE(n, 4u);
	while ((ret = fi_eq_read(eq, &event, &e, sizeof(e), 0)) > 0)
		got++;
	EXPECT_EQ(-FI_EOVERRUN, ret);
	EXPECT_EQ(n, got);
	for (auto *from : senders())
		OK(fence(from));
	EXPECT_EQ(0, fi_close(&eq->fid));
}

/* A flood is bounded, with room for 1 MiB of unexpected messages. */
struct Flood {
	enum { MOST = 10000 };
	size_t taken[2]; /* empty messages, messages of 200 bytes */
	size_t resident; /* bytes that they took */
	int others, drained;
};

class Flooded : public Pressure
{
public:
	void TestBody() override
	{
	}

	void run(struct Flood *f)
	{
		char buf[200] = "", byte = 0;
		struct iovec v = iov_of(&byte, 1);

		attr.eps = 3;
		attr.no_tcp_only = 1;
		attr.tx_size = 512;
		open_warm();
		size_t before = resident_bytes();

		for (int i = 0; i < 2; i++) {
			bool inject = i == 1;

			f->taken[i] = fill(ep(1), buf, i ? 200 : 0, 10 + i,
					   inject, Flood::MOST);
		}
		f->resident = resident_bytes() - before;
		/* Others are heard, expected or not, and by inject as well. */
		f->others = 0;
		for (int i = 0; i < 100; i++) {
			if (tdt_post(ep(2), inject_of(&byte)))
				return;
			if (tdt_trecv(rx(), &v, 20, 0, &v) ||
			    tdt_wait(rx(), &v, nullptr))
				return;
			f->others++;
		}
		drain(ep(1), f->taken[0], 10, 0, buf);
		drain(ep(1), f->taken[1], 11, 200, nullptr);
		f->drained = !HasFailure();
		close();
	}

	struct tdt_op *inject_of(void *buf)
	{
		op = op_of(TDT_INJECT, 1, buf, 1);
		op.addr = addr(ep(2), rx());
		op.tag = 20;
		return &op;
	}

	struct tdt_op op;
};

TDT_ROLE(flooded)
{
	struct Flood f;
	Flooded t;

	(void)arg;
	memset(&f, 0, sizeof(f));
	t.run(&f);
	return tdt_tell(fd, &f, sizeof(f));
}

TEST_F(Pressure, R04_UnexpectedFloodIsBounded)
{
	/* A peer has credit; beyond it messages are announced. It takes at most
	 * FI_TANDEM_UNEXP_MAX, one share of 64 KiB, the ring; bookkeeping of
	 * 512 bytes for each announced. Others are not stuck behind it. */
	const size_t max = 1 << 20, charge = 512, ring = 8192, tx = 512;
	const size_t most = max / charge + ring + tx + max / 200;
	struct tdt_child child = { 0, -1 };
	struct Flood f;

	ONLY_TANDEM();
	memset(&f, 0, sizeof(f));
	setenv("FI_TANDEM_UNEXP_MAX", "1048576", 1);
	setenv("FI_TANDEM_INJECT_MAX", "1048576", 1);
	EXPECT_EQ(0, tdt_child_start(&child, "flooded", nullptr));
	unsetenv("FI_TANDEM_INJECT_MAX");
	unsetenv("FI_TANDEM_UNEXP_MAX");
	ASSERT_EQ(static_cast<ssize_t>(sizeof(f)),
		  tdt_hear(child.fd, &f, sizeof(f)));
	EXPECT_EQ(0, tdt_child_wait(&child));
	EXPECT_GE(f.taken[0], tx);
	if (tdt_path() != TDT_REMOTE) {
		EXPECT_LE(f.taken[0] + f.taken[1], most);
	}
	EXPECT_LE(f.resident, 32u << 20);
	EXPECT_EQ(100, f.others);
	EXPECT_TRUE(f.drained);
}

TEST_F(Pressure, R06_SlowReceiverIsNoError)
{
	/* A receiver that makes no progress: the sender has -FI_EAGAIN when its
	 * context and what lies between are full, and goes on afterwards, be
	 * that TANDEM_TEST_SHUT_S seconds later. */
	const size_t len = 65000, tx = 16, between = 64 << 20;
	const char *shut = getenv("TANDEM_TEST_SHUT_S");
	Bytes out = filled(len, 3);

	attr.tx_size = tx;
	OK(open_warm());
	for (auto *from : senders()) {
		size_t n = fill(from, out.data(), len, 8, false, 100000);

		EXPECT_GE(n, 1u);
		EXPECT_LE(n, tx + between / len);
		for (int i = shut ? 10 * atoi(shut) : 0; i > 0; i--) {
			usleep(100000);
			step(from->tx_cq);
		}
		OK(drain(from, n, 8, len, out.data()));
	}
}

TEST_F(Pressure, R07_InjectStormIsBounded)
{
	/* Copies are bounded: -FI_EAGAIN, and nothing that was taken is lost. */
	const size_t between = 64 << 20;
	Bytes out = filled(200, 4);

	OK(open_warm());
	for (auto *from : senders()) {
		size_t n = fill(from, out.data(), out.size(), 9, true, 1000000);

		EXPECT_GE(n, 1u);
		EXPECT_LE(n, between / out.size());
		OK(drain(from, n, 9, out.size(), nullptr));
	}
}

/* fi_inject to nobody: what the call said, or the entry. */
TDT_ROLE(injector)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	struct sockaddr_in sin;
	struct fi_cq_err_entry err;
	char out = 1;
	int result[3] = { -1, -1, -1 };
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	(void)arg;
	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	if (tdt_world_open(&attr, &w))
		return 1;
	memcpy(&sin, w->eps[0].name, sizeof(sin));
	sin.sin_port = htons(1);
	if (fi_av_insert(w->eps[0].av, &sin, 1, &w->eps[0].peers[0], 0,
			 nullptr) != 1)
		return 2;
	do {
		result[0] = static_cast<int>(
			fi_inject(w->eps[0].ep, &out, 1, w->eps[0].peers[0]));
		fi_cq_read(w->eps[0].tx_cq, nullptr, 0);
	} while (result[0] == -FI_EAGAIN && tdt_now_ms() < end);
	memset(&err, 0, sizeof(err));
	while (!result[0] && tdt_now_ms() < end) {
		struct fi_cq_tagged_entry e;

		if (fi_cq_read(w->eps[0].tx_cq, &e, 1) == -FI_EAVAIL &&
		    fi_cq_readerr(w->eps[0].tx_cq, &err, 0) == 1) {
			result[1] = err.err;
			result[2] = err.op_context == nullptr;
			break;
		}
	}
	tdt_tell(fd, result, sizeof(result));
	return tdt_world_close(w);
}

TEST_F(Pressure, R07_InjectThatFailsLaterHasAnEntryWithoutContext)
{
	/* fi_cq(3) 2.1, fi_cq_readerr 4: An inject that fails has an error
	 * entry without a context; or the call itself fails. */
	struct tdt_child child = { 0, -1 };
	int result[3] = { 0, 0, 0 };

	ONLY_TANDEM();
	setenv("FI_TANDEM_CONN_TIMEOUT", "1", 1);
	EXPECT_EQ(0, tdt_child_start(&child, "injector", nullptr));
	unsetenv("FI_TANDEM_CONN_TIMEOUT");
	ASSERT_EQ(static_cast<ssize_t>(sizeof(result)),
		  tdt_hear(child.fd, result, sizeof(result)));
	EXPECT_EQ(0, tdt_child_wait(&child));
	if (result[0]) {
		EXPECT_EQ(-FI_ECONNREFUSED, result[0]);
	} else {
		EXPECT_EQ(FI_ECONNREFUSED, result[1]);
		EXPECT_EQ(1, result[2]);
	}
}

TEST_F(Pressure, R08_AddressesThatAreNotUsedCostLittle)
{
	/* Connections and descriptors only for contacted peers; at most 1 KiB
	 * for an address. */
	const size_t n = 100000;
	std::vector<struct sockaddr_in> list(n);
	std::vector<fi_addr_t> got(n);

	/* A domain opens its descriptors for sleepers when a caller first
	 * sleeps, on a loaded machine in any call: here at once. */
	attr.wait = FI_WAIT_FD;
	OK(open_warm());
	for (size_t i = 0; i < n; i++) {
		memset(&list[i], 0, sizeof(list[i]));
		list[i].sin_family = AF_INET;
		list[i].sin_port = htons(4711);
		list[i].sin_addr.s_addr = htonl(0x0a000000u + (uint32_t)i);
		got[i] = 0;
	}
	size_t fds = tdt_open_files(), before = resident_bytes();

	ASSERT_EQ((int)n, fi_av_insert(rx()->av, list.data(), n, got.data(), 0,
				       nullptr));
	EXPECT_EQ(fds, tdt_open_files());
	EXPECT_LE(resident_bytes() - before, n * 1024);
	for (auto *from : senders())
		OK(fence(from));
	EXPECT_EQ(fds, tdt_open_files());
}

/* More peers than descriptors: what they are told, and what came of it. */
enum { CROWD = 60, CROWD_FDS = 20, CROWD_ROUNDS = 3, CROWD_STREAM = 2 };

struct Crowd {
	size_t namelen;
	struct sockaddr_in name[CROWD];
};

struct CrowdResult {
	int step;      /* 0: all went well */
	int ret;       /* of what did not */
	uint64_t room; /* descriptors left when it began */
};

/* The side that may have few descriptors. */
class Thrifty
{
public:
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	struct tdt_ep *ep = nullptr;
	fi_addr_t peer[CROWD];
	struct CrowdResult r = { 0, 0, 0 };
	uint64_t in[CROWD][CROWD_STREAM], out[CROWD];

	bool fail(int step, ssize_t ret)
	{
		r.step = step;
		r.ret = static_cast<int>(ret);
		return false;
	}

	bool open(int fd)
	{
		struct rlimit lim;
		struct Crowd crowd;
		int ret, next;

		tdt_attr_init(&attr);
		attr.eps = 1;
		attr.eq = 1;
		attr.no_tcp_only = 1;
		if ((ret = tdt_world_open(&attr, &w)))
			return fail(1, ret);
		ep = &w->eps[0];
		if (tdt_tell(fd, ep->name, ep->namelen) ||
		    tdt_hear(fd, &crowd, sizeof(crowd)) != sizeof(crowd))
			return fail(2, 0);
		if (fi_av_insert(ep->av, crowd.name, CROWD, peer, 0, nullptr) !=
		    CROWD)
			return fail(3, 0);
		/* The lowest that is free: so many are in use. */
		next = dup(fd);
		close(next);
		getrlimit(RLIMIT_NOFILE, &lim);
		lim.rlim_cur = static_cast<rlim_t>(next) + CROWD_FDS;
		r.room = CROWD_FDS;
		return !setrlimit(RLIMIT_NOFILE, &lim) || fail(4, 0);
	}

	bool post(size_t i, int k)
	{
		struct iovec v = iov_of(&in[i][k], sizeof(in[i][k]));
		ssize_t ret;

		in[i][k] = UINT64_MAX;
		ret = tdt_trecv(ep, &v, i, 0, &in[i][k]);
		return !ret || fail(5, ret);
	}

	bool came(size_t i, int k, uint64_t value)
	{
		struct tdt_comp c;
		int ret = tdt_wait(ep, &in[i][k], &c);

		if (ret || c.err)
			return fail(6, ret ? ret : c.err);
		return in[i][k] == value || fail(7, (int)in[i][k]);
	}

	bool send(size_t i, uint64_t value)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		out[i] = value;
		while ((ret = fi_tsend(ep->ep, &out[i], sizeof(out[i]), nullptr,
				       peer[i], i, &out[i])) == -FI_EAGAIN &&
		       tdt_now_ms() < end)
			tdt_progress(w);
		return !ret || fail(8, ret);
	}

	bool sent(size_t i)
	{
		struct tdt_comp c;
		int ret = tdt_wait(ep, &out[i], &c);

		return (!ret && !c.err) || fail(9, ret ? ret : c.err);
	}

	/* To each peer and back, one after the other or all at once. */
	bool round(uint64_t value, bool at_once)
	{
		for (size_t i = 0; i < CROWD; i++) {
			if (!post(i, 0) || !send(i, value))
				return false;
			if (!at_once && (!came(i, 0, value) || !sent(i)))
				return false;
		}
		for (size_t i = 0; at_once && i < CROWD; i++) {
			if (!came(i, 0, value) || !sent(i))
				return false;
		}
		return true;
	}

	/* All peers send, each several, when they are told. */
	bool called(int fd, uint64_t value)
	{
		if (tdt_tell(fd, &value, sizeof(value)))
			return fail(10, 0);
		/* The last peer first: the others' messages must wait here. */
		for (size_t i = CROWD; i--;) {
			for (int k = 0; k < CROWD_STREAM; k++) {
				if (!post(i, k) ||
				    !came(i, k, value + (uint64_t)k))
					return false;
			}
		}
		return true;
	}

	bool run(int fd)
	{
		struct fi_eq_entry e;
		uint32_t event;
		uint64_t value = 0;
		ssize_t ret;

		if (!open(fd))
			return false;
		for (int i = 0; i < CROWD_ROUNDS; i++) {
			if (!round(value++, false) || !round(value++, true) ||
			    !called(fd, 1000 + (uint64_t)i * CROWD_STREAM))
				return false;
		}
		ret = fi_eq_read(ep->eq, &event, &e, sizeof(e), 0);
		return ret == -FI_EAGAIN || fail(11, ret);
	}
};

TDT_ROLE(thrifty)
{
	Thrifty t;

	(void)arg;
	t.run(fd);
	if (!t.r.step && tdt_pending(t.w))
		t.fail(12, 0);
	tdt_tell(fd, &t.r, sizeof(t.r));
	/* The parent ends first, so that nobody hears of our end. */
	tdt_hear(fd, &t.r, sizeof(t.r));
	return t.w ? tdt_world_close(t.w) : 1;
}

class PressureCrowd : public Pressure
{
protected:
	struct tdt_child child = { 0, -1 };
	struct fid_ep *crowd[CROWD];
	struct fid_cq *q = nullptr;
	struct fid_av *v = nullptr;
	fi_addr_t to = FI_ADDR_UNSPEC;
	uint64_t in[CROWD], expected[CROWD];

	PressureCrowd()
	{
		attr.eq = 1;
	}

	void open_crowd()
	{
		struct Crowd names;
		uint8_t name[TDT_NAME_BYTES];

		q = cq(rx()->domain);
		v = av(rx()->domain);
		memset(&names, 0, sizeof(names));
		for (size_t i = 0; i < CROWD; i++) {
			struct fid_ep *e = nullptr;

			ASSERT_EQ(0, fi_endpoint(rx()->domain, rx()->info, &e,
						 nullptr));
			made.push_back(&e->fid);
			crowd[i] = e;
			tier_of(ep(i % w->count), e);
			ASSERT_EQ(0, fi_ep_bind(e, &q->fid,
						FI_TRANSMIT | FI_RECV));
			ASSERT_EQ(0, fi_ep_bind(e, &v->fid, 0));
			ASSERT_EQ(0, fi_ep_bind(e, &rx()->eq->fid, 0));
			ASSERT_EQ(0, fi_enable(e));
			names.namelen = sizeof(names.name[i]);
			ASSERT_EQ(0, fi_getname(&e->fid, &names.name[i],
						&names.namelen));
			expected[i] = 0;
			post(i);
		}
		ASSERT_EQ(0, tdt_child_start(&child, "thrifty", nullptr));
		ASSERT_GT(tdt_hear(child.fd, name, sizeof(name)), 0);
		ASSERT_EQ(1, fi_av_insert(v, name, 1, &to, 0, nullptr));
		ASSERT_EQ(0, tdt_tell(child.fd, &names, sizeof(names)));
	}

	void post(size_t i)
	{
		EXPECT_EQ(0, fi_trecv(crowd[i], &in[i], sizeof(in[i]), nullptr,
				      FI_ADDR_UNSPEC, i, 0, &in[i]));
	}

	void tell(size_t i, uint64_t value)
	{
		EXPECT_EQ(0, keep_on([&] {
				  return fi_tinject(crowd[i], &value,
						    sizeof(value), to, i);
			  }));
	}

	/* Answer what has come. */
	void serve()
	{
		struct fi_cq_tagged_entry e;
		ssize_t n = fi_cq_read(q, &e, 1);

		if (n == -FI_EAGAIN)
			return;
		ASSERT_EQ(1, n);
		size_t i = static_cast<size_t>(
			static_cast<uint64_t *>(e.op_context) - in);

		ASSERT_LT(i, static_cast<size_t>(CROWD));
		ASSERT_EQ(expected[i], in[i]) << i;
		expected[i]++;
		post(i);
		tell(i, expected[i] - 1);
	}
};

TEST_F(PressureCrowd, R08_MorePeersThanDescriptors)
{
	/* A process that may have few descriptors talks to many peers: one after
	 * the other, to all at once, and they to it. All comes once, in order,
	 * and nobody is told of an end. */
	struct CrowdResult r = { -1, 0, 0 };
	struct fi_eq_entry e;
	uint64_t value;
	uint32_t event;
	char heard[64];
	ssize_t n;

	ONLY_TANDEM();
	OPEN();
	OK(open_crowd());
	while (!HasFatalFailure()) {
		n = tdt_hear_now(child.fd, heard, sizeof(heard));
		if (n == sizeof(r))
			break;
		if (n == sizeof(value)) {
			memcpy(&value, heard, sizeof(value));
			for (uint64_t k = 0; k < CROWD_STREAM; k++) {
				for (size_t i = 0; i < CROWD; i++)
					tell(i, value + k);
			}
		} else if (n != -EAGAIN) {
			FAIL() << "the child has gone: " << n;
		}
		serve();
	}
	ASSERT_FALSE(HasFatalFailure());
	memcpy(&r, heard, sizeof(r));
	EXPECT_EQ(0, r.step) << r.ret;
	EXPECT_LT(r.room, static_cast<uint64_t>(CROWD));
	for (size_t i = 0; i < CROWD; i++)
		EXPECT_EQ(2u * CROWD_ROUNDS, expected[i]);
	EXPECT_EQ(-FI_EAGAIN, fi_eq_read(rx()->eq, &event, &e, sizeof(e), 0));
	for (size_t i = 0; i < CROWD; i++) {
		ASSERT_EQ(0, fi_cancel(&crowd[i]->fid, &in[i]));
		EXPECT_EQ(-FI_EAVAIL, next(q).ret);
	}
	close_parts();
	EXPECT_EQ(0, tdt_tell(child.fd, &r, sizeof(r)));
	EXPECT_EQ(0, tdt_child_wait(&child));
}

TEST_F(Pressure, R09_AnnouncedMessageNobodyReceivesStaysPending)
{
	/* It ends by fi_cancel or with the endpoint, not by itself. */
	Bytes out(1 << 20);
	struct iovec v = iov_of(out.data(), out.size());

	OK(open_warm());
	for (auto *from : senders()) {
		/* A tag of its own: earlier messages do not match. */
		uint64_t tag = 30 + from->index;

		ASSERT_EQ(0, tdt_tsend(from, rx(), &v, tag, &out));
		tdt_settle(w, 20);
		EXPECT_EQ(0u, tdt_pending(w));
		/* Cancelled in time: the receiver does not see it any more. */
		if (!strcmp(tdt_prov_name(), "tandem")) {
			char in = 0;
			struct iovec iv = iov_of(&in, 1);

			ASSERT_EQ(0, fi_cancel(&from->ep->fid, &out));
			OK(failed(from, &out, FI_ECANCELED));
			ASSERT_EQ(0, tdt_trecv(rx(), &iv, tag, 0, &in));
			ASSERT_EQ(0, tdt_tsend(from, rx(), &iv, tag, &iv));
			OK(done(rx(), &in, FI_RECV | FI_TAGGED));
			OK(done(from, &iv, FI_SEND | FI_TAGGED));
			/* Too late: one of both, and the receiver agrees. */
			Bytes got(out.size());
			struct iovec gv = iov_of(got.data(), got.size());
			struct tdt_comp c;

			tdt_fill(out.data(), out.size(), 6);
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, tag, &out));
			tdt_settle(w, 2);
			ASSERT_EQ(0, tdt_trecv(rx(), &gv, tag, 0, &got));
			(void)!fi_cancel(&from->ep->fid, &out);
			ASSERT_EQ(0, tdt_wait(from, &out, &c));
			if (c.err) {
				EXPECT_EQ(FI_ECANCELED, c.err);
				ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &got));
				OK(failed(rx(), &got, FI_ECANCELED));
			} else {
				OK(done(rx(), &got, FI_RECV | FI_TAGGED));
				EXPECT_EQ(-1, tdt_differs(got.data(),
							  got.size(), 6));
			}
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, tag, &out));
		}
		ASSERT_EQ(0, tdt_ep_close(from)) << "no entry";
	}
}

TEST_F(Pressure, R10_WaitsEndInTime)
{
	/* fi_cq(3) 2.1, RETURN VALUES, fi_cq_sread / fi_cq_sreadfrom 1:
	 * -FI_EAGAIN at the deadline. fi_cntr(3) 2.1, fi_cntr_wait 3:
	 * -FI_ETIMEDOUT, and the error value is what it was. */
	attr.wait = attr.cntr_wait = FI_WAIT_UNSPEC;
	attr.cntrs = 1;
	OPEN();
	for (int ms : { 0, 1, 30 }) {
		struct fi_cq_tagged_entry e;
		uint64_t t = tdt_now_ms();

		EXPECT_EQ(-FI_EAGAIN,
			  fi_cq_sread(rx()->rx_cq, &e, 1, nullptr, ms));
		EXPECT_GE(tdt_now_ms() + 1, t + (uint64_t)ms);
		t = tdt_now_ms();
		EXPECT_EQ(-FI_ETIMEDOUT, fi_cntr_wait(rx()->rx_cntr, 1, ms));
		EXPECT_GE(tdt_now_ms() + 1, t + (uint64_t)ms);
		EXPECT_EQ(0u, fi_cntr_readerr(rx()->rx_cntr));
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that fork: fi_tandem(7), FAULTS. The objects that a child inherits
 * belong to its parent: the child cannot use them, does no harm to them, and
 * does not keep peers from noticing the parent's end.
 */
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/*
 * The result of the child of a fork: the first call that did not behave as
 * expected.
 */
struct Report {
	char what[128];
	long ret;
};

struct tdt_world *open_one(int fd, const char *arg, fi_addr_t *peer)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.wait = FI_WAIT_FD;
	attr.cntrs = 1;
	attr.cntr_wait = FI_WAIT_FD;
	attr.caps |= FI_RMA | FI_ATOMIC;
	attr.no_tcp_only = !arg || strcmp(arg, "tcp");
	if (tdt_world_open(&attr, &w))
		return nullptr;
	if (tdt_tell_name(fd, &w->eps[0]) ||
	    tdt_hear_name(fd, &w->eps[0], peer))
		return nullptr;
	return w;
}

#define REFUSED(call, error)                                                   \
	do {                                                                   \
		long ret = (long)(call);                                       \
		if (ret != -(error) && !r.what[0]) {                           \
			snprintf(r.what, sizeof(r.what), "%s", #call);         \
			r.ret = ret;                                           \
		}                                                              \
	} while (0)
#define NOTHING(call) REFUSED(call, FI_EOPBADSTATE)

/* The one-sided and atomic calls. */
void try_one_sided(struct tdt_ep *at, fi_addr_t peer, struct Report &r)
{
	static uint64_t one = 1, old[2];
	static char big[100000];

	NOTHING(fi_write(at->ep, big, 1, nullptr, peer, 0, 1, nullptr));
	NOTHING(fi_write(at->ep, big, sizeof(big), nullptr, peer, 0, 1,
			 nullptr));
	NOTHING(fi_writedata(at->ep, big, 1, nullptr, 5, peer, 0, 1, nullptr));
	NOTHING(fi_inject_write(at->ep, big, 1, peer, 0, 1));
	NOTHING(fi_read(at->ep, big, 1, nullptr, peer, 0, 1, nullptr));
	NOTHING(fi_atomic(at->ep, &one, 1, nullptr, peer, 0, 1, FI_UINT64,
			  FI_SUM, nullptr));
	NOTHING(fi_inject_atomic(at->ep, &one, 1, peer, 0, 1, FI_UINT64,
				 FI_SUM));
	NOTHING(fi_fetch_atomic(at->ep, &one, 1, nullptr, old, nullptr, peer, 0,
				1, FI_UINT64, FI_SUM, nullptr));
	NOTHING(fi_compare_atomic(at->ep, &one, 1, nullptr, &one, nullptr, old,
				  nullptr, peer, 0, 1, FI_UINT64, FI_CSWAP,
				  nullptr));
}

/* Receives by a description, peeks, what withdraws an operation. */
void try_described(struct tdt_ep *at, fi_addr_t peer, const void *posted,
		   struct Report &r)
{
	static char in[8];
	struct iovec v = iov_of(in, sizeof(in));
	struct fi_msg m = {};
	struct fi_msg_tagged t = {};

	m.msg_iov = t.msg_iov = &v;
	m.iov_count = t.iov_count = 1;
	m.addr = t.addr = FI_ADDR_UNSPEC;
	NOTHING(fi_recvmsg(at->ep, &m, FI_COMPLETION));
	NOTHING(fi_trecvmsg(at->ep, &t, FI_COMPLETION));
	NOTHING(fi_trecvmsg(at->ep, &t, FI_PEEK));
	NOTHING(fi_trecvmsg(at->ep, &t, FI_PEEK | FI_DISCARD));
	m.addr = t.addr = peer;
	NOTHING(fi_sendmsg(at->ep, &m, FI_COMPLETION));
	NOTHING(fi_tsendmsg(at->ep, &t, FI_INJECT));
	REFUSED(fi_cancel(&at->ep->fid, (void *)posted), FI_ENOENT);
}

/* Counters keep their values. */
void try_counters(struct tdt_ep *at, struct Report &r)
{
	const uint64_t was = fi_cntr_read(at->rx_cntr);
	const uint64_t errors = fi_cntr_readerr(at->rx_cntr);

	NOTHING(fi_cntr_wait(at->rx_cntr, was + 1, 10));
	NOTHING(fi_cntr_set(at->rx_cntr, was + 7));
	NOTHING(fi_cntr_add(at->rx_cntr, 7));
	NOTHING(fi_cntr_seterr(at->rx_cntr, errors + 7));
	NOTHING(fi_cntr_adderr(at->rx_cntr, 7));
	REFUSED(was - fi_cntr_read(at->rx_cntr), 0);
	REFUSED(errors - fi_cntr_readerr(at->rx_cntr), 0);
}

/*
 * All calls of a child that has no business to make them. @posted: context of a
 * receive of the parent's.
 */
struct Report try_all(struct tdt_world *w, fi_addr_t peer, const void *posted)
{
	struct tdt_ep *at = &w->eps[0];
	struct fid *fids[1] = { &at->rx_cq->fid };
	struct fi_cq_tagged_entry e;
	struct Report r = {};
	static char big[100000];

	NOTHING(fi_send(at->ep, big, 1, nullptr, peer, nullptr));
	NOTHING(fi_send(at->ep, big, sizeof(big), nullptr, peer, nullptr));
	NOTHING(fi_inject(at->ep, big, 1, peer));
	NOTHING(fi_tsend(at->ep, big, 1, nullptr, peer, 1, nullptr));
	NOTHING(fi_recv(at->ep, big, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
	NOTHING(fi_trecv(at->ep, big, 1, nullptr, FI_ADDR_UNSPEC, 0, 0,
			 nullptr));
	while (fi_cq_read(at->rx_cq, &e, 1) == 1)
		; /* what was there before */
	NOTHING(fi_cq_read(at->rx_cq, &e, 1));
	NOTHING(fi_cq_read(at->tx_cq, &e, 1));
	NOTHING(fi_cq_sread(at->rx_cq, &e, 1, nullptr, -1));
	NOTHING(fi_trywait(w->fabric, fids, 1));
	NOTHING(fi_av_remove(at->av, &peer, 1, 0));
	NOTHING(fi_av_insert(at->av, at->name, 1, &peer, 0, nullptr));
	NOTHING(fi_enable(at->ep));
	NOTHING(fi_ep_bind(at->ep, &at->av->fid, 0));
	NOTHING(fi_ep_bind(at->ep, &at->rx_cntr->fid, FI_REMOTE_WRITE));
	try_one_sided(at, peer, r);
	try_described(at, peer, posted, r);
	try_counters(at, r);
	NOTHING(fi_close(&at->ep->fid));
	NOTHING(fi_close(&at->tx_cq->fid));
	NOTHING(fi_close(&at->rx_cntr->fid));
	NOTHING(fi_close(&at->av->fid));
	NOTHING(fi_close(&at->domain->fid));
	return r;
}

/* A child may open what it needs itself. */
int use_own()
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;

	tdt_attr_init(&attr);
	return tdt_world_open(&attr, &w) || tdt_warm_up(w) ||
	       tdt_world_close(w);
}

/*
 * Has a child of its own, which tells what it found and stays until the test
 * hangs up. Answers each message until it is killed.
 */
TDT_ROLE(forker)
{
	fi_addr_t peer = FI_ADDR_UNSPEC;
	struct tdt_world *w = open_one(fd, arg, &peer);
	char in = 0, out = 'o', word = 0;
	bool forked = false;

	if (!w)
		return 1;
	if (tdt_recv(&w->eps[0], &in, 1, &in))
		return 2;
	for (;;) {
		if (!tdt_wait(&w->eps[0], &in, nullptr)) {
			if (tdt_recv(&w->eps[0], &in, 1, &in))
				return 3;
			struct tdt_op op = {};
			op.call = TDT_SEND;
			op.buf = &out;
			op.len = 1;
			op.addr = peer;
			op.context = &out;
			if (tdt_post(&w->eps[0], &op) ||
			    tdt_wait(&w->eps[0], &out, nullptr))
				return 4;
		}
		if (forked || tdt_hear_now(fd, &word, 1) != 1)
			continue;
		forked = true;
		if (fork())
			continue;
		struct Report r = try_all(w, peer, &in);
		if (!r.what[0] && use_own()) {
			snprintf(r.what, sizeof(r.what),
				 "objects of its own: %s", tdt_error());
		}
		tdt_tell(fd, &r, sizeof(r));
		struct pollfd p = { fd, POLLIN, 0 };
		poll(&p, 1, 60000);
		_exit(0);
	}
}

class Fork : public Case
{
protected:
	struct tdt_child child = { 0, -1 };
	fi_addr_t peer = FI_ADDR_UNSPEC;

	void TearDown() override
	{
		tdt_child_kill(&child, SIGKILL);
		Case::TearDown();
	}

	void start(const char *arg)
	{
		ASSERT_EQ(0, tdt_child_start(&child, "forker", arg));
		ASSERT_EQ(0, tdt_hear_name(child.fd, rx(), &peer));
		ASSERT_EQ(0, tdt_tell_name(child.fd, rx()));
	}

	ssize_t send(char *out)
	{
		struct tdt_op op = op_of(TDT_SEND, 0, out, 1);

		op.addr = peer;
		op.context = out;
		return tdt_post(rx(), &op);
	}

	void exchange()
	{
		char out = 'e', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, send(&out));
		OK(done(rx(), &out, FI_SEND | FI_MSG));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ('o', in);
	}

	void run(const char *tier)
	{
		struct Report r;
		struct tdt_comp c;
		struct tdt_op op = {};
		Bytes big(300000);

		OK(start(tier));
		OK(exchange());
		ASSERT_EQ(0, tdt_tell(child.fd, "f", 1));
		OK(exchange()); /* it hears of the word after a message */
		ASSERT_EQ(static_cast<ssize_t>(sizeof(r)),
			  tdt_hear(child.fd, &r, sizeof(r)));
		EXPECT_STREQ("", r.what) << r.ret;
		for (int i = 0; i < 20; i++)
			OK(exchange());
		/* Its end is noticed, its child notwithstanding. */
		op.call = TDT_SEND;
		op.tagged = 1; /* nobody receives it */
		op.buf = big.data();
		op.len = big.size();
		op.addr = peer;
		op.context = &big;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(exchange());
		kill(child.pid, SIGKILL);
		ASSERT_EQ(0, tdt_wait(rx(), &big, &c));
		EXPECT_EQ(FI_ECONNRESET, c.err);
		EXPECT_EQ(0, kill(child.pid, 0)) << "not waited for yet";
		tdt_child_kill(&child, SIGKILL);
	}
};

TEST_F(Fork, ChildrenCannotUseWhatTheyInherit)
{
	/* fi_tandem(7), FAULTS: "Objects that a process inherited by fork(2)
	 * are its parent's." */
	ONLY_TANDEM();
	OPEN();
	OK(run(nullptr));
	if (tdt_path() == TDT_MIXED) {
		OK(run("tcp"));
	}
}

} // namespace

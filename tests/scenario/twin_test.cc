/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The evil twin (twin.h) against an endpoint that has two innocent partners, one
 * of each tier, with traffic between them and operations with the twin under way.
 *
 * Whatever the twin does: each operation with it ends once, by an error that
 * fi_tandem(7) allows for a peer that was lost, or by none; the innocent lose
 * nothing: order, content, exactly once; only the twin's own session ends; memory
 * that nobody may write is whole; no completion is of nobody. Afterwards the
 * process holds what it held before.
 *
 * TANDEM_TWINS is the number of seeds of each tier (150); TANDEM_SEED the first
 * one (1). A failure prints the value of TANDEM_TWIN with which Twin.Replay
 * repeats it.
 */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"
#include "tests/harness/sanitized.h"
#include "tests/harness/seeded.h"

extern "C" {
#include "base/env.h"
#include "cast.h"
#include "stage.h"
#include "twin.h"
}

namespace
{

enum { VICTIM, NEAR, FAR, TWIN };
enum { OPS = 24, ROUNDS = 3, GUARD = 64, KEY = 0x51, HIDDEN = 0x52 };

/* An operation of the victim with the twin. */
struct Op {
	bool posted = false, receive = false, cancelled = false;
	int ended = 0;
	std::vector<unsigned char> buf;
	size_t len = 0;
};

struct Op ops[OPS];

bool may_end_with(const Op &op, int err)
{
	static const std::set<int> lost = {
		0,
		FI_ECONNRESET, /* the session ended */
		FI_ECONNREFUSED,
		FI_ENOPROTOOPT, /* it says that it speaks another version */
		FI_EACCES,	/* it says that there is no such region */
		FI_EIO,		/* it says that it cannot send the bytes */
		FI_EFAULT,	/* it says that it cannot read them */
		FI_ENOMEM,	/* it says that it has no memory */
		FI_EOPNOTSUPP,	/* it says that there is no such operation */
	};

	/*
	 * It is too long; or the twin, which scribbled before shared memory was
	 * agreed and is reached by TCP, closes and gives up a message that it has
	 * announced (doc/PROTOCOL-tcp.md, Records).
	 */
	if (op.receive && (err == FI_ETRUNC || err == FI_ECONNABORTED))
		return true;
	return lost.count(err) || (op.cancelled && err == FI_ECANCELED);
}

extern "C" int of_the_twin(struct tdt_play *p, const struct tdt_ep *ep,
			   const struct tdt_comp *c)
{
	Op *op = static_cast<Op *>(c->context);

	if (op < ops || op >= ops + OPS)
		return 0;
	if (ep->index != VICTIM || !op->posted || op->ended++)
		tdt_play_wrong(p, "operation %zd with the twin ended twice",
			       op - ops);
	if (!may_end_with(*op, c->err))
		tdt_play_wrong(p, "operation %zd with the twin: %s", op - ops,
			       fi_strerror(c->err));
	return 1;
}

void attributes(struct tdt_attr *attr)
{
	attr->eps = 3;
	attr->tcp_last = 1;
	attr->eq = 1;
}

const struct tdt_scenario twins = { "twin", nullptr, attributes, 0 };

class Twin : public testing::Test
{
protected:
	struct tdm_env saved = tdm_env;
	struct tdt_child child = { 0, -1 };
	struct tdt_name name = {};
	struct tdt_holdings held;
	struct tdt_play p;
	struct fid_mr *mr[2] = {};
	std::vector<unsigned char> region, hidden;
	bool gone = true;  /* the twin does not obey any more */
	bool done = false; /* it has obeyed */

	void SetUp() override
	{
		tdt_log_expect("");
		tdt_play_begin();
		tdm_env.shm = TDM_SHM_AUTO;
		tdm_env.conn_timeout_ms = 3000;
		tdm_env.refused_timeout_ms = 100;
	}

	void TearDown() override
	{
		tdt_child_kill(&child, SIGKILL);
		tdm_env = saved;
	}

	/* ---- the victim's operations with the twin ----------------------- */

	Op &next(bool receive, size_t len)
	{
		Op *op = ops;

		while (op->posted)
			op++;
		op->posted = true;
		op->receive = receive;
		op->len = len;
		op->buf.assign(len + 2 * GUARD, 0x6b);
		return *op;
	}

	void message(enum tdt_call call, bool tagged, size_t len)
	{
		Op &op = next(call == TDT_RECV, len);
		struct tdt_op o = {};

		o.call = call;
		o.tagged = tagged;
		o.tag = 1;
		o.ignore = call == TDT_RECV ? 3 : 0;
		o.buf = op.buf.data() + GUARD;
		o.len = len;
		o.addr = p.addr[VICTIM][TWIN];
		o.context = &op;
		if (tdt_post_once(&p.w->eps[VICTIM], &o))
			op.posted = false; /* -FI_EAGAIN: it has time */
	}

	void reach(bool read, size_t len)
	{
		Op &op = next(false, len);
		struct fid_ep *ep = p.w->eps[VICTIM].ep;
		fi_addr_t to = p.addr[VICTIM][TWIN];
		void *at = op.buf.data() + GUARD;

		if (read ? fi_read(ep, at, len, nullptr, to, 0, TDT_TWIN_KEY,
				   &op) :
			   fi_write(ep, at, len, nullptr, to, 0, TDT_TWIN_KEY,
				    &op))
			op.posted = false;
	}

	void post_all()
	{
		for (Op &op : ops)
			op = Op();
		for (int i = 0; i < 3; i++) {
			message(TDT_RECV, true, TDT_TWIN_LARGE);
			message(TDT_RECV, i == 0, 5000);
			message(TDT_SEND, true, 100);
			message(TDT_SEND, i > 0, 30000 * i);
			reach(true, 1000 + 9000 * i);
			reach(false, 8 + 20000 * i);
		}
	}

	static int all_ended(struct tdt_play *, void *)
	{
		for (const Op &op : ops) {
			if (op.posted && !op.ended)
				return 0;
		}
		return 1;
	}

	/* Those that the twin will never answer, now that it is gone. */
	void end_all()
	{
		for (Op &op : ops) {
			if (!op.posted || op.ended || !op.receive)
				continue;
			op.cancelled = true;
			fi_cancel(&p.w->eps[VICTIM].ep->fid, &op);
		}
		tdt_play_until(&p, all_ended, nullptr,
			       "an operation with the twin");
	}

	/* ---- the innocent ------------------------------------------------- */

	void round(size_t i)
	{
		static const size_t len[] = { 16, 3000, 20000, 100000 };

		for (size_t other : { NEAR, FAR }) {
			for (size_t k = 0; k < 4; k++) {
				tdt_play_pass(&p, other, VICTIM, len[k], k & 1);
				tdt_play_pass(&p, VICTIM, other,
					      len[(k + i) % 4], !(k & 1));
			}
		}
		tdt_play_wait(&p);
	}

	/* ---- the verdict --------------------------------------------------- */

	void guards()
	{
		for (const Op &op : ops) {
			for (size_t i = 0; i < GUARD && op.posted; i++) {
				if (op.buf[i] != 0x6b ||
				    op.buf[GUARD + op.len + i] != 0x6b)
					tdt_play_wrong(&p, "bytes beside a "
							   "buffer changed");
			}
		}
		for (unsigned char c : hidden) {
			if (c != 0x77)
				tdt_play_wrong(&p, "a region changed that "
						   "nobody may write");
		}
	}

	bool innocent(const struct fi_eq_err_entry &e)
	{
		for (size_t i : { NEAR, FAR }) {
			const struct tdt_ep *ep = &p.w->eps[i];

			if (e.err_data_size == ep->namelen &&
			    !memcmp(e.err_data, ep->name, ep->namelen))
				return true;
		}
		return e.err_data_size == 0;
	}

	/*
	 * Lost peers: at the others nobody, at the victim the twin, which may
	 * have called itself by a name that is nobody's.
	 */
	void events(size_t i)
	{
		const struct tdt_ep *ep = &p.w->eps[i];
		char data[TDT_NAME_BYTES];
		struct fi_eq_err_entry e;
		uint32_t event;

		for (;;) {
			memset(&e, 0, sizeof(e));
			e.err_data = data;
			e.err_data_size = sizeof(data);
			if (fi_eq_read(ep->eq, &event, data, sizeof(data), 0) !=
				    -FI_EAVAIL ||
			    fi_eq_readerr(ep->eq, &e, 0) < 0)
				return;
			if (i != VICTIM || innocent(e))
				tdt_play_wrong(&p,
					       "endpoint %zu has lost one "
					       "who is innocent: %s",
					       i, fi_strerror(e.err));
		}
	}

	/* ---- one run ------------------------------------------------------- */

	int open_all()
	{
		struct fid_domain *domain;

		if (tdt_play_open(&p))
			return -1;
		domain = p.w->eps[VICTIM].domain;
		region.assign(TDT_TWIN_REGION, 0);
		hidden.assign(4096, 0x77);
		return fi_mr_reg(domain, region.data(), region.size(),
				 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
				 &mr[0], nullptr) ||
		       fi_mr_reg(domain, hidden.data(), hidden.size(),
				 FI_REMOTE_READ, 0, HIDDEN, 0, &mr[1], nullptr);
	}

	int invite(uint64_t seed, enum tdt_tier tier)
	{
		struct tdt_twin_order order = {};
		const struct tdt_ep *ep = &p.w->eps[VICTIM];

		if (gone) {
			tdt_child_kill(&child, SIGKILL);
			if (tdt_child_start(&child, "scenario_twin", nullptr))
				return -1;
		}
		gone = done = false;
		order.seed = seed;
		order.tier = tier;
		order.key = KEY;
		order.victim.len = ep->namelen;
		memcpy(order.victim.bytes, ep->name, ep->namelen);
		return tdt_tell(child.fd, &order, sizeof(order)) ||
		       tdt_hear(child.fd, &name, sizeof(name)) !=
			       sizeof(name) ||
		       fi_av_insert(ep->av, name.bytes, 1,
				    &p.addr[VICTIM][TWIN], 0, nullptr) != 1;
	}

	/* Is the twin still at it? */
	bool at_it()
	{
		char end;
		ssize_t n;

		if (done)
			return false;
		n = tdt_hear_now(child.fd, &end, 1);
		done = n != -EAGAIN;
		gone = done && n != 1;
		return !done;
	}

	void play(uint64_t seed)
	{
		size_t i = 0;

		round(i++);
		if (p.problem[0])
			return;
		post_all();
		do {
			if (i == 2)
				tdt_act_rma(&p);
			round(i++);
		} while (!p.problem[0] && (at_it() || i < ROUNDS));
		if (gone)
			tdt_child_kill(&child, SIGKILL);
		end_all();
		round(i);
		guards();
		for (size_t ep : { VICTIM, NEAR, FAR })
			events(ep);
		if (seed & 2)
			fi_av_remove(p.w->eps[VICTIM].av, &p.addr[VICTIM][TWIN],
				     1, 0);
	}

	std::string run(uint64_t seed, enum tdt_tier tier)
	{
		memset(&p, 0, sizeof(p));
		p.scenario = &twins;
		p.seed = seed;
		p.other = of_the_twin;
		if (open_all() || invite(seed, tier))
			tdt_play_wrong(&p, "no twin");
		else
			play(seed);
		for (struct fid_mr *&one : mr) {
			if (one && fi_close(&one->fid))
				tdt_play_wrong(&p, "fi_close of a region");
			one = nullptr;
		}
		if (p.w)
			tdt_play_close(&p);
		if (gone)
			tdt_child_kill(&child, SIGKILL);
		return p.problem;
	}

	std::string left()
	{
		struct tdt_holdings now;

		tdt_holdings(&now);
		if (now.descriptors != held.descriptors + (child.fd >= 0))
			return "descriptors are left";
		if (now.segments != held.segments)
			return "segments are left";
		return now.threads != held.threads ? "threads are left" : "";
	}

	/* Memory that grows with each run; free memory is cached for a while. */
	std::string grows(uint64_t seed, enum tdt_tier tier)
	{
		struct tdt_holdings now;

		for (int i = 0; i < 12; i++) {
			tdt_holdings(&now);
			if (now.bytes <= held.bytes)
				return "";
			held.bytes = now.bytes;
			run(seed, tier);
		}
		return "memory is left behind each time";
	}

	void begin(enum tdt_tier tier)
	{
		for (uint64_t i = 0; i < 3; i++)
			ASSERT_EQ("", run(i, tier)) << "seed " << i;
		tdt_holdings(&held);
		held.descriptors -= child.fd >= 0;
	}

	void one(uint64_t seed, enum tdt_tier tier)
	{
		std::string wrong = run(seed, tier);

		if (wrong.empty())
			wrong = left();
		if (wrong.empty())
			wrong = grows(seed, tier);
		EXPECT_EQ("", wrong)
			<< "TANDEM_TWIN='" << (tier ? "tcp " : "shm ") << seed
			<< "' ./dev test Twin.Replay";
	}

	void many(enum tdt_tier tier)
	{
		uint64_t n =
			tdt_number("TANDEM_TWINS", TDT_SANITIZED ? 30 : 150);
		uint64_t seed = tdt_number("TANDEM_SEED", 1);

		ASSERT_NO_FATAL_FAILURE(begin(tier));
		for (uint64_t i = 0; i < n && !HasFailure(); i++) {
			/* For one that crashes: which seeds it were. */
			if (i % 25 == 0) {
				printf("seeds from %ju\n",
				       (uintmax_t)(seed + i));
				fflush(stdout);
			}
			one(seed + i, tier);
		}
		printf("%ju twins over %s\n", (uintmax_t)n,
		       tier ? "TCP" : "shared memory");
	}
};

TEST_F(Twin, N5_TcpBreachesHarmTheTwinAlone)
{
	many(TDT_TIER_TCP);
}

TEST_F(Twin, L4_SegmentsThatChangeHarmTheTwinAlone)
{
	many(TDT_TIER_SHM);
}

TEST_F(Twin, Replay)
{
	const char *given = getenv("TANDEM_TWIN");
	std::string tier;
	uint64_t seed = 0;

	if (!given)
		GTEST_SKIP() << "repeats the seed that TANDEM_TWIN names";
	std::istringstream(given) >> tier >> seed;
	enum tdt_tier t = tier == "tcp" ? TDT_TIER_TCP : TDT_TIER_SHM;
	ASSERT_NO_FATAL_FAILURE(begin(t));
	one(seed, t);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Killed at any instruction. A process plays one side of a scenario and is
 * killed in the middle of a function: of the ring, the attach, a large copy, the
 * greeting over TCP, the close of an endpoint. The other side ends all of its
 * operations, each once; its traffic with a third process goes on; and nothing of
 * the dead one remains: no descriptor, mapping, memfd or thread.
 *
 * TANDEM_KILLS is the number of points (99); TANDEM_SEED chooses them. A failure
 * prints the value of TANDEM_KILL with which Kill.Replay repeats it.
 */
#include <cstring>
#include <future>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "tests/harness/fixture.h"
#include "tests/harness/sanitized.h"
#include "tests/harness/seeded.h"

extern "C" {
#include "base/env.h"
#include "stage.h"
#include "steps.h"
}

namespace
{

enum { THIRD = TDT_PLAY_EPS - 1 };

const struct tdt_scenario *scenario_of(const std::string &name)
{
	const struct tdt_scenario *s = tdt_scenarios;

	while (s->name && name != s->name)
		s++;
	return s->name ? s : nullptr;
}

/* Where, in which scenario. Each process acts both as sender and receiver. */
const struct Region {
	const char *what, *function, *scenario;
	enum tdt_tier tier;
	unsigned calls = 3;   /* of the function, at least */
	unsigned steps = 600; /* the most instructions */
} regions[] = {
	{ "ring put", "tdm_shm_tx_send", "eager", TDT_TIER_SHM },
	{ "ring put", "tdm_shm_tx_slow", "saturation", TDT_TIER_SHM },
	{ "ring put", "tdm_shm_tinject", "inject", TDT_TIER_SHM },
	{ "ring get", "tdm_shm_rx_take", "eager", TDT_TIER_SHM },
	{ "ring get", "tdm_shm_rx_poll", "saturation", TDT_TIER_SHM },
	{ "ring growth", "tdm_shm_grow_now", "saturation", TDT_TIER_SHM },
	{ "ring move", "tdm_shm_lifeline_next", "saturation", TDT_TIER_SHM, 1 },
	{ "attach", "tdm_shm_session_hello", "contact", TDT_TIER_SHM },
	{ "attach", "tdm_shm_session_prepare", "contact", TDT_TIER_SHM },
	{ "attach", "tdm_shm_session_take", "simultaneous", TDT_TIER_SHM },
	{ "attach", "tdm_shm_pair_up", "simultaneous", TDT_TIER_SHM },
	{ "grant", "tdm_shm_pull_start", "rendezvous", TDT_TIER_SHM },
	{ "grant", "tdm_shm_pull_run", "rendezvous", TDT_TIER_SHM },
	{ "grant", "tdm_shm_op_end", "rma", TDT_TIER_SHM },
	{ "bounce", "tdm_shm_pull_run", "ring_copy", TDT_TIER_SHM },
	{ "detach", "give_each", "peer_leaves", TDT_TIER_SHM, 1, 8000 },
	{ "detach", "pair_down", "peer_leaves", TDT_TIER_SHM, 1, 4000 },
	{ "detach", "tdm_shm_session_free", "peer_leaves", TDT_TIER_SHM, 1 },
	{ "detach", "tdm_shm_region_fini", "peer_leaves", TDT_TIER_SHM, 8 },
	{ "detach", "end_pulls", "peer_leaves", TDT_TIER_SHM, 1 },
	{ "connect", "tdm_conn_new", "contact", TDT_TIER_TCP },
	{ "connect", "tdm_hello_connect", "simultaneous", TDT_TIER_TCP },
	{ "connect", "tdm_hello_greet", "contact_key", TDT_TIER_TCP },
	{ "connect", "tdm_hello_answer", "contact_key", TDT_TIER_TCP },
	{ "tcp send", "tdm_tx_send", "eager", TDT_TIER_TCP },
	{ "tcp send", "tdm_tx_acked", "saturation", TDT_TIER_TCP },
	{ "tcp receive", "tdm_rx_ready", "rendezvous", TDT_TIER_TCP },
	{ "tcp receive", "tdm_rx_arrived", "saturation", TDT_TIER_TCP },
	{ "tcp detach", "tdm_root_quit", "peer_leaves", TDT_TIER_TCP, 1,
	  20000 },
	{ "tcp detach", "tdm_tx_abandon", "peer_leaves", TDT_TIER_TCP, 2 },
	{ "tcp detach", "tdm_conn_free", "peer_leaves", TDT_TIER_TCP, 1 },
	{ "tcp detach", "tdm_sock_close", "peer_leaves", TDT_TIER_TCP, 1 },
	{ "tcp detach", "tdm_busy_free", "peer_leaves", TDT_TIER_TCP, 1 },
};

const int REGIONS = sizeof(regions) / sizeof(regions[0]);

struct Point {
	int region;
	unsigned nth, steps; /* calls, then instructions */
};

void play_of(struct tdt_play *p, const Region &r, size_t side, int fd)
{
	memset(p, 0, sizeof(*p));
	p->scenario = scenario_of(r.scenario);
	p->tier = r.tier;
	p->seed = 1;
	p->lenient = 1;
	p->two = 1;
	p->side = side;
	p->fd = fd;
}

void prepare(const struct tdt_play *p)
{
	tdt_play_begin();
	tdm_env.shm = p->tier == TDT_TIER_TCP ? TDM_SHM_OFF : TDM_SHM_AUTO;
	tdm_env.conn_timeout_ms = 3000;
	tdm_env.refused_timeout_ms = 0;
}

/* The one that is killed. TDT_ARG: the number of the region. */
TDT_ROLE(scenario_victim)
{
	static struct tdt_play p;
	char go;

	play_of(&p, regions[atoi(arg)], 1, fd);
	if (tdt_tell(fd, "r", 1) || tdt_hear(fd, &go, 1) != 1)
		return 1;
	prepare(&p);
	if (!tdt_play_open(&p))
		p.scenario->run(&p);
	tdt_play_close(&p);
	return *p.problem ? 2 : 0;
}

class Kill : public testing::Test
{
protected:
	struct tdm_env saved = tdm_env;
	struct tdt_child third = { 0, -1 };
	struct tdt_name third_name;
	struct tdt_holdings held;
	std::mt19937_64 random;
	unsigned killed = 0, missed = 0;

	void SetUp() override
	{
		tdt_log_expect("");
		random.seed(tdt_number("TANDEM_SEED", 1));
	}

	void TearDown() override
	{
		tdt_child_kill(&third, SIGKILL);
		tdm_env = saved;
	}

	/* A process that receives, for all points of a tier. */
	void start_third(enum tdt_tier tier)
	{
		struct tdt_name nobody = {};

		tdt_child_kill(&third, SIGKILL);
		ASSERT_EQ(0, tdt_child_start(&third, "scenario_sink",
					     tier == TDT_TIER_TCP ? "1" : "0"));
		ASSERT_EQ(static_cast<ssize_t>(sizeof(third_name)),
			  tdt_hear(third.fd, &third_name, sizeof(third_name)));
		/* It wants a name; its own does. */
		nobody = third_name;
		ASSERT_EQ(0, tdt_tell(third.fd, &nobody, sizeof(nobody)));
	}

	/* Traffic with the third process succeeds. */
	static void send_third(struct tdt_play *p, size_t len)
	{
		struct tdt_op op;
		int lenient = p->lenient;

		memset(&op, 0, sizeof(op));
		op.call = TDT_SEND;
		op.len = len;
		p->lenient = 0;
		tdt_play_op(p, 0, THIRD, &op, nullptr);
		tdt_play_wait(p);
		p->lenient = lenient;
	}

	/* One side of the scenario, whose other side is killed meanwhile. */
	void survive(struct tdt_play *p)
	{
		tdm_env = saved;
		prepare(p);
		if (tdt_play_open(p))
			return;
		if (fi_av_insert(p->w->eps[0].av, third_name.bytes, 1,
				 &p->addr[0][THIRD], 0, nullptr) != 1)
			tdt_play_wrong(p, "the third process is not inserted");
		p->scenario->run(p);
	}

	/* Its resources then, compared with before. */
	std::string left()
	{
		struct tdt_holdings now;

		tdt_holdings(&now);
		if (now.descriptors != held.descriptors)
			return "descriptors are left";
		if (now.segments != held.segments)
			return "segments are left";
		return now.threads != held.threads ? "threads are left" : "";
	}

	std::string kill_at(const Point &at)
	{
		const Region &region = regions[at.region];
		static struct tdt_play p;
		enum tdt_steps_end end = TDT_STEPS_FORBIDDEN;
		struct tdt_child victim;
		std::promise<void> attached;
		std::thread tracer;
		int err = 1;
		char ready;

		if (tdt_child_start(&victim, "scenario_victim",
				    std::to_string(at.region).c_str()) ||
		    tdt_hear(victim.fd, &ready, 1) != 1)
			return "no process to be killed";
		play_of(&p, region, 0, victim.fd);
		tracer = std::thread([&] {
			err = tdt_steps_attach(victim.pid,
					       tdt_symbol(region.function));
			tdt_tell(victim.fd, "g", 1);
			attached.set_value();
			if (!err)
				end = tdt_steps_kill(victim.pid, at.nth,
						     at.steps);
		});
		attached.get_future().wait();
		survive(&p);
		tracer.join();
		if (p.w && !p.problem[0] && !p.w->attr.key) {
			send_third(&p, 100);
			send_third(&p, 20000);
		}
		tdt_play_close(&p);
		tdt_child_kill(&victim, SIGKILL);
		killed += end == TDT_STEPS_KILLED;
		missed += end == TDT_STEPS_MISSED;
		if (err && !killed)
			forbidden = true;
		else if (err)
			tdt_play_wrong(&p, "ptrace: %s", strerror(-err));
		return p.problem;
	}

	void begin(enum tdt_tier tier)
	{
		tdt_play_begin();
		ASSERT_NO_FATAL_FAILURE(start_third(tier));
		first = true;
	}

	void one(const Point &p)
	{
		const Region &r = regions[p.region];
		std::string wrong;

		ASSERT_NE(0u, tdt_symbol(r.function)) << r.function;
		wrong = kill_at(p);
		if (first)
			tdt_holdings(&held);
		first = false;
		if (wrong.empty())
			wrong = left();
		EXPECT_EQ("", wrong)
			<< r.what << ": TANDEM_KILL='" << r.function << " "
			<< r.scenario << " " << p.nth << " " << p.steps
			<< "' ./dev test Kill.Replay";
	}

	bool forbidden = false, first = true;
};

TEST_F(Kill, AnyInstruction)
{
	const int count = int(tdt_number("TANDEM_KILLS", 99));

	if (TDT_SANITIZED)
		GTEST_SKIP() << "kills at instructions of the product";
	for (enum tdt_tier tier : { TDT_TIER_SHM, TDT_TIER_TCP }) {
		ASSERT_NO_FATAL_FAILURE(begin(tier));
		for (int i = 0; i < count && !forbidden; i++) {
			const Region &r = regions[i % REGIONS];
			Point p = { i % REGIONS,
				    static_cast<unsigned>(1 +
							  random() % r.calls),
				    static_cast<unsigned>(random() % r.steps) };

			if (r.tier == tier)
				one(p);
		}
	}
	if (forbidden)
		GTEST_SKIP() << "ptrace(2) is refused here";
	printf("killed at %u points; %u processes ended before theirs\n",
	       killed, missed);
	/* How many end before depends on what else the machine does. */
	EXPECT_LT(missed, 2 * killed);
}

TEST_F(Kill, Replay)
{
	const char *given = getenv("TANDEM_KILL");
	std::string function, scenario;
	Point p = { 0, 1, 0 };

	if (!given)
		GTEST_SKIP() << "repeats the point that TANDEM_KILL names";
	std::istringstream(given) >> function >> scenario >> p.nth >> p.steps;
	while (p.region < REGIONS && (function != regions[p.region].function ||
				      scenario != regions[p.region].scenario))
		p.region++;
	ASSERT_LT(p.region, REGIONS) << given;
	ASSERT_NO_FATAL_FAILURE(begin(regions[p.region].tier));
	one(p);
	EXPECT_EQ(1u, killed);
}

} // namespace

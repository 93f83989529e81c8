/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call fails in turn. A scenario (play.h) is played once to count the
 * calls of the table of base/os.h and the allocations; then again for each of
 * them, which fails with each error that it may legally give, moves fewer bytes
 * than asked, or has nothing to give for a while. The clock leaps an hour ahead.
 * munmap(2) is not made to fail: for a whole mapping it has no reason to. What the ledger of the
 * scenario asks for holds each time, messages pass afterwards, and the process
 * holds what it held before.
 *
 * TANDEM_SCENARIOS=all plays all scenarios, and each call fails; a list of names
 * (eager/tcp contact/shm) those. Without it eight are played, and of many calls
 * of one kind some fail. A failure prints the value of TANDEM_STRIKE with which
 * Turn.Replay repeats it. TANDEM_SEED is the seed of scenarios (1). TANDEM_SHARE=2/4
 * plays each fourth of the strikes, the second one first.
 */
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/fixture.h"
#include "tests/harness/seeded.h"

extern "C" {
#include "stage.h"
#include "tests/harness/fault.h"
#include "tests/harness/os_fault.h"
}

namespace
{

enum Kind { FAILS, ONE_BYTE, ONE_LESS, DELAY };

const char *const kinds[] = { "", "one", "less", "delay" };

enum { ALLOC = TDT_OS_CALLS, DELAYED = 40 };

/* How visible is it? To nobody, to calls that open things, to operations. */
enum Seen { NOBODY, OPENERS, ALL };

struct Strike {
	int call = -1; /* enum tdt_os_call, or ALLOC */
	unsigned nth = 0;
	Kind kind = FAILS;
	int err = 0;
	bool closing = false; /* counted from the beginning of the close */
	Seen seen = ALL;
};

const char *call_name(int call)
{
	return call == ALLOC ? "alloc" :
			       tdt_os_name(static_cast<enum tdt_os_call>(call));
}

std::string text(const Strike &s)
{
	std::string t = s.closing ? "close " : "run ";

	t += std::string(call_name(s.call)) + " " + std::to_string(s.nth) + " ";
	return t + (s.kind == FAILS ? strerrorname_np(s.err) : kinds[s.kind]);
}

/* The errors with which each call is made to fail. */
std::vector<int> errors_of(int call)
{
	switch (call) {
	case ALLOC:
		return { ENOMEM };
	case TDT_OS_SOCKET:
		return { EMFILE, ENFILE, ENOBUFS };
	case TDT_OS_EVENTFD:
	case TDT_OS_MEMFD_CREATE:
	case TDT_OS_EPOLL_CREATE1:
	case TDT_OS_TIMERFD_CREATE:
	case TDT_OS_PIDFD_OPEN:
		return { EMFILE, ENOMEM };
	case TDT_OS_BIND:
		return { EADDRINUSE, EACCES };
	case TDT_OS_LISTEN:
		return { EADDRINUSE };
	case TDT_OS_ACCEPT4:
		return { EAGAIN, EINTR, ECONNABORTED, EMFILE, ENFILE, ENOBUFS };
	case TDT_OS_CONNECT:
		return { EAGAIN,	ECONNREFUSED, ENETUNREACH,
			 EADDRNOTAVAIL, ECONNABORTED, EINTR };
	case TDT_OS_GETSOCKOPT:
	case TDT_OS_SETSOCKOPT:
		return { ENOMEM };
	case TDT_OS_GETPEERNAME:
	case TDT_OS_SHUTDOWN:
		return { ENOTCONN };
	case TDT_OS_GETSOCKNAME:
		return { ENOBUFS };
	case TDT_OS_SEND:
	case TDT_OS_SENDMSG:
		return { EAGAIN, EINTR, ENOBUFS, ENOMEM, ECONNRESET, EPIPE };
	case TDT_OS_RECV:
	case TDT_OS_READV:
		return { EAGAIN, EINTR, ENOMEM, ECONNRESET, ETIMEDOUT };
	case TDT_OS_RECVMSG:
		return { EINTR, ENOMEM };
	case TDT_OS_READ:
	case TDT_OS_WRITE:
		return { EAGAIN, EINTR };
	case TDT_OS_EPOLL_CTL:
		return { ENOMEM, ENOSPC };
	case TDT_OS_EPOLL_WAIT:
	case TDT_OS_POLL:
	case TDT_OS_PPOLL:
	case TDT_OS_CLOSE:
		return { EINTR };
	case TDT_OS_FALLOCATE:
		return { ENOSPC, EINTR, ENOMEM };
	case TDT_OS_FTRUNCATE:
		return { EINTR, ENOMEM };
	case TDT_OS_ADD_SEALS:
		return { EPERM, EBUSY };
	case TDT_OS_MMAP:
		return { ENOMEM, EAGAIN };
	case TDT_OS_PROCESS_VM_READV:
		return { EPERM, ENOSYS, ENOMEM, EFAULT, ESRCH };
	case TDT_OS_MEMBARRIER:
		return { ENOSYS, EPERM };
	case TDT_OS_GETRANDOM:
		return { EINTR, ENOSYS };
	case TDT_OS_THREAD_CREATE:
		return { EAGAIN };
	case TDT_OS_IFREQ:
		return { ENODEV, EPERM };
	case TDT_OS_GETIFADDRS:
		return { ENOMEM, EMFILE };
	case TDT_OS_NOW: /* an hour has passed at once */
		return { ETIMEDOUT };
	case TDT_OS_FSTAT: /* always or never: os_turn_test.cc */
	case TDT_OS_GET_SEALS:
	case TDT_OS_OUTQ:
		return {};
	default: /* files: of named address vectors, which have tests */
		return { EMFILE, EACCES };
	}
}

bool moves_bytes(int call)
{
	return call == TDT_OS_SEND || call == TDT_OS_SENDMSG ||
	       call == TDT_OS_RECV || call == TDT_OS_READV ||
	       call == TDT_OS_PROCESS_VM_READV;
}

/* Shared memory has another way for what these do. */
bool has_other_way(const Strike &s)
{
	switch (s.call) {
	case TDT_OS_MEMFD_CREATE:
	case TDT_OS_FALLOCATE:
	case TDT_OS_ADD_SEALS:
	case TDT_OS_MMAP:
	case TDT_OS_PIDFD_OPEN:
	case TDT_OS_MEMBARRIER:
	case TDT_OS_GETRANDOM:
		return true;
	case TDT_OS_PROCESS_VM_READV:
		return s.err == EPERM || s.err == ENOSYS;
	default:
		return false;
	}
}

Seen seen(const Strike &s)
{
	if (s.kind != FAILS || s.err == EINTR || s.closing)
		return NOBODY;
	if (s.err == EAGAIN && s.call != TDT_OS_CONNECT &&
	    s.call != TDT_OS_THREAD_CREATE)
		return NOBODY;
	if (s.err == ENOBUFS &&
	    (s.call == TDT_OS_SEND || s.call == TDT_OS_SENDMSG))
		return NOBODY;
	if (s.err == ENOMEM &&
	    (s.call == TDT_OS_RECV || s.call == TDT_OS_READV))
		return NOBODY;
	return has_other_way(s) ? OPENERS : ALL;
}

std::vector<Strike> strikes_of(int call)
{
	std::vector<Strike> list;
	Strike s;

	s.call = call;
	for (int err : errors_of(call)) {
		s.err = err;
		list.push_back(s);
	}
	s.err = EAGAIN;
	for (Kind k : { ONE_BYTE, ONE_LESS, DELAY }) {
		s.kind = k;
		if (moves_bytes(call) &&
		    !(k == DELAY && call == TDT_OS_PROCESS_VM_READV))
			list.push_back(s);
	}
	for (Strike &one : list)
		one.seen = seen(one);
	return list;
}

/* ---- one play ------------------------------------------------------------- */

struct Part { /* a scenario over a tier */
	const struct tdt_scenario *scenario;
	enum tdt_tier tier;

	std::string name() const
	{
		return std::string(scenario->name) +
		       (tier == TDT_TIER_TCP ? "/tcp" : "/shm");
	}
};

/* For GoogleTest. */
void PrintTo(const Part &p, std::ostream *os)
{
	*os << p.name();
}

std::vector<Part> parts()
{
	std::vector<Part> list;

	for (const struct tdt_scenario *s = tdt_scenarios; s->name; s++) {
		if (s->flags & TDT_TWO_ALONE)
			continue;
		if (!(s->flags & TDT_OVER_TCP))
			list.push_back({ s, TDT_TIER_SHM });
		if (s->flags & (TDT_OVER_TCP | TDT_BOTH_TIERS))
			list.push_back({ s, TDT_TIER_TCP });
	}
	return list;
}

unsigned count_run[ALLOC + 1], count_close[ALLOC + 1];
const Strike *armed;
unsigned lost;

void arm()
{
	auto call = static_cast<enum tdt_os_call>(armed->call);
	unsigned k = armed->nth;

	if (armed->call == ALLOC)
		return tdt_alloc_fail(k, 0);
	switch (armed->kind) {
	case FAILS:
		return tdt_fail_nth(call, k, armed->err);
	case ONE_BYTE:
		return tdt_short_nth(call, k, 1);
	case ONE_LESS:
		return tdt_less_nth(call, k, 1);
	case DELAY:
		return tdt_fail_span(call, k, DELAYED, EAGAIN);
	}
}

void note(unsigned *count)
{
	for (int c = 0; c < TDT_OS_CALLS; c++)
		count[c] = tdt_os_count(static_cast<enum tdt_os_call>(c));
	count[ALLOC] = tdt_alloc_count();
}

void forget()
{
	tdt_os_clear();
	tdt_alloc_fail(0, 0);
}

extern "C" void calm()
{
	if (!armed)
		note(count_run);
	forget();
}

extern "C" void closing()
{
	forget();
	if (armed && armed->closing)
		arm();
}

uint64_t seed()
{
	return tdt_number("TANDEM_SEED", 1);
}

/* Play it; with a strike, unless that is NULL. Returns what was wrong. */
std::string play(const Part &part, const Strike *strike)
{
	static struct tdt_play p;
	static const struct tdt_play_hooks hooks = { calm, closing };
	std::string wrong;

	memset(&p, 0, sizeof(p));
	p.scenario = part.scenario;
	p.tier = part.tier;
	p.seed = seed();
	p.err = strike ? strike->err : 0;
	p.invisible = strike && strike->seen != ALL;
	if (strike && strike->seen == NOBODY)
		p.err = 0;
	armed = strike;
	forget();
	if (strike && !strike->closing)
		arm();
	wrong = tdt_play_whole(&p, &hooks);
	lost += p.lost;
	if (!strike)
		note(count_close);
	forget();
	tdt_alloc_stop();
	tdt_os_partition(0);
	tdt_os_no_memory(0);
	return wrong;
}

/* ---- all strikes ---------------------------------------------------------- */

bool all()
{
	return getenv("TANDEM_SCENARIOS") != nullptr;
}

/* Not 0 when strike @n, from 0 on, is in the share that is played. */
bool is_ours(unsigned n)
{
	const char *s = getenv("TANDEM_SHARE");
	unsigned share, of;

	return !s || sscanf(s, "%u/%u", &share, &of) != 2 || !of ||
	       n % of == share % of;
}

enum { EACH_MOST = 2000 };

/*
 * Numbers of @n calls to fail: all, or all of the first, then ever fewer. Where a
 * scenario waits for a time-out it makes the same calls 10^5 times, and the clock is
 * read at each turn: there all is too much.
 */
std::vector<unsigned> turns(int call, unsigned n)
{
	std::vector<unsigned> list;
	bool each = all() && call != TDT_OS_NOW && n <= EACH_MOST;

	for (unsigned k = 1; k <= n; k += each || k < 4 ? 1 : 1 + k / 4)
		list.push_back(k);
	return list;
}

/* The eight of each check. */
const char *const eight = "contact/shm contact/tcp contact_key/tcp eager/tcp "
			  "rendezvous/shm unexpected/tcp rma/shm av/shm";

std::vector<Part> chosen()
{
	const char *names = getenv("TANDEM_SCENARIOS");
	std::istringstream in(names ? names : eight);
	std::vector<Part> list;
	std::string name;

	while (in >> name) {
		for (const Part &p : parts()) {
			if (name == "all" || p.name() == name)
				list.push_back(p);
		}
	}
	return list;
}

class Turn : public testing::Test
{
protected:
	struct tdt_holdings held;
	unsigned offered = 0, strikes = 0, failures = 0;

	void SetUp() override
	{
		tdt_log_expect("");
		setenv("TANDEM_TEST_DEADLINE", "30", 0);
		tdt_os_install();
	}

	void TearDown() override
	{
		tdt_os_remove();
	}

	void say(const Part &part, const Strike &s, const std::string &what)
	{
		if (++failures <= 60)
			ADD_FAILURE()
				<< "TANDEM_SEED=" << seed()
				<< " TANDEM_STRIKE='" << part.name() << " "
				<< text(s) << "' ./dev test Turn.Replay\n    "
				<< what;
	}

	/* Play it; what the process holds is what it held. */
	void strike(const Part &part, const Strike &s)
	{
		std::string wrong = play(part, &s);

		strikes++;
		if (!wrong.empty())
			return say(part, s, wrong);
		wrong = left();
		if (!wrong.empty())
			return say(part, s, wrong);
		/* Free memory that malloc(3) and OpenSSL cache counts, for a while. */
		for (int i = 0; i < 40; i++) {
			struct tdt_holdings now;

			tdt_holdings(&now);
			if (now.bytes <= held.bytes)
				return;
			held.bytes = now.bytes;
			play(part, &s);
		}
		say(part, s, "memory is left behind each time");
	}

	std::string left()
	{
		struct tdt_holdings now;
		std::string what;

		tdt_holdings(&now);
		if (now.descriptors != held.descriptors)
			what += " descriptors";
		if (now.segments != held.segments)
			what += " segments";
		if (now.threads != held.threads)
			what += " threads";
		held.descriptors = now.descriptors;
		held.segments = now.segments;
		held.threads = now.threads;
		return what.empty() ? "" : "left behind or lost:" + what;
	}

	void clean(const Part &part)
	{
		for (int i = 0; i < 3; i++)
			ASSERT_EQ("", play(part, nullptr)) << part.name();
		tdt_holdings(&held);
	}

	void in_turn(const Part &part, bool closing)
	{
		std::vector<unsigned> n(closing ? count_close : count_run,
					(closing ? count_close : count_run) +
						ALLOC + 1);

		for (int c = 0; c <= ALLOC; c++) {
			for (unsigned k : turns(c, n[c])) {
				for (Strike s : strikes_of(c)) {
					if (!is_ours(offered++))
						continue;
					s.nth = k;
					s.closing = closing;
					s.seen = seen(s);
					strike(part, s);
				}
			}
		}
	}
};

class TurnOf : public Turn, public testing::WithParamInterface<Part>
{
};

TEST_P(TurnOf, EachCallFailsOnce)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	ASSERT_NO_FATAL_FAILURE(clean(GetParam()));
	in_turn(GetParam(), false);
	in_turn(GetParam(), true);
	RecordProperty("strikes", static_cast<int>(strikes));
	printf("%s: %u strikes, %u failures, %u messages lost with their "
	       "connections\n",
	       GetParam().name().c_str(), strikes, failures, lost);
	lost = 0;
}

std::string title(const testing::TestParamInfo<Part> &p)
{
	std::string name = p.param.name();

	name[name.find('/')] = '_';
	return name;
}

INSTANTIATE_TEST_SUITE_P(Scenario, TurnOf, testing::ValuesIn(chosen()), title);

/* One strike, from TANDEM_STRIKE. */
TEST_F(Turn, Replay)
{
	const char *given = getenv("TANDEM_STRIKE");
	std::string name, when, call, how;
	Strike s;

	if (!given)
		GTEST_SKIP() << "repeats the strike that TANDEM_STRIKE names";
	std::istringstream(given) >> name >> when >> call >> s.nth >> how;
	s.closing = when == "close";
	for (int c = 0; c <= ALLOC; c++) {
		if (call == call_name(c))
			s.call = c;
	}
	for (Kind k : { ONE_BYTE, ONE_LESS, DELAY }) {
		if (how == kinds[k])
			s.kind = k;
	}
	for (int e = 1; e < 134; e++) {
		if (strerrorname_np(e) && how == strerrorname_np(e))
			s.err = e;
	}
	s.err = s.kind == FAILS ? s.err : EAGAIN;
	s.seen = seen(s);
	ASSERT_LE(0, s.call) << call;
	for (const Part &p : parts()) {
		if (p.name() == name) {
			ASSERT_NO_FATAL_FAILURE(clean(p));
			strike(p, s);
		}
	}
	EXPECT_EQ(1u, strikes) << "no scenario " << name;
}

/* All scenarios, undisturbed. */
class Scenario : public Turn, public testing::WithParamInterface<Part>
{
};

TEST_P(Scenario, EndsWellByItself)
{
	ASSERT_NO_FATAL_FAILURE(clean(GetParam()));
	EXPECT_EQ("", play(GetParam(), nullptr));
	EXPECT_EQ("", left());
}

INSTANTIATE_TEST_SUITE_P(All, Scenario, testing::ValuesIn(parts()), title);

} // namespace

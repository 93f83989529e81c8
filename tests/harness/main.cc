/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main() of all test programs: the environment of the path, a watchdog for
 * each test, and the rule that an unexpected warning of the provider fails
 * the test that caused it.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include <gtest/gtest.h>

#include "child.h"
#include "fixture.h"
#include "log.h"
#include "world.h"

namespace
{

char running[256];    /* the test under way, for the watchdog */
unsigned limit = 600; /* seconds; only a test that hangs takes as long */

void watchdog(int)
{
	static const char text[] = "watchdog: too slow: ";

	(void)!write(2, text, sizeof(text) - 1);
	(void)!write(2, running, strlen(running));
	(void)!write(2, "\n", 1);
	abort();
}

class Rules : public testing::EmptyTestEventListener
{
	void OnTestStart(const testing::TestInfo &info) override
	{
		snprintf(running, sizeof(running), "%s.%s",
			 info.test_suite_name(), info.name());
		tdt_log_reset();
		alarm(limit);
	}

	void OnTestEnd(const testing::TestInfo &) override
	{
		const char *line = tdt_log_unexpected();

		alarm(0);
		if (line)
			ADD_FAILURE() << "unexpected warning: " << line;
	}
};

} // namespace

void tdt_watchdog_restart()
{
	alarm(limit);
}

int main(int argc, char **argv)
{
	const char *seconds = getenv("TANDEM_TEST_WATCHDOG");
	int ret;

	tdt_environment();
	ret = tdt_child_main();
	if (ret >= 0)
		return ret;
	if (seconds && atoi(seconds) > 0)
		limit = static_cast<unsigned>(atoi(seconds));
	signal(SIGALRM, watchdog);
	signal(SIGPIPE, SIG_DFL);
	tdt_log_start();
	testing::InitGoogleTest(&argc, argv);
	/* Ends are told in reverse order: it comes before the printers. */
	testing::UnitTest::GetInstance()->listeners().Append(new Rules);
	return RUN_ALL_TESTS();
}

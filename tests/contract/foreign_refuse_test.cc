/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider of FI_TANDEM_LOCAL that is not there, cannot be opened or does not
 * take a remote endpoint: TCP carries the messages, and the log says so.
 * fi_tandem(7), FOREIGN PROVIDERS.
 */
#include <unistd.h>

#include "tests/contract/foreign_fixture.h"

namespace
{

/* libfabric finds the liar beside this program, once it loads providers. */
__attribute__((constructor)) void find_liar()
{
	char dir[4096];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	const char *path;

	tdt_environment();
	path = getenv("FI_PROVIDER_PATH");
	if (n <= 0 || !path)
		return;
	dir[n] = 0;
	std::string own = dir;
	own = own.substr(0, own.rfind('/'));
	if (own.rfind("/.libs") == std::string::npos)
		own += "/.libs";
	setenv("FI_PROVIDER_PATH", (std::string(path) + ":" + own).c_str(), 1);
}

class Refused : public Foreign, public testing::WithParamInterface<const char *>
{
};

TEST_P(Refused, TcpCarriesAllAndALineSaysSo)
{
	/* fi_tandem(7), FOREIGN PROVIDERS 2: the cases in which TCP carries all
	 * operations; fi_peer(3) lets a provider refuse each import. */
	tdt_log_expect("liar");
	tdt_log_listen(FI_LOG_INFO);
	lie(GetParam());
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	EXPECT_FALSE(by_liar());
	EXPECT_NE(0u, tdt_log_heard("provider liar"));
	lie("");
	close();
}

INSTANTIATE_TEST_SUITE_P(
	Foreign, Refused,
	testing::Values("no info", "no sharing", "no fabric", "no domain",
			"no cq", "no srx", "no av", "no endpoint", "no bind",
			"no enable", "no name", "name is empty",
			"name is longer than its room", "no calls of the peer",
			"short messages", "no vectors", "no order", "no data"));

TEST_F(Foreign, ProviderThatIsNotInstalledIsReplacedByTcp)
{
	/* fi_tandem(7), FOREIGN PROVIDERS 2. */
	tdm_env.local = "nobody";
	tdt_log_expect("provider nobody");
	tdt_log_listen(FI_LOG_INFO);
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	EXPECT_FALSE(by_liar());
	EXPECT_EQ(2u, tdt_log_heard("provider nobody is not used"))
		<< "one for each domain";
}

class Declined : public Foreign,
		 public testing::WithParamInterface<const char *>
{
};

TEST_P(Declined, PairsThatItCannotReachUseTcp)
{
	/* fi_av(3): fi_av_insert returns how many addresses it has inserted. */
	if (!has_liar())
		GTEST_SKIP() << "another layout of receive entries";
	OPEN();
	lie(GetParam());
	ASSERT_EQ(0, tdt_warm_up(w));
	EXPECT_FALSE(by_liar());
	EXPECT_EQ("refused by the other side", reason());
	lie("");
}

INSTANTIATE_TEST_SUITE_P(Foreign, Declined,
			 testing::Values("insert fails", "insert returns 0",
					 "insert returns 7"));

} // namespace

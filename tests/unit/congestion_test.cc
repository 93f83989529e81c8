/* SPDX-License-Identifier: BSD-2-Clause */
/* Which congestion control a socket gets: fi_tandem(7), FI_TANDEM_CONGESTION. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

extern "C" {
#include "base/congestion.h"
#include "base/env.h"
#include "base/os.h"
}

namespace
{

/* The names that setsockopt(2) was given; a kernel that has "reno" and "paces". */
std::string given;

int kernel_setsockopt(int, int level, int name, const void *val, socklen_t n)
{
	if (level != IPPROTO_TCP || name != TCP_CONGESTION)
		return 0;
	given = std::string(static_cast<const char *>(val), n);
	if (given == "reno" || given == "paces")
		return 0;
	errno = ENOENT;
	return -1;
}

class CongestionUnit : public testing::Test
{
protected:
	struct tdm_os os = tdm_os;
	struct tdm_env env = tdm_env;

	void SetUp() override
	{
		given = "nothing";
		tdm_os.setsockopt = kernel_setsockopt;
	}

	void TearDown() override
	{
		tdm_os = os;
		tdm_env = env;
	}

	/* Returns the name that a socket gets after the user has chosen @chosen. */
	static std::string gets(const char *chosen, int is_here)
	{
		given = "nothing";
		tdm_env.congestion = chosen;
		tdm_congestion_set(0, is_here);
		return given;
	}
};

TEST_F(CongestionUnit, IsOursWithinAHostOnly)
{
	EXPECT_EQ("reno", gets(nullptr, 1));
	EXPECT_EQ("nothing", gets(nullptr, 0));
}

TEST_F(CongestionUnit, IsTheUsersEverywhere)
{
	EXPECT_EQ("paces", gets("paces", 1));
	EXPECT_EQ("paces", gets("paces", 0));
	EXPECT_EQ("nothing", gets("system", 1));
	EXPECT_EQ("nothing", gets("system", 0));
}

TEST_F(CongestionUnit, IsTheKernelsToAllow)
{
	EXPECT_TRUE(tdm_congestion_ok("system"));
	EXPECT_TRUE(tdm_congestion_ok("reno"));
	EXPECT_TRUE(tdm_congestion_ok("paces"));
	EXPECT_FALSE(tdm_congestion_ok("pacess"));
	EXPECT_FALSE(tdm_congestion_ok(""));
}

TEST_F(CongestionUnit, IsNotJudgedWithoutASocket)
{
	tdm_os.socket = [](int, int, int) {
		errno = EMFILE;
		return -1;
	};
	EXPECT_TRUE(tdm_congestion_ok("pacess"));
}

} // namespace

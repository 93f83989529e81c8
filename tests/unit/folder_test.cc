/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared folder of sockets: which addresses it serves, when it may be used,
 * and which sockets in it are removed. fi_tandem(7), FI_TANDEM_SHM_DIR.
 */
#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/env.h"
#include "base/folder.h"
#include "tests/harness/log.h"
}

namespace
{

union Address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	const struct sockaddr *get() const
	{
		return &sa;
	}
};

Address address(const char *ip)
{
	Address a;

	memset(&a, 0, sizeof(a));
	a.in.sin_port = htons(4711);
	a.sa.sa_family = AF_INET;
	if (inet_pton(AF_INET, ip, &a.in.sin_addr) != 1) {
		a.sa.sa_family = AF_INET6;
		EXPECT_EQ(1, inet_pton(AF_INET6, ip, &a.in6.sin6_addr));
	}
	return a;
}

class Folder : public testing::Test
{
protected:
	std::string dir;
	std::vector<int> fds;

	void SetUp() override
	{
		char name[] = "/tmp/tandem-test-XXXXXX";

		ASSERT_NE(nullptr, mkdtemp(name));
		dir = name;
		tdm_env.shm_dir = dir.c_str();
	}

	void TearDown() override
	{
		tdm_env.shm_dir = nullptr;
		for (int fd : fds)
			::close(fd);
		(void)!system(("rm -r " + dir).c_str());
	}

	/* A socket that is bound to @un; its file is a minute old. */
	int listener(const struct sockaddr_un &un)
	{
		const struct timespec old[2] = { { time(nullptr) - 60, 0 },
						 { time(nullptr) - 60, 0 } };
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		EXPECT_EQ(0, bind(fd, reinterpret_cast<const sockaddr *>(&un),
				  sizeof(un)))
			<< strerror(errno);
		utimensat(AT_FDCWD, un.sun_path, old, 0);
		return fd;
	}

	static bool there(const struct sockaddr_un &un)
	{
		return !access(un.sun_path, F_OK);
	}
};

TEST_F(Folder, ServesAddressesThatAreNotTheSameEverywhere)
{
	for (const char *ip : { "192.0.2.1", "10.0.0.1", "2001:db8::1" })
		EXPECT_TRUE(tdm_folder_serves(address(ip).get())) << ip;
	for (const char *ip :
	     { "127.0.0.1", "127.3.2.1", "169.254.1.1", "::1", "fe80::1" })
		EXPECT_FALSE(tdm_folder_serves(address(ip).get())) << ip;
	tdm_env.shm_dir = nullptr;
	EXPECT_FALSE(tdm_folder_serves(address("192.0.2.1").get()));
}

TEST_F(Folder, EachAddressHasAName)
{
	struct sockaddr_un a, b;
	const std::string longest(TDM_FOLDER_NAME_MOST, '/');

	tdm_folder_name(&a, address("192.0.2.1").get());
	EXPECT_EQ(dir + "/tandem-4-1267c0000201", a.sun_path);
	tdm_folder_name(&b, address("192.0.2.2").get());
	EXPECT_STRNE(a.sun_path, b.sun_path);
	tdm_env.shm_dir = longest.c_str();
	tdm_folder_name(&a, address("2001:db8::1").get());
	EXPECT_EQ(longest + "/tandem-6-12670000000020010db8"
			    "00000000000000000000000100000000",
		  a.sun_path);
}

TEST_F(Folder, L2_IsClosedToOthers)
{
	const std::string none = dir + "/none", file = dir + "/file";

	EXPECT_EQ(0, tdm_folder_check());
	tdt_log_expect("FI_TANDEM_SHM_DIR="); /* once */
	for (mode_t mode : { 0710, 0701, 0770, 0777 }) {
		chmod(dir.c_str(), mode);
		EXPECT_EQ(-ENOTDIR, tdm_folder_check()) << mode;
	}
	chmod(dir.c_str(), 0700);
	tdm_env.shm_dir = none.c_str();
	EXPECT_EQ(-ENOTDIR, tdm_folder_check());
	fds.push_back(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0700));
	tdm_env.shm_dir = file.c_str();
	EXPECT_EQ(-ENOTDIR, tdm_folder_check());
}

TEST_F(Folder, L2_OfAnotherUserIsNotUsed)
{
	/* fi_tandem(7), FI_TANDEM_SHM_DIR: also when root could use it. */
	if (geteuid())
		GTEST_SKIP() << "only root can give a folder away";
	tdt_log_expect("FI_TANDEM_SHM_DIR=");
	ASSERT_EQ(0, chown(dir.c_str(), 65534, 65534));
	EXPECT_EQ(-ENOTDIR, tdm_folder_check());
	ASSERT_EQ(0, chown(dir.c_str(), 0, 0));
	EXPECT_EQ(0, tdm_folder_check());
}

TEST_F(Folder, SweepTakesWhatDeadProcessesLeft)
{
	struct sockaddr_un live, dead, young, other;
	int fd;

	tdm_folder_name(&live, address("192.0.2.1").get());
	tdm_folder_name(&dead, address("192.0.2.2").get());
	tdm_folder_name(&young, address("192.0.2.3").get());
	other = dead;
	strcpy(other.sun_path, (dir + "/somebody").c_str());
	fds.push_back(listener(live)); /* bound, and does not listen yet */
	::close(listener(dead));
	::close(listener(other));
	fd = listener(young);
	::close(fd);
	utimensat(AT_FDCWD, young.sun_path, nullptr, 0);
	EXPECT_TRUE(tdm_folder_has(address("192.0.2.2").get()));
	tdm_folder_sweep();
	EXPECT_TRUE(there(live));
	EXPECT_FALSE(there(dead));
	EXPECT_TRUE(there(young));
	EXPECT_TRUE(there(other));
	EXPECT_TRUE(tdm_folder_has(address("192.0.2.1").get()));
	EXPECT_FALSE(tdm_folder_has(address("192.0.2.2").get()));
	/* Its own name an endpoint may take back at once. */
	EXPECT_EQ(0, tdm_folder_reclaim(&young));
	EXPECT_NE(0, tdm_folder_reclaim(&live));
	EXPECT_FALSE(there(young));
	EXPECT_TRUE(there(live));
}

} // namespace

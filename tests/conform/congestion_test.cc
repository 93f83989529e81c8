/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The congestion control of the connections of a process that talks to itself, so both
 * ends of each are looked at. The variable is read once, so each value has a process of
 * its own.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fstream>
#include <set>
#include <string>

#include "tests/conform/connected.h"
#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

constexpr size_t name_most = 16; /* TCP_CA_NAME_MAX of the kernel */

std::string congestion_of(int fd)
{
	char name[name_most + 1] = "";
	socklen_t n = name_most;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n))
		return "";
	return name;
}

/* The kernel's default. */
std::string the_systems()
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	std::string name = congestion_of(fd);

	close(fd);
	return name;
}

/* One that this process may choose and that is not @other; empty: there is none. */
std::string another_than(const std::string &other)
{
	std::ifstream list("/proc/sys/net/ipv4/"
			   "tcp_allowed_congestion_control");
	std::string name;

	while (list >> name) {
		if (name != other)
			return name;
	}
	return "";
}

/* The report of a process. */
struct Found {
	int answer; /* 0: messages arrived */
	int connections;
	char name[name_most + 1]; /* that of all of them; else empty */
};

TDT_ROLE(looks_at_sockets)
{
	std::multiset<std::string> names;
	struct tdt_world *w = nullptr;
	struct Found found = {};
	struct tdt_attr attr;

	(void)arg;
	tdt_attr_init(&attr);
	attr.eps = 2;
	found.answer = tdt_world_open(&attr, &w);
	if (!found.answer)
		found.answer = tdt_warm_up(w);
	for (int i : connected(AF_INET))
		names.insert(congestion_of(i));
	found.connections = static_cast<int>(names.size());
	if (names.size() && names.count(*names.begin()) == names.size())
		strcpy(found.name, names.begin()->c_str());
	if (w)
		(void)tdt_world_close(w);
	return tdt_tell(fd, &found, sizeof(found));
}

class Congestion : public Case
{
protected:
	/* With FI_TANDEM_CONGESTION=@value all connections have @name. */
	void expect(const std::string &value, const std::string &name)
	{
		struct tdt_child child = { 0, -1 };
		struct Found found = {};

		setenv("FI_TANDEM_CONGESTION", value.c_str(), 1);
		int ret = tdt_child_start(&child, "looks_at_sockets", nullptr);
		unsetenv("FI_TANDEM_CONGESTION");
		ASSERT_EQ(0, ret);
		ASSERT_EQ(ssize_t(sizeof(found)),
			  tdt_hear(child.fd, &found, sizeof(found)));
		EXPECT_EQ(0, tdt_child_wait(&child));
		EXPECT_EQ(0, found.answer);
		EXPECT_LT(0, found.connections);
		EXPECT_EQ(name, found.name) << value;
	}
};

TEST_F(Congestion, IsRenoWithinAHostUnlessTheUserChooses)
{
	/* fi_tandem(7), FI_TANDEM_CONGESTION. */
	std::string own = the_systems(), other = another_than("reno");

	ONLY_TANDEM();
	if (tdt_path() != TDT_REMOTE)
		GTEST_SKIP() << "all of it goes over TCP on one path only";
	OK(expect("", "reno"));
	OK(expect("reno", "reno"));
	OK(expect("system", own));
	OK(expect("no_such_control", "reno"));
	if (!other.empty()) {
		OK(expect(other, other));
	}
}

} // namespace

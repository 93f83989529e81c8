/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes of one host in namespaces of their own, as containers have them:
 * fi_tandem(7), LOCALITY. Each runs in cells that unshare(2) makes.
 */
#include <arpa/inet.h>
#include <cerrno>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_ext.h>

#include "fi_ext_tandem.h"
#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

struct Cell {
	int flags;	  /* of unshare(2) */
	const char *node; /* address of the endpoint */
	bool folder;	  /* FI_TANDEM_SHM_DIR names the folder */
};

struct Plan {
	const char *name;
	int common; /* flags of unshare(2), for both cells */
	Cell cells[2];
	uint32_t path; /* enum tdm_report_kind */
	uint32_t reason;
};

constexpr int OTHERS = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS;

const Plan plans[] = {
	{ "Pid",
	  0,
	  { { CLONE_NEWPID, "127.0.0.1", false }, { 0, "127.0.0.1", false } },
	  TDM_REPORT_SHM,
	  0 },
	{ "Ipc",
	  0,
	  { { CLONE_NEWIPC, "127.0.0.1", false }, { 0, "127.0.0.1", false } },
	  TDM_REPORT_SHM,
	  0 },
	{ "MountAndASmallDevShm",
	  0,
	  { { CLONE_NEWNS, "127.0.0.1", false },
	    { CLONE_NEWNS, "127.0.0.1", false } },
	  TDM_REPORT_SHM,
	  0 },
	{ "User",
	  0,
	  { { CLONE_NEWUSER, "127.0.0.1", false },
	    { CLONE_NEWUSER, "127.0.0.1", false } },
	  TDM_REPORT_SHM,
	  0 },
	{ "AllButNet",
	  0,
	  { { OTHERS | CLONE_NEWUSER, "127.0.0.1", false },
	    { OTHERS | CLONE_NEWUSER, "127.0.0.1", false } },
	  TDM_REPORT_SHM,
	  0 },
	{ "NetWithAFolder",
	  0,
	  { { CLONE_NEWNET, "192.0.2.1", true },
	    { CLONE_NEWNET, "192.0.2.2", true } },
	  TDM_REPORT_SHM,
	  0 },
	{ "AllWithAFolder",
	  0,
	  { { OTHERS | CLONE_NEWUSER | CLONE_NEWNET, "192.0.2.1", true },
	    { OTHERS | CLONE_NEWUSER | CLONE_NEWNET, "192.0.2.2", true } },
	  TDM_REPORT_SHM,
	  0 },
	{ "OneNetWithAFolder",
	  CLONE_NEWNET,
	  { { 0, "192.0.2.1", true }, { 0, "192.0.2.2", true } },
	  TDM_REPORT_SHM,
	  0 },
	/* 12: the folder has no socket of the other one */
	{ "OneNetOneNamesTheFolder",
	  CLONE_NEWNET,
	  { { 0, "192.0.2.1", true }, { 0, "192.0.2.2", false } },
	  TDM_REPORT_TCP,
	  12 },
	/* In such a folder loopback addresses mean each namespace's own. */
	{ "LoopbackWithAFolder",
	  0,
	  { { 0, "127.0.0.1", true }, { 0, "127.0.0.1", false } },
	  TDM_REPORT_SHM,
	  0 },
};

struct Result {
	int skipped; /* errno of what the system refuses */
	int ret;
	uint32_t path, reason;
};

/* Have @ip on lo, which is up. */
int network(const char *ip)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;
	struct sockaddr_in sin = {};
	struct ifreq req = {};

	strcpy(req.ifr_name, "lo");
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	ret |= ioctl(fd, SIOCSIFFLAGS, &req);
	strcpy(req.ifr_name,
	       strrchr(ip, '1') == ip + strlen(ip) - 1 ? "lo:1" : "lo:2");
	sin.sin_family = AF_INET;
	inet_pton(AF_INET, ip, &sin.sin_addr);
	memcpy(&req.ifr_addr, &sin, sizeof(sin));
	ret |= ioctl(fd, SIOCSIFADDR, &req);
	::close(fd);
	return ret ? errno : 0;
}

void put(const char *file, const std::string &text)
{
	FILE *f = fopen(file, "w");

	if (f) {
		fputs(text.c_str(), f);
		fclose(f);
	}
}

/* Enter namespaces. Returns 0 or the errno of what is refused. */
int enter(int flags)
{
	const std::string uid = std::to_string(geteuid());
	const std::string gid = std::to_string(getegid());

	if (flags && unshare(flags))
		return errno;
	if (flags & CLONE_NEWUSER) {
		put("/proc/self/setgroups", "deny");
		put("/proc/self/uid_map", "0 " + uid + " 1");
		put("/proc/self/gid_map", "0 " + gid + " 1");
	}
	if (!(flags & CLONE_NEWNS))
		return 0;
	if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
	    mount("none", "/dev/shm", "tmpfs", 0, "size=4k"))
		return errno;
	return 0;
}

int exchange(struct tdt_ep *ep, fi_addr_t peer, size_t size)
{
	Bytes out = filled(size, 3), in(size);
	struct tdt_op op = op_of(TDT_SEND, 1, out.data(), size);
	struct iovec iov = iov_of(in.data(), size);
	struct tdt_comp c;

	op.addr = peer;
	op.context = &out;
	if (tdt_trecv(ep, &iov, 0, ~0ull, &in) || tdt_post(ep, &op) ||
	    tdt_wait(ep, &out, &c) || c.err || tdt_wait(ep, &in, &c) || c.err)
		return 10;
	return tdt_differs(in.data(), size, 3) == -1 ? 0 : 11;
}

/* Two messages each way; what path they took. */
int talk(int other, const Cell &cell, Result *result)
{
	struct tdm_report_path path = {};
	struct tdm_report_ops *ops = nullptr;
	struct tdt_world *w = nullptr;
	struct tdt_attr attr;
	fi_addr_t peer;
	char bye = 0;
	int ret;

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	attr.node = cell.node;
	if (tdt_world_open(&attr, &w))
		return 1;
	if (tdt_tell_name(other, &w->eps[0]) ||
	    tdt_hear_name(other, &w->eps[0], &peer))
		return 2;
	ret = exchange(&w->eps[0], peer, 8);
	if (!ret)
		ret = exchange(&w->eps[0], peer, 1 << 20);
	path.size = sizeof(path);
	if (ret ||
	    fi_open_ops(&w->eps[0].ep->fid, TDM_REPORT_OPS, 0,
			reinterpret_cast<void **>(&ops), nullptr) ||
	    ops->path(w->eps[0].ep, peer, &path))
		return ret ? ret : 3;
	result->path = path.path;
	result->reason = path.reason;
	/* Neither closes before both have all. */
	if (tdt_tell(other, &bye, 1) || tdt_hear(other, &bye, 1) != 1)
		return 4;
	return tdt_world_close(w) ? 5 : 0;
}

/* Run in the cell, and tell the result by exiting with the index of a fault. */
int live(int other, const Cell &cell, Result *result)
{
	result->skipped = enter(cell.flags);
	if (!result->skipped && cell.flags & CLONE_NEWNET)
		result->skipped = network(cell.node);
	if (result->skipped)
		return 0;
	if (!cell.folder)
		unsetenv("FI_TANDEM_SHM_DIR");
	if (!(cell.flags & CLONE_NEWPID))
		return talk(other, cell, result);
	/* The next child is the first of the namespace. */
	int to[2], status;
	pid_t pid;

	if (pipe(to) || (pid = fork()) < 0)
		return 20;
	if (!pid) {
		result->ret = talk(other, cell, result);
		_exit(write(to[1], result, sizeof(*result)) !=
		      static_cast<ssize_t>(sizeof(*result)));
	}
	::close(other);
	::close(to[1]);
	if (read(to[0], result, sizeof(*result)) !=
		    static_cast<ssize_t>(sizeof(*result)) ||
	    waitpid(pid, &status, 0) != pid || status)
		return 21;
	return result->ret;
}

/* Both processes of the plan with the number @arg; tells their results. */
TDT_ROLE(plan)
{
	const Plan &p = plans[atoi(arg)];
	Result results[2] = {};
	int between[2], to[2][2], status;
	int refused = enter(p.common);

	for (int i = 0; !refused && p.common & CLONE_NEWNET && i < 2; i++)
		refused = network(p.cells[i].node);
	if (refused) {
		results[0].skipped = refused;
		return tdt_tell(fd, results, sizeof(results));
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, between))
		return 1;
	for (int i = 0; i < 2; i++) {
		if (pipe(to[i]))
			return 2;
		pid_t pid = fork();

		if (pid < 0)
			return 3;
		if (!pid) {
			Result *r = &results[i];

			::close(between[!i]);
			r->ret = live(between[i], p.cells[i], r);
			_exit(write(to[i][1], r, sizeof(*r)) !=
			      static_cast<ssize_t>(sizeof(*r)));
		}
		::close(to[i][1]);
	}
	::close(between[0]);
	::close(between[1]);
	for (int i = 0; i < 2; i++) {
		if (read(to[i][0], &results[i], sizeof(results[i])) !=
		    static_cast<ssize_t>(sizeof(results[i])))
			results[i].ret = 30;
	}
	while (wait(&status) > 0)
		;
	return tdt_tell(fd, results, sizeof(results));
}

class Containers : public testing::TestWithParam<int>
{
};

TEST_P(Containers, ShareMemoryWhereTheKernelAllowsIt)
{
	/* fi_tandem(7), LOCALITY: PID, IPC, mount and user namespaces do not
	 * matter, nor does the size of /dev/shm; across network namespaces a
	 * folder is needed. */
	const Plan &p = plans[GetParam()];
	struct tdt_child child = { 0, -1 };
	char dir[] = "/tmp/tandem-test-XXXXXX";
	Result results[2] = {};

	ONLY_TANDEM();
	if (tdt_path() != TDT_LOCAL)
		GTEST_SKIP() << "about shared memory, which is off here";
	ASSERT_NE(nullptr, mkdtemp(dir));
	setenv("FI_TANDEM_SHM_DIR", dir, 1);
	ASSERT_EQ(0, tdt_child_start(&child, "plan",
				     std::to_string(GetParam()).c_str()));
	unsetenv("FI_TANDEM_SHM_DIR");
	EXPECT_EQ(static_cast<ssize_t>(sizeof(results)),
		  tdt_hear(child.fd, results, sizeof(results)));
	EXPECT_EQ(0, tdt_child_wait(&child));
	/* Endpoints that close take their sockets with them. */
	EXPECT_EQ(0, rmdir(dir)) << strerror(errno);
	for (const Result &r : results) {
		if (r.skipped)
			GTEST_SKIP() << "the system refuses namespaces: "
				     << strerror(r.skipped);
	}
	for (const Result &r : results) {
		EXPECT_EQ(0, r.ret);
		EXPECT_EQ(p.path, r.path);
	}
	EXPECT_EQ(p.reason, results[0].reason);
}

INSTANTIATE_TEST_SUITE_P(Namespaces, Containers,
			 testing::Range(0,
					int(sizeof(plans) / sizeof(plans[0]))),
			 [](const testing::TestParamInfo<int> &p) {
				 return plans[p.param].name;
			 });

} // namespace

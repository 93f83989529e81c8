/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named address vectors, fi_av(3), as applications use them: messages by
 * addresses that another process inserted, and processes that are killed. The
 * endpoints of a world have one vector here, each in a domain of its own.
 */
#include <csignal>
#include <dirent.h>
#include <netinet/in.h>
#include <set>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/* The pattern of the file names of this user's named vectors. */
std::set<std::string> files()
{
	std::string prefix = "tandem-av." + std::to_string(geteuid()) + ".";
	std::set<std::string> names;
	DIR *d = opendir("/dev/shm");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!strncmp(e->d_name, prefix.c_str(), prefix.size()))
			names.insert(e->d_name);
	}
	if (d)
		closedir(d);
	return names;
}

struct Told {
	int ret;
	fi_addr_t addr;
	fi_addr_t element; /* of map_addr, at addr */
};

/* A world of one endpoint whose vector is @arg. */
struct tdt_world *child_world(const char *arg, uint64_t flags)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_insert = 1;
	attr.no_tcp_only = 1;
	attr.av_name = arg;
	attr.av_flags = flags;
	return tdt_world_open(&attr, &w) ? nullptr : w;
}

/* Send @len bytes, and wait until they are gone. */
int send_to(struct tdt_world *w, fi_addr_t addr, void *buf, size_t len)
{
	struct tdt_op op = {};
	int ret;

	op.call = TDT_SEND;
	op.buf = buf;
	op.len = len;
	op.addr = addr;
	op.context = buf;
	ret = int(tdt_post(&w->eps[0], &op));
	return ret ? ret : tdt_wait(&w->eps[0], buf, nullptr);
}

/*
 * Reads the vector: told an address, says what its map_addr has there and sends
 * that many bytes to it.
 */
TDT_ROLE(av_reader)
{
	struct tdt_world *w = child_world(arg, FI_READ);
	struct Told told = {};
	char buf[256] = "";

	if (!w)
		return 1;
	tdt_tell(fd, &told, sizeof(told));
	while (tdt_hear(fd, &told, sizeof(told)) == sizeof(told)) {
		told.element = w->eps[0].map_addr[told.addr];
		told.ret = send_to(w, told.addr, buf, 1 + told.addr);
		tdt_tell(fd, &told, sizeof(told));
	}
	return tdt_world_close(w) ? 2 : 0;
}

/* Puts itself into the vector, says where, and sends to address 0 when told. */
TDT_ROLE(av_writer)
{
	struct tdt_world *w = child_world(arg, 0);
	struct Told told = {};
	char buf[8] = "";

	if (!w)
		return 1;
	if (fi_av_insert(w->eps[0].av, w->eps[0].name, 1, &told.addr, 0,
			 nullptr) != 1)
		return 2;
	tdt_tell(fd, &told, sizeof(told));
	while (tdt_hear(fd, &told, sizeof(told)) == sizeof(told)) {
		told.ret = send_to(w, 0, buf, sizeof(buf));
		tdt_tell(fd, &told, sizeof(told));
	}
	return tdt_world_close(w) ? 3 : 0;
}

/* Inserts and removes until it is killed. */
TDT_ROLE(av_churn)
{
	struct tdt_world *w = child_world(arg, 0);
	struct sockaddr_in s[8];
	fi_addr_t a[8];

	if (!w)
		return 1;
	memset(s, 0, sizeof(s));
	for (uint16_t i = 0; i < 8; i++) {
		s[i].sin_family = AF_INET;
		s[i].sin_addr.s_addr = htonl(0xc0000201);
		s[i].sin_port = htons(uint16_t(1000 + i));
	}
	for (uint64_t n = 0;; n++) {
		if (fi_av_insert(w->eps[0].av, s, 8, a, 0, nullptr) != 8 ||
		    fi_av_remove(w->eps[0].av, a, 7, 0))
			return 2;
		/* One more than is taken out: the table grows a bit. */
		if (n % 8 && fi_av_remove(w->eps[0].av, &a[7], 1, 0))
			return 3;
		if (!n)
			tdt_tell(fd, &n, sizeof(n));
	}
}

/* Opens the vector as another user, if it may become one. */
TDT_ROLE(av_stranger)
{
	struct tdt_world *w = child_world(nullptr, 0);
	struct fi_av_attr attr;
	struct fid_av *av = nullptr;
	struct Told told = {};

	if (!w)
		return 1;
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 2;
	memset(&attr, 0, sizeof(attr));
	attr.name = arg;
	attr.flags = FI_READ;
	told.ret = fi_av_open(w->eps[0].domain, &attr, &av, nullptr);
	tdt_tell(fd, &told, sizeof(told));
	/* One of its own, of the same name. */
	attr.flags = 0;
	told.ret = fi_av_open(w->eps[0].domain, &attr, &av, nullptr);
	if (!told.ret) {
		size_t len = 0;

		told.addr = fi_av_lookup(av, 0, nullptr, &len) ? 0 : 1;
		told.ret = fi_close(&av->fid);
	}
	tdt_tell(fd, &told, sizeof(told));
	return 0;
}

class SharedAv : public Case
{
protected:
	struct tdt_child child = {};
	std::string name;

	void SetUp() override
	{
		auto *info =
			testing::UnitTest::GetInstance()->current_test_info();

		if (strcmp(tdt_prov_name(), "tandem"))
			GTEST_SKIP() << "a rule of tandem's own";
		name = std::string(info->name()) + std::to_string(getpid());
		attr.av_name = name.c_str();
		attr.no_insert = 1;
		EXPECT_EQ(std::set<std::string>(), mine());
	}

	void TearDown() override
	{
		tdt_child_kill(&child, SIGKILL);
		Case::TearDown();
		EXPECT_EQ(std::set<std::string>(), mine());
	}

	/* The files of this test's vector. */
	std::set<std::string> mine()
	{
		std::set<std::string> all = files(), some;

		for (const auto &f : all) {
			if (f.find(name) != std::string::npos)
				some.insert(f);
		}
		return some;
	}

	void start(const char *role)
	{
		ASSERT_EQ(0, tdt_child_start(&child, role, name.c_str()));
	}

	void hear(struct Told *told)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t n;

		while ((n = tdt_hear_now(child.fd, told, sizeof(*told))) ==
			       -EAGAIN &&
		       tdt_now_ms() < end)
			tdt_progress(w);
		ASSERT_EQ(ssize_t(sizeof(*told)), n);
	}

	/* @by inserts @whom. */
	fi_addr_t insert(struct tdt_ep *by, const struct tdt_ep *whom)
	{
		fi_addr_t a = FI_ADDR_NOTAVAIL;

		EXPECT_EQ(1,
			  fi_av_insert(by->av, whom->name, 1, &a, 0, nullptr));
		return a;
	}

	void send(struct tdt_ep *from, fi_addr_t to, void *buf, size_t len)
	{
		struct tdt_op op = {};

		op.call = TDT_SEND;
		op.buf = buf;
		op.len = len;
		op.addr = to;
		op.context = buf;
		ASSERT_EQ(0, tdt_post(from, &op));
	}
};

TEST_F(SharedAv, MessagesByAddressesOfOthers)
{
	/* fi_av(3) 2.1, fi_av_open 12: An fi_addr_t of one process serves
	 * another that opened the same name. */
	OPEN();
	for (size_t i = 0; i < w->count; i++)
		ASSERT_EQ(i, insert(ep(w->count - 1), ep(i)));
	for (auto *from : senders()) {
		char out[16], in[16];
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_recv(rx(), in, sizeof(in), in));
		OK(send(from, 0, out, sizeof(out)));
		ASSERT_EQ(0, tdt_wait(from, out, nullptr));
		ASSERT_EQ(0, tdt_wait(rx(), in, &c));
		EXPECT_EQ(from->index, c.src) << "who it is, to all";
	}
}

TEST_F(SharedAv, SourcesAreKnownWhenOthersInsertThem)
{
	/* A directed receive meets the message that came before its source was
	 * inserted, by somebody else. */
	OPEN();
	ASSERT_EQ(0u, insert(rx(), rx()));
	for (auto *from : senders()) {
		char out[16], in[16];
		struct tdt_op op = {};
		struct tdt_comp c;

		OK(send(from, 0, out, sizeof(out)));
		tdt_settle(w, 20);
		fi_addr_t a = insert(from, from);
		op.call = TDT_RECV;
		op.buf = in;
		op.len = sizeof(in);
		op.addr = a;
		op.context = in;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		ASSERT_EQ(0, tdt_wait(rx(), in, &c));
		EXPECT_EQ(a, c.src);
		ASSERT_EQ(0, tdt_wait(from, out, nullptr));
	}
}

TEST_F(SharedAv, IndexMeansWhatItMeansNow)
{
	/* An address that another process gave to another endpoint. */
	OPEN();
	struct tdt_ep *from = ep(1), *to[2] = { ep(0), ep(w->count - 1) };

	for (int round = 0; round < 6; round++) {
		struct tdt_ep *target = to[round % 2],
			      *by = to[(round / 2) % 2];
		fi_addr_t zero = 0;
		char out[16], in[16];

		if (round) {
			ASSERT_EQ(0, fi_av_remove(by->av, &zero, 1, 0));
		}
		ASSERT_EQ(0u, insert(by, target));
		ASSERT_EQ(0, tdt_recv(target, in, sizeof(in), in));
		OK(send(from, 0, out, sizeof(out)));
		ASSERT_EQ(0, tdt_wait(from, out, nullptr));
		ASSERT_EQ(0, tdt_wait(target, in, nullptr)) << round;
	}
}

TEST_F(SharedAv, RemovedByOthersIsGone)
{
	OPEN();
	fi_addr_t a = insert(rx(), rx());
	struct tdt_ep *from = ep(1);
	char out[16], in[16];
	struct tdt_op op = {};

	ASSERT_EQ(0, tdt_recv(rx(), in, sizeof(in), in));
	OK(send(from, a, out, sizeof(out)));
	ASSERT_EQ(0, tdt_wait(rx(), in, nullptr));
	ASSERT_EQ(0, tdt_wait(from, out, nullptr));
	ASSERT_EQ(0, fi_av_remove(rx()->av, &a, 1, 0));
	op.call = TDT_SEND;
	op.buf = out;
	op.len = 1;
	op.addr = a;
	EXPECT_EQ(-FI_EINVAL, tdt_post_once(from, &op));
	op.call = TDT_RECV;
	EXPECT_EQ(-FI_EINVAL, tdt_post_once(from, &op));
	size_t len = 0;
	EXPECT_EQ(-FI_EINVAL, fi_av_lookup(from->av, a, nullptr, &len));
}

TEST_F(SharedAv, ReaderInAnotherProcess)
{
	/* FI_READ; map_addr of the reader has what others insert. */
	struct Told told = {};
	char in[256];

	OPEN();
	OK(start("av_reader"));
	OK(hear(&told));
	for (fi_addr_t a = 0; a < 3; a++) {
		struct tdt_comp c;

		ASSERT_EQ(a, insert(rx(), rx()));
		told.addr = a;
		ASSERT_EQ(0, tdt_recv(rx(), in, sizeof(in), in));
		ASSERT_EQ(0, tdt_tell(child.fd, &told, sizeof(told)));
		OK(hear(&told));
		ASSERT_EQ(0, told.ret);
		EXPECT_EQ(a, told.element);
		ASSERT_EQ(0, tdt_wait(rx(), in, &c));
		EXPECT_EQ(1 + a, c.len);
	}
	close();
	ASSERT_EQ(1u, mine().size()) << "the reader has it";
	shutdown(child.fd, SHUT_WR);
	EXPECT_EQ(0, tdt_child_wait(&child));
}

TEST_F(SharedAv, WriterInAnotherProcess)
{
	struct Told told = {};
	struct tdt_comp c;
	char in[16];

	OPEN();
	ASSERT_EQ(0u, insert(rx(), rx()));
	OK(start("av_writer"));
	OK(hear(&told));
	ASSERT_EQ(1u, told.addr);
	EXPECT_EQ(1u, rx()->map_addr[1]);
	ASSERT_EQ(0, tdt_recv(rx(), in, sizeof(in), in));
	ASSERT_EQ(0, tdt_tell(child.fd, &told, sizeof(told)));
	ASSERT_EQ(0, tdt_wait(rx(), in, &c));
	EXPECT_EQ(1u, c.src) << "as the child calls itself";
	OK(hear(&told));
	EXPECT_EQ(0, told.ret);
}

TEST_F(SharedAv, DyingWriterLeavesTheTableUsable)
{
	/* Killed at random points of inserts and removals. */
	OPEN();
	ASSERT_EQ(0u, insert(rx(), rx()));
	for (unsigned round = 0; round < 12; round++) {
		uint64_t n;

		OK(start("av_churn"));
		ASSERT_EQ(ssize_t(sizeof(n)),
			  tdt_hear(child.fd, &n, sizeof(n)));
		for (unsigned i = 0; i < round * 50; i++)
			tdt_progress(w);
		tdt_child_kill(&child, SIGKILL);
		/* All agree, and can go on. */
		for (auto *from : senders()) {
			char out[16], in[16];
			fi_addr_t a = insert(from, rx());

			ASSERT_NE(FI_ADDR_NOTAVAIL, a);
			ASSERT_EQ(a, rx()->map_addr[a]);
			ASSERT_EQ(0, tdt_recv(rx(), in, sizeof(in), in));
			OK(send(from, a, out, sizeof(out)));
			ASSERT_EQ(0, tdt_wait(from, out, nullptr));
			ASSERT_EQ(0, tdt_wait(rx(), in, nullptr));
			ASSERT_EQ(0, fi_av_remove(rx()->av, &a, 1, 0));
		}
		for (fi_addr_t a = 0; a < 256; a++) {
			char one[64], two[64];
			size_t l1 = sizeof(one), l2 = sizeof(two);
			int ret = fi_av_lookup(rx()->av, a, one, &l1);

			ASSERT_EQ(ret, fi_av_lookup(ep(1)->av, a, two, &l2));
			ASSERT_EQ(ret ? FI_ADDR_NOTAVAIL : a,
				  rx()->map_addr[a]);
			if (!ret) {
				ASSERT_EQ(0, memcmp(one, two, l1));
			}
		}
	}
}

TEST_F(SharedAv, NobodyIsLeft)
{
	/* fi_tandem(7): a file stays when all users are killed; the next one
	 * makes the vector anew. */
	OK(start("av_writer"));
	struct Told told = {};
	ASSERT_EQ(ssize_t(sizeof(told)),
		  tdt_hear(child.fd, &told, sizeof(told)));
	ASSERT_EQ(1u, mine().size());
	tdt_child_kill(&child, SIGKILL);
	EXPECT_EQ(1u, mine().size());
	OPEN();
	size_t len = 0;
	EXPECT_EQ(-FI_EINVAL, fi_av_lookup(rx()->av, 0, nullptr, &len));
	EXPECT_EQ(0u, insert(rx(), rx()));
	EXPECT_EQ(1u, mine().size());
}

TEST_F(SharedAv, OtherUsersHaveOthers)
{
	/* fi_tandem(7): processes of the same user only. */
	struct Told told = {};

	if (geteuid())
		GTEST_SKIP() << "only root can become another user";
	OPEN();
	ASSERT_EQ(0u, insert(rx(), rx()));
	OK(start("av_stranger"));
	OK(hear(&told));
	EXPECT_EQ(-FI_ENOENT, told.ret);
	OK(hear(&told));
	EXPECT_EQ(0, told.ret);
	EXPECT_EQ(0u, told.addr) << "empty";
	EXPECT_EQ(0, tdt_child_wait(&child));
}

TEST_F(SharedAv, ChildrenOfForkDoNotKeepIt)
{
	/* fi_tandem(7), FAULTS: objects that a process inherited by fork(2) are
	 * its parent's. */
	int fds[2];
	char c = 0;

	OPEN();
	ASSERT_EQ(0, pipe(fds));
	pid_t pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		size_t len = 0;
		int ret = fi_close(&rx()->av->fid);

		(void)!fi_av_lookup(rx()->av, 0, nullptr, &len);
		::close(fds[1]);
		(void)!read(fds[0], &c, 1);
		_exit(ret == -FI_EOPBADSTATE ? 0 : 1);
	}
	ASSERT_EQ(0u, insert(rx(), rx()));
	close();
	EXPECT_EQ(std::set<std::string>(), mine());
	::close(fds[1]);
	::close(fds[0]);
	int status = -1;
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

} // namespace

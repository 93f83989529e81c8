/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report keeps what went over a path when the peer is gone, when its
 * address was removed, and when the process ends without closing anything:
 * fi_tandem(7), REPORT.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <rdma/fi_ext.h>

#include "fi_ext_tandem.h"
#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/* Echoes one message of its parent's, then ends as the next byte says. */
TDT_ROLE(echo)
{
	struct tdt_world *w = nullptr;
	struct tdt_attr attr;
	fi_addr_t parent;
	char buf = 0, cmd = 0;

	(void)arg;
	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	if (tdt_world_open(&attr, &w))
		return 1;
	if (tdt_tell_name(fd, &w->eps[0]) ||
	    tdt_hear_name(fd, &w->eps[0], &parent))
		return 2;
	w->eps[0].peers[1] = parent;
	struct tdt_op op = op_of(TDT_SEND, 1, &buf, 1);
	struct iovec iov = iov_of(&buf, 1);

	op.addr = parent;
	op.context = w;
	if (tdt_trecv(&w->eps[0], &iov, 0, ~0ull, &buf) ||
	    tdt_wait(&w->eps[0], &buf, nullptr) || tdt_post(&w->eps[0], &op) ||
	    tdt_wait(&w->eps[0], w, nullptr) || tdt_tell(fd, &cmd, 1))
		return 3;
	if (tdt_hear(fd, &cmd, 1) == 1 && cmd == 'c')
		return tdt_world_close(w);
	_exit(0);
}

/* Sends one message to its parent, and closes when it is told. */
TDT_ROLE(teller)
{
	struct tdt_world *w = nullptr;
	struct tdt_attr attr;
	fi_addr_t parent;
	char buf = 0;

	(void)arg;
	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	if (tdt_world_open(&attr, &w))
		return 1;
	if (tdt_tell_name(fd, &w->eps[0]) ||
	    tdt_hear_name(fd, &w->eps[0], &parent))
		return 2;
	struct tdt_op op = op_of(TDT_SEND, 1, &buf, 1);

	op.addr = parent;
	op.context = w;
	if (tdt_post(&w->eps[0], &op) || tdt_wait(&w->eps[0], w, nullptr) ||
	    tdt_hear(fd, &buf, 1) != 1)
		return 3;
	return tdt_world_close(w);
}

class Report : public Case
{
protected:
	struct tdt_child child = { 0, -1 };
	fi_addr_t to = FI_ADDR_UNSPEC;

	void TearDown() override
	{
		if (child.pid)
			tdt_child_kill(&child, SIGKILL);
		Case::TearDown();
	}

	struct tdm_report_path ask()
	{
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path p;

		memset(&p, 0, sizeof(p));
		p.size = sizeof(p);
		EXPECT_EQ(0, fi_open_ops(&rx()->ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		if (ops) {
			EXPECT_EQ(0, ops->path(rx()->ep, to, &p));
		}
		return p;
	}

	/* A world of one endpoint; a message goes to a child and back. */
	void meet()
	{
		char out = 1, in = 0, cmd;

		ASSERT_EQ(0, tdt_child_start(&child, "echo", nullptr));
		ASSERT_EQ(0, tdt_hear_name(child.fd, rx(), &to));
		ASSERT_EQ(0, tdt_tell_name(child.fd, rx()));
		struct tdt_op op = op_of(TDT_SEND, 1, &out, 1);
		struct iovec iov = iov_of(&in, 1);

		op.addr = to;
		op.context = &out;
		ASSERT_EQ(0, tdt_trecv(rx(), &iov, 0, ~0ull, &in));
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(done(rx(), &out, FI_SEND | FI_TAGGED));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
		ASSERT_EQ(1, tdt_hear(child.fd, &cmd, 1));
	}

	static int ended(void *arg)
	{
		auto *t = static_cast<Report *>(arg);

		return t->ask().state != TDM_REPORT_IN_USE;
	}

	void end_child(char how, uint32_t state)
	{
		uint32_t kind = tdt_path() == TDT_REMOTE ? TDM_REPORT_TCP :
							   TDM_REPORT_SHM;

		ASSERT_EQ(kind, ask().path) << ask().reason_text;
		EXPECT_EQ(uint32_t(TDM_REPORT_IN_USE), ask().state);
		ASSERT_EQ(0, tdt_tell(child.fd, &how, 1));
		ASSERT_EQ(0, tdt_wait_until(w, ended, this));
		ASSERT_EQ(0, tdt_child_wait(&child));
		child.pid = 0;
		EXPECT_EQ(kind, ask().path);
		EXPECT_EQ(state, ask().state) << fi_strerror(ask().err);
		EXPECT_EQ(1u, ask().lives);
		EXPECT_EQ(1u, ask().tx_msgs);
		EXPECT_EQ(1u, ask().tx_bytes);
		EXPECT_EQ(1u, ask().rx_msgs);
		EXPECT_EQ(1u, ask().rx_bytes);
	}

	void one()
	{
		attr.eps = 1;
		attr.no_tcp_only = 1;
		OPEN();
		OK(meet());
	}
};

TEST_F(Report, KeepsThePathOfAPeerThatClosed)
{
	/* fi_tandem(7), REPORT: "The counts include restarts of the peer". */
	ONLY_TANDEM();
	OK(one());
	OK(end_child('c', TDM_REPORT_CLOSED));
	EXPECT_EQ(0, ask().err);
}

TEST_F(Report, KeepsThePathOfAPeerThatOnlySent)
{
	/* As above: nothing of ours refers to such a peer. */
	char in = 0;
	struct iovec iov = iov_of(&in, 1);

	ONLY_TANDEM();
	attr.eps = 1;
	attr.no_tcp_only = 1;
	OPEN();
	ASSERT_EQ(0, tdt_child_start(&child, "teller", nullptr));
	ASSERT_EQ(0, tdt_hear_name(child.fd, rx(), &to));
	ASSERT_EQ(0, tdt_trecv(rx(), &iov, 0, ~0ull, &in));
	ASSERT_EQ(0, tdt_tell_name(child.fd, rx()));
	OK(done(rx(), &in, FI_RECV | FI_TAGGED));
	EXPECT_EQ(uint32_t(TDM_REPORT_IN_USE), ask().state);
	ASSERT_EQ(0, tdt_tell(child.fd, "c", 1));
	ASSERT_EQ(0, tdt_wait_until(w, ended, this));
	ASSERT_EQ(0, tdt_child_wait(&child));
	child.pid = 0;
	EXPECT_EQ(uint32_t(TDM_REPORT_CLOSED), ask().state);
	EXPECT_EQ(1u, ask().rx_msgs);
	EXPECT_EQ(1u, ask().rx_bytes);
	EXPECT_EQ(0u, ask().tx_msgs);
}

TEST_F(Report, KeepsThePathOfAPeerThatDied)
{
	/* As above; err says how the path ended. */
	ONLY_TANDEM();
	OK(one());
	OK(end_child('x', TDM_REPORT_LOST));
	EXPECT_NE(0, ask().err);
}

TEST_F(Report, SaysAsMuchAsTheCallerHasRoomFor)
{
	/* fi_ext_tandem.h: "As much of out as that holds". */
	const size_t first = offsetof(struct tdm_report_path, tx_msgs);
	struct tdm_report_ops *ops = nullptr;
	struct tdm_report_path p;

	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	ASSERT_EQ(0, fi_open_ops(&rx()->ep->fid, TDM_REPORT_OPS, 0,
				 reinterpret_cast<void **>(&ops), nullptr));
	memset(&p, 0x5a, sizeof(p));
	p.size = first;
	ASSERT_EQ(0, ops->path(rx()->ep, 1, &p));
	EXPECT_EQ(first, p.size);
	EXPECT_NE(nullptr, p.reason_text);
	EXPECT_EQ(0x5a5a5a5a5a5a5a5aull, p.tx_msgs);
	p.size = sizeof(p) + 100;
	ASSERT_EQ(0, ops->path(rx()->ep, 1, &p));
	EXPECT_EQ(sizeof(p), p.size);
	EXPECT_EQ(1u, p.tx_msgs);
	p.size = first - 1;
	EXPECT_EQ(-FI_EINVAL, ops->path(rx()->ep, 1, &p));
}

/* ---- FI_TANDEM_REPORT ---------------------------------------------------- */

/* Endpoint 0 talks to the others, and ends in the way that @arg names. */
TDT_ROLE(reporting)
{
	struct tdt_world *w = nullptr;
	struct tdt_attr attr;

	tdt_attr_init(&attr);
	attr.eps = 2;
	attr.no_tcp_only = 1;
	if (tdt_world_open(&attr, &w) || tdt_warm_up(w))
		return 1;
	tdt_tell(fd, &w->eps[0].namelen, sizeof(w->eps[0].namelen));
	if (!strcmp(arg, "exit"))
		exit(0);
	if (!strcmp(arg, "remove")) {
		for (size_t i = 0; i < 2; i++) {
			if (fi_av_remove(w->eps[i].av, w->eps[i].peers, 2, 0))
				return 2;
		}
	}
	return tdt_world_close(w);
}

class Printed : public testing::TestWithParam<const char *>
{
protected:
	std::vector<std::string> lines;
	pid_t pid = 0;

	void live(const char *how, const char *form = "1")
	{
		struct tdt_child c = { 0, -1 };
		int err = dup(2), log = memfd_create("log", MFD_CLOEXEC);

		setenv("FI_TANDEM_REPORT", form, 1);
		dup2(log, 2);
		int ret = tdt_child_start(&c, "reporting", how);
		dup2(err, 2);
		::close(err);
		unsetenv("FI_TANDEM_REPORT");
		ASSERT_EQ(0, ret);
		pid = c.pid;
		EXPECT_EQ(0, tdt_child_wait(&c));
		split(log);
		::close(log);
	}

	/* The file NAME.PID of the child, which is removed. */
	void take(const char *name)
	{
		std::string path = name + std::to_string(pid);
		int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);

		ASSERT_LE(0, file) << path;
		lines.clear();
		split(file);
		::close(file);
		unlink(path.c_str());
	}

	void split(int log)
	{
		off_t size = lseek(log, 0, SEEK_END);
		std::string text(static_cast<size_t>(size), 0);

		ASSERT_EQ(size, pread(log, &text[0], text.size(), 0));
		for (size_t at = 0, nl;
		     (nl = text.find('\n', at)) != std::string::npos;
		     at = nl + 1) {
			std::string line = text.substr(at, nl - at);

			if (!line.compare(0, 7, "tandem[") || line[0] == '{')
				lines.push_back(line);
		}
	}
};

TEST_P(Printed, NamesThePathAndTheCountsOfEachPeer)
{
	/* fi_tandem(7), REPORT: "one line for each peer", and each begins with
	 * the process and the address of the endpoint. */
	const char *kind = tdt_path() == TDT_REMOTE ? " path tcp " :
						      " path shm ";
	size_t peers = 0;

	ONLY_TANDEM();
	OK(live(GetParam()));
	for (const std::string &line : lines) {
		if (line.find(" path ") == std::string::npos)
			continue;
		peers++;
		EXPECT_NE(std::string::npos, line.find(kind)) << line;
		EXPECT_NE(std::string::npos,
			  line.find(" sent 1 (1 B) received 1 (1 B)"))
			<< line;
		EXPECT_EQ(!strcmp(GetParam(), "remove"),
			  line.find("; removed") != std::string::npos)
			<< line;
	}
	EXPECT_EQ(2u, peers);
	EXPECT_EQ(4u, lines.size());
	/* Two endpoints: two identities. */
	for (std::string &line : lines)
		line.resize(line.find("]"));
	std::sort(lines.begin(), lines.end());
	lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
	EXPECT_EQ(2u, lines.size());
}

/* Not 0 if @line is one JSON object: quotes, brackets and commas fit. */
bool is_object(const std::string &line)
{
	std::string open;
	bool text = false;
	char before = 0;

	for (size_t i = 0; i < line.size(); before = line[i++]) {
		char c = line[i];

		if (text) {
			i += c == '\\';
			text = c != '"';
		} else if (c == '"') {
			text = true;
		} else if (c == '{' || c == '[') {
			open += c;
		} else if (c == '}' || c == ']') {
			if (before == ',' || open.empty() ||
			    open.back() != (c == '}' ? '{' : '['))
				return false;
			open.pop_back();
			if (open.empty())
				return i == line.size() - 1;
		}
	}
	return false;
}

using Form = Printed;

TEST_F(Form, SummaryIsALineOfEachEndpoint)
{
	/* fi_tandem(7), REPORT: "one line for each endpoint". */
	ONLY_TANDEM();
	OK(live("close", "summary"));
	ASSERT_EQ(2u, lines.size());
	for (const std::string &line : lines) {
		EXPECT_NE(std::string::npos,
			  line.find(tdt_path() == TDT_REMOTE ?
					    "]: 1 peers, 0 shm, 1 tcp (1 " :
					    "]: 1 peers, 1 shm"))
			<< line;
		EXPECT_NE(std::string::npos,
			  line.find(", sent 1 (1 B) received 1 (1 B)"))
			<< line;
	}
}

TEST_F(Form, FullHasTheEndpointAndAllPeers)
{
	/* fi_tandem(7), REPORT: "all peers in the address vector". */
	size_t heads = 0, peers = 0, advice = 0;

	ONLY_TANDEM();
	OK(live("close", "full"));
	for (const std::string &line : lines) {
		heads += line.find("]: tandem ") != std::string::npos &&
			 line.find(", host ") != std::string::npos;
		peers += line.find(" path ") != std::string::npos;
		advice += line.find(" -> ") != std::string::npos;
	}
	EXPECT_EQ(2u, heads);
	EXPECT_EQ(4u, peers); /* itself, and the other one */
	EXPECT_EQ(8u + advice, lines.size());
	/* "a line for each reason": a small message by shared memory has none. */
	if (tdt_path() != TDT_MIXED) {
		EXPECT_EQ(tdt_path() == TDT_REMOTE ? 2u : 0u, advice);
	}
}

TEST_F(Form, JsonIsAnObjectOfEachEndpointInAFile)
{
	/* fi_tandem(7), REPORT and FI_TANDEM_REPORT: %p is the process id. */
	const std::string where = testing::TempDir() + "tandem-report.";
	const std::string form = "json:" + where + "%p";

	ONLY_TANDEM();
	OK(live("close", form.c_str()));
	EXPECT_EQ(0u, lines.size()) << "on standard error";
	OK(take(where.c_str()));
	ASSERT_EQ(2u, lines.size());
	for (const std::string &line : lines) {
		EXPECT_TRUE(is_object(line)) << line;
		EXPECT_NE(std::string::npos,
			  line.find("\"pid\":" + std::to_string(pid) + ","))
			<< line;
		EXPECT_NE(std::string::npos,
			  line.find(tdt_path() == TDT_REMOTE ?
					    "\"path\":\"tcp\"" :
					    "\"path\":\"shm\""))
			<< line;
		EXPECT_NE(std::string::npos,
			  line.find("\"all\":{\"sent\":1,\"sent_bytes\":1,"))
			<< line;
	}
}

TEST_F(Form, FileAloneHasTheLines)
{
	/* fi_tandem(7), FI_TANDEM_REPORT: a FILE alone means yes:FILE. */
	const std::string where = testing::TempDir() + "tandem-report.";

	ONLY_TANDEM();
	OK(live("exit", (where + "%p").c_str()));
	OK(take(where.c_str()));
	EXPECT_EQ(4u, lines.size());
}

INSTANTIATE_TEST_SUITE_P(Ends, Printed,
			 testing::Values("close", "remove", "exit"),
			 [](const testing::TestParamInfo<const char *> &p) {
				 return p.param;
			 });

} // namespace

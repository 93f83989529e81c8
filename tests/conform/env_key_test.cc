/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of the environment: fi_tandem(7), KEYS. The processes that have it are
 * children, since the variables are read when the provider is loaded.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/* Open an endpoint, tell its address or the error, receive one message. */
TDT_ROLE(keyed)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	struct tdt_comp comp;
	char in[8] = "";
	int ret;

	(void)arg;
	tdt_attr_init(&attr);
	attr.eps = 1;
	ret = tdt_world_open(&attr, &w);
	tdt_tell(fd, &ret, sizeof(ret));
	if (ret)
		return 0;
	tdt_tell_name(fd, &w->eps[0]);
	ret = (int)tdt_recv(&w->eps[0], in, sizeof(in), in);
	if (!ret)
		ret = tdt_wait(&w->eps[0], in, &comp);
	if (!ret && strcmp(in, "hello"))
		ret = -FI_EIO;
	tdt_tell(fd, &ret, sizeof(ret));
	return tdt_world_close(w);
}

/* Hear an address, send one message to it, tell the error. */
TDT_ROLE(greets)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	struct tdt_ep *at;
	struct tdt_comp comp;
	char out[8] = "hello";
	int ret;

	(void)arg;
	memset(&comp, 0, sizeof(comp));
	tdt_attr_init(&attr);
	attr.eps = 1;
	if (tdt_world_open(&attr, &w))
		return 1;
	at = &w->eps[0];
	if (tdt_hear_name(fd, at, &at->peers[0]))
		return 2;
	ret = (int)tdt_send(at, at, out, sizeof(out), out);
	if (!ret)
		ret = tdt_wait(at, out, &comp) ? -1 : comp.err;
	tdt_tell(fd, &ret, sizeof(ret));
	return tdt_world_close(w);
}

class EnvKey : public Keys
{
protected:
	std::string path =
		testing::TempDir() + "tandem-key-" + std::to_string(getpid());
	struct tdt_child child = { 0, -1 }, other = { 0, -1 };

	void TearDown() override
	{
		unlink(path.c_str());
		unlink((path + ".link").c_str());
		if (child.pid)
			tdt_child_kill(&child, SIGKILL);
		tdt_child_kill(&other, SIGKILL);
		for (const char *name : { "FI_TANDEM_TLS", "FI_TANDEM_AUTH_KEY",
					  "FI_TANDEM_CONN_TIMEOUT" })
			unsetenv(name);
		setenv("FI_TANDEM_SHM",
		       tdt_path() == TDT_REMOTE ? "off" : "auto", 1);
		Keys::TearDown();
	}

	/* A second child, with or without TLS, sends to @name: its error. */
	void greet_from_child(const struct tdt_name *name, const char *tls,
			      int *error)
	{
		setenv("FI_TANDEM_TLS", tls, 1);
		setenv("FI_TANDEM_AUTH_KEY", ONE, 1);
		ASSERT_EQ(0, tdt_child_start(&other, "greets", nullptr));
		ASSERT_EQ(0, tdt_tell(other.fd, name, sizeof(*name)));
		ASSERT_EQ(ssize_t(sizeof(*error)),
			  tdt_hear(other.fd, error, sizeof(*error)));
		EXPECT_EQ(0, tdt_child_wait(&other));
	}

	void file(const std::string &text, mode_t mode = 0600)
	{
		unlink(path.c_str());
		int fd =
			::open(path.c_str(), O_CREAT | O_WRONLY | O_EXCL, 0600);

		ASSERT_LE(0, fd);
		ASSERT_EQ(ssize_t(text.size()),
			  write(fd, text.data(), text.size()));
		ASSERT_EQ(0, fchmod(fd, mode));
		::close(fd);
	}

	/* Start a child with @variable set. Returns what its endpoint said. */
	int start(const char *variable, const std::string &value)
	{
		int ret = -FI_EIO;

		setenv(variable, value.c_str(), 1);
		EXPECT_EQ(0, tdt_child_start(&child, "keyed", nullptr));
		unsetenv(variable);
		EXPECT_EQ(ssize_t(sizeof(ret)),
			  tdt_hear(child.fd, &ret, sizeof(ret)));
		return ret;
	}

	int start_with_file()
	{
		return start("FI_TANDEM_AUTH_KEY_FILE", path);
	}

	void end()
	{
		EXPECT_EQ(0, tdt_child_wait(&child));
		child = { 0, -1 };
	}

	/* The endpoint @o, with a key of its own, sends to the child. */
	void greet(Own &o, int *error)
	{
		struct tdt_name name;
		char out[8] = "hello";
		fi_addr_t to = FI_ADDR_NOTAVAIL;

		ASSERT_EQ(ssize_t(sizeof(name)),
			  tdt_hear(child.fd, &name, sizeof(name)));
		ASSERT_EQ(1,
			  fi_av_insert(o.av, name.bytes, 1, &to, 0, nullptr));
		ASSERT_EQ(0, fi_send(o.ep, out, sizeof(out), nullptr, to, out));
		Entry x = next_of(o, { &o });
		*error = x.ret == -FI_EAVAIL ? x.err.err : int(x.ret) - 1;
	}
};

TEST_F(EnvKey, IsTheKeyOfEndpointsWithoutOne)
{
	/* fi_tandem(7), KEYS, Key of the environment. */
	int ret = -FI_EIO, error = -1;
	Own o;

	ONLY_TANDEM();
	OPEN();
	OK(file(std::string(ONE) + "\n"));
	OK(open_own(o, ONE));
	OK(enable(o));
	for (bool of_file : { true, false }) {
		ASSERT_EQ(0, of_file ? start_with_file() :
				       start("FI_TANDEM_AUTH_KEY", ONE));
		OK(greet(o, &error));
		EXPECT_EQ(0, error);
		ASSERT_EQ(ssize_t(sizeof(ret)),
			  tdt_hear(child.fd, &ret, sizeof(ret)));
		EXPECT_EQ(0, ret);
		OK(end());
	}
}

TEST_F(EnvKey, WithTlsItIsTheKeyOfTheConnections)
{
	/* fi_tandem(7), ENCRYPTION: with FI_TANDEM_TLS=yes "all that goes over
	 * TCP is encrypted"; "With a key: The key is the pre-shared key of
	 * TLS". "Operations to a peer ... that has no TLS fail with
	 * FI_EKEYREJECTED after FI_TANDEM_CONN_TIMEOUT", and the other way
	 * round "a side with TLS and one without do not reach each other". */
	struct tdt_name name;
	int ret = -FI_EIO, error = -1;

	ONLY_TANDEM();
	setenv("FI_TANDEM_SHM", "off", 1);
	setenv("FI_TANDEM_CONN_TIMEOUT", "1", 1);
	setenv("FI_TANDEM_TLS", "yes", 1);
	ASSERT_EQ(0, start("FI_TANDEM_AUTH_KEY", ONE));
	ASSERT_EQ(ssize_t(sizeof(name)),
		  tdt_hear(child.fd, &name, sizeof(name)));
	OK(greet_from_child(&name, "no", &error));
	EXPECT_NE(0, error) << "was reached without TLS";
	EXPECT_EQ(-EAGAIN, tdt_hear_now(child.fd, &ret, sizeof(ret)));
	setenv("FI_TANDEM_CONN_TIMEOUT", "60", 1);
	OK(greet_from_child(&name, "yes", &error));
	EXPECT_EQ(0, error) << fi_strerror(error);
	ASSERT_EQ(ssize_t(sizeof(ret)), tdt_hear(child.fd, &ret, sizeof(ret)));
	EXPECT_EQ(0, ret);
	OK(end());
}

TEST_F(EnvKey, EndpointsWithoutAKeyDoNotReachIt)
{
	struct tdt_name name;
	struct tdt_attr none;
	struct tdt_world *w = nullptr;
	char in[8] = "";
	int ret = 0;

	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, start("FI_TANDEM_AUTH_KEY", TWO));
	ASSERT_EQ(ssize_t(sizeof(name)),
		  tdt_hear(child.fd, &name, sizeof(name)));
	tdt_attr_init(&none);
	none.eps = 1;
	ASSERT_EQ(0, tdt_world_open(&none, &w));
	fi_addr_t to = FI_ADDR_NOTAVAIL;

	ASSERT_EQ(1,
		  fi_av_insert(w->eps[0].av, name.bytes, 1, &to, 0, nullptr));
	w->eps[0].peers[1] = to;
	EXPECT_EQ(0, fi_send(w->eps[0].ep, in, 8, nullptr, to, in));
	tdt_settle(w, 200);
	EXPECT_EQ(-EAGAIN, tdt_hear_now(child.fd, &ret, sizeof(ret)));
	EXPECT_EQ(0, tdt_world_close(w));
}

TEST_F(EnvKey, OneThatCannotBeUsedIsNotTheSameAsNone)
{
	const std::string good(ONE);

	ONLY_TANDEM();
	EXPECT_EQ(-FI_ENOKEY, start("FI_TANDEM_AUTH_KEY", "short"));
	OK(end());
	/* As a launcher gives it that has none itself. */
	EXPECT_EQ(-FI_ENOKEY, start("FI_TANDEM_AUTH_KEY", ""));
	OK(end());
	EXPECT_EQ(-FI_ENOKEY, start("FI_TANDEM_AUTH_KEY_FILE", ""));
	OK(end());
	/* TLS that is asked for in other words is TLS, and needs a key. */
	EXPECT_EQ(-FI_ENOKEY, start("FI_TANDEM_TLS", "enabled"));
	OK(end());
	EXPECT_EQ(-FI_ENOKEY, start_with_file()); /* there is none */
	OK(end());
	OK(file(std::string(15, 'k')));
	EXPECT_EQ(-FI_ENOKEY, start_with_file());
	OK(end());
	OK(file(std::string(65, 'k')));
	EXPECT_EQ(-FI_ENOKEY, start_with_file());
	OK(end());
	OK(file(good, 0640));
	EXPECT_EQ(-FI_ENOKEY, start_with_file());
	OK(end());
	OK(file(good));
	ASSERT_EQ(0, symlink(path.c_str(), (path + ".link").c_str()));
	EXPECT_EQ(-FI_ENOKEY, start("FI_TANDEM_AUTH_KEY_FILE", path + ".link"));
	OK(end());
	EXPECT_EQ(-FI_ENOKEY, start("FI_TANDEM_AUTH_KEY_FILE", "/dev"));
	OK(end());
	/* The file counts before the variable. */
	setenv("FI_TANDEM_AUTH_KEY", ONE, 1);
	EXPECT_EQ(-FI_ENOKEY, start("FI_TANDEM_AUTH_KEY_FILE", "/dev"));
	unsetenv("FI_TANDEM_AUTH_KEY");
	OK(end());
}

TEST_F(EnvKey, L2_AFileOfAnotherUserIsNotUsed)
{
	/* fi_tandem(7), KEYS, Key of the environment: "owned by the user". */
	ONLY_TANDEM();
	if (geteuid())
		GTEST_SKIP() << "only root can give a file away";
	OK(file(std::string(ONE)));
	ASSERT_EQ(0, chown(path.c_str(), 65534, 65534));
	EXPECT_EQ(-FI_ENOKEY, start_with_file());
	OK(end());
	/* The owner alone made the difference. */
	ASSERT_EQ(0, chown(path.c_str(), 0, 0));
	EXPECT_EQ(0, start_with_file());
}

} // namespace

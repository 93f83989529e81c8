/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment of a set-user-ID program, which whoever starts it chooses:
 * fi_tandem(7), ENVIRONMENT.
 */
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "tests/harness/sanitized.h"

extern "C" {
#include "base/env.h"
#include "tests/harness/child.h"
struct fi_provider *fi_prov_ini(void);
}

namespace
{

struct Variable {
	const char *name, *value;
};

/* One for each way in which base/env.c reads a variable; the last is garbage. */
const Variable variables[] = {
	{ "FI_TANDEM_SHM", "off" },
	{ "FI_TANDEM_CONN_TIMEOUT", "7" },
	{ "FI_TANDEM_CMA", "no" },
	{ "FI_TANDEM_AUTH_KEY", "0123456789abcdef" },
	{ "FI_TANDEM_EAGR_SIZE", "512" },
};

/* The report of a process that has loaded the provider. */
struct Said {
	unsigned long secure; /* AT_SECURE */
	uid_t uid;	      /* effective */
	int shm;
	unsigned conn_timeout_ms;
	int cma;
	int key;    /* 1: it has one */
	int warned; /* 1: of a variable */
};

TDT_ROLE(loads_provider)
{
	int log = memfd_create("log", MFD_CLOEXEC);
	char text[4096] = "";
	struct Said said = {};

	(void)arg;
	dup2(log, 2);
	fi_prov_ini();
	(void)!pread(log, text, sizeof(text) - 1, 0);
	said.secure = getauxval(AT_SECURE);
	said.uid = geteuid();
	said.shm = tdm_env.shm;
	said.conn_timeout_ms = tdm_env.conn_timeout_ms;
	said.cma = tdm_env.cma;
	said.key = tdm_env.auth_key != nullptr;
	said.warned = strstr(text, "FI_TANDEM_") != nullptr;
	return tdt_tell(fd, &said, sizeof(said));
}

class Env : public testing::Test
{
protected:
	static constexpr uid_t other = 65534;
	/* This program. The file has no name, so nothing is left of it. */
	int copy = -1;

	void SetUp() override
	{
		for (auto &v : variables)
			setenv(v.name, v.value, 1);
	}

	void TearDown() override
	{
		for (auto &v : variables)
			unsetenv(v.name);
		setenv("FI_TANDEM_SHM", "auto", 1); /* tests/harness/world.c */
		close(copy);
	}

	/* The path of @fd, which a child inherits. */
	static std::string path(int fd)
	{
		return "/proc/self/fd/" + std::to_string(fd);
	}

	/* Returns 0, or the error of making @copy, of mode 0755. */
	int make_copy()
	{
		int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		int out = open(testing::TempDir().c_str(),
			       O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
		ssize_t n = -1;

		while (out >= 0 &&
		       (n = sendfile(out, self, nullptr, 1 << 30)) > 0)
			;
		if (!n && !fchmod(out, 0755))
			copy = open(path(out).c_str(), O_RDONLY | O_CLOEXEC);
		/* The kernel executes no file that is open for writing. */
		int err = copy < 0 ? errno : 0;
		close(out);
		close(self);
		return err;
	}

	void load(struct Said *said)
	{
		struct tdt_child child = { 0, -1 };

		ASSERT_EQ(0, tdt_child_start_copy(&child, path(copy).c_str(),
						  "loads_provider", nullptr));
		EXPECT_EQ(ssize_t(sizeof(*said)),
			  tdt_hear(child.fd, said, sizeof(*said)));
		EXPECT_EQ(0, tdt_child_wait(&child));
	}
};

TEST_F(Env, L8_ASetUserIdProgramIgnoresTheEnvironment)
{
	/* fi_tandem(7), ENVIRONMENT: "Programs that run with raised privileges
	 * get the defaults". base/env.c: "and no warning". */
	struct Said said = {};
	int err;

	if (geteuid())
		GTEST_SKIP() << "only root can give a file away";
	if (TDT_SANITIZED)
		GTEST_SKIP() << "sanitizers read files of /proc that a "
				"set-user-ID program may not read";
	if (getenv("LD_LIBRARY_PATH"))
		GTEST_SKIP() << "set-user-ID programs are loaded without "
				"LD_LIBRARY_PATH";
	err = make_copy();
	if (err == EOPNOTSUPP)
		GTEST_SKIP() << testing::TempDir() << ": no O_TMPFILE";
	ASSERT_EQ(0, err) << strerror(err);

	/* The same program without that bit does what the variables say. */
	ASSERT_NO_FATAL_FAILURE(load(&said));
	EXPECT_EQ(0u, said.secure);
	EXPECT_EQ(TDM_SHM_OFF, said.shm);
	EXPECT_EQ(7000u, said.conn_timeout_ms);
	EXPECT_EQ(0, said.cma);
	EXPECT_EQ(1, said.key);
	EXPECT_EQ(1, said.warned);

	ASSERT_EQ(0, fchown(copy, other, other));
	ASSERT_EQ(0, fchmod(copy, 04755));
	ASSERT_NO_FATAL_FAILURE(load(&said));
	if (!said.secure)
		GTEST_SKIP() << testing::TempDir()
			     << " is mounted nosuid, or this process has "
				"no_new_privs or is traced";
	EXPECT_EQ(other, said.uid);
	EXPECT_EQ(TDM_SHM_AUTO, said.shm);
	EXPECT_EQ(60000u, said.conn_timeout_ms);
	EXPECT_EQ(1, said.cma);
	EXPECT_EQ(0, said.key);
	EXPECT_EQ(0, said.warned);
}

} // namespace

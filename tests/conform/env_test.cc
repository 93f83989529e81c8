/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters: garbage costs one warning and leaves the default; numbers out
 * of range are clamped. Each value is tried in a process of its own.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/* A whole run: open, talk, close. */
TDT_ROLE(run)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	int answer;

	tdt_attr_init(&attr);
	attr.eps = 2;
	attr.no_tcp_only = 1;
	answer = tdt_world_open(&attr, &w);
	if (!answer)
		answer = tdt_warm_up(w);
	if (w) {
		int ret = tdt_world_close(w);

		answer = answer ? answer : ret;
	}
	(void)arg;
	return tdt_tell(fd, &answer, sizeof(answer));
}

struct Value {
	const char *name, *value;
	int warned; /* -1: either way */
};

class Env : public testing::TestWithParam<Value>
{
protected:
	/* Start a run with the value set; its warnings are counted. */
	void live(const Value &v, int *answer, int *warnings)
	{
		struct tdt_child child = { 0, -1 };
		const char *before = getenv(v.name);
		std::string old = before ? before : "";
		int err = dup(2), log = memfd_create("log", MFD_CLOEXEC);

		setenv(v.name, v.value, 1);
		setenv("FI_LOG_LEVEL", "warn", 1);
		dup2(log, 2);
		int ret = tdt_child_start(&child, "run", nullptr);
		dup2(err, 2);
		::close(err);
		unsetenv("FI_LOG_LEVEL");
		if (before)
			setenv(v.name, old.c_str(), 1);
		else
			unsetenv(v.name);
		ASSERT_EQ(0, ret);
		EXPECT_EQ(static_cast<ssize_t>(sizeof(*answer)),
			  tdt_hear(child.fd, answer, sizeof(*answer)));
		EXPECT_EQ(0, tdt_child_wait(&child));
		count(log, warnings);
	}

	void count(int log, int *warnings)
	{
		std::vector<char> text(
			static_cast<size_t>(lseek(log, 0, SEEK_END)) + 1);
		char *line, *next;

		(void)!pread(log, text.data(), text.size() - 1, 0);
		::close(log);
		*warnings = 0;
		for (line = text.data(); line; line = next) {
			next = strchr(line, '\n');
			if (next)
				*next++ = 0;
			if (strstr(line, ":tandem:") &&
			    strstr(line, "<warn>")) {
				++*warnings;
				log_ += line + std::string("\n");
			}
		}
	}

	std::string log_;
};

TEST_P(Env, A17_GarbageLeavesTheDefault)
{
	/* fi_tandem(7), ENVIRONMENT: "A value that is not understood leaves
	 * the default; a number outside its range is set to the nearest end of
	 * it; a name that begins with FI_TANDEM and is not listed here has no
	 * effect. Each costs one warning, which names the variable". */
	int answer = -1, warnings = -1;

	ONLY_TANDEM();
	OK(live(GetParam(), &answer, &warnings));
	EXPECT_EQ(0, answer) << fi_strerror(-answer);
	if (GetParam().warned >= 0) {
		EXPECT_EQ(GetParam().warned, warnings) << log_;
		EXPECT_EQ(warnings > 0,
			  log_.find(GetParam().name) != std::string::npos)
			<< log_;
	} else {
		EXPECT_GE(1, warnings) << log_;
	}
}

const Value values[] = {
	{ "FI_TANDEM_SHM", "maybe", 1 },
	{ "FI_TANDEM_SHM", "", 0 },
	{ "FI_TANDEM_SHM", "no", 0 },
	{ "FI_TANDEM_SHM", "On", 0 },
	{ "FI_TANDEM_LOCAL", "", 0 },
	{ "FI_TANDEM_LOCAL", "tandem", 0 },
	{ "FI_TANDEM_LOCAL", "Off", 0 },
	{ "FI_TANDEM_LOCAL", "shm;tcp", 1 },
	/* not looked for with FI_TANDEM_SHM=off */
	{ "FI_TANDEM_LOCAL", "no_such_provider", -1 },
	{ "FI_TANDEM_SHM_DIR", "", 0 },
	{ "FI_TANDEM_SHM_DIR", "tandem", 1 },
	{ "FI_TANDEM_SHM_DIR", "/0123456789/0123456789/0123456789/0123456789/0",
	  1 },
	/* loopback addresses do not use it */
	{ "FI_TANDEM_SHM_DIR", "/nowhere", 0 },
	{ "FI_TANDEM_IFACE", "", 0 },
	{ "FI_TANDEM_PORT_RANGE", "abc", 1 },
	{ "FI_TANDEM_PORT_RANGE", "5-", 1 },
	{ "FI_TANDEM_PORT_RANGE", "60000-50000", 1 },
	{ "FI_TANDEM_PORT_RANGE", "0-99999999999", 1 },
	{ "FI_TANDEM_PORT_RANGE", "40000-99999", 1 },
	{ "FI_TANDEM_CONN_TIMEOUT", "soon", 1 },
	{ "FI_TANDEM_CONN_TIMEOUT", "-1", 1 },
	{ "FI_TANDEM_CONN_TIMEOUT", "30s", 0 },
	{ "FI_TANDEM_CONN_TIMEOUT", "2m", 0 },
	{ "FI_TANDEM_CONN_TIMEOUT", "99999999999999999999999", 1 },
	{ "FI_TANDEM_REFUSED_TIMEOUT", "2s", 0 },
	{ "FI_TANDEM_REFUSED_TIMEOUT", "at once", 1 },
	{ "FI_TANDEM_PEER_TIMEOUT", "1e3", 1 },
	{ "FI_TANDEM_CONGESTION", "", 0 },
	{ "FI_TANDEM_CONGESTION", "reno", 0 },
	{ "FI_TANDEM_CONGESTION", "Reno", 1 },
	{ "FI_TANDEM_EAGER_SIZE", "64k", 0 },
	{ "FI_TANDEM_EAGER_SIZE", "64KiB", 0 },
	{ "FI_TANDEM_EAGER_SIZE", "64Q", 1 },
	{ "FI_TANDEM_EAGER_SIZE", "K", 1 },
	{ "FI_TANDEM_EAGER_SIZE", "0", 1 },
	{ "FI_TANDEM_EAGER_SIZE", "18446744073709551616", 1 },
	{ "FI_TANDEM_SHM_EAGER_SIZE", "-5", 1 },
	{ "FI_TANDEM_SHM_EAGER_SIZE", "999999999", 1 },
	{ "FI_TANDEM_UNEXP_MAX", "0", 1 },
	{ "FI_TANDEM_UNEXP_MAX", "all", 1 },
	{ "FI_TANDEM_UNEXP_MAX", "1G", 0 },
	{ "FI_TANDEM_UNEXP_MAX", "1TiB", 0 },
	{ "FI_TANDEM_UNEXP_MAX", "1TB", 0 },
	{ "FI_TANDEM_INJECT_MAX", "some", 1 },
	{ "FI_TANDEM_INJECT_MAX", "1M", 0 },
	{ "FI_TANDEM_UNEXP_MAX", "18014398509481985K", 1 },
	{ "FI_TANDEM_INJECT_MAX", "1", 1 },
	{ "FI_TANDEM_INJECT_MAX", "64K", 0 },
	{ "FI_TANDEM_CMA", "perhaps", 1 },
	{ "FI_TANDEM_CMA", "no", 0 },
	{ "FI_TANDEM_REPORT", "2", 1 },
	{ "FI_TANDEM_REPORT", "yes", 0 },
	{ "FI_TANDEM_REPORT", "Summary", 0 },
	{ "FI_TANDEM_REPORT", "sumary", 1 },
	{ "FI_TANDEM_REPORT", "json:", 1 },
	{ "FI_TANDEM_REPORT", "no:/dev/null", 1 },
	{ "FI_TANDEM_REPORT", "full:/dev/null", 0 },
	{ "FI_TANDEM_REPORT", "json:/nowhere/report", 1 },
	{ "FI_TANDEM_STAT", "2", 1 },
	{ "FI_TANDEM_STAT", "no", 0 },
	{ "FI_TANDEM_STAND_IN", "verbs", 1 },
	{ "FI_TANDEM_STAND_IN", "no", 0 },
	{ "FI_TANDEM_EAGR_SIZE", "512", 1 },
};

INSTANTIATE_TEST_SUITE_P(Values, Env, testing::ValuesIn(values),
			 [](const testing::TestParamInfo<Value> &p) {
				 return p.param.name + std::string("_") +
					std::to_string(p.index);
			 });

/* ---- standing in --------------------------------------------------------- */

/* Report the provider listed as @arg, and exchange messages over it. */
TDT_ROLE(standing)
{
	struct fi_info *hints = fi_allocinfo(), *info = nullptr;
	uint32_t said[2] = { 0, 0 };
	int ret;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	/* Mercury asks by name and by protocol, and compares both again. */
	hints->fabric_attr->prov_name = strdup(arg);
	hints->ep_attr->protocol = strcmp(arg, "tcp") ? FI_PROTO_SOCK_TCP :
							FI_PROTO_XNET;
	ret = fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info);
	if (!ret && !strcmp(info->fabric_attr->prov_name, arg)) {
		said[0] = info->ep_attr->protocol;
		said[1] = FI_MAJOR(info->fabric_attr->prov_version);
	}
	/* All are of one provider: the other one is hidden. */
	for (struct fi_info *i = info; !ret && i; i = i->next) {
		if (i->fabric_attr->prov_version !=
		    info->fabric_attr->prov_version)
			said[0] = 0;
	}
	fi_freeinfo(hints);
	fi_freeinfo(info);
	tdt_tell(fd, said, sizeof(said));
	return run(fd, arg);
}

class StandIn : public testing::TestWithParam<const char *>
{
protected:
	static void set(const char *name, const char *value)
	{
		if (value)
			setenv(name, value, 1);
		else
			unsetenv(name);
	}
};

TEST_P(StandIn, IsOfferedInThePlaceOfTheOther)
{
	/* fi_tandem(7), STANDING IN: libfabric lists this provider under the
	 * other's name, with its protocol and a higher version. */
	const char *name = GetParam(), *path = getenv("FI_PROVIDER");
	std::string filter = path ? path : "";
	struct tdt_child child = { 0, -1 };
	uint32_t said[2];
	int answer = -1;

	ONLY_TANDEM();
	set("FI_TANDEM_STAND_IN", name);
	set("TANDEM_TEST_PROV", name);
	set("FI_PROVIDER", name);
	int ret = tdt_child_start(&child, "standing", name);
	set("FI_TANDEM_STAND_IN", nullptr);
	set("TANDEM_TEST_PROV", nullptr);
	set("FI_PROVIDER", path ? filter.c_str() : nullptr);
	ASSERT_EQ(0, ret);
	ASSERT_EQ(ssize_t(sizeof(said)),
		  tdt_hear(child.fd, said, sizeof(said)));
	EXPECT_EQ(uint32_t(strcmp(name, "tcp") ? FI_PROTO_SOCK_TCP :
						 FI_PROTO_XNET),
		  said[0]);
	EXPECT_LE(10000u, said[1]);
	EXPECT_EQ(ssize_t(sizeof(answer)),
		  tdt_hear(child.fd, &answer, sizeof(answer)));
	EXPECT_EQ(0, answer) << fi_strerror(-answer);
	EXPECT_EQ(0, tdt_child_wait(&child));
}

INSTANTIATE_TEST_SUITE_P(Names, StandIn, testing::Values("tcp", "sockets"),
			 [](const testing::TestParamInfo<const char *> &p) {
				 return p.param;
			 });

} // namespace

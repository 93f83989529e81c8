/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address vector by itself, of any address format, for the tests of
 * fi_av(3): no transport, an event queue, and a resolver that knows what the
 * test tells it.
 */
#ifndef TDT_AV_FIXTURE_H
#define TDT_AV_FIXTURE_H

#include <arpa/inet.h>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

extern "C" {
#include "av/av.h"
#include "av/locality.h"
#include "base/os.h"
#include "peer/eq.h"
#include "tdm_user_id.h"
}

#include "tests/harness/drive.h"
#include "tests/unit/fake_engine.h"

namespace tdt
{

inline struct sockaddr_in in4(const char *ip, uint16_t port)
{
	struct sockaddr_in sin;

	memset(&sin, 0, sizeof(sin));
	sin.sin_family = AF_INET;
	sin.sin_port = htons(port);
	EXPECT_EQ(1, inet_pton(AF_INET, ip, &sin.sin_addr)) << ip;
	return sin;
}

inline struct sockaddr_in6 in6(const char *ip, uint16_t port,
			       uint32_t scope = 0)
{
	struct sockaddr_in6 sin;

	memset(&sin, 0, sizeof(sin));
	sin.sin6_family = AF_INET6;
	sin.sin6_port = htons(port);
	sin.sin6_scope_id = scope;
	EXPECT_EQ(1, inet_pton(AF_INET6, ip, &sin.sin6_addr)) << ip;
	return sin;
}

/* Stands for the system's resolver while it lives. One at a time. */
class Names
{
public:
	std::map<std::string, std::string> hosts; /* name: address */
	std::map<std::string, std::string> services;
	std::vector<std::string> asked;
	bool blocked = false; /* answers wait for let_go() */

	Names()
	{
		it() = this;
		tdm_os.getaddrinfo = ask;
		tdm_os.freeaddrinfo = give_back;
		tdm_os.thread_create = start;
	}

	~Names()
	{
		let_go();
		wait_idle();
		tdm_os.thread_create = tdm_os_system.thread_create;
		tdm_os.getaddrinfo = tdm_os_system.getaddrinfo;
		tdm_os.freeaddrinfo = tdm_os_system.freeaddrinfo;
		it() = nullptr;
	}

	Names(const Names &) = delete;

	void block()
	{
		std::lock_guard<std::mutex> l(mutex);
		blocked = true;
	}

	void let_go()
	{
		std::lock_guard<std::mutex> l(mutex);
		blocked = false;
		go.notify_all();
	}

	/* Wait until a name is being asked for. */
	void wait_asked()
	{
		std::unique_lock<std::mutex> l(mutex);
		idle.wait(l, [this] { return inside > 0; });
	}

	/* Wait until the threads that ask are gone. */
	void wait_idle()
	{
		std::unique_lock<std::mutex> l(mutex);
		idle.wait(l, [this] { return !threads; });
	}

private:
	std::mutex mutex;
	std::condition_variable go, idle;
	int inside = 0;
	int threads = 0;

	struct Start {
		void *(*run)(void *);
		void *arg;
	};

	/* A thread of the code under test, counted while it runs. */
	static void *counted(void *arg)
	{
		Start s = *static_cast<Start *>(arg);
		void *ret;

		delete static_cast<Start *>(arg);
		ret = s.run(s.arg);
		it()->count(-1);
		return ret;
	}

	static int start(pthread_t *thread, void *(*run)(void *), void *arg)
	{
		Start *s = new Start{ run, arg };
		int ret;

		it()->count(1);
		ret = tdm_os_system.thread_create(thread, counted, s);
		if (ret) {
			it()->count(-1);
			delete s;
		}
		return ret;
	}

	void count(int more)
	{
		std::lock_guard<std::mutex> l(mutex);
		threads += more;
		idle.notify_all();
	}

	static Names *&it()
	{
		static Names *names;

		return names;
	}

	static int ask(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **list)
	{
		return it()->answer(node, service, hints, list);
	}

	static void give_back(struct addrinfo *list)
	{
		freeaddrinfo(list);
	}

	int answer(const char *node, const char *service,
		   const struct addrinfo *hints, struct addrinfo **list)
	{
		std::string address, port;
		int ret = EAI_NONAME;

		{
			std::unique_lock<std::mutex> l(mutex);

			if (node)
				asked.push_back(node);
			inside++;
			idle.notify_all();
			go.wait(l, [this] { return !blocked; });
			if (!node || hosts.count(node))
				ret = 0;
			if (!ret && node)
				address = hosts[node];
			if (service && !services.count(service))
				ret = EAI_SERVICE;
			if (!ret && service)
				port = services[service];
		}
		if (!ret)
			ret = getaddrinfo(node ? address.c_str() : nullptr,
					  service ? port.c_str() : nullptr,
					  hints, list);
		std::lock_guard<std::mutex> l(mutex);
		inside--;
		idle.notify_all();
		return ret;
	}
};

class AvAlone : public testing::Test
{
protected:
	FakeEngine engine;
	struct tdm_av *tav = nullptr;
	struct fid_av *av = nullptr;
	struct tdm_eq *eq = nullptr;
	Names names;

	~AvAlone() override
	{
		close();
	}

	void close()
	{
		if (av) {
			EXPECT_EQ(0, fi_close(&av->fid));
		}
		av = nullptr;
		if (eq) {
			EXPECT_EQ(0, fi_close(&tdm_eq_fid(eq)->fid));
		}
		eq = nullptr;
	}

	int try_open(uint32_t format, struct fi_av_attr *a)
	{
		struct tdm_av_attr owner = {};
		int ret;

		owner.engine = &engine.engine;
		owner.addr_format = format;
		ret = tdm_av_open(&owner, a, this, &tav);
		if (!ret)
			av = tdm_av_fid(tav);
		return ret;
	}

	void open(uint32_t format = FI_SOCKADDR_IN, uint64_t flags = 0,
		  enum fi_av_type type = FI_AV_TABLE)
	{
		struct fi_av_attr a;

		memset(&a, 0, sizeof(a));
		a.type = type;
		a.flags = flags;
		ASSERT_EQ(0, try_open(format, &a));
	}

	/* A vector with FI_EVENT and an event queue. */
	void open_event(uint64_t flags = 0, size_t size = 0)
	{
		open(FI_SOCKADDR_IN, FI_EVENT | flags);
		open_eq(size);
		ASSERT_EQ(0, bind());
	}

	void open_eq(size_t size = 0)
	{
		struct fi_eq_attr attr;

		memset(&attr, 0, sizeof(attr));
		attr.wait_obj = FI_WAIT_FD;
		attr.size = size;
		ASSERT_EQ(0, tdm_eq_open(&attr, this, &eq));
	}

	int bind(uint64_t flags = 0)
	{
		return av->fid.ops->bind(&av->fid, &tdm_eq_fid(eq)->fid, flags);
	}

	/* Text of what @index holds, "" when unset. */
	std::string at(fi_addr_t index)
	{
		unsigned char raw[128];
		size_t len = sizeof(raw), n;
		char text[256];

		if (fi_av_lookup(av, index, raw, &len))
			return "";
		n = sizeof(text);
		fi_av_straddr(av, raw, text, &n);
		EXPECT_EQ(n, strlen(text) + 1);
		std::string s(text);

		return s.substr(s.find("://") + 3);
	}

	/* All that is set, in order. */
	std::vector<std::string> all(size_t most = 64)
	{
		std::vector<std::string> list;

		for (size_t i = 0; i < most; i++) {
			std::string s = at(i);

			if (s.empty())
				break;
			list.push_back(s);
		}
		return list;
	}

	int one(const struct sockaddr_in &s, fi_addr_t *a = nullptr,
		uint64_t flags = 0, void *ctx = nullptr)
	{
		return fi_av_insert(av, &s, 1, a, flags, ctx);
	}

	/* The next event; err is 0 for a good one. */
	struct Event {
		uint32_t type;
		uint64_t data;
		void *context;
		struct fid *fid;
		int err;
	};

	Event next()
	{
		struct fi_eq_entry e;
		struct fi_eq_err_entry x;
		uint32_t type = 0;
		ssize_t n = fi_eq_sread(tdm_eq_fid(eq), &type, &e, sizeof(e),
					static_cast<int>(tdt_deadline_ms()), 0);

		memset(&x, 0, sizeof(x));
		if (n == sizeof(e))
			return { type, e.data, e.context, e.fid, 0 };
		EXPECT_EQ(-FI_EAVAIL, n);
		EXPECT_LT(0, fi_eq_readerr(tdm_eq_fid(eq), &x, 0));
		return { 0, x.data, x.context, x.fid, x.err };
	}

	bool no_event()
	{
		return !tdm_eq_pending(eq);
	}
};

using Texts = std::vector<std::string>;

} // namespace tdt

#endif /* TDT_AV_FIXTURE_H */

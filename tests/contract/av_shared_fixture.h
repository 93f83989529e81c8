/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named address vectors: several users of one, each with an engine and a view
 * of its own, as in processes of their own. All of them in this process, so
 * that a test says who does what when.
 */
#ifndef TDT_AV_SHARED_FIXTURE_H
#define TDT_AV_SHARED_FIXTURE_H

#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/contract/av_fixture.h"

extern "C" {
#include "av/shared.h"
#include "tests/harness/log.h"
}

namespace tdt
{

/* A process that opens a vector. */
class User
{
public:
	FakeEngine engine;
	struct tdm_list named;
	struct tdm_av *tav = nullptr;
	struct fid_av *av = nullptr;
	fi_addr_t *map = nullptr;
	std::vector<fi_addr_t> removed; /* as the endpoints are told */
	int changed = 0;

	User()
	{
		tdm_list_init(&named);
	}

	~User()
	{
		close();
	}

	int open(const std::string &name, uint64_t flags = 0,
		 uint32_t format = FI_SOCKADDR_IN, void *map_addr = nullptr,
		 const char *domain = "lo", size_t count = 0)
	{
		struct tdm_av_attr owner = {};
		struct fi_av_attr a;
		int ret;

		owner.engine = &engine.engine;
		owner.addr_format = format;
		owner.domain = domain;
		owner.named = &named;
		memset(&a, 0, sizeof(a));
		a.flags = flags;
		a.name = name.c_str();
		a.map_addr = map_addr;
		a.count = count;
		ret = tdm_av_open(&owner, &a, this, &tav);
		if (ret)
			return ret;
		av = tdm_av_fid(tav);
		map = static_cast<fi_addr_t *>(a.map_addr);
		return 0;
	}

	void close()
	{
		if (!av)
			return;
		if (attached)
			engine.locked(
				[this] { tdm_av_detach(tav, &watch.user); });
		attached = false;
		EXPECT_EQ(0, fi_close(&av->fid));
		av = nullptr;
	}

	/* An endpoint is bound. */
	void attach()
	{
		watch.self = this;
		watch.user.changed = was_changed;
		watch.user.removed = was_removed;
		engine.locked([this] { tdm_av_attach(tav, &watch.user); });
		attached = true;
	}

	/* Follow the file, as a pass of progress does. */
	void pass()
	{
		engine.locked([this] { tdm_av_follow_all(&named); });
	}

	/* The index of 192.0.2.1:@port, or a negative error. */
	int64_t put(uint16_t port)
	{
		struct sockaddr_in s = in4("192.0.2.1", port);
		fi_addr_t a = 0;
		int err = 0;
		int ret = fi_av_insert(av, &s, 1, &a, FI_SYNC_ERR, &err);

		if (ret == 1)
			return static_cast<int64_t>(a);
		return ret < 0 ? ret : -err;
	}

	int drop(fi_addr_t a)
	{
		return fi_av_remove(av, &a, 1, 0);
	}

	/* The port at @index, 0 when unset; -1: another address. */
	int at(fi_addr_t index)
	{
		struct sockaddr_in6 s;
		size_t len = sizeof(s);

		memset(&s, 0, sizeof(s));
		if (fi_av_lookup(av, index, &s, &len))
			return 0;
		auto *in = reinterpret_cast<struct sockaddr_in *>(&s);

		return in->sin_family == AF_INET && in->sin_addr.s_addr ==
							    htonl(0xc0000201) ?
			       ntohs(in->sin_port) :
			       -1;
	}

	/* The ports of the first @n indices. */
	std::vector<int> ports(size_t n)
	{
		std::vector<int> list;

		for (size_t i = 0; i < n; i++)
			list.push_back(at(i));
		return list;
	}

private:
	struct Watch {
		struct tdm_av_user user;
		User *self;
	};
	Watch watch = {};
	bool attached = false;

	static User *of(struct tdm_av_user *u)
	{
		return reinterpret_cast<Watch *>(u)->self;
	}

	static void was_changed(struct tdm_av_user *u, int)
	{
		of(u)->changed++;
	}

	static void was_removed(struct tdm_av_user *u, fi_addr_t a)
	{
		of(u)->removed.push_back(a);
	}
};

using Ports = std::vector<int>;

class SharedTest : public testing::Test
{
protected:
	std::string name;
	User one, two, three;

	SharedTest()
	{
		auto *info =
			testing::UnitTest::GetInstance()->current_test_info();

		name = std::string(info->name()) + std::to_string(getpid());
		tdt_log_reset();
	}

	void TearDown() override
	{
		one.close();
		two.close();
		three.close();
		EXPECT_FALSE(there()) << "removed with its last user";
		unlink(path().c_str());
	}

	std::string path()
	{
		return path(name);
	}

	static std::string path(const std::string &name,
				const char *domain = "lo")
	{
		char text[TDM_SHARED_PATHNAME_BYTES];

		EXPECT_EQ(0, tdm_shared_pathname(text, geteuid(), domain,
						 name.c_str()));
		return text;
	}

	bool there()
	{
		struct stat st;

		return !lstat(path().c_str(), &st);
	}

	/*
	 * Write a file at the path of the vector, over the one that is there.
	 */
	void make(const std::string &bytes, mode_t mode = 0600)
	{
		int fd = ::open(path().c_str(), O_RDWR | O_CREAT | O_TRUNC,
				0600);

		ASSERT_LE(0, fd);
		EXPECT_EQ(ssize_t(bytes.size()),
			  write(fd, bytes.data(), bytes.size()));
		EXPECT_EQ(0, fchmod(fd, mode));
		::close(fd);
	}

	/* Change bytes of the file. */
	void poke(const void *bytes, size_t len, uint64_t at)
	{
		int fd = ::open(path().c_str(), O_RDWR);

		ASSERT_LE(0, fd);
		EXPECT_EQ(ssize_t(len), pwrite(fd, bytes, len, off_t(at)));
		::close(fd);
	}

	void peek(void *bytes, size_t len, uint64_t at)
	{
		int fd = ::open(path().c_str(), O_RDONLY);

		ASSERT_LE(0, fd);
		EXPECT_EQ(ssize_t(len), pread(fd, bytes, len, off_t(at)));
		::close(fd);
	}

	uint64_t word(size_t at)
	{
		uint64_t v = 0;

		peek(&v, sizeof(v), at);
		return v;
	}

	void set_word(size_t at, uint64_t v)
	{
		poke(&v, sizeof(v), at);
	}

	/* A change of index 0's block that others have to look at. */
	void announce()
	{
		uint64_t change = word(offsetof(struct tdm_shared_head, gen));

		set_word(offsetof(struct tdm_shared_head, begun), change + 1);
		set_word(offsetof(struct tdm_shared_head, block), change + 1);
		set_word(offsetof(struct tdm_shared_head, gen), change + 1);
	}
};

} // namespace tdt

#endif /* TDT_AV_SHARED_FIXTURE_H */

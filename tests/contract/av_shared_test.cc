/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_av(3): name, map_addr, FI_READ: address vectors that processes share.
 * "all" is what the three versions of the manual agree on. fi_tandem(7), NAMED
 * ADDRESS VECTORS, decides the points that fi_av(3) leaves open.
 */
#include "tests/contract/av_shared_fixture.h"

#include <algorithm>
#include <random>
#include <sys/mman.h>
#include <thread>

namespace
{

using namespace tdt;

class Shared : public SharedTest
{
};

TEST_F(Shared, IsCreatedIfItDoesNotExist)
{
	/* fi_av(3) all versions, fi_av_open 10: a writer that names a vector
	 * which is not there makes it. */
	struct stat st;

	EXPECT_FALSE(there());
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, stat(path().c_str(), &st));
	EXPECT_EQ(mode_t(S_IFREG | 0600), st.st_mode);
	EXPECT_EQ(geteuid(), st.st_uid);
	EXPECT_EQ(0, one.put(1));
	ASSERT_EQ(0, two.open(name));
	EXPECT_EQ(1, two.at(0)) << "the one that exists";
}

TEST_F(Shared, L8_ItsModeIsTheSameUnderAnyUmask)
{
	/* fi_tandem(7), NAMED ADDRESS VECTORS: for the user alone. */
	const mode_t before = umask(0);

	for (mode_t mask : { 000, 077, 0177 }) {
		struct stat st = {};
		User user;

		umask(mask);
		int ret = user.open(name);
		umask(before);
		ASSERT_EQ(0, ret) << mask;
		ASSERT_EQ(0, stat(path().c_str(), &st));
		EXPECT_EQ(mode_t(S_IFREG | 0600), st.st_mode) << mask;
		user.close();
		unlink(path().c_str());
	}
}

TEST_F(Shared, EntriesAreSeenAsTheyAreInserted)
{
	/* fi_av(3) all versions, fi_av_open 9: processes of a node that open
	 * the same named domain may share a vector. */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	ASSERT_EQ(0, three.open(name, FI_READ));
	for (uint16_t i = 0; i < 1000; i++) {
		User &by = i % 2 ? one : two;

		ASSERT_EQ(i, by.put(uint16_t(i + 1)));
		ASSERT_EQ(i + 1, one.at(i));
		ASSERT_EQ(i + 1, two.at(i));
		ASSERT_EQ(i + 1, three.at(i));
	}
}

TEST_F(Shared, AnotherDomainIsAnotherVector)
{
	/* all: "... which access the same named domain". */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, one.put(1));
	ASSERT_EQ(0, two.open(name, 0, FI_SOCKADDR_IN, nullptr, "eth0"));
	EXPECT_EQ(0, two.at(0));
	EXPECT_EQ(0, two.put(2));
	EXPECT_EQ(1, one.at(0));
	EXPECT_EQ(-FI_ENOENT,
		  three.open(name, FI_READ, FI_SOCKADDR_IN, nullptr, "eth1"));
}

TEST_F(Shared, AnotherNameIsAnotherVector)
{
	/* fi_av(3) all versions, fi_av_open 9: the name tells shared vectors
	 * apart. Any text is a name. */
	const std::string names[] = { name,
				      name + "/x",
				      name + ".x",
				      "../" + name,
				      name + "%2Fx",
				      name + "\n",
				      std::string(60, '\xe4') + name };
	std::vector<std::unique_ptr<User>> users;

	for (const auto &n : names) {
		users.emplace_back(new User);
		ASSERT_EQ(0, users.back()->open(n)) << n;
		EXPECT_EQ(0, users.back()->at(0)) << n;
		EXPECT_EQ(0, users.back()->put(1)) << n;
		EXPECT_EQ(0u, path(n).rfind("/dev/shm/tandem-av.", 0)) << n;
		EXPECT_EQ(std::string::npos, path(n).find('/', 9)) << n;
	}
	EXPECT_EQ(-FI_EINVAL, one.open(""));
	EXPECT_EQ(-FI_EINVAL, one.open(std::string(300, 'x')));
	EXPECT_EQ(-FI_EINVAL, one.open(std::string(100, '/')));
}

TEST_F(Shared, MapAddrIsReturned)
{
	/* fi_av(3) all versions, fi_av_open 13: a map_addr of 0 is replaced by
	 * the one used. fi_tandem(7): it is an array of the addresses. */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name, FI_READ));
	ASSERT_NE(nullptr, one.map);
	ASSERT_NE(nullptr, two.map);
	for (const User *u : { &one, &two }) {
		for (size_t i = 0; i < TDM_SHARED_BLOCK; i++)
			ASSERT_EQ(FI_ADDR_NOTAVAIL, u->map[i]);
	}
	for (uint16_t i = 0; i < 600; i++)
		ASSERT_EQ(i, one.put(uint16_t(i + 1)));
	ASSERT_EQ(0, one.drop(300));
	/* No call of theirs is needed, and "count" is room. */
	ASSERT_EQ(0, three.open(name, 0, FI_SOCKADDR_IN, nullptr, "lo", 1000));
	for (const User *u : { &one, &two }) {
		for (size_t i = 0; i < 1000; i++)
			ASSERT_EQ(i < 600 && i != 300 ? i : FI_ADDR_NOTAVAIL,
				  u->map[i]);
	}
}

TEST_F(Shared, MapAddrIsTried)
{
	/* fi_av(3) all versions, fi_av_open 11: processes with the same
	 * map_addr may exchange fi_addr_t values; the provider need not map
	 * anything there. */
	const size_t room = 16 * size_t(TDM_SHARED_ARRAY_BYTES);
	char *hole = static_cast<char *>(mmap(
		nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	ASSERT_NE(MAP_FAILED, static_cast<void *>(hole));
	/* In the middle, where nothing else is put. */
	void *free_place = hole + room / 2;
	ASSERT_EQ(0, munmap(hole, room));
	ASSERT_EQ(0, one.open(name, 0, FI_SOCKADDR_IN, free_place));
	EXPECT_EQ(free_place, one.map);
	EXPECT_EQ(0, one.put(1));
	/* Taken, in one process. */
	ASSERT_EQ(0, two.open(name, 0, FI_SOCKADDR_IN, free_place));
	EXPECT_NE(free_place, two.map);
	EXPECT_EQ(1, two.put(2));
	/* No address of anything. */
	ASSERT_EQ(0, three.open(name, FI_READ, FI_SOCKADDR_IN, this));
	for (User *u : { &one, &two, &three }) {
		EXPECT_EQ((Ports{ 1, 2, 0 }), u->ports(3));
		EXPECT_EQ(0u, u->map[0]);
		EXPECT_EQ(1u, u->map[1]);
	}
}

TEST_F(Shared, ReaderNeedsTheVector)
{
	/* fi_av(3) all versions, fi_av_open 19: FI_READ: the vector has a name
	 * and is there. */
	EXPECT_EQ(-FI_ENOENT, one.open(name, FI_READ));
	EXPECT_FALSE(there());
	ASSERT_EQ(0, two.open(name));
	EXPECT_EQ(0, one.open(name, FI_READ));
}

TEST_F(Shared, ReaderChangesNothing)
{
	/* all: "Opens an AV for read-only access." fi_tandem(7). */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, one.put(1));
	ASSERT_EQ(0, two.open(name, FI_READ));
	EXPECT_EQ(-FI_EACCES, two.put(2));
	EXPECT_EQ(-FI_EACCES, two.put(1)) << "nor what is there";
	EXPECT_EQ(-FI_EACCES, two.drop(0));
	EXPECT_EQ(-FI_EACCES, fi_av_insertsvc(two.av, "192.0.2.1", "1", nullptr,
					      0, nullptr));
	EXPECT_EQ(-FI_EACCES, fi_av_insertsym(two.av, "192.0.2.1", 1, "1", 1,
					      nullptr, 0, nullptr));
	EXPECT_EQ((Ports{ 1, 0 }), one.ports(2));
	EXPECT_EQ((Ports{ 1, 0 }), two.ports(2));
}

TEST_F(Shared, LowestUnusedIndexOfAll)
{
	/* fi_av(3) all versions, fi_av_insert 3: an address takes the lowest
	 * free index. */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	for (uint16_t i = 0; i < 4; i++)
		ASSERT_EQ(i, one.put(uint16_t(i + 1)));
	ASSERT_EQ(0, two.drop(1));
	ASSERT_EQ(0, two.drop(2));
	EXPECT_EQ((Ports{ 1, 0, 0, 4 }), one.ports(4));
	EXPECT_EQ(1, one.put(5));
	EXPECT_EQ(2, two.put(6));
	EXPECT_EQ(4, two.put(7));
	EXPECT_EQ((Ports{ 1, 5, 6, 4, 7 }), one.ports(5));
	EXPECT_EQ((Ports{ 1, 5, 6, 4, 7 }), two.ports(5));
	EXPECT_EQ(-FI_EINVAL, one.drop(9));
}

TEST_F(Shared, EndpointsAreToldOfWhatOthersDo)
{
	/* fi_tandem(7): a process sees what others did when it makes progress,
	 * and when it uses an address. */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	one.attach();
	ASSERT_EQ(0, two.put(1));
	ASSERT_EQ(1, two.put(2));
	EXPECT_EQ(0, one.changed);
	one.pass();
	EXPECT_EQ(1, one.changed);
	one.engine.locked([this] {
		struct tdm_addr a;

		EXPECT_TRUE(tdm_av_has(one.tav, 1));
		ASSERT_EQ(0, tdm_av_addr(one.tav, 1, &a));
		EXPECT_EQ(1u, tdm_av_find(one.tav, &a));
	});
	one.pass();
	EXPECT_EQ(1, one.changed) << "nothing new";
	ASSERT_EQ(0, two.drop(0));
	ASSERT_EQ(0, two.put(3));
	one.pass();
	EXPECT_EQ(std::vector<fi_addr_t>{ 0 }, one.removed);
	EXPECT_EQ((Ports{ 3, 2 }), one.ports(2));
	/* Gone and back again is as if it had stayed. */
	ASSERT_EQ(0, two.drop(1));
	ASSERT_EQ(1, two.put(2));
	one.pass();
	EXPECT_EQ(std::vector<fi_addr_t>{ 0 }, one.removed);
}

TEST_F(Shared, AllInsertsOfAnyKind)
{
	/* all: "Supported flags are the same as for fi_av_insert." */
	struct sockaddr_in bad = in4("192.0.2.1", 0);
	fi_addr_t a[6];
	int err[2] = { -1, -1 };

	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	EXPECT_EQ(1, fi_av_insertsvc(one.av, "192.0.2.1", "1", a, 0, nullptr));
	EXPECT_EQ(4, fi_av_insertsym(two.av, "192.0.2.1", 1, "2", 4, a, 0,
				     nullptr));
	for (size_t i = 0; i < 4; i++)
		EXPECT_EQ(i + 1, a[i]);
	EXPECT_EQ(0, fi_av_insert(one.av, &bad, 1, a, FI_SYNC_ERR, err));
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[0]);
	EXPECT_EQ(FI_EINVAL, err[0]);
	EXPECT_EQ((Ports{ 1, 2, 3, 4, 5, 0 }), one.ports(6));
	EXPECT_EQ((Ports{ 1, 2, 3, 4, 5, 0 }), two.ports(6));
}

TEST_F(Shared, WithEvents)
{
	/* fi_av(3) 1.20, 2.1, fi_av_open 15: FI_EVENT: insertion goes on after
	 * the call. */
	struct fi_eq_attr attr;
	struct tdm_eq *eq;
	struct fi_eq_entry e;
	struct sockaddr_in s[2] = { in4("192.0.2.1", 1), in4("192.0.2.1", 2) };
	uint32_t type = 0;

	memset(&attr, 0, sizeof(attr));
	ASSERT_EQ(0, tdm_eq_open(&attr, nullptr, &eq));
	ASSERT_EQ(0, one.open(name, FI_EVENT));
	ASSERT_EQ(0, two.open(name));
	EXPECT_EQ(-FI_ENOEQ, fi_av_insert(one.av, s, 2, nullptr, 0, nullptr));
	ASSERT_EQ(0,
		  one.av->fid.ops->bind(&one.av->fid, &tdm_eq_fid(eq)->fid, 0));
	EXPECT_EQ(0, fi_av_insert(one.av, s, 2, nullptr, 0, this));
	EXPECT_EQ(ssize_t(sizeof(e)),
		  fi_eq_read(tdm_eq_fid(eq), &type, &e, sizeof(e), 0));
	EXPECT_EQ(uint32_t(FI_AV_COMPLETE), type);
	EXPECT_EQ(2u, e.data);
	EXPECT_EQ((Ports{ 1, 2, 0 }), two.ports(3));
	one.close();
	EXPECT_EQ(0, fi_close(&tdm_eq_fid(eq)->fid));
}

TEST_F(Shared, UserIdsBelongToTheProcess)
{
	/* fi_av(3) 1.20, 2.1, USER IDENTIFIERS FOR ADDRESSES 2: shared vectors
	 * need not have user ids: ours do, fi_tandem(7). */
	struct sockaddr_in s = in4("192.0.2.1", 2);
	fi_addr_t id = 77;

	ASSERT_EQ(0, one.open(name, FI_AV_USER_ID));
	ASSERT_EQ(0, two.open(name));
	ASSERT_EQ(0, two.put(1));
	EXPECT_EQ(0, fi_av_set_user_id(one.av, 0, 55, 0)) << "seen at once";
	EXPECT_EQ(-FI_EINVAL, fi_av_set_user_id(one.av, 1, 55, 0));
	ASSERT_EQ(1, fi_av_insert(two.av, &s, 1, &id, FI_AV_USER_ID, nullptr));
	EXPECT_EQ(1u, id);
	one.pass();
	auto ids = [](User &u, fi_addr_t a) {
		return tdm_user_id(tdm_av_user_ids(u.tav), a);
	};
	EXPECT_EQ(55u, ids(one, 0));
	EXPECT_EQ(FI_ADDR_NOTAVAIL, ids(one, 1));
	EXPECT_EQ(0u, ids(two, 0));
	EXPECT_EQ(77u, ids(two, 1));
}

TEST_F(Shared, KeysAreRefused)
{
	/* fi_tandem(7): not in domains whose addresses have keys. */
	struct tdm_av_attr owner = {};
	struct fi_av_attr a;

	owner.engine = &one.engine.engine;
	owner.addr_format = FI_SOCKADDR_IN;
	owner.keys = 1;
	memset(&a, 0, sizeof(a));
	a.name = name.c_str();
	EXPECT_EQ(-FI_ENOSYS, tdm_av_open(&owner, &a, nullptr, &one.tav));
	EXPECT_EQ(nullptr, a.map_addr);
}

TEST_F(Shared, OneFormatForAll)
{
	/* fi_tandem(7). Both families where the format has both. */
	struct sockaddr_in6 s[2] = { in6("2001:db8::1", 7),
				     in6("fe80::1", 8, 3) };
	struct sockaddr_in6 got;
	size_t len = sizeof(got);

	ASSERT_EQ(0, one.open(name, 0, FI_SOCKADDR_IN6));
	EXPECT_EQ(-FI_EINVAL, two.open(name, 0, FI_SOCKADDR_IN));
	EXPECT_EQ(-FI_EINVAL, two.open(name, FI_READ, FI_ADDR_STR));
	ASSERT_EQ(0, two.open(name, FI_READ, FI_SOCKADDR_IN6));
	ASSERT_EQ(2, fi_av_insert(one.av, s, 2, nullptr, 0, nullptr));
	for (size_t i = 0; i < 2; i++) {
		ASSERT_EQ(0, fi_av_lookup(two.av, i, &got, &len));
		EXPECT_EQ(0, memcmp(&s[i], &got, sizeof(got))) << i;
	}
}

TEST_F(Shared, GoesWithItsLastUser)
{
	/* fi_tandem(7), whoever it is. */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, one.put(1));
	ASSERT_EQ(0, two.open(name, FI_READ));
	one.close();
	EXPECT_TRUE(there());
	EXPECT_EQ(1, two.at(0));
	ASSERT_EQ(0, three.open(name)) << "it exists while a reader has it";
	EXPECT_EQ(1, three.at(0));
	EXPECT_EQ(1, three.put(2));
	three.close();
	EXPECT_EQ(2, two.at(1));
	EXPECT_TRUE(there());
	two.close();
	EXPECT_FALSE(there());
	ASSERT_EQ(0, one.open(name));
	EXPECT_EQ(0, one.at(0)) << "a new one";
}

TEST_F(Shared, WhatNobodyUsesIsMadeAnew)
{
	/* fi_tandem(7): after all users were killed, say. */
	std::string old;

	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, one.put(1));
	old.resize(TDM_SHARED_FILE_BYTES);
	peek(&old[0], old.size(), 0);
	one.close();
	for (const std::string &bytes : { old, std::string(), old.substr(0, 99),
					  std::string(70000, '\xff') }) {
		ASSERT_NO_FATAL_FAILURE(make(bytes));
		EXPECT_EQ(-FI_ENOENT, one.open(name, FI_READ));
		EXPECT_FALSE(there()) << "and is no more";
		ASSERT_NO_FATAL_FAILURE(make(bytes));
		ASSERT_EQ(0, one.open(name));
		EXPECT_EQ(0, one.at(0));
		EXPECT_EQ(0, one.put(3));
		one.close();
	}
}

TEST_F(Shared, RemovedByTheDocumentedCommand)
{
	/*
	 * fi_tandem(7): after rm, processes that have the vector open keep it,
	 * and the next open makes a new one.
	 */
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, one.put(1));
	ASSERT_EQ(0, unlink(path().c_str()));
	ASSERT_EQ(0, two.open(name));
	EXPECT_EQ(0, two.put(2));
	EXPECT_EQ(1, one.put(3));
	EXPECT_EQ((Ports{ 1, 3 }), one.ports(2));
	EXPECT_EQ((Ports{ 2, 0 }), two.ports(2));
	one.close();
	EXPECT_TRUE(there()) << "it is not one's";
}

TEST_F(Shared, FilesOfOthersAreRefused)
{
	/* fi_tandem(7): the same user only. */
	const std::string other = path() + "x";

	for (mode_t mode : { 0604, 0640, 0660, 0666 }) {
		ASSERT_NO_FATAL_FAILURE(make("", mode));
		EXPECT_EQ(-FI_EACCES, one.open(name)) << mode;
		EXPECT_EQ(-FI_EACCES, one.open(name, FI_READ)) << mode;
		EXPECT_TRUE(there()) << "not ours to remove";
		unlink(path().c_str());
	}
	ASSERT_NO_FATAL_FAILURE(make("precious"));
	ASSERT_EQ(0, rename(path().c_str(), other.c_str()));
	ASSERT_EQ(0, symlink(other.c_str(), path().c_str()));
	EXPECT_EQ(-FI_EACCES, one.open(name));
	unlink(path().c_str());
	ASSERT_EQ(0, link(other.c_str(), path().c_str()));
	EXPECT_EQ(-FI_EACCES, one.open(name));
	unlink(path().c_str());
	struct stat st;
	ASSERT_EQ(0, stat(other.c_str(), &st));
	EXPECT_EQ(8, st.st_size) << "and untouched";
	unlink(other.c_str());
	ASSERT_EQ(0, mkfifo(path().c_str(), 0600));
	EXPECT_EQ(-FI_EACCES, one.open(name));
	unlink(path().c_str());
	ASSERT_EQ(0, mkdir(path().c_str(), 0700));
	EXPECT_EQ(-FI_EACCES, one.open(name));
	rmdir(path().c_str());
}

TEST_F(Shared, FilesOfOtherUsersAreRefused)
{
	/* fi_tandem(7): the same user only, root included. */
	if (geteuid())
		GTEST_SKIP() << "only root can make one";
	ASSERT_NO_FATAL_FAILURE(make(""));
	ASSERT_EQ(0, chown(path().c_str(), 65534, 65534));
	EXPECT_EQ(-FI_EACCES, one.open(name));
	EXPECT_EQ(-FI_EACCES, one.open(name, FI_READ));
	EXPECT_TRUE(there());
	unlink(path().c_str());
}

TEST_F(Shared, HeadOfAnotherKindIsRefused)
{
	/* A damaged table is an error, never a crash. */
	const struct {
		size_t at;
		uint32_t value;
		int want;
	} cases[] = {
		{ offsetof(struct tdm_shared_fixed, magic), 0, -FI_EIO },
		{ offsetof(struct tdm_shared_fixed, version), 2,
		  -FI_ENOPROTOOPT },
		{ offsetof(struct tdm_shared_fixed, most), 7, -FI_EIO },
		{ offsetof(struct tdm_shared_fixed, block), 7, -FI_EIO },
		{ offsetof(struct tdm_shared_fixed, entry_bytes), 7, -FI_EIO },
		{ offsetof(struct tdm_shared_fixed, zero), 7, -FI_EIO },
		{ offsetof(struct tdm_shared_fixed, format), 7, -FI_EINVAL },
	};

	ASSERT_EQ(0, one.open(name));
	for (const auto &c : cases) {
		uint32_t old = 0;

		peek(&old, sizeof(old), c.at);
		poke(&c.value, sizeof(c.value), c.at);
		EXPECT_EQ(c.want, two.open(name)) << c.at;
		EXPECT_EQ(c.want, two.open(name, FI_READ)) << c.at;
		poke(&old, sizeof(old), c.at);
	}
	ASSERT_EQ(0, truncate(path().c_str(), TDM_SHARED_FILE_BYTES - 1));
	EXPECT_EQ(-FI_EIO, two.open(name));
	ASSERT_EQ(0, truncate(path().c_str(), TDM_SHARED_FILE_BYTES));
	EXPECT_EQ(0, two.open(name));
}

TEST_F(Shared, DamagedEntryIsAnError)
{
	/* Entries taken over before the damage stay. */
	struct tdm_shared_entry e;

	tdt_log_expect("is damaged");
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, one.put(1));
	ASSERT_EQ(1, one.put(2));
	peek(&e, sizeof(e), tdm_shared_entry_at(0));
	e.port = htons(9);
	poke(&e, sizeof(e), tdm_shared_entry_at(0));
	announce();
	EXPECT_EQ(-FI_EIO, two.open(name));
	EXPECT_EQ(-FI_EIO, two.open(name, FI_READ));
	EXPECT_EQ((Ports{ 1, 2 }), one.ports(2));
	EXPECT_EQ(-FI_EIO, one.put(3));
	EXPECT_EQ(-FI_EIO, one.drop(0));
	EXPECT_EQ((Ports{ 1, 2, 0 }), one.ports(3));
}

TEST_F(Shared, ImpossibleEndIsAnError)
{
	tdt_log_expect("is damaged");
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, one.put(1));
	set_word(offsetof(struct tdm_shared_head, end), TDM_SHARED_MOST + 1);
	announce();
	EXPECT_EQ(1, one.at(0));
	EXPECT_EQ(-FI_EIO, one.put(3));
	EXPECT_EQ(-FI_EIO, two.open(name));
}

TEST_F(Shared, GarbageIsNeverMoreThanAnError)
{
	std::mt19937 rng(1);

	tdt_log_expect("is damaged");
	for (int round = 0; round < 60; round++) {
		ASSERT_EQ(0, one.open(name));
		ASSERT_EQ(0, two.open(name));
		for (uint16_t i = 0; i < 20; i++)
			one.put(uint16_t(i + 1));
		two.pass();
		for (int i = 0; i < 30; i++) {
			uint64_t bytes = rng() * 0x100000001ull;
			uint64_t at = round % 3 == 0 ?
					      rng() % 256 :
				      round % 3 == 1 ?
					      4096 + rng() % 16 :
					      tdm_shared_entry_at(rng() % 22) +
						      rng() % 24;

			if (at < sizeof(struct tdm_shared_fixed))
				at += sizeof(struct tdm_shared_fixed);
			poke(&bytes, 1 + rng() % 8, at);
			if (rng() % 2)
				announce();
			two.pass();
			one.at(rng() % 30);
			one.put(uint16_t(100 + i));
			two.drop(rng() % 30);
			if (!three.open(name, rng() % 2 ? FI_READ : 0))
				three.at(0);
			three.close();
		}
		two.close();
		one.close();
	}
}

TEST_F(Shared, WriterThatDiedIsRepaired)
{
	/* Nothing that a writer leaves behind keeps others from going on. */
	struct tdm_shared_entry e;
	struct tdm_addr a;
	uint64_t begun = offsetof(struct tdm_shared_head, begun);

	memset(&a, 0, sizeof(a));
	a.u.in = in4("192.0.2.1", 4);
	tdm_shared_encode(&e, &a);
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name, FI_READ));
	for (uint16_t i = 0; i < 3; i++)
		ASSERT_EQ(i, one.put(uint16_t(i + 1)));
	/* Dead before it wrote anything. */
	set_word(begun, word(begun) + 1);
	EXPECT_EQ((Ports{ 1, 2, 3, 0 }), two.ports(4));
	ASSERT_EQ(0, three.open(name));
	EXPECT_EQ((Ports{ 1, 2, 3, 0 }), three.ports(4));
	EXPECT_EQ(word(begun), word(offsetof(struct tdm_shared_head, gen)));
	/* Dead when the entry was there. */
	set_word(begun, word(begun) + 1);
	poke(&e, sizeof(e), tdm_shared_entry_at(3));
	EXPECT_EQ(4, three.put(5));
	for (User *u : { &one, &two, &three })
		EXPECT_EQ((Ports{ 1, 2, 3, 4, 5, 0 }), u->ports(6));
	EXPECT_EQ(3u, two.map[3]);
	/* Dead in the middle of an entry. */
	set_word(begun, word(begun) + 1);
	poke(&e, 5, tdm_shared_entry_at(1));
	EXPECT_EQ((Ports{ 1, 2, 3, 4, 5, 0 }), two.ports(6));
	EXPECT_EQ(1, one.put(6));
	for (User *u : { &one, &two, &three })
		EXPECT_EQ((Ports{ 1, 6, 3, 4, 5, 0 }), u->ports(6));
}

TEST_F(Shared, WritersTakeTurns)
{
	const uint16_t each = 400;
	auto run = [&](User &u, uint16_t first) {
		for (uint16_t i = 0; i < each; i++) {
			int64_t a = u.put(uint16_t(first + i));

			ASSERT_LE(0, a);
			ASSERT_EQ(first + i, u.at(fi_addr_t(a)));
			if (i % 5 == 4) {
				ASSERT_EQ(0, u.drop(fi_addr_t(a)));
			}
		}
	};

	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	ASSERT_EQ(0, three.open(name, FI_READ));
	std::thread t1(run, std::ref(one), uint16_t(1000));
	std::thread t2(run, std::ref(two), uint16_t(5000));
	for (int i = 0; i < 200; i++)
		three.pass();
	t1.join();
	t2.join();
	auto all = three.ports(2 * each);
	EXPECT_EQ(all, one.ports(2 * each));
	EXPECT_EQ(all, two.ports(2 * each));
	std::set<int> distinct(all.begin(), all.end());
	EXPECT_EQ(2 * each / 5 * 4 + 1u, distinct.size());
}

TEST_F(Shared, AgreesWithAModel)
{
	std::mt19937 rng(7);
	User *users[] = { &one, &two };
	Ports model(600, 0);

	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	ASSERT_EQ(0, three.open(name, FI_READ));
	for (int step = 0; step < 4000; step++) {
		User &u = *users[rng() % 2];
		size_t i = rng() % 300;

		if (rng() % 5 < 3 &&
		    std::count(model.begin(), model.end(), 0) > 300) {
			/* Few ports: there are duplicates. */
			uint16_t port = uint16_t(1 + rng() % 50);
			auto hole = std::find(model.begin(), model.end(), 0);

			*hole = port;
			ASSERT_EQ(hole - model.begin(), u.put(port));
		} else {
			ASSERT_EQ(model[i] ? 0 : -FI_EINVAL, u.drop(i));
			model[i] = 0;
		}
		if (step % 500 == 0) {
			ASSERT_EQ(model, three.ports(600));
		}
		if (step % 37 == 0)
			three.pass();
	}
	for (User *u : { &one, &two, &three })
		EXPECT_EQ(model, u->ports(600));
}

TEST_F(Shared, NoRoomIsToldOf)
{
	/* fi_tandem(7): 1048576 addresses. */
	struct tdm_shared_attr attr = { "lo", name.c_str(), FI_SOCKADDR_IN, 0,
					nullptr };
	struct tdm_shared *s = nullptr;
	struct tdm_addr a;

	memset(&a, 0, sizeof(a));
	a.u.in = in4("192.0.2.1", 4);
	ASSERT_EQ(0, tdm_shared_open(&attr, &s));
	EXPECT_EQ(-FI_ENOSPC, tdm_shared_put(s, TDM_SHARED_MOST, &a));
	EXPECT_EQ(0, tdm_shared_put(s, TDM_SHARED_MOST - 1, &a));
	tdm_shared_close(s);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attach with a key: who gets a session, and which proofs are none.
 * doc/PROTOCOL-shm.md "Attach".
 */
#include <sys/socket.h>

#include "shm_world.h"
#include "tests/harness/fault.h"

extern "C" {
#include "shm/lifeline.h"
#include "shm/prove.h"
#include "tdm_keys.h"
#include "tdm_live.h"
#include "tdm_space.h"
}

using namespace shm_test;

namespace
{

const char *const SECRET = "a secret of thirty-two letters..";
const char *const OTHER = "another one of thirty-two letters";

struct tdm_auth_keys *key(const char *secret)
{
	struct tdm_auth_keys *k = tdm_auth_alloc(1);

	k->key[0].size = (uint32_t)strlen(secret);
	memcpy(k->key[0].bytes, secret, strlen(secret));
	return k;
}

class ShmKey : public PairTest
{
protected:
	/* The endpoint owns the key. NULL: none. */
	static void give(struct tdt_owner *o, const char *secret)
	{
		if (secret)
			tdm_shm_ep_from_fid(o->ep)->keys = key(secret);
	}

	/* The result of a send from a to b. */
	ssize_t try_send(const char *ours, const char *theirs)
	{
		char c = 1;

		give(a, ours);
		give(b, theirs);
		return send(a, to_b, &c, 1, 1, nullptr, FI_INJECT);
	}
};

TEST_F(ShmKey, TheSameKeyIsASession)
{
	give(a, SECRET);
	give(b, SECRET);
	exchange(8, 1);
	exchange(20000, 2);
	exchange(1 << 20, 3);
	EXPECT_EQ(TDM_SHM_PAIR_UP, pair_of(a)->state);
}

TEST_F(ShmKey, BothAtOnce)
{
	char out[2] = { 1, 2 }, in[2] = {};

	give(a, SECRET);
	give(b, SECRET);
	tdt_owner_trecv(a, &in[0], 1, 1, &in[0]);
	tdt_owner_trecv(b, &in[1], 1, 1, &in[1]);
	EXPECT_EQ(-FI_EAGAIN, tsend(a, to_b, &out[0], 1, 1, &out[0]));
	EXPECT_EQ(-FI_EAGAIN, tsend(b, to_a, &out[1], 1, 1, &out[1]));
	ASSERT_EQ(0, send(a, to_b, &out[0], 1, 1, &out[0]));
	ASSERT_EQ(0, send(b, to_a, &out[1], 1, 1, &out[1]));
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(a, &in[0]) && tdt_owner_find(b, &in[1]);
	}));
	EXPECT_EQ(2, in[0]);
	EXPECT_EQ(1, in[1]);
}

TEST_F(ShmKey, AnotherKeyIsNone)
{
	EXPECT_EQ(-FI_EHOSTUNREACH, try_send(SECRET, OTHER));
	EXPECT_NE(TDM_SHM_PAIR_UP, pair_of(a)->state);
	EXPECT_EQ(nullptr, pair_of(b)) << "a stranger has made a pair";
}

TEST_F(ShmKey, NoKeyIsNotAnswered)
{
	EXPECT_EQ(-FI_EHOSTUNREACH, try_send(nullptr, SECRET));
	EXPECT_EQ(nullptr, pair_of(b));
}

TEST_F(ShmKey, AKeyIsNotForThoseWithout)
{
	EXPECT_EQ(-FI_EHOSTUNREACH, try_send(SECRET, nullptr));
	EXPECT_EQ(nullptr, pair_of(b));
}

/* Keys of an address vector: each has a number there. */
class ShmKeys : public ShmKey
{
protected:
	struct tdm_keys_ops *ops = nullptr;

	void SetUp() override
	{
		ShmKey::SetUp();
		ASSERT_EQ(0, fi_open_ops(&a->av->fid, TDM_KEYS_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
	}

	int have(struct tdt_owner *o,
		 const std::vector<std::pair<uint32_t, const char *>> &secrets)
	{
		struct tdm_auth_keys *keys = tdm_auth_alloc(secrets.size());
		size_t n = 0;

		for (auto &s : secrets) {
			keys->key[n].id = s.first;
			keys->key[n].size = (uint32_t)strlen(s.second);
			memcpy(keys->key[n].bytes, s.second, strlen(s.second));
			n++;
		}
		int ret = ops->take(o->ep, keys);
		tdm_auth_free(keys);
		return ret;
	}

	/* The address of the endpoint at @port for @key, with user id @id. */
	fi_addr_t by_key(struct tdt_owner *o, uint16_t port, uint32_t key,
			 fi_addr_t id)
	{
		struct sockaddr_in in = address(port);
		fi_addr_t at = id;

		EXPECT_EQ(0, ops->insert(o->av, &in, key, &at));
		return at;
	}

	/* a has the keys 1 and 2, b calls the same 6 and 5. */
	void both()
	{
		ASSERT_EQ(0, have(a, { { 1, SECRET }, { 2, OTHER } }));
		ASSERT_EQ(0, have(b, { { 5, OTHER }, { 6, SECRET } }));
	}

	/* A message of @from to @to, which @at gets from the source @src. */
	void carry(struct tdt_owner *from, fi_addr_t to, struct tdt_owner *at,
		   fi_addr_t src)
	{
		char out = 1, in = 0;

		tdt_owner_trecv(at, &in, 1, 3, &in);
		ASSERT_EQ(0, send(from, to, &out, 1, 3, &out));
		ASSERT_TRUE(until([&] { return tdt_owner_find(at, &in); }));
		EXPECT_EQ(1, in);
		EXPECT_EQ(src, tdt_owner_find(at, &in)->src);
		at->dones = 0;
	}

	static struct tdm_shm_pair *pair_by(struct tdt_owner *o, uint16_t port,
					    uint32_t key)
	{
		struct sockaddr_in in = address(port);
		struct tdm_shm_addr addr;

		EXPECT_EQ(0, tdm_shm_addr_set(&addr, &in, sizeof(in)));
		addr.key = key;
		return tdm_shm_pair_find(tdm_shm_ep_from_fid(o->ep), &addr, 0);
	}
};

TEST_F(ShmKeys, ASessionForEachKey)
{
	both();
	fi_addr_t one = by_key(a, port_b, 1, 301),
		  two = by_key(a, port_b, 2, 302);
	fi_addr_t same_one = by_key(b, port_a, 6, 401),
		  same_two = by_key(b, port_a, 5, 402);

	carry(a, two, b, 402);
	carry(a, one, b, 401);
	carry(b, same_one, a, 301);
	carry(b, same_two, a, 302);
	EXPECT_EQ(2u, tdm_shm_ep_from_fid(a->ep)->npairs);
	EXPECT_EQ(2u, tdm_shm_ep_from_fid(b->ep)->npairs);
}

TEST_F(ShmKeys, AKeyThatThePeerDoesNotHave)
{
	char c = 1;

	ASSERT_EQ(0, have(a, { { 1, SECRET } }));
	ASSERT_EQ(0, have(b, { { 1, OTHER } }));
	EXPECT_EQ(-FI_EHOSTUNREACH, send(a, by_key(a, port_b, 1, 301), &c, 1, 1,
					 nullptr, FI_INJECT));
	EXPECT_EQ(nullptr, pair_of(b)) << "a stranger has made a pair";
	/* And one that the endpoint itself does not have. */
	EXPECT_EQ(-FI_EHOSTUNREACH, tsend(a, by_key(a, port_b, 2, 302), &c, 1,
					  1, nullptr, FI_INJECT));
	EXPECT_EQ(-FI_EHOSTUNREACH,
		  tsend(a, to_b, &c, 1, 1, nullptr, FI_INJECT));
}

TEST_F(ShmKeys, AnUnknownSourceTellsItsKey)
{
	tdm_shm_ep_from_fid(b->ep)->domain->spaces = 1;
	both();
	carry(a, by_key(a, port_b, 1, 301), b, TDM_SPACE_WILD | 6);
	by_key(b, port_a, 6, 401);
	carry(a, by_key(a, port_b, 1, 303), b, 401);
	carry(a, by_key(a, port_b, 2, 302), b, TDM_SPACE_WILD | 5);
}

TEST_F(ShmKeys, SessionsAreAskedForByKey)
{
	struct sockaddr_in in = address(port_a);
	struct tdm_live_ops *live = nullptr;

	both();
	carry(a, by_key(a, port_b, 1, 301), b, FI_ADDR_UNSPEC);
	ASSERT_EQ(0, fi_open_ops(&b->ep->fid, TDM_LIVE_OPS, 0,
				 reinterpret_cast<void **>(&live), nullptr));
	EXPECT_TRUE(live->live(b->ep, &in, sizeof(in), 6));
	EXPECT_FALSE(live->live(b->ep, &in, sizeof(in), 5));
	EXPECT_FALSE(live->live(b->ep, &in, sizeof(in), 0));
}

TEST_F(ShmKeys, AnEndpointWithItself)
{
	both();
	carry(a, by_key(a, port_a, 1, 301), a, 301);
	carry(a, by_key(a, port_a, 2, 302), a, 302);
	carry(a, by_key(a, port_b, 2, 303), b, FI_ADDR_UNSPEC);
}

TEST_F(ShmKeys, ASessionEndsWithoutTheOther)
{
	both();
	fi_addr_t one = by_key(a, port_b, 1, 301),
		  two = by_key(a, port_b, 2, 302);

	carry(a, one, b, FI_ADDR_UNSPEC);
	carry(a, two, b, FI_ADDR_UNSPEC);
	tdm_shm_pair_break(pair_by(a, port_b, 1), FI_EPROTO);
	ASSERT_TRUE(until([&] {
		struct tdm_shm_pair *p = pair_by(b, port_a, 6);

		return !p || p->state == TDM_SHM_PAIR_NONE;
	}));
	EXPECT_EQ(TDM_SHM_PAIR_UP, pair_by(a, port_b, 2)->state);
	EXPECT_EQ(TDM_SHM_PAIR_UP, pair_by(b, port_a, 5)->state);
	carry(a, two, b, FI_ADDR_UNSPEC);
	carry(a, one, b, FI_ADDR_UNSPEC);
}

TEST_F(ShmKeys, NoMemoryForKeys)
{
	struct tdm_auth_keys *one = key(SECRET);

	tdt_alloc_fail(1, 0);
	EXPECT_EQ(-FI_ENOMEM, ops->take(a->ep, one));
	EXPECT_EQ(1u, tdt_alloc_stop());
	EXPECT_EQ(nullptr, tdm_shm_ep_from_fid(a->ep)->keys);
	tdm_auth_free(one);
}

/* Two ends of a handshake without the sockets around it. */
class Proof : public testing::Test
{
protected:
	struct End {
		struct tdm_shm_ep ep;
		struct tdm_shm_session s;

		End(enum tdm_shm_session_state state, const char *secret)
		{
			memset((void *)&ep, 0, sizeof(ep));
			memset((void *)&s, 0, sizeof(s));
			ep.keys = key(secret);
			s.ep = &ep;
			if (state == TDM_SHM_SESSION_SENT)
				s.key = &ep.keys->key[0];
			s.state = state;
			s.lifeline.fd = -1;
		}
		~End()
		{
			tdm_auth_free(ep.keys);
			free(s.proofs);
		}

		/* Its HELLO as the other side gets it. */
		struct tdm_shm_msg hello()
		{
			struct tdm_shm_hello h = {};
			struct sockaddr_in in = address(9);
			struct tdm_shm_msg m = {};

			h.head.magic = TDM_SHM_MAGIC;
			h.head.type = TDM_SHM_MSG_HELLO;
			h.version_least = TDM_SHM_VERSION_LEAST;
			h.version_most = TDM_SHM_VERSION_MOST;
			h.incarnation[0] = 1;
			h.slots = TDM_SHM_SLOTS_LEAST;
			h.addrlen = sizeof(in);
			memcpy(h.addr, &in, sizeof(in));
			EXPECT_EQ(0, tdm_shm_prove_hello(&s, &h));
			EXPECT_EQ(0,
				  tdm_shm_msg_decode(&m, &s.proofs->own,
						     sizeof(s.proofs->own), 3));
			EXPECT_TRUE(m.proven);
			return m;
		}

		struct tdm_shm_msg ready()
		{
			struct tdm_shm_msg m = {};
			int sv[2], fds[TDM_SHM_FDS_MOST];

			EXPECT_EQ(0,
				  socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
			s.lifeline.fd = sv[0];
			EXPECT_EQ(0, tdm_shm_prove_ready(&s));
			EXPECT_EQ(0, tdm_shm_msg_recv(sv[1], &m, fds));
			::close(sv[0]);
			::close(sv[1]);
			return m;
		}
	};

	End first{ TDM_SHM_SESSION_SENT, SECRET };
	End second{ TDM_SHM_SESSION_ACCEPTED, SECRET };
};

TEST_F(Proof, IsCheckedByBothSides)
{
	struct tdm_shm_msg one = first.hello(), two, three;

	EXPECT_TRUE(tdm_shm_check_hello(&second.s, &one));
	two = second.hello();
	EXPECT_TRUE(tdm_shm_check_hello(&first.s, &two));
	three = first.ready();
	EXPECT_TRUE(tdm_shm_check_ready(&second.s, &three));
	three.proof[0] ^= 1;
	EXPECT_FALSE(tdm_shm_check_ready(&second.s, &three));
	three.proven = 0;
	EXPECT_FALSE(tdm_shm_check_ready(&second.s, &three));
}

TEST_F(Proof, ProofsOfOthersAreNone)
{
	End other(TDM_SHM_SESSION_SENT, OTHER);
	End third(TDM_SHM_SESSION_ACCEPTED, SECRET);
	struct tdm_shm_msg one = first.hello(), two, three, m;

	m = other.hello();
	EXPECT_FALSE(tdm_shm_check_hello(&second.s, &m));
	ASSERT_TRUE(tdm_shm_check_hello(&second.s, &one));
	two = second.hello();
	/* Reflected: our own words, and its to itself. */
	EXPECT_FALSE(tdm_shm_check_hello(&first.s, &one));
	EXPECT_FALSE(tdm_shm_check_hello(&second.s, &two));
	ASSERT_TRUE(tdm_shm_check_hello(&first.s, &two));
	three = first.ready();
	/* Replayed: the same HELLO to the next one, the same READY. */
	ASSERT_TRUE(tdm_shm_check_hello(&third.s, &one));
	third.hello();
	EXPECT_FALSE(tdm_shm_check_ready(&third.s, &three));
	/* Its HELLO's proof as READY's. */
	memcpy(three.proof, two.proven_hello.proof, sizeof(three.proof));
	EXPECT_FALSE(tdm_shm_check_ready(&second.s, &three));
	/* Without any. */
	m = one;
	m.proven = 0;
	EXPECT_FALSE(tdm_shm_check_hello(&second.s, &m));
}

TEST_F(Proof, CoversEveryByte)
{
	struct tdm_shm_msg one = first.hello(), m;

	for (size_t i = 0; i < sizeof(one.proven_hello); i++) {
		m = one;
		((uint8_t *)&m.proven_hello)[i] ^= 0x20;
		EXPECT_FALSE(tdm_shm_check_hello(&second.s, &m)) << i;
	}
}

TEST_F(Proof, CutShortIsMalformed)
{
	struct tdm_shm_msg m = first.hello();
	struct tdm_shm_proven_hello s = m.proven_hello;

	for (size_t n = sizeof(s.hello); n < sizeof(s); n++) {
		s.hello.head.bytes = (uint16_t)n;
		EXPECT_EQ(-1, tdm_shm_msg_decode(&m, &s, n, 3)) << n;
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake with keys: who gets a session, and what those hear who do not.
 * doc/PROTOCOL-tcp.md "Keys".
 */
#include <arpa/inet.h>

#include "base/env.h"
#include "tcp_raw.h"

#include "base/auth.h"

extern "C" {
#include "tcp/keys.h"
#include "tcp/root.h"
#include "tcp/wire/idle_close.h"
#include "tests/harness/log.h"
#include "tests/harness/test_ep.h"
}

#define OK(call) ASSERT_NO_FATAL_FAILURE(call)

using namespace tcp_test;

namespace
{

using Blob = std::vector<uint8_t>;

enum { GREETING = TDM_WIRE_GREETING_BYTES, PROVEN = TDM_WIRE_PROVEN_BYTES };

struct Keys {
	struct tdm_auth_keys *keys;

	explicit Keys(std::initializer_list<const char *> secrets)
		: keys(tdm_auth_alloc(secrets.size()))
	{
		size_t i = 0;

		for (const char *s : secrets) {
			struct tdm_auth_key *k = &keys->key[i++];

			/* One is the endpoint's own; more are of an AV. */
			k->id = secrets.size() > 1 ? (uint32_t)i : 0;
			k->size = (uint32_t)strlen(s);
			memcpy(k->bytes, s, k->size);
		}
	}
	~Keys()
	{
		tdm_auth_free(keys);
	}
};

const char *const SECRET = "a secret of thirty-two letters..";
const char *const OTHER = "another one of thirty-two letters";

void at_host(struct tdm_addr *a, const char *host)
{
	struct sockaddr_in in = {};
	struct sockaddr_in6 in6 = {};

	in.sin_family = AF_INET;
	in6.sin6_family = AF_INET6;
	in.sin_port = in6.sin6_port = htons(4711);
	if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
		a->u.in = in;
		return;
	}
	ASSERT_EQ(1, inet_pton(AF_INET6, host, &in6.sin6_addr));
	a->u.in6 = in6;
}

/* Lines about an endpoint at @host, and those that warn of strangers. */
void told_of(const char *host, struct tdm_auth_keys *keys, size_t warned)
{
	struct tdm_root *root = tdt_ep_new();

	ASSERT_NE(nullptr, root);
	OK(at_host(&root->name, host));
	root->keys = keys;
	tdt_log_listen(FI_LOG_INFO);
	tdm_ep_tell_open(root);
	EXPECT_EQ(1u, tdt_log_heard("endpoint at ")) << host;
	EXPECT_EQ(warned, tdt_log_heard("without a key")) << host;
	tdt_log_listen(FI_LOG_WARN);
	root->keys = nullptr;
	tdt_ep_free(root);
}

TEST(Open, EndpointsThatStrangersReachAreNamedInTheLog)
{
	/* fi_tandem(7), SECURITY: "An endpoint without a key serves every peer
	 * that can connect to its port": a line of the log says so. On the
	 * loopback that is the host itself. */
	Keys k({ SECRET });

	for (const char *host : { "192.0.2.7", "2001:db8::7", "0.0.0.0" }) {
		OK(told_of(host, nullptr, 1));
		OK(told_of(host, k.keys, 0));
	}
	for (const char *host : { "127.0.0.1", "127.3.2.1", "::1" }) {
		OK(told_of(host, nullptr, 0));
		OK(told_of(host, k.keys, 0));
	}
}

TEST(Auth, ProofIsOfKeyRoleAndText)
{
	/* RFC 4231 says what HMAC-SHA256 is; here, what it is taken of. */
	Keys k({ SECRET, OTHER });
	uint8_t text[200] = {}, proof[TDM_AUTH_PROOF_BYTES];
	struct tdm_auth_text t = { text, 96, text + 96, 104 };
	struct tdm_auth_text cut = { text, 95, text + 95, 105 };

	ASSERT_EQ(0, tdm_auth_prove(&k.keys->key[0], TDM_AUTH_TCP_CLIENT, &t,
				    proof));
	EXPECT_TRUE(tdm_auth_check(&k.keys->key[0], TDM_AUTH_TCP_CLIENT, &t,
				   proof));
	EXPECT_FALSE(tdm_auth_check(&k.keys->key[1], TDM_AUTH_TCP_CLIENT, &t,
				    proof));
	EXPECT_FALSE(tdm_auth_check(&k.keys->key[0], TDM_AUTH_TCP_SERVER, &t,
				    proof));
	EXPECT_FALSE(tdm_auth_check(&k.keys->key[0], TDM_AUTH_TCP_CLIENT, &cut,
				    proof));
	for (int i = 0; i < 200; i++) {
		text[i] ^= 1;
		EXPECT_FALSE(tdm_auth_check(&k.keys->key[0],
					    TDM_AUTH_TCP_CLIENT, &t, proof));
		text[i] ^= 1;
	}
	proof[31] ^= 0x80;
	EXPECT_FALSE(tdm_auth_check(&k.keys->key[0], TDM_AUTH_TCP_CLIENT, &t,
				    proof));
}

class Key : public TcpFault
{
protected:
	Keys secret{ SECRET }, other{ OTHER };

	Node &add_with(const struct Keys *k)
	{
		Node::keys = k ? k->keys : nullptr;
		Node &n = add();
		Node::keys = nullptr;
		return n;
	}

	/* Node 1 sends to node 0: how that ends. */
	int try_send()
	{
		fi_addr_t to = at(1).insert(at(0).addr);
		static char out[8] = "hello";

		EXPECT_EQ(0, at(1).send(to, out, 8, 1));
		EXPECT_TRUE(until([&] { return !at(1).tx.got.empty(); }));
		return at(1).tx.got.empty() ? -1 : at(1).tx.got[0].err;
	}

	/* A HELLO with the proof H of @k, from port 9. */
	static Blob proven(const struct tdm_auth_key *k, uint8_t nonce = 1)
	{
		struct tdm_wire_greeting g = Raw::greeting(9);
		Blob b(GREETING);
		struct tdm_auth_text t = { b.data(), PROVEN, NULL, 0 };

		g.features = g.required = TDM_WIRE_FEATURE_AUTH;
		memset(g.nonce, nonce, sizeof(g.nonce));
		tdm_wire_greeting_encode(b.data(), &g);
		EXPECT_EQ(0, tdm_auth_prove(k, TDM_AUTH_TCP_HELLO, &t,
					    b.data() + PROVEN));
		return b;
	}

	static Blob last(const struct tdm_auth_key *k, const Blob &hello,
			 const Blob &answer)
	{
		struct tdm_auth_text t = { hello.data(), GREETING,
					   answer.data(), GREETING };
		Blob b(TDM_AUTH_PROOF_BYTES);

		EXPECT_EQ(0,
			  tdm_auth_prove(k, TDM_AUTH_TCP_CLIENT, &t, b.data()));
		return b;
	}

	/* The answer of node 0 to @hello. */
	Blob answer_to(const Blob &hello)
	{
		Blob heard;

		raw.call(at(0).addr);
		raw.say(hello);
		EXPECT_TRUE(hears(heard, GREETING));
		return heard;
	}

	/* Node 0 closes, has said nothing more, and has no session. */
	void silence()
	{
		Blob heard;
		bool end = false;

		ASSERT_TRUE(until([&] {
			Blob more = raw.hear(&end);

			heard.insert(heard.end(), more.begin(), more.end());
			return end;
		}));
		EXPECT_EQ(0u, heard.size());
		EXPECT_EQ(0u, at(0).accepted.size());
	}

	const struct tdm_auth_key *k()
	{
		return &secret.keys->key[0];
	}

	/* Does node 0 still serve a peer that knows the key? */
	void still_serves_keyed()
	{
		Node::keys = secret.keys;
		still_serves();
		Node::keys = nullptr;
	}
};

TEST_F(Key, TheSameKeyIsASession)
{
	char in[8];

	add_with(&secret);
	add_with(&secret);
	ASSERT_EQ(0, at(0).recv(in, 8, 1));
	EXPECT_EQ(0, try_send());
	EXPECT_STREQ("hello", in);
	EXPECT_EQ(1u, at(0).accepted.size());
}

TEST_F(Key, ToItselfAsWell)
{
	char in[8];
	Node &n = add_with(&secret);
	fi_addr_t self = n.insert(n.addr);

	ASSERT_EQ(0, n.recv(in, 8, 1));
	ASSERT_EQ(0, n.send(self, "myself", 7, 1));
	ASSERT_TRUE(until([&] { return n.rx.got.size() == 1; }));
	EXPECT_STREQ("myself", in);
}

TEST_F(Key, BothAtOnce)
{
	char in[2][8];

	for (int round = 0; round < 8; round++) {
		add_with(&secret);
		add_with(&secret);
		Node &a = at(2 * round), &b = at(2 * round + 1);
		fi_addr_t to_b = a.insert(b.addr), to_a = b.insert(a.addr);

		ASSERT_EQ(0, a.recv(in[0], 8, 1));
		ASSERT_EQ(0, b.recv(in[1], 8, 1));
		ASSERT_EQ(0, a.send(to_b, "from a", 7, 1));
		ASSERT_EQ(0, b.send(to_a, "from b", 7, 1));
		ASSERT_TRUE(until([&] {
			return a.rx.got.size() + b.rx.got.size() == 2;
		}));
		EXPECT_STREQ("from b", in[0]);
		EXPECT_STREQ("from a", in[1]);
		EXPECT_EQ(0u, a.lost.size() + b.lost.size());
	}
}

TEST_F(Key, WhoComesBackFromARestProvesItAgain)
{
	char in[2][8];

	add_with(&secret);
	add_with(&secret);
	fi_addr_t to[2] = { at(0).insert(at(1).addr),
			    at(1).insert(at(0).addr) };

	for (size_t round = 0; round < 8; round++) {
		for (size_t k = 0; k < 2; k++) {
			ASSERT_EQ(0, at(k).recv(in[k], 8, 1));
			in[k][0] = 0;
		}
		for (size_t k = 0; k < 2; k++) {
			/* One begins, or both at once. */
			ASSERT_EQ(0, at(k).send(to[k], "again", 6, 1));
			while (round % 3 == k && !in[!k][0])
				turn();
		}
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() == round + 1 &&
			       at(1).tx.got.size() == round + 1 && in[0][0] &&
			       in[1][0];
		}));
		tdm_idle_close_crowd(at(round & 1).tcp, -1);
		ASSERT_TRUE(until(
			[&] { return !at(0).tcp->open && !at(1).tcp->open; }));
	}
	EXPECT_EQ(0u, at(0).lost.size() + at(1).lost.size());
}

TEST_F(Key, N3_AnotherKeyIsRejected)
{
	tdm_env.conn_timeout_ms = 300;
	add_with(&secret);
	add_with(&other);
	EXPECT_EQ(FI_EKEYREJECTED, try_send());
	EXPECT_EQ(0u, at(0).accepted.size());
}

TEST_F(Key, NoKeyIsNotAnswered)
{
	tdm_env.conn_timeout_ms = 300;
	add_with(&secret);
	add_with(nullptr);
	EXPECT_EQ(FI_ECONNREFUSED, try_send());
	EXPECT_EQ(0u, at(0).accepted.size());
}

TEST_F(Key, AKeyIsNotForThoseWithout)
{
	add_with(nullptr);
	add_with(&secret);
	EXPECT_EQ(FI_EKEYREJECTED, try_send());
	EXPECT_EQ(0u, at(0).accepted.size());
}

TEST_F(Key, N3_StrangersHearNothing)
{
	Blob b(GREETING);
	struct tdm_wire_greeting g = Raw::greeting(9);

	add_with(&secret);
	raw.call(at(0).addr);
	raw.hello(g);
	OK(silence());
	/* Says that it knows a key, and does not. */
	g.features = TDM_WIRE_FEATURE_AUTH;
	raw.call(at(0).addr);
	raw.hello(g);
	OK(silence());
	raw.call(at(0).addr);
	raw.say(proven(&other.keys->key[0]));
	OK(silence());
	/* One that does, but speaks another version: not told either. */
	g.oldest = g.newest = 77;
	raw.call(at(0).addr);
	raw.hello(g);
	OK(silence());
	OK(still_serves_keyed());
}

TEST_F(Key, TheSecondProofCounts)
{
	Blob hello = proven(k()), answer;

	add_with(&secret);
	answer = answer_to(hello);
	/* It proves that it knows the key. */
	struct tdm_auth_text t = { hello.data(), GREETING, answer.data(),
				   PROVEN };
	EXPECT_TRUE(tdm_auth_check(k(), TDM_AUTH_TCP_SERVER, &t,
				   answer.data() + PROVEN));
	EXPECT_EQ(0u, at(0).accepted.size());
	raw.say(last(k(), hello, answer));
	EXPECT_TRUE(until([&] { return !raw.hear().empty(); }));
	EXPECT_EQ(1u, at(0).accepted.size());
}

TEST_F(Key, N3_ProofsOfOthersAreNone)
{
	Blob hello = proven(k()), answer, old, proof;

	add_with(&secret);
	/* Another key. */
	answer = answer_to(hello);
	raw.say(last(&other.keys->key[0], hello, answer));
	OK(silence());
	/* Reflected: its own proof. */
	answer = answer_to(hello);
	raw.say(Blob(answer.begin() + PROVEN, answer.end()));
	OK(silence());
	/* Reflected: that of our HELLO. */
	answer = answer_to(hello);
	raw.say(Blob(hello.begin() + PROVEN, hello.end()));
	OK(silence());
	/* Replayed: a whole handshake of before. */
	old = answer_to(hello);
	proof = last(k(), hello, old);
	raw.hang_up();
	answer = answer_to(hello);
	EXPECT_NE(old, answer);
	raw.say(proof);
	OK(silence());
	/* One bit. */
	answer = answer_to(hello);
	proof = last(k(), hello, answer);
	proof[7] ^= 4;
	raw.say(proof);
	OK(silence());
	/* Cut short, then the end. */
	answer = answer_to(hello);
	proof = last(k(), hello, answer);
	raw.say(proof.data(), proof.size() - 1);
	settle();
	raw.hang_up();
	settle();
	EXPECT_EQ(0u, at(0).accepted.size());
	OK(still_serves_keyed());
}

TEST_F(Key, N3_EveryBitOfAHelloIsProven)
{
	Blob hello;

	add_with(&secret);
	for (int i = 8; i < GREETING; i += 3) {
		hello = proven(k());
		hello[(size_t)i] ^= 0x10;
		raw.call(at(0).addr);
		raw.say(hello);
		OK(silence());
	}
}

TEST_F(Key, AnAcceptorWithoutItIsLeft)
{
	/* Answers as if it knew the key: the answer proves nothing. */
	tdm_env.conn_timeout_ms = 300;
	Door door;
	Node &n = add_with(&secret);

	ASSERT_EQ(0, n.send(n.insert(door.addr), "secret", 7, 1));
	std::vector<int> open;
	size_t records = 0;
	ASSERT_TRUE(until([&] {
		int c = accept4(door.fd, NULL, NULL, SOCK_NONBLOCK);

		if (c >= 0) {
			struct tdm_wire_greeting g =
				Raw::greeting(tdm_addr_port(&door.addr));
			uint8_t b[GREETING];

			g.features = TDM_WIRE_FEATURE_AUTH;
			memset(g.proof, 9, sizeof(g.proof));
			tdm_wire_greeting_encode(b, &g);
			EXPECT_EQ(GREETING, ::send(c, b, GREETING, 0));
			open.push_back(c);
		}
		for (int o : open) {
			uint8_t b[512];
			ssize_t k = ::recv(o, b, sizeof(b), MSG_DONTWAIT);

			if (k > GREETING)
				records++;
		}
		return !n.tx.got.empty();
	}));
	EXPECT_EQ(FI_EKEYREJECTED, n.tx.got[0].err);
	EXPECT_EQ(0u, records);
	for (int o : open)
		close(o);
}

TEST_F(Key, SeveralKeysAreSeveralSessions)
{
	Keys both({ SECRET, OTHER });
	char in[8];

	add_with(&both);
	add_with(&secret);
	ASSERT_EQ(0, at(0).recv(in, 8, 1));
	EXPECT_EQ(0, try_send());
	EXPECT_STREQ("hello", in);
	Node &n = add_with(&other);
	ASSERT_EQ(0, at(0).recv(in, 8, 2));
	ASSERT_EQ(0, n.send(n.insert(at(0).addr), "other", 6, 2));
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 2; }));
	EXPECT_STREQ("other", in);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS over TCP: doc/PROTOCOL-tcp.md, "TLS"; fi_tandem(7), ENCRYPTION.
 */
#include <algorithm>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp_raw.h"

extern "C" {
#include "base/auth.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/tls_priv.h"
#include "tests/harness/log.h"
}

using namespace tcp_test;

namespace
{

const char SECRET[] = "a secret of thirty-two letters..";
const char OTHER[] = "another one of thirty-two letters";

struct tdm_auth_keys *one(const char *secret)
{
	return tdm_auth_one(secret, strlen(secret));
}

/* All bytes that were sent, and from which port. */
struct Sent {
	uint16_t port;
	std::string bytes;
};
std::vector<Sent> wire;

ssize_t seen_send(int fd, const void *buf, size_t len, int flags)
{
	ssize_t n = tdm_os_system.send(fd, buf, len, flags);
	struct sockaddr_in in = {};
	socklen_t size = sizeof(in);

	getsockname(fd, (struct sockaddr *)&in, &size);
	if (n > 0)
		wire.push_back({ ntohs(in.sin_port),
				 std::string((const char *)buf, size_t(n)) });
	return n;
}

class TcpTls : public TcpFault
{
protected:
	struct tdm_auth_keys *secret = one(SECRET), *other = one(OTHER);

	TcpTls()
	{
		tdm_env.tls = 1;
		tdm_env.conn_timeout_ms = 30000;
		Node::keys = secret;
		wire.clear();
		Flips::due = 0;
	}

	void TearDown() override
	{
		TcpFault::TearDown();
		tdm_auth_free(secret);
		tdm_auth_free(other);
	}

	/* Node 0 sends @n bytes to node 1, which has them; a pair of this number. */
	void exchange(size_t n, uint64_t tag, size_t from = 0)
	{
		const size_t to = 1 - from;
		Bytes out = pattern(n, unsigned(tag)), in(n + 1);

		at(to).rx.got.clear();
		at(from).tx.got.clear();
		ASSERT_EQ(0, at(to).recv(in.data(), n, tag));
		ASSERT_EQ(0, at(from).send(to, out.data(), n, tag));
		ASSERT_TRUE(until([&] {
			return at(to).rx.got.size() == 1 &&
			       at(from).tx.got.size() == 1;
		})) << n;
		EXPECT_TRUE(same(out, in, n)) << n;
	}

	/* How a send of node 0 to node 1 ends: 0, or the error of its entry. */
	int ends()
	{
		at(0).tx.got.clear();
		EXPECT_EQ(0,
			  at(0).send(at(0).insert(at(1).addr), "hello", 6, 1));
		EXPECT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		return at(0).tx.got.empty() ? -1 : at(0).tx.got[0].err;
	}
};

TEST_F(TcpTls, MessagesOfAllLengthsInPiecesOfAnyLength)
{
	mesh(2);
	for (bool pieces : { false, true }) {
		if (pieces) {
			tdm_os.send = short_send;
			tdm_os.recv = short_recv;
		}
		for (size_t n :
		     { 0, 1, 100, 5000, 16383, 16384, 16385, 70000, 1 << 20 }) {
			exchange(n, n);
			exchange(n, n, 1);
		}
	}
	EXPECT_TRUE(at(0).conn(1)->tls && at(1).conn(0)->tls);
}

TEST_F(TcpTls, NothingOnTheWireCanBeRead)
{
	const std::string words = "these words are for node 1 alone";
	std::string all;
	char in[64];

	tdm_os.send = seen_send;
	mesh(2);
	ASSERT_EQ(0, at(1).recv(in, sizeof(in), 1));
	ASSERT_EQ(0, at(0).send(1, words.data(), words.size(), 1));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_EQ(0, memcmp(in, words.data(), words.size()));
	for (const auto &w : wire)
		all += w.bytes;
	EXPECT_LT(words.size(), all.size());
	EXPECT_EQ(std::string::npos, all.find(words));
	EXPECT_EQ(std::string::npos, all.find("tandem")); /* a greeting */
	EXPECT_EQ(std::string::npos, all.find(SECRET));
}

TEST_F(TcpTls, ToItselfAndBothAtOnce)
{
	char in[2][8];

	mesh(1);
	ASSERT_EQ(0, at(0).recv(in[0], 8, 1));
	ASSERT_EQ(0, at(0).send(0, "myself", 7, 1));
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 1; }));
	EXPECT_STREQ("myself", in[0]);
	for (int round = 0; round < 8; round++) {
		nodes.clear();
		mesh(2);
		ASSERT_EQ(0, at(0).recv(in[0], 8, 1));
		ASSERT_EQ(0, at(1).recv(in[1], 8, 1));
		ASSERT_EQ(0, at(0).send(1, "from 0", 7, 1));
		ASSERT_EQ(0, at(1).send(0, "from 1", 7, 1));
		ASSERT_TRUE(until([&] {
			return at(0).rx.got.size() + at(1).rx.got.size() == 2;
		}));
		EXPECT_STREQ("from 1", in[0]);
		EXPECT_STREQ("from 0", in[1]);
		EXPECT_EQ(0u, at(0).lost.size() + at(1).lost.size());
	}
}

TEST_F(TcpTls, ManyCallersAtOnceAllGetASession)
{
	enum { CALLERS = 24 };
	char in[CALLERS][8];

	for (int i = 0; i <= CALLERS; i++)
		add();
	for (int i = 0; i < CALLERS; i++)
		ASSERT_EQ(0, at(0).recv(in[i], 8, 1));
	for (int i = 1; i <= CALLERS; i++)
		ASSERT_EQ(0,
			  at(i).send(at(i).insert(at(0).addr), "hello", 6, 1));
	EXPECT_TRUE(until([&] { return at(0).rx.got.size() == CALLERS; }));
}

TEST_F(TcpTls, N3_WhoKnowsNoKeyHearsNothing)
{
	/* fi_tandem(7), ENCRYPTION, With a key. */
	bool end = false;
	size_t heard = 0;

	tdm_env.conn_timeout_ms = 300;
	tdm_os.send = seen_send;
	Node::keys = other;
	add();
	Node::keys = secret;
	add();
	EXPECT_EQ(FI_EKEYREJECTED, ends());
	EXPECT_FALSE(wire.empty());
	for (const auto &w : wire)
		EXPECT_NE(tdm_addr_port(&at(1).addr), w.port);
	/* Bytes that are no TLS: a greeting, and what others send. */
	for (bool greeting : { true, false }) {
		raw.call(at(1).addr);
		if (greeting)
			raw.hello(Raw::greeting(9));
		else
			raw.say("GET / HTTP/1.0\r\n\r\n", 18);
		ASSERT_TRUE(until([&] {
			heard += raw.hear(&end).size();
			return end;
		}));
	}
	EXPECT_EQ(0u, heard);
	EXPECT_EQ(0u, at(1).accepted.size());
	EXPECT_EQ(0u, at(1).tcp->guest_count);
}

TEST_F(TcpTls, N3_WithAKeyNoCertificateWillDo)
{
	/* The process that listens there has a certificate of its own, and no key. */
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	Door door;
	int fd = -1;
	size_t greetings = 0;

	X509_set_pubkey(cert, key);
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	ASSERT_LT(0, X509_sign(cert, key, EVP_sha256()));
	SSL_CTX *server = SSL_CTX_new(TLS_server_method());

	ASSERT_EQ(1, SSL_CTX_use_certificate(server, cert));
	ASSERT_EQ(1, SSL_CTX_use_PrivateKey(server, key));
	tdm_env.conn_timeout_ms = 300;
	add();
	ASSERT_EQ(0, at(0).send(at(0).insert(door.addr), "hello", 6, 1));
	SSL *ssl = nullptr;

	ASSERT_TRUE(until([&] {
		char byte;
		int next = accept4(door.fd, nullptr, nullptr, SOCK_NONBLOCK);

		if (next >= 0) {
			SSL_free(ssl);
			if (fd >= 0)
				::close(fd);
			fd = next;
			ssl = SSL_new(server);
			SSL_set_fd(ssl, fd);
			SSL_set_accept_state(ssl);
		}
		greetings += ssl && SSL_read(ssl, &byte, 1) > 0;
		return at(0).tx.got.size() == 1;
	}));
	EXPECT_EQ(FI_EKEYREJECTED, at(0).tx.got[0].err);
	EXPECT_EQ(0u, greetings);
	EXPECT_LE(0, fd);
	SSL_free(ssl);
	SSL_CTX_free(server);
	X509_free(cert);
	EVP_PKEY_free(key);
	::close(fd);
}

TEST_F(TcpTls, ASideWithoutItIsNotReached)
{
	/* fi_tandem(7), ENCRYPTION, the errors. */
	tdm_env.conn_timeout_ms = 300;
	add();
	tdm_env.tls = 0;
	Node::keys = nullptr;
	add();
	EXPECT_EQ(FI_EKEYREJECTED, ends());
	std::swap(nodes[0], nodes[1]);
	EXPECT_EQ(FI_ECONNREFUSED, ends());
}

TEST_F(TcpTls, NeedsAKeyOrCertificates)
{
	struct tdm_tls_ctx *ctx;

	tdt_log_expect("FI_TANDEM_TLS");
	EXPECT_EQ(-FI_ENOKEY, tdm_tls_ctx_open(nullptr, &ctx));
	tdm_env.tls_ca = "/nowhere/ca.pem";
	EXPECT_EQ(-FI_ENOKEY, tdm_tls_ctx_open(secret, &ctx));
	tdm_env.tls = 0;
	EXPECT_EQ(0, tdm_tls_ctx_open(nullptr, &ctx));
	EXPECT_EQ(nullptr, ctx);
	tdm_env.tls_ca = nullptr;
	tdm_env.tls = 1;
}

TEST_F(TcpTls, W3_ChangedBytesAreNeverDelivered)
{
	/* Some of the bits are of lengths: those are noticed when time passes. */
	tdm_env.peer_timeout_ms = 4000;
	tdm_os.recv = Flips::recv;
	mesh(2);
	exchange(100, 1);
	for (uint64_t tag = 2; tag < 14; tag++) {
		Flips::due = 1 + Flips::rng() % 4;
		exchange(size_t(Flips::rng() % 100000), tag, tag % 2);
	}
	EXPECT_EQ(0u, at(0).lost.size() + at(1).lost.size());
}

TEST_F(TcpTls, D7_SessionsAreResumed)
{
	/* Short ones too: they come with the peer's greeting. */
	mesh(2);
	exchange(100, 1);
	for (uint64_t tag = 2; tag < 60; tag++) {
		const size_t from = tag % 2, to = 1 - from;
		struct tdm_conn *c = at(tag / 2 % 2).conn(1 - tag / 2 % 2);
		Bytes out = pattern(tag % 3 ? 100 : 50000, unsigned(tag));
		Bytes in(out.size());
		unsigned turns = Flips::rng() % 6;

		at(from).tx.got.clear();
		at(to).rx.got.clear();
		ASSERT_EQ(0, at(to).recv(in.data(), in.size(), tag));
		if (c->io.fd >= 0)
			reset_connection(c->io.fd);
		while (tag % 4 > 1 && turns--)
			turn();
		ASSERT_EQ(0, at(from).send(to, out.data(), out.size(), tag));
		ASSERT_TRUE(until([&] {
			return at(from).tx.got.size() == 1 &&
			       at(to).rx.got.size() == 1;
		})) << tag;
		EXPECT_EQ(0, at(from).tx.got[0].err);
		EXPECT_TRUE(same(out, in, in.size()));
	}
	EXPECT_EQ(0u, at(0).lost.size() + at(1).lost.size());
}

TEST_F(TcpTls, TheKeysOfTheCipherChange)
{
	mesh(2);
	exchange(100, 1);
	ASSERT_NE(nullptr, at(0).conn(1)->tls);
	at(0).conn(1)->tls->sealed = TDM_TLS_SEALED_MOST - 2;
	for (uint64_t tag = 2; tag < 8; tag++)
		exchange(40000, tag);
	EXPECT_LT(at(0).conn(1)->tls->sealed, 100u);
}

/* ---- certificates -------------------------------------------------------- */

class TcpTlsCert : public TcpTls
{
protected:
	std::string dir = testing::TempDir() + "tandem-tls-" +
			  std::to_string(getpid()) + "-";
	std::vector<std::string> files;

	struct Authority {
		EVP_PKEY *key = nullptr;
		X509 *cert = nullptr;

		~Authority()
		{
			X509_free(cert);
			EVP_PKEY_free(key);
		}
	} ours, foreign;

	TcpTlsCert()
	{
		Node::keys = nullptr;
		found(ours, "ours");
		found(foreign, "foreign");
	}

	void TearDown() override
	{
		TcpTls::TearDown();
		for (const auto &f : files)
			unlink(f.c_str());
	}

	static X509 *certify(EVP_PKEY *key, const char *name,
			     const Authority *by, EVP_PKEY *with)
	{
		X509 *x = X509_new();
		X509_NAME *n = X509_get_subject_name(x);

		X509_set_version(x, 2);
		ASN1_INTEGER_set(X509_get_serialNumber(x),
				 long(Flips::rng() | 1));
		X509_gmtime_adj(X509_getm_notBefore(x), -3600);
		X509_gmtime_adj(X509_getm_notAfter(x), 3600);
		X509_set_pubkey(x, key);
		X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC,
					   (const unsigned char *)name, -1, -1,
					   0);
		X509_set_issuer_name(x,
				     by ? X509_get_subject_name(by->cert) : n);
		if (!by) {
			X509_EXTENSION *e = X509V3_EXT_conf_nid(
				nullptr, nullptr, NID_basic_constraints,
				"critical,CA:TRUE");

			X509_add_ext(x, e, -1);
			X509_EXTENSION_free(e);
		}
		EXPECT_LT(0, X509_sign(x, with, EVP_sha256()));
		return x;
	}

	static void found(Authority &a, const char *name)
	{
		a.key = EVP_EC_gen("P-256");
		a.cert = certify(a.key, name, nullptr, a.key);
	}

	/* Returns the name of a file, kept until the end of the test. */
	const char *file(const std::string &name, X509 *cert, EVP_PKEY *key)
	{
		static std::map<std::string, std::string> names;
		const std::string path = dir + name;
		FILE *f = fopen(path.c_str(), "w");

		EXPECT_NE(nullptr, f);
		if (cert)
			PEM_write_X509(f, cert);
		if (key)
			PEM_write_PrivateKey(f, key, nullptr, nullptr, 0,
					     nullptr, nullptr);
		fclose(f);
		files.push_back(path);
		return (names[path] = path).c_str();
	}

	/* The files of a process that @by certifies and that trusts @trusted. */
	void become(const char *name, const Authority &by,
		    const Authority &trusted)
	{
		EVP_PKEY *key = EVP_EC_gen("P-256");
		X509 *cert = certify(key, name, &by, by.key);

		tdm_env.tls_cert =
			file(std::string(name) + ".crt", cert, nullptr);
		tdm_env.tls_key =
			file(std::string(name) + ".key", nullptr, key);
		tdm_env.tls_ca =
			file(std::string(name) + ".ca", trusted.cert, nullptr);
		X509_free(cert);
		EVP_PKEY_free(key);
	}
};

TEST_F(TcpTlsCert, OfOneAuthority)
{
	become("first", ours, ours);
	add();
	become("second", ours, ours);
	mesh(2);
	for (size_t n : { 1, 70000 }) {
		exchange(n, n);
		exchange(n, n, 1);
	}
}

TEST_F(TcpTlsCert, RecordsBehindTheGreetingAreRead)
{
	/* Both have something to send at once; the acceptor's follows its HELLO. */
	char in[2][8];

	become("all", ours, ours);
	for (int round = 0; round < 8; round++) {
		nodes.clear();
		mesh(2);
		for (size_t k = 0; k < 2; k++) {
			ASSERT_EQ(0, at(k).recv(in[k], 8, 1));
			ASSERT_EQ(0, at(k).send(1 - k, "hello", 6, 1));
		}
		ASSERT_TRUE(until([&] {
			return at(0).rx.got.size() + at(1).rx.got.size() == 2;
		})) << round;
	}
}

TEST_F(TcpTlsCert, WithAKeyBesides)
{
	become("first", ours, ours);
	Node::keys = secret;
	mesh(2);
	exchange(100, 1);
	tdm_env.conn_timeout_ms = 300;
	nodes.clear();
	add();
	Node::keys = other;
	add();
	EXPECT_EQ(FI_EKEYREJECTED, ends());
}

TEST_F(TcpTlsCert, OfAnotherAuthority)
{
	/* Either side may be the one that does not trust the other. */
	tdm_env.conn_timeout_ms = 300;
	for (bool acceptor : { true, false }) {
		nodes.clear();
		become("honest", ours, ours);
		add();
		become("stranger", foreign, acceptor ? ours : foreign);
		add();
		if (acceptor)
			std::swap(nodes[0], nodes[1]);
		EXPECT_EQ(FI_EKEYREJECTED, ends());
		EXPECT_EQ(0u, at(1).accepted.size());
	}
}

TEST_F(TcpTlsCert, FilesThatDoNotFit)
{
	struct tdm_tls_ctx *ctx;

	tdt_log_expect("FI_TANDEM_TLS_");
	become("first", ours, ours);
	EXPECT_EQ(0, tdm_tls_ctx_open(nullptr, &ctx));
	tdm_tls_ctx_close(ctx);
	const char *cert = tdm_env.tls_cert, *key = tdm_env.tls_key;

	tdm_env.tls_cert = key;
	EXPECT_EQ(-FI_ENOKEY, tdm_tls_ctx_open(nullptr, &ctx));
	tdm_env.tls_cert = cert;
	tdm_env.tls_key = cert;
	EXPECT_EQ(-FI_ENOKEY, tdm_tls_ctx_open(nullptr, &ctx));
	become("second", ours, ours);
	tdm_env.tls_cert = cert; /* not of this key */
	EXPECT_EQ(-FI_ENOKEY, tdm_tls_ctx_open(nullptr, &ctx));
	become("secret", ours, ours); /* nobody is asked for its pass phrase */
	FILE *f = fopen(tdm_env.tls_key, "w");
	EVP_PKEY *pkey = EVP_EC_gen("P-256");

	PEM_write_PrivateKey(f, pkey, EVP_aes_128_cbc(),
			     (const unsigned char *)"phrase", 6, nullptr,
			     nullptr);
	fclose(f);
	EVP_PKEY_free(pkey);
	EXPECT_EQ(-FI_ENOKEY, tdm_tls_ctx_open(nullptr, &ctx));
	become("third", ours, ours);
	tdm_env.tls_ca = nullptr;
	EXPECT_EQ(-FI_ENOKEY, tdm_tls_ctx_open(nullptr, &ctx));
}

} // namespace

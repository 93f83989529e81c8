/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fuzz targets without libFuzzer: the records, greetings and packets of a
 * peer, the file of a named address vector, and the variables of a user, cut and
 * changed.
 */
#include <cstring>
#include <initializer_list>

#include <netinet/in.h>

#include <gtest/gtest.h>

extern "C" {
#include "av/shared_format.h"
#include "shm/packet.h"
#include "shm/record.h"
#include "tcp/wire/greeting.h"
}
#include "tests/unit/mutate.h"

namespace
{

template <class T> std::string bytes(const T &t)
{
	return std::string(reinterpret_cast<const char *>(&t), sizeof(t));
}

std::string record(struct tdm_wire_rec rec)
{
	uint8_t head[TDM_WIRE_HEAD_BYTES];
	size_t n = tdm_wire_encode(head, &rec);

	return std::string(reinterpret_cast<char *>(head), n) +
	       std::string(rec.len, 'p');
}

struct tdm_wire_rec rec_of(int op, int flags, uint32_t len)
{
	struct tdm_wire_rec rec;

	memset(&rec, 0, sizeof(rec));
	rec.op = uint8_t(op);
	rec.flags = uint8_t(flags);
	rec.len = len;
	rec.step = 1;
	rec.total = len;
	return rec;
}

struct sockaddr_in name()
{
	struct sockaddr_in in;

	memset(&in, 0, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_port = htons(4711);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return in;
}

std::string greeting(uint32_t features)
{
	uint8_t p[TDM_WIRE_GREETING_BYTES];
	struct tdm_wire_greeting g;
	struct sockaddr_in in = name();

	memset(&g, 0, sizeof(g));
	g.kind = TDM_WIRE_HELLO;
	g.oldest = g.newest = TDM_WIRE_VERSION;
	g.features = features;
	g.id[0] = 1;
	EXPECT_EQ(0, tdm_addr_from_sockaddr(&g.addr, &in, sizeof(in)));
	g.credit = TDM_WIRE_CREDIT_LEAST;
	g.rts = g.contexts = 1;
	tdm_wire_greeting_encode(p, &g);
	return std::string(reinterpret_cast<char *>(p), sizeof(p));
}

std::string slots(uint8_t op, uint8_t flags, uint16_t aux, size_t n)
{
	std::string s = bytes(tdm_shm_word0(1, op, flags, aux));

	s.resize(n * TDM_SHM_SLOT_BYTES);
	return s;
}

std::string packet(uint16_t type, size_t len, uint32_t arg)
{
	struct tdm_shm_msg_head head = { TDM_SHM_MAGIC, type, uint16_t(len),
					 arg };
	std::string s = bytes(head);

	s.resize(len);
	return s;
}

std::string hello(uint32_t features, size_t len)
{
	struct tdm_shm_hello h;
	struct sockaddr_in in = name();

	memset(&h, 0, sizeof(h));
	h.head = { TDM_SHM_MAGIC, TDM_SHM_MSG_HELLO, uint16_t(len), 0 };
	h.version_least = h.version_most = 1;
	h.features = features;
	h.incarnation[0] = 1;
	h.slots = TDM_SHM_SLOTS_LEAST;
	h.addrlen = sizeof(in);
	memcpy(h.addr, &in, sizeof(in));
	return (bytes(h) + std::string(64, 'p')).substr(0, len);
}

std::string entries(std::initializer_list<const char *> texts)
{
	struct tdm_shared_entry e;
	struct tdm_addr a;
	std::string all;

	for (const char *text : texts) {
		EXPECT_EQ(0, tdm_addr_from_str(&a, text, strlen(text))) << text;
		tdm_shared_encode(&e, &a);
		all += bytes(e);
	}
	return all;
}

/* A head of a file that has the size and the address format that are wanted. */
std::string file_head(uint32_t format)
{
	struct tdm_shared_fixed fixed;

	tdm_shared_fixed_init(&fixed, format);
	return bytes(uint64_t(TDM_SHARED_FILE_BYTES)) + bytes(format) +
	       bytes(fixed);
}

} // namespace

TEST(Fuzz, StreamKeepsItsPromisesForAnyBytes)
{
	std::vector<std::string> seeds;
	std::string all;

	for (int op = 1; op < TDM_WIRE_OP_COUNT; op++) {
		struct tdm_wire_rec rec = rec_of(
			op, 0, op == TDM_WIRE_DATA || op == TDM_WIRE_LOCAL);

		if (op == TDM_WIRE_ATOMIC) {
			rec.len = rec.total = 8;
			rec.amo.type = FI_UINT64;
		}
		all += record(rec);
	}
	seeds.push_back(all);
	seeds.push_back(record(rec_of(TDM_WIRE_EAGER, 0x8f, 20)));
	mutate(tdt_fuzz_stream, seeds);
}

TEST(Fuzz, GreetingKeepsItsPromisesForAnyBytes)
{
	mutate(tdt_fuzz_greeting,
	       { std::string(1, 0) + greeting(0),
		 std::string(1, 1) + greeting(TDM_WIRE_FEATURE_AUTH),
		 std::string(1, 7) + greeting(TDM_WIRE_FEATURE_AUTH) });
}

TEST(Fuzz, RingKeepsItsPromisesForAnyBytes)
{
	struct tdm_shm_chunk chunk = { 1, 0, 100, 0, 0 };
	struct tdm_shm_left left = { 1, 8, TDM_SHM_LEFT_PAYLOAD };
	std::string all(1, 0);

	all += slots(TDM_SHM_REC_MSG, 0, 8, 1);
	all += slots(TDM_SHM_REC_TAG, TDM_SHM_REC_DATA, 500, 5);
	for (uint8_t op = TDM_SHM_REC_RTS_MSG; op < TDM_SHM_REC_PAD; op++)
		all += slots(op, 0, 0, 1);
	for (uint8_t op = TDM_SHM_REC_WRITE; op < TDM_SHM_REC_RANGES; op++)
		all += slots(op, 0, 0, 1);
	all += slots(TDM_SHM_REC_RANGES, 0, 2, 1);
	mutate(tdt_fuzz_ring,
	       { all, std::string(1, 1) + bytes(chunk) + std::string(16, 1),
		 std::string(1, 2) + bytes(left) + std::string(32, 0) });
}

TEST(Fuzz, AttachKeepsItsPromisesForAnyBytes)
{
	mutate(tdt_fuzz_attach,
	       { std::string(1, 3) + hello(0, 96),
		 std::string(1, 3) + hello(TDM_SHM_FEATURE_AUTH, 144),
		 std::string(1, 0) +
			 packet(TDM_SHM_MSG_REJECT, 16, TDM_SHM_WHY_BUSY),
		 std::string(1, 0) + packet(TDM_SHM_MSG_READY, 48, 0),
		 std::string(1, 1) + packet(TDM_SHM_MSG_RING, 16, 504) });
}

TEST(Fuzz, SharedFileKeepsItsPromisesForAnyBytes)
{
	const std::string two = entries({ "fi_sockaddr_in://192.0.2.1:1",
					  "fi_sockaddr_in6://[fe80::1%7]:1" });

	/* The first byte: the form, and 4 for sums that are made right. */
	mutate(tdt_fuzz_shared_av,
	       { std::string(1, 0) + file_head(FI_SOCKADDR_IN),
		 std::string(1, 1) + two, std::string(1, 5) + two,
		 std::string(1, 2) + bytes(name()),
		 std::string("\3\1\0\0\0eth0.7\0My_av-1", 19) });
}

TEST(Fuzz, EnvironmentKeepsItsPromisesForAnyText)
{
	/* The first byte: the row of the table in env_fuzz.c. */
	const std::vector<std::string> seeds = {
		"\003eth0,10.0.0.0/8^lo", "\00440000-50000", "\00530min",
		"\0130123456789abcdef",	  "\02264KiB",	     "\026full:/tmp/%p",
		"\030EAGR_SIZE=512",
	};

	mutate(tdt_fuzz_env, seeds);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One progress call takes a bounded number of records and pieces of long
 * messages from each peer, and then serves the next one: row R5. Endpoint a floods
 * b, and c sends single messages.
 */
#include <algorithm>

#include "shm_world.h"

extern "C" {
#include "shm/way.h"
}

using namespace shm_test;

namespace
{

class ShmFair : public PairTest
{
protected:
	enum {
		CALL_RECORDS = 64,    /* of a peer and progress call, at most */
		CALL_BYTES = 1 << 20, /* of its long messages, at most */
		CALLS = 30,
		FLOOD = 1,
		PING = 2,
	};

	struct tdt_owner *c = nullptr;
	fi_addr_t c_to_b = 0, b_to_c = 0;
	char x = 1, y = 0;

	/* All know each other, and have rings. */
	void begin()
	{
		const uint16_t port_c = next_port();

		c = open(port_c);
		ASSERT_NE(nullptr, c);
		c_to_b = insert(c, port_b, id_b);
		b_to_c = insert(b, port_c, 300);
		ASSERT_NO_FATAL_FAILURE(meet());
		tdt_owner_trecv(b, &y, 1, PING, &y);
		ASSERT_EQ(0, send(c, c_to_b, &x, 1, PING, &x));
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &y); }));
	}

	/*
	 * A message from @from to @at, taken by the first call; @work runs until
	 * it is there. Returns how often.
	 */
	unsigned ping(struct tdt_owner *from, fi_addr_t to,
		      struct tdt_owner *at, const std::function<void()> &work)
	{
		unsigned n = 0;

		y = 0;
		tdt_owner_trecv(at, &y, 1, PING, &y);
		EXPECT_EQ(0, fi_tinject(from->ep, &x, 1, to, PING));
		EXPECT_TRUE(tdt_eventually([&] { return y == 1; },
					   [&] {
						   work();
						   n++;
					   }));
		return n;
	}

	/* Messages of 8 bytes until the ring is full. */
	size_t fill()
	{
		size_t n = 0;

		for (int vain = 0; vain < 100;) {
			if (fi_tinject(a->ep, &to_b, 8, to_b, FLOOD)) {
				tdt_owner_progress(a);
				vain++;
			} else {
				n++;
				vain = 0;
			}
		}
		return n;
	}

	/* A ring that is as large as it becomes, and full. */
	void flood()
	{
		struct tdm_shm_pair *pair;

		ASSERT_TRUE(until([&] {
			fill();
			while (tdt_owner_queued(b) > 100)
				tdt_owner_discard(b);
			pair = pair_of(b);
			return pair && pair->rx.count > 20 * CALL_RECORDS;
		}));
		fill();
	}
};

TEST_F(ShmFair, R05_OneCallTakesFewRecordsOfEachPeer)
{
	ASSERT_NO_FATAL_FAILURE(begin());
	ASSERT_NO_FATAL_FAILURE(flood());
	for (int i = 0; i < CALLS && !HasFailure(); i++) {
		size_t most = 0;
		unsigned calls;

		fill();
		calls = ping(c, c_to_b, b, [&] {
			size_t before = tdt_owner_queued(b);

			tdt_owner_progress(b);
			most = std::max(most, tdt_owner_queued(b) - before);
		});
		EXPECT_LE(calls, 2u) << "the message of the other waits";
		EXPECT_LE(most, size_t(CALL_RECORDS));
		EXPECT_GE(most, 1u) << "there is no flood";
	}
}

/* Bytes that calls of process_vm_readv(2) gave. */
size_t read_bytes;

ssize_t count_read(pid_t pid, const struct iovec *local, unsigned long nl,
		   const struct iovec *remote, unsigned long nr,
		   unsigned long flags)
{
	ssize_t n = tdm_os_system.process_vm_readv(pid, local, nl, remote, nr,
						   flags);

	read_bytes += size_t(std::max<ssize_t>(n, 0));
	return n;
}

TEST_F(ShmFair, R05_OneCallTakesFewSlicesOfLongMessages)
{
	const size_t len = 8 << 20;
	auto out = pattern(len, 1);
	std::vector<unsigned char> in(len);
	char contexts[8];

	ASSERT_NO_FATAL_FAILURE(begin());
	take_way(b, TDM_SHM_WAY_READ);
	tdm_os.process_vm_readv = count_read;
	for (char &one : contexts)
		ASSERT_EQ(0, send(a, to_b, out.data(), len, FLOOD, &one));
	ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 8; }));
	for (char &one : contexts)
		tdt_owner_trecv(b, in.data(), len, FLOOD, &one);
	for (int i = 0; i < CALLS && !HasFailure(); i++) {
		size_t most = 0;
		unsigned calls;

		calls = ping(c, c_to_b, b, [&] {
			read_bytes = 0;
			tdt_owner_progress(b);
			most = std::max(most, read_bytes);
		});
		EXPECT_LE(calls, 2u) << "the message of the other waits";
		EXPECT_LE(most, size_t(CALL_BYTES));
		EXPECT_GE(most, 1u) << "nothing is fetched";
	}
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(b, &contexts[7]) &&
		       tdt_owner_find(a, &contexts[7]);
	}));
	EXPECT_EQ(out, in);
}

/* Announced messages whose receives are posted: each record brings a slice. */
TEST_F(ShmFair, R05_OneCallBeginsFewLongMessages)
{
	enum { WINDOW = 48, LEN = 256 << 10, BEGUN_BYTES = 1 << 20 };
	auto out = pattern(LEN, 1);
	std::vector<unsigned char> in(LEN);
	char contexts[WINDOW];
	size_t most = 0;

	ASSERT_NO_FATAL_FAILURE(begin());
	take_way(b, TDM_SHM_WAY_READ);
	tdm_os.process_vm_readv = count_read;
	for (char &one : contexts) {
		tdt_owner_trecv(b, in.data(), LEN, FLOOD, &one);
		ASSERT_EQ(0, send(a, to_b, out.data(), LEN, FLOOD, &one));
	}
	ASSERT_TRUE(tdt_eventually(
		[&] { return tdt_owner_find(b, &contexts[WINDOW - 1]); },
		[&] {
			tdt_owner_progress(a);
			read_bytes = 0;
			tdt_owner_progress(b);
			most = std::max(most, read_bytes);
		}));
	EXPECT_LE(most, size_t(BEGUN_BYTES + CALL_BYTES));
	EXPECT_GE(most, size_t(LEN));
	EXPECT_EQ(out, in);
	ASSERT_TRUE(until(
		[&] { return tdt_owner_find(a, &contexts[WINDOW - 1]); }));
}

TEST_F(ShmFair, R05_FloodedEndpointSendsAtOnce)
{
	ASSERT_NO_FATAL_FAILURE(begin());
	ASSERT_NO_FATAL_FAILURE(flood());
	for (int i = 0; i < CALLS && !HasFailure(); i++) {
		/* b makes no progress: nothing of the flood is taken before. */
		fill();
		EXPECT_LE(ping(b, b_to_c, c, [&] { tdt_owner_progress(c); }),
			  2u);
		tdt_owner_progress(b);
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that grow twice while everybody talks to everybody, in one process
 * and in several. doc/PROTOCOL-shm.md "Growth".
 */
#include <atomic>
#include <memory>

#include <sys/mman.h>
#include <sys/wait.h>

#include "ring_valid.h"
#include "shm_world.h"

using namespace shm_test;

namespace
{

const int count = 4;

/* One endpoint's part of the talk. */
struct talker {
	struct tdt_owner *o = nullptr;
	fi_addr_t to[count] = {};
	uint64_t sent[count] = {}, got[count] = {};
	size_t looked = 0;
	uint64_t wrong = 0;
	std::vector<std::vector<unsigned char>> bufs;
	unsigned char out[1000] = {};

	static size_t length(uint64_t n)
	{
		return 16 + n * 37 % 900;
	}

	void post(size_t i)
	{
		tdt_owner_trecv(o, bufs[i].data(), bufs[i].size(), 5, &bufs[i]);
	}

	void begin(size_t depth)
	{
		bufs.assign(depth, std::vector<unsigned char>(1000));
		for (size_t i = 0; i < depth; i++)
			post(i);
	}

	/* Messages to @peer, 1 when one of them left. */
	int say(int peer, uint64_t most, int tries)
	{
		int any = 0;

		while (sent[peer] < most && tries > 0) {
			size_t len = length(sent[peer]);
			struct iovec iov = { out, len };
			struct fi_msg_tagged msg = {};

			memset(out, int(sent[peer] & 0xff), len);
			memcpy(out, &sent[peer], 8);
			msg.msg_iov = &iov;
			msg.iov_count = 1;
			msg.addr = to[peer];
			msg.tag = 5;
			ssize_t ret = fi_tsendmsg(o->ep, &msg, 0);
			if (ret) {
				wrong += ret != -FI_EAGAIN &&
					 ret != -FI_ECONNREFUSED;
				tries--;
				continue;
			}
			sent[peer]++;
			any = 1;
		}
		return any;
	}

	/* Check and repost what has arrived. */
	void hear()
	{
		for (; looked < o->dones; looked++) {
			const struct tdt_done *d = &o->done[looked];
			auto *v = static_cast<std::vector<unsigned char> *>(
				d->context);
			uint64_t n;

			if (d->err || d->src >= fi_addr_t(count)) {
				wrong++;
				continue;
			}
			memcpy(&n, v->data(), 8);
			wrong += n != got[d->src] || d->len != length(n);
			for (size_t i = 8; i < d->len; i++)
				wrong += (*v)[i] != (n & 0xff);
			got[d->src]++;
			post(size_t(v - bufs.data()));
		}
	}

	/* Has all arrived that the others of @t sent to @self? */
	bool heard(int self, const talker *t) const
	{
		for (int i = 0; i < count; i++) {
			if (i != self && got[i] < t[i].sent[self])
				return false;
		}
		return true;
	}

	bool finished(int self, uint64_t most) const
	{
		for (int i = 0; i < count; i++) {
			if (i != self && (sent[i] < most || got[i] < most))
				return false;
		}
		return true;
	}
};

uint32_t generation(struct tdt_owner *o, int most)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(o->ep);
	struct tdm_list *pos;
	uint32_t least = 99, highest = 0;

	tdm_list_for_each(pos, &ep->pairs) {
		struct tdm_shm_pair *p =
			tdm_list_entry(pos, struct tdm_shm_pair, all);

		if (p->state != TDM_SHM_PAIR_UP)
			continue;
		EXPECT_TRUE(tdt_ring_valid(&p->tx));
		least = tdm_min(least, p->tx.gen);
		highest = tdm_max(highest, p->tx.gen);
	}
	return most ? highest : least;
}

/* The rings of @o that have grown twice or more. */
int grown_twice(struct tdt_owner *o)
{
	struct tdm_list *pos;
	int n = 0;

	tdm_list_for_each(pos, &tdm_shm_ep_from_fid(o->ep)->pairs)
		n += tdm_list_entry(pos, struct tdm_shm_pair, all)->tx.gen >= 2;
	return n;
}

} // namespace

/*
 * All rings twice, in all directions, while they are full: each talker fills
 * its rings to the brim and beyond before anybody listens, until all of its
 * rings have grown twice. @most messages are more than a ring needs for that.
 */
TEST_F(ShmTest, RingsOfFourGrowTwiceUnderTraffic)
{
	const uint64_t most = 12000;
	talker t[count];
	uint16_t port[count];
	uint64_t wrong = 0;

	for (int i = 0; i < count; i++)
		port[i] = next_port();
	for (int i = 0; i < count; i++) {
		ASSERT_NE(t[i].o = open(port[i]), nullptr);
		t[i].begin(64);
	}
	for (int i = 0; i < count; i++) {
		for (int j = 0; j < count; j++) {
			struct sockaddr_in in = address(port[j]);

			t[i].to[j] = tdt_owner_insert(t[i].o, &in, sizeof(in),
						      fi_addr_t(j));
		}
	}
	ASSERT_TRUE(until([&] {
		bool all = true;

		for (int i = 0; i < count; i++) {
			bool grown = grown_twice(t[i].o) == count - 1;

			for (int j = 0; j < count && !grown; j++) {
				if (i == j || t[i].sent[j] == most)
					continue;
				t[i].say(j, most, 20);
				all = false;
			}
			t[i].hear();
			wrong += t[i].wrong;
		}
		for (int i = 0; i < count; i++)
			all = all && t[i].heard(i, t);
		return all || wrong;
	}));
	for (int i = 0; i < count; i++) {
		EXPECT_EQ(t[i].wrong, 0u);
		EXPECT_GE(generation(t[i].o, 0), 2u) << i;
		/* once more if it streamed */
		EXPECT_LE(generation(t[i].o, 1), 3u) << i;
		EXPECT_EQ(t[i].o->nevents, size_t(count - 1));
	}
}

/*
 * A peer that sleeps while its sender does all it can: ring after ring fills,
 * nothing is read, then everything is.
 */
TEST_F(PairTest, RingGrowsWhileThePeerDoesNotRun)
{
	const uint64_t most = 5000;
	std::vector<unsigned char> in(8);
	uint64_t sent = 0, got = 0, v;

	meet();
	for (int round = 0; got < most; round++) {
		/* The sender alone: to the brim, and 100 tries more. */
		for (int tries = 100; tries > 0 && sent < most;) {
			if (tsend(a, to_b, &sent, 8, 1, &sent))
				tries--;
			else
				sent++;
		}
		ASSERT_EQ(tdt_owner_event(a, TDM_PEER_LOST), nullptr) << round;
		/* Then the receiver alone, with its control work. */
		for (int i = 0; i < 200; i++)
			tdt_owner_progress(b);
		ASSERT_EQ(tdt_owner_event(b, TDM_PEER_LOST), nullptr) << round;
		while (got < sent) {
			b->dones = 0;
			tdt_owner_trecv(b, &v, 8, 1, &v);
			ASSERT_TRUE(
				tdt_eventually([&] { return b->dones == 1; },
					       [&] { tdt_owner_progress(b); }));
			ASSERT_EQ(b->done[0].err, 0);
			ASSERT_EQ(v, got++);
		}
	}
	EXPECT_EQ(pair_of(a)->tx.gen, 2u);
}

namespace
{

/* A clock by which every pair is fast, and one by which none is. */
uint64_t clock_ns, tick_ns;

uint64_t slow_clock()
{
	return clock_ns += tick_ns;
}

class StreamTest : public PairTest
{
protected:
	static constexpr unsigned most = 64;

	/* @count messages from a to b, taken @together at a time; all in order? */
	bool stream(uint64_t count, unsigned together = most)
	{
		std::vector<unsigned char> out(1000), in[most];

		for (uint64_t i = 0; i < count; i += together) {
			b->dones = a->dones = 0;
			for (unsigned k = 0; k < together; k++) {
				in[k].assign(1000, 0);
				tdt_owner_trecv(b, in[k].data(), 1000, k,
						&in[k]);
			}
			for (unsigned k = 0; k < together; k++) {
				out.assign(1000, (unsigned char)(i + k));
				while (tsend(a, to_b, out.data(), 1000, k,
					     &out))
					tdt_owner_progress(b);
			}
			while (b->dones < together)
				tdt_owner_progress(b);
			for (unsigned k = 0; k < together; k++) {
				out.assign(1000, (unsigned char)(i + k));
				if (b->done[k].err || in[k] != out)
					return false;
			}
		}
		return true;
	}
};

} // namespace

/* The ring of a stream depends on how fast the pair writes. */
TEST_F(StreamTest, AStreamGetsARingLargerThanACache)
{
	auto now = tdm_os.now_ns;

	meet();
	tdm_os.now_ns = slow_clock;
	clock_ns = 1;
	tick_ns = 1000 * 1000;
	EXPECT_TRUE(stream(8000));
	EXPECT_LT(pair_of(a)->tx.count, unsigned(TDM_SHM_RING_STREAM_SLOTS));
	tick_ns = 1;
	EXPECT_TRUE(stream(8000));
	tdm_os.now_ns = now;
	EXPECT_EQ(pair_of(a)->tx.count, unsigned(TDM_SHM_RING_STREAM_SLOTS));
	EXPECT_EQ(pair_of(b)->rx.count, unsigned(TDM_SHM_RING_STREAM_SLOTS));
	EXPECT_EQ(tdt_owner_event(a, TDM_PEER_LOST), nullptr);
}

/* In a conversation the first use of its pages would delay every message. */
TEST_F(StreamTest, AFastConversationStays)
{
	auto now = tdm_os.now_ns;

	meet();
	tdm_os.now_ns = slow_clock;
	clock_ns = tick_ns = 1;
	for (unsigned together : { 1, 2, 8 }) {
		EXPECT_TRUE(stream(8000, together));
		EXPECT_LT(pair_of(a)->tx.count,
			  unsigned(TDM_SHM_RING_STREAM_SLOTS));
	}
	EXPECT_TRUE(stream(8000));
	tdm_os.now_ns = now;
	EXPECT_EQ(pair_of(a)->tx.count, unsigned(TDM_SHM_RING_STREAM_SLOTS));
}

/* A peer that cannot map so large a ring is not given one. */
TEST_F(StreamTest, AStreamToAPeerWithoutTheFeatureStays)
{
	auto now = tdm_os.now_ns;

	meet();
	pair_of(a)->peer_streams = 0;
	tdm_os.now_ns = slow_clock;
	clock_ns = tick_ns = 1;
	EXPECT_TRUE(stream(8000));
	tdm_os.now_ns = now;
	EXPECT_LT(pair_of(a)->tx.count, unsigned(TDM_SHM_RING_STREAM_SLOTS));
}

namespace
{

struct shared {
	std::atomic<uint32_t> opened, finished;
	std::atomic<uint64_t> wrong, grown;
};

/* One process of the four. Returns its exit code. */
int run_talker(int self, const uint16_t *port, uint64_t most, shared *s)
{
	struct sockaddr_in own = address(port[self]);
	struct tdt_owner_attr attr = {};
	talker t;

	attr.name = &own;
	attr.namelen = sizeof(own);
	attr.selective = 1;
	if (tdt_owner_open(tdm_shm_provider(), &attr, &t.o))
		return 2;
	for (int i = 0; i < count; i++) {
		struct sockaddr_in in = address(port[i]);

		t.to[i] = tdt_owner_insert(t.o, &in, sizeof(in), fi_addr_t(i));
	}
	t.begin(64);
	s->opened++;
	auto wait_for = [&](std::atomic<uint32_t> &n) {
		return tdt_eventually([&] { return n == unsigned(count); },
				      [&] { tdt_owner_progress(t.o); });
	};
	if (!wait_for(s->opened))
		return 3;
	bool ok = tdt_eventually(
		[&] {
			for (int i = 0; i < count; i++) {
				if (i != self)
					t.say(i, most, 20);
			}
			t.hear();
			return t.wrong || t.finished(self, most);
		},
		[&] { tdt_owner_progress(t.o); });
	s->wrong += t.wrong;
	s->grown += generation(t.o, 1);
	s->finished++;
	if (!wait_for(s->finished))
		return 4;
	tdt_owner_close(t.o, 0, 0);
	return ok ? 0 : 5;
}

} // namespace

TEST_F(ShmTest, RingsOfFourProcessesGrowUnderTraffic)
{
	void *mem = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	auto *s = new (mem) shared();
	uint16_t port[count];
	pid_t pid[count];

	for (int i = 0; i < count; i++)
		port[i] = next_port();
	for (int i = 0; i < count; i++) {
		pid[i] = fork();
		ASSERT_GE(pid[i], 0);
		if (!pid[i])
			_exit(run_talker(i, port, 8000, s));
	}
	for (int i = 0; i < count; i++) {
		int status;

		ASSERT_EQ(waitpid(pid[i], &status, 0), pid[i]);
		EXPECT_EQ(status, 0) << i;
	}
	EXPECT_EQ(s->wrong, 0u);
	EXPECT_GT(s->grown, 0u);
	munmap(mem, 4096);
}

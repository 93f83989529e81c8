/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory peer when the operating system says no, and when its
 * users sleep.
 */
#include <poll.h>
#include <sys/mman.h>

#include "base/env.h"
#include "log.h"
#include "shm_world.h"

using namespace shm_test;

namespace
{
int cma_calls, cma_errno;
size_t cma_most;

ssize_t cma_fails(pid_t pid, const struct iovec *l, unsigned long nl,
		  const struct iovec *r, unsigned long nr, unsigned long flags)
{
	if (--cma_calls < 0) {
		errno = cma_errno;
		return -1;
	}
	struct iovec first = l[0];

	if (first.iov_len > cma_most)
		first.iov_len = cma_most;
	return tdm_os_system.process_vm_readv(pid, &first, 1, r, nr, flags);
}
} // namespace

namespace
{
/* The sender behind @o's pair is not asked to copy. */
void no_help(struct tdt_owner *o)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(o->ep);
	struct tdm_shm_pair *pair =
		tdm_list_entry(ep->pairs.next, struct tdm_shm_pair, all);

	pair->help = 0;
	pair->help_turn = 0;
}
} // namespace

/* Refused at any call: the same message goes on by copy. */
TEST_F(PairTest, CmaRefusedMidMessageGoesOnByCopy)
{
	const size_t len = 5 << 20;

	for (int err : { EPERM, ENOSYS, ENOMEM }) {
		for (int calls = 0; calls < 5; calls++) {
			remake();
			meet();
			ASSERT_EQ(pair_of(b)->cma, 1);
			no_help(b);
			cma_calls = calls;
			cma_errno = err;
			cma_most = SIZE_MAX;
			tdm_os.process_vm_readv = cma_fails;
			exchange(len, 1);
			EXPECT_EQ(pair_of(b)->cma, 0);
			exchange(len, 2);
			tdm_os.process_vm_readv =
				tdm_os_system.process_vm_readv;
		}
	}
}

/* The same while the sender helps: the chunks it has sent count. */
TEST_F(PairTest, CmaRefusedWhileTheSenderHelps)
{
	const size_t len = 9 << 20;

	for (int calls = 0; calls < 40; calls++) {
		remake();
		meet();
		take_way(b, TDM_SHM_WAY_BOTH);
		cma_calls = calls;
		cma_errno = EPERM;
		cma_most = calls % 3 ? SIZE_MAX : 50001;
		tdm_os.process_vm_readv = cma_fails;
		/* The receiver alone for a while, so that it reads too. */
		auto out = pattern(len, unsigned(calls));
		std::vector<unsigned char> in(len);
		char ca, cb;
		int turn = 0;

		tdt_owner_trecv(b, in.data(), len, 1, &cb);
		ASSERT_EQ(tsend(a, to_b, out.data(), len, 1, &ca), 0);
		ASSERT_TRUE(tdt_eventually(
			[&] {
				return tdt_owner_find(a, &ca) &&
				       tdt_owner_find(b, &cb);
			},
			[&] {
				tdt_owner_progress(b);
				if (++turn % (1 + calls % 7) == 0)
					tdt_owner_progress(a);
			}));
		ASSERT_EQ(tdt_owner_find(b, &cb)->err, 0);
		ASSERT_EQ(in, out) << calls;
		tdm_os.process_vm_readv = tdm_os_system.process_vm_readv;
	}
}

/* A sender that computes costs nothing: the receiver reads on its own. */
TEST_F(PairTest, ReceiverNeedsNoProgressOfTheSender)
{
	auto out = pattern(5 << 20, 1);
	std::vector<unsigned char> in(5 << 20);
	char ca, cb;

	meet();
	take_way(b, TDM_SHM_WAY_BOTH);
	for (int i = 0; i < 10; i++) {
		tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
		ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &ca), 0);
		ASSERT_TRUE(tdt_eventually([&] { return b->dones == 1; },
					   [&] { tdt_owner_progress(b); }));
		EXPECT_EQ(in, out);
		b->dones = 0;
	}
	/*
	 * The sender was asked for help, gave none, and is asked less often
	 * now.
	 */
	EXPECT_EQ(pair_of(b)->help, 0);
	/* Chunks that it sends later are dropped. */
	ASSERT_TRUE(until([&] { return a->dones == 10; }));
	for (int i = 0; i < 100; i++)
		step();
	a->dones = 0;
	for (int i = 0; i < 40; i++)
		exchange(300000, unsigned(i));
	EXPECT_GT(pair_of(b)->help, 0);
	EXPECT_EQ(b->nevents, 1u);
}

/* Both copy: chunks from the front, reads from the back. */
TEST_F(PairTest, SenderInProgressHelps)
{
	static size_t reads;

	reads = 0;
	tdm_os.process_vm_readv = [](pid_t p, const struct iovec *l,
				     unsigned long nl, const struct iovec *r,
				     unsigned long nr, unsigned long f) {
		reads++;
		return tdm_os_system.process_vm_readv(p, l, nl, r, nr, f);
	};
	meet();
	size_t probe = reads;
	take_way(b, TDM_SHM_WAY_BOTH);
	for (size_t len = 20000; len < (8u << 20); len += len / 3) {
		exchange(len, 1);
		exchange(len + 1, 2);
	}
	EXPECT_GT(pair_of(b)->bounce_rx, 0u);
	EXPECT_GT(reads, probe);
}

/* No memory to help with: the receiver reads on its own. */
TEST_F(PairTest, SenderWithoutMemoryDoesNotHelp)
{
	meet();
	take_way(b, TDM_SHM_WAY_BOTH);
	exchange(8000, 1);
	tdm_os.memfd_create = [](const char *, unsigned) {
		errno = EMFILE;
		return -1;
	};
	for (int i = 0; i < 30; i++)
		exchange(1 << 20, unsigned(i));
	EXPECT_EQ(pair_of(b)->bounce_rx, 0u);
}

/*
 * process_vm_readv(2): ESRCH means that the process is gone. At any call of a
 * message: both operations end, the peer is lost, and reached again.
 */
TEST_F(PairTest, O8_NoSuchProcessMidMessageIsALostPeer)
{
	const size_t len = 5 << 20;
	auto out = pattern(len, 1);

	for (int calls = 0; calls < 5; calls++) {
		std::vector<unsigned char> in(len);
		char ca, cb;

		remake();
		meet();
		ASSERT_EQ(pair_of(b)->cma, 1);
		no_help(b);
		cma_calls = calls;
		cma_errno = ESRCH;
		cma_most = SIZE_MAX;
		tdm_os.process_vm_readv = cma_fails;
		tdt_owner_trecv(b, in.data(), len, 1, &cb);
		ASSERT_EQ(tsend(a, to_b, out.data(), len, 1, &ca), 0);
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &cb) &&
			       tdt_owner_find(a, &ca) &&
			       tdt_owner_event(a, TDM_PEER_LOST);
		}));
		EXPECT_LT(cma_calls, 0);
		EXPECT_EQ(tdt_owner_find(b, &cb)->err, FI_ECONNRESET) << calls;
		EXPECT_EQ(tdt_owner_find(a, &ca)->err, FI_ECONNRESET) << calls;
		ASSERT_NE(tdt_owner_event(b, TDM_PEER_LOST), nullptr);
		EXPECT_EQ(tdt_owner_event(b, TDM_PEER_LOST)->err,
			  FI_ECONNRESET);
		tdm_os.process_vm_readv = tdm_os_system.process_vm_readv;
		a->dones = b->dones = 0;
		meet();
		EXPECT_EQ(pair_of(b)->cma, 1);
		exchange(len, 2);
	}
}

/* Short counts are gone on from. */
TEST_F(PairTest, ShortCountsOfCmaLoop)
{
	meet();
	cma_calls = 1000000;
	cma_most = 10007;
	tdm_os.process_vm_readv = cma_fails;
	exchange(1 << 20, 1);
	EXPECT_EQ(pair_of(b)->cma, 1);
}

/* The address is bad: an error on both sides, the pair lives. */
TEST_F(PairTest, UnreadableSendBufferFailsThatMessageOnly)
{
	std::vector<char> in(1 << 20);
	char *hole =
		static_cast<char *>(mmap(nullptr, 1 << 20, PROT_NONE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	char ca, cb;

	mprotect(hole, 4096, PROT_READ);
	meet();
	no_help(b);
	tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
	ASSERT_EQ(tsend(a, to_b, hole, 1 << 20, 1, &ca), 0);
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
	}));
	EXPECT_EQ(tdt_owner_find(b, &cb)->err, FI_EIO);
	EXPECT_EQ(tdt_owner_find(a, &ca)->err, FI_EFAULT);
	munmap(hole, 1 << 20);
	a->dones = b->dones = 0;
	exchange(100000, 2);
}

/* No CMA from the start: the probe finds out. */
TEST_F(PairTest, CmaProbeDecides)
{
	tdm_os.process_vm_readv = [](pid_t, const struct iovec *, unsigned long,
				     const struct iovec *, unsigned long,
				     unsigned long) -> ssize_t {
		errno = EPERM;
		return -1;
	};
	remake();
	meet();
	EXPECT_EQ(pair_of(a)->cma, 0);
	EXPECT_EQ(tdt_owner_event(b, TDM_PEER_UP)->cma, 0u);
	exchange(1 << 20, 1);
}

/*
 * Each probe reads eight bytes, but not those of the peer: as if another process
 * had its number in this namespace. Nothing is read from it.
 */
TEST_F(PairTest, O7_WrongBytesAtTheProbeAreARefusal)
{
	tdm_os.process_vm_readv = [](pid_t pid, const struct iovec *l,
				     unsigned long nl, const struct iovec *r,
				     unsigned long nr, unsigned long flags) {
		ssize_t n = tdm_os_system.process_vm_readv(pid, l, nl, r, nr,
							   flags);

		*static_cast<unsigned char *>(l[0].iov_base) ^= 1;
		return n;
	};
	remake();
	meet();
	EXPECT_EQ(pair_of(a)->cma, 0);
	EXPECT_EQ(pair_of(b)->cma, 0);
	EXPECT_EQ(tdt_owner_event(a, TDM_PEER_UP)->cma, 0u);
	EXPECT_EQ(tdt_owner_event(b, TDM_PEER_UP)->cma, 0u);
	exchange(1 << 20, 1);
}

/* unix(7): SO_PEERCRED has no number for a process of another namespace. */
TEST_F(PairTest, O9_WithoutANumberNothingIsRead)
{
	static unsigned reads;

	reads = 0;
	tdm_os.getsockopt = [](int fd, int level, int name, void *val,
			       socklen_t *len) {
		int ret = tdm_os_system.getsockopt(fd, level, name, val, len);

		if (!ret && name == SO_PEERCRED)
			static_cast<struct ucred *>(val)->pid = 0;
		return ret;
	};
	tdm_os.process_vm_readv = [](pid_t, const struct iovec *, unsigned long,
				     const struct iovec *, unsigned long,
				     unsigned long) -> ssize_t {
		reads++;
		errno = ESRCH;
		return -1;
	};
	remake();
	meet();
	EXPECT_EQ(pair_of(a)->cma, 0);
	EXPECT_EQ(pair_of(b)->cma, 0);
	exchange(1 << 20, 1);
	EXPECT_EQ(reads, 0u);
}

/* Without membarrier the producer fences: nothing else changes. */
TEST_F(PairTest, WithoutMembarrier)
{
	tdm_os.membarrier = [](int, unsigned, int) -> int {
		errno = ENOSYS;
		return -1;
	};
	remake();
	meet();
	EXPECT_EQ(pair_of(a)->fence, 1);
	exchange(100, 1);
	exchange(100000, 2);
}

namespace
{
int os_calls, os_fail_at, os_errno;

bool os_fails()
{
	if (++os_calls != os_fail_at)
		return false;
	errno = os_errno;
	return true;
}

/* Each call of the attach, counted as one sequence. */
void os_arm(int at, int err)
{
	os_calls = 0;
	os_fail_at = at;
	os_errno = err;
	tdm_os.socket = [](int d, int t, int p) {
		return os_fails() ? -1 : tdm_os_system.socket(d, t, p);
	};
	tdm_os.connect = [](int fd, const struct sockaddr *a, socklen_t l) {
		return os_fails() ? -1 : tdm_os_system.connect(fd, a, l);
	};
	tdm_os.memfd_create = [](const char *n, unsigned f) {
		return os_fails() ? -1 : tdm_os_system.memfd_create(n, f);
	};
	tdm_os.fallocate = [](int fd, int m, off_t o, off_t l) {
		return os_fails() ? -1 : tdm_os_system.fallocate(fd, m, o, l);
	};
	tdm_os.add_seals = [](int fd, int s) {
		return os_fails() ? -1 : tdm_os_system.add_seals(fd, s);
	};
	tdm_os.fstat = [](int fd, struct stat *s) {
		return os_fails() ? -1 : tdm_os_system.fstat(fd, s);
	};
	tdm_os.mmap = [](void *a, size_t l, int p, int f, int fd, off_t o) {
		return os_fails() ? MAP_FAILED :
				    tdm_os_system.mmap(a, l, p, f, fd, o);
	};
	tdm_os.epoll_ctl = [](int e, int o, int fd, struct epoll_event *v) {
		return os_fails() ? -1 : tdm_os_system.epoll_ctl(e, o, fd, v);
	};
	tdm_os.sendmsg = [](int fd, const struct msghdr *m, int f) -> ssize_t {
		return os_fails() ? -1 : tdm_os_system.sendmsg(fd, m, f);
	};
	tdm_os.recvmsg = [](int fd, struct msghdr *m, int f) -> ssize_t {
		return os_fails() ? -1 : tdm_os_system.recvmsg(fd, m, f);
	};
	tdm_os.accept4 = [](int fd, struct sockaddr *a, socklen_t *l, int f) {
		return os_fails() ? -1 : tdm_os_system.accept4(fd, a, l, f);
	};
	tdm_os.getsockopt = [](int fd, int l, int n, void *v, socklen_t *s) {
		return os_fails() ? -1 :
				    tdm_os_system.getsockopt(fd, l, n, v, s);
	};
}
} // namespace

/*
 * Every call of an attach fails in turn, with every code: the
 * pair comes up, or both sides agree that it does not, and nothing is left.
 */
TEST_F(PairTest, EveryCallOfAnAttachFailsInTurn)
{
	for (int err : { EMFILE, ENOMEM, ENOSPC, EAGAIN, EINTR, ECONNRESET }) {
		for (int at = 1;; at++) {
			char c = 1;
			ssize_t ret = -FI_EAGAIN;

			os_arm(at, err);
			tdt_eventually(
				[&] {
					ret = tsend(a, to_b, &c, 1, 1, &c);
					return ret != -FI_EAGAIN &&
					       ret != -FI_ECONNREFUSED;
				},
				[&] { step(); });
			bool hit = os_calls >= os_fail_at;

			tdm_os = saved_os;
			ASSERT_TRUE(ret == 0 || ret == -FI_EHOSTUNREACH)
				<< at << " " << err << " " << ret;
			if (ret == 0) {
				ASSERT_TRUE(until([&] {
					return tdt_owner_queued(b) == 1;
				}));
				tdt_owner_discard(b);
				a->dones = 0;
				exchange(3000, 5);
			}
			remake();
			if (!hit)
				break;
		}
	}
}

namespace
{
/* The limit of descriptors, for all questions after the first @unlimited. */
rlim_t most_fds;
int unlimited;

int few_fds(int resource, struct rlimit *limit)
{
	if (resource != RLIMIT_NOFILE)
		return tdm_os_system.getrlimit(resource, limit);
	limit->rlim_max = RLIM_INFINITY;
	limit->rlim_cur = unlimited-- > 0 ? RLIM_INFINITY : most_fds;
	return 0;
}
} // namespace

/*
 * fi_tandem(7), LIMITS: sessions leave the last fifth of the descriptors, at
 * most 32, to others. The side with too few makes no session, be it the
 * initiator or, when only the second question has the limit, the acceptor.
 */
TEST_F(PairTest, LastDescriptorsAreNotForSessions)
{
	std::vector<int> open;
	const auto attach = [&](rlim_t most, int after) {
		char c = 1;

		most_fds = most;
		unlimited = after;
		remake();
		tdm_os.getrlimit = few_fds;
		return send(a, to_b, &c, 1, 1, &c);
	};
	const auto next = [] {
		int fd = dup(0);

		::close(fd);
		return static_cast<rlim_t>(fd);
	};
	const auto refused = [&](rlim_t most) {
		for (int after : { 0, 1 }) {
			EXPECT_EQ(attach(most, after), -FI_EHOSTUNREACH)
				<< most << " " << after;
			ASSERT_TRUE(until([&] { return a->nevents == 1; }));
			EXPECT_EQ(a->events[0].reason,
				  unsigned(TDM_REASON_RESOURCE));
		}
	};

	ASSERT_NO_FATAL_FAILURE(refused(next() + next() / 4));
	while (next() < 200)
		open.push_back(dup(0));
	ASSERT_NO_FATAL_FAILURE(refused(next() + 32));
	EXPECT_EQ(attach(next() + 32 + 16, 0), 0);
	EXPECT_TRUE(until([&] { return tdt_owner_queued(b) == 1; }));
	tdt_owner_discard(b);
	for (int fd : open)
		::close(fd);
}

/* A ring that cannot grow stays as it is. */
TEST_F(PairTest, NoMemoryForALargerRingIsNoError)
{
	meet();
	os_arm(0, 0);
	tdm_os.memfd_create = [](const char *, unsigned) {
		errno = EMFILE;
		return -1;
	};
	for (int i = 0; i < 500; i++)
		exchange(size_t(i) * 3, unsigned(i));
	EXPECT_EQ(pair_of(a)->tx.gen, 0u);
}

/* A received area that cannot be mapped now is mapped later. */
TEST_F(PairTest, MappingFailsAtTheReceiverForAWhile)
{
	static int left;

	for (int err : { ENOMEM, EPERM, EAGAIN }) {
		static int code;

		code = err;
		tdm_env.cma = 0;
		remake();
		meet();
		left = 50;
		tdm_os.mmap = [](void *a, size_t l, int p, int f, int fd,
				 off_t o) -> void * {
			if (!(p & PROT_WRITE) && left-- > 0) {
				errno = code;
				return MAP_FAILED;
			}
			return tdm_os_system.mmap(a, l, p, f, fd, o);
		};
		/* Through a larger ring, and through a bounce area. */
		exchange(5000, 1);
		EXPECT_LE(left, 0);
		EXPECT_EQ(pair_of(b)->rx.gen, 1u);
		left = 50;
		exchange(1 << 20, 2);
		EXPECT_LE(left, 0);
		EXPECT_EQ(b->nevents, 1u);
	}
}

namespace
{
unsigned refused_memfds;

int no_memfd(const char *, unsigned)
{
	refused_memfds++;
	errno = EMFILE;
	return -1;
}
} // namespace

/* No bounce area for now: the message waits, and arrives when there is one. */
TEST_F(PairTest, MessageWaitsForMemoryForABounceArea)
{
	std::vector<char> in(1 << 20), out(1 << 20, 'w');
	char ca, cb;

	tdt_log_expect("bounce area");
	tdm_env.cma = 0;
	remake();
	meet();
	refused_memfds = 0;
	tdm_os.memfd_create = no_memfd;
	tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
	ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &ca), 0);
	ASSERT_TRUE(until([&] { return refused_memfds >= 3; }));
	EXPECT_FALSE(tdt_owner_find(a, &ca));
	EXPECT_FALSE(tdt_owner_find(b, &cb));
	tdm_os = saved_os;
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
	}));
	EXPECT_EQ(tdt_owner_find(b, &cb)->err, 0);
	EXPECT_EQ(tdt_owner_find(a, &ca)->err, 0);
	EXPECT_EQ(in, out);
}

/* None for FI_TANDEM_CONN_TIMEOUT: it fails on both sides, the pair lives. */
TEST_F(PairTest, MessageFailsWithoutMemoryForABounceArea)
{
	std::vector<char> in(1 << 20), out(1 << 20);
	char ca, cb;

	tdt_log_expect("bounce area");
	tdm_env.cma = 0;
	remake();
	meet();
	tdm_env.conn_timeout_ms = 20;
	refused_memfds = 0;
	tdm_os.memfd_create = no_memfd;
	tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
	ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &ca), 0);
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
	}));
	EXPECT_GE(refused_memfds, 2u);
	EXPECT_EQ(tdt_owner_find(b, &cb)->err, FI_EIO);
	EXPECT_EQ(tdt_owner_find(a, &ca)->err, FI_ENOMEM);
	tdm_os = saved_os;
	a->dones = b->dones = 0;
	exchange(1 << 20, 3);
}

/* fi_tandem(7), FAULTS: a peer that died ends operations by FI_ECONNRESET. */
TEST_F(PairTest, PeerThatDiesBeforeItHasTheBounceAreaIsLost)
{
	std::vector<char> in(1 << 20), out(1 << 20);
	char ca, cb;

	tdm_env.cma = 0;
	remake();
	meet();
	tdm_os.sendmsg = [](int, const struct msghdr *, int) -> ssize_t {
		errno = EPIPE;
		return -1;
	};
	tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
	ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &ca), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
	EXPECT_EQ(tdt_owner_find(a, &ca)->err, FI_ECONNRESET);
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
	EXPECT_EQ(tdt_owner_find(b, &cb)->err, FI_ECONNRESET);
}

/*
 * doc/PROTOCOL-shm.md, "Attach": A socket that its listener has closed is no
 * refusal, unless that happens eight times in a row; then the pair accepts no
 * attach either, so that both sides take the same transport.
 */
TEST_F(PairTest, AttachThatIsShutIsNoRefusal)
{
	int again = 0;
	ssize_t ret;
	char ca;

	tdm_os.sendmsg = [](int, const struct msghdr *, int) -> ssize_t {
		errno = EPIPE;
		return -1;
	};
	while ((ret = tsend(a, to_b, "x", 1, 1, &ca)) == -FI_EAGAIN) {
		ASSERT_LT(++again, 100);
		step();
	}
	EXPECT_EQ(ret, -FI_EHOSTUNREACH);
	EXPECT_GE(again, 7);
	tdm_os = saved_os;
	ret = retry([&] { return tsend(b, to_a, "x", 1, 1, &ca); });
	EXPECT_EQ(ret, -FI_EHOSTUNREACH);
}

namespace
{

/* The peer, as the kernel sees it, and how far our clocks are ahead. */
bool dead;
uint64_t ahead_ns;

int poll_of_the_dead(struct pollfd *p, nfds_t n, int ms)
{
	int ret = tdm_os_system.poll(p, n, ms);

	if (!dead || p->events != POLLRDHUP)
		return ret;
	p->revents = POLLHUP;
	return 1;
}

void let_it_die_later()
{
	dead = false;
	ahead_ns = 0;
	tdm_os.poll = poll_of_the_dead;
	tdm_os.now_ns = [] {
		return tdm_os_system.now_ns() + ahead_ns;
	};
	tdm_os.tick_ns = [] {
		return tdm_os_system.tick_ns() + ahead_ns;
	};
}

} // namespace

class KilledPeerTest : public PairTest
{
protected:
	/*
	 * How many sends still succeed after b was killed, @pause_ns later. @before
	 * short messages came before that, and one of @len bytes was the last.
	 */
	size_t told(unsigned before, size_t len, uint64_t pause_ns)
	{
		char contexts[200], out = 1;
		size_t n = 0;

		dead = false;
		meet();
		for (unsigned i = 0; i < before; i++)
			exchange(8, i);
		exchange(len, before);
		dead = true;
		ahead_ns += pause_ns;
		for (char &c : contexts) {
			a->dones = 0;
			EXPECT_EQ(tsend(a, to_b, &out, 1, 7, &c), 0);
			EXPECT_NE(tdt_owner_find(a, &c), nullptr);
			if (!tdt_owner_find(a, &c) ||
			    tdt_owner_find(a, &c)->err)
				break;
			n++;
		}
		remake();
		return n;
	}

	/* At most @most, at any distance from the next check, whatever came last. */
	void few(uint64_t pause_ns, size_t most)
	{
		let_it_die_later();
		for (size_t len : { 8, 1000, 4000 })
			for (unsigned before = 200; before < 264; before += 9)
				EXPECT_LE(told(before, len, pause_ns), most)
					<< before << " and " << len;
	}
};

/*
 * fi_tandem(7), FAULTS: after a pause, the sends that still succeed to a peer
 * that was killed are few. The pause begins at any distance from the next check.
 */
TEST_F(KilledPeerTest, AfterAPauseFewSendsSucceed)
{
	few(1000000000, 32);
}

/* The same: without a pause, more do. */
TEST_F(KilledPeerTest, WithoutAPauseFewMoreSucceed)
{
	few(0, 128);
}

/*
 * The sender dies, and its number becomes another's, while its memory is read:
 * the kernel copies bytes, but nobody gets them as those of the message.
 */
TEST_F(PairTest, O9_BytesOfADeadProcessAreDropped)
{
	std::vector<unsigned char> in(1 << 20);
	auto out = pattern(1 << 20, 1);
	char ca, cb;

	let_it_die_later();
	meet();
	no_help(b);
	exchange(1 << 20, 5);
	/* More than the time in which no number comes again: shm/cma.c. */
	ahead_ns = 1000000;
	tdm_os.process_vm_readv = [](pid_t pid, const struct iovec *l,
				     unsigned long nl, const struct iovec *r,
				     unsigned long nr, unsigned long flags) {
		dead = true;
		return tdm_os_system.process_vm_readv(pid, l, nl, r, nr, flags);
	};
	no_help(b);
	tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
	ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &ca), 0);
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
	}));
	EXPECT_TRUE(dead);
	EXPECT_EQ(tdt_owner_find(b, &cb)->err, FI_ECONNRESET);
	EXPECT_EQ(tdt_owner_find(a, &ca)->err, FI_ECONNRESET);
	ASSERT_NE(tdt_owner_event(b, TDM_PEER_LOST), nullptr);
	EXPECT_EQ(tdt_owner_event(b, TDM_PEER_LOST)->err, FI_ECONNRESET);
}

/*
 * Between messages the receiver asks on time, so that it need not at the next one; an
 * answer that the sender is gone does not count as one that it lives.
 */
TEST_F(PairTest, O9_SenderThatDiedBetweenMessages)
{
	static uint64_t begin;
	std::vector<unsigned char> in(1 << 20);
	auto out = pattern(1 << 20, 1);
	char ca, cb;
	auto at_us = [&](unsigned us) {
		ahead_ns = us * 1000;
		for (int i = 0; i < 200; i++)
			tdt_owner_progress(b);
	};

	let_it_die_later();
	meet();
	begin = tdm_os.now_ns();
	tdm_os.now_ns = tdm_os.tick_ns = [] {
		return begin + ahead_ns;
	};
	no_help(b);
	exchange(1 << 20, 5);
	at_us(60);
	dead = true;
	at_us(80);
	at_us(100);
	ahead_ns = 116000; /* 56 us after the last answer that it lives */
	no_help(b);
	tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
	ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &ca), 0);
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
	EXPECT_EQ(tdt_owner_find(b, &cb)->err, FI_ECONNRESET);
}

/* An owner without memory for an entry is asked again later. */
TEST_F(PairTest, OwnerWithoutMemoryLosesNothing)
{
	meet();
	for (size_t len : { size_t(10), size_t(4000), size_t(100000) }) {
		b->refuse_entries = 5;
		exchange(len, len);
		EXPECT_EQ(b->refuse_entries, 0);
	}
}

/* ---- sleeping -------------------------------------------------------------- */

class SleepTest : public PairTest
{
protected:
	/* fi_trywait(3) until it says 0. */
	bool asleep(struct tdt_owner *o)
	{
		struct fid *fid = &o->cq->fid;

		return until(
			[&] { return fi_trywait(o->fabric, &fid, 1) == 0; });
	}

	int wait_fd(struct tdt_owner *o)
	{
		int fd = -1;

		EXPECT_EQ(fi_control(&o->cq->fid, FI_GETWAIT, &fd), 0);
		return fd;
	}

	bool readable(int fd, int ms)
	{
		struct pollfd p = { fd, POLLIN, 0 };

		return poll(&p, 1, ms) == 1;
	}
};

TEST_F(SleepTest, MessageWakesOneWhoSleeps)
{
	int fd = wait_fd(b);
	char c = 0, d;

	meet();
	for (int i = 0; i < 50; i++) {
		tdt_owner_trecv(b, &d, 1, 1, &d);
		ASSERT_TRUE(asleep(b));
		ASSERT_FALSE(readable(fd, 0));
		c++;
		ASSERT_EQ(tsend(a, to_b, &c, 1, 1, nullptr), 0);
		ASSERT_TRUE(readable(fd, 1000));
		while (!b->dones)
			tdt_owner_progress(b);
		ASSERT_EQ(d, c);
		b->dones = 0;
	}
}

TEST_F(SleepTest, AttachWakesOneWhoSleeps)
{
	int fd = wait_fd(b);
	char c = 0;

	ASSERT_TRUE(asleep(b));
	ASSERT_FALSE(readable(fd, 0));
	EXPECT_EQ(tsend(a, to_b, &c, 1, 1, nullptr), -FI_EAGAIN);
	EXPECT_TRUE(readable(fd, 1000));
}

TEST_F(SleepTest, TrywaitSeesWhatIsThere)
{
	struct fid *fid = &b->cq->fid;
	char c = 0;

	meet();
	for (int i = 0; i < 100; i++)
		step();
	ASSERT_EQ(tsend(a, to_b, &c, 1, 1, nullptr), 0);
	EXPECT_EQ(fi_trywait(b->fabric, &fid, 1), -FI_EAGAIN);
	tdt_owner_progress(b);
	EXPECT_EQ(tdt_owner_queued(b), 1u);
	EXPECT_TRUE(asleep(b));
}

/* A sender that found the ring full sleeps until there is room. */
TEST_F(SleepTest, RoomWakesTheSender)
{
	int fd = wait_fd(a);
	char c = 0;

	meet();
	while (!tsend(a, to_b, &c, 1, 1, nullptr))
		;
	struct fid *fid = &a->cq->fid;
	while (fi_trywait(a->fabric, &fid, 1))
		tdt_owner_progress(a);
	EXPECT_FALSE(readable(fd, 0));
	for (int i = 0; i < 100; i++)
		tdt_owner_progress(b);
	EXPECT_TRUE(readable(fd, 1000));
	EXPECT_EQ(send(a, to_b, &c, 1, 1, nullptr), 0);
}

/* Both sleep whenever they may: a large copy still gets through. */
TEST_F(SleepTest, LargeCopyBetweenSleepers)
{
	const size_t len = 20 << 20;
	std::vector<unsigned char> in(len);
	auto out = pattern(len, 3);
	char ca, cb;

	tdm_env.cma = 0;
	remake();
	int fds[2] = { wait_fd(a), wait_fd(b) };
	struct tdt_owner *o[2] = { a, b };
	meet();
	tdt_owner_trecv(b, in.data(), len, 1, &cb);
	ASSERT_EQ(tsend(a, to_b, out.data(), len, 1, &ca), 0);
	EXPECT_TRUE(tdt_eventually(
		[&] {
			return tdt_owner_find(a, &ca) && tdt_owner_find(b, &cb);
		},
		[&] {
			int woken = 0;

			for (int i = 0; i < 2; i++) {
				struct fid *fid = &o[i]->cq->fid;

				if (fi_trywait(o[i]->fabric, &fid, 1) ||
				    readable(fds[i], 0)) {
					tdt_owner_progress(o[i]);
					woken++;
				}
			}
			/* At least one must have had a reason to run. */
			if (!tdt_owner_find(a, &ca)) {
				ASSERT_GT(woken, 0);
			}
		}));
	EXPECT_EQ(in, out);
}

TEST_F(SleepTest, DeathWakesOneWhoSleeps)
{
	int fd = wait_fd(b);

	meet();
	ASSERT_TRUE(asleep(b));
	close(a);
	EXPECT_TRUE(readable(fd, 1000));
	ASSERT_TRUE(until(
		[&] { return tdt_owner_event(b, TDM_PEER_LOST) != nullptr; }));
	EXPECT_TRUE(asleep(b));
	EXPECT_FALSE(readable(fd, 0));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every system call fails in turn: a small exchange of two endpoints is run
 * once to count the calls, then again and again with one of them failing, by
 * each error it may legally have, or moving fewer bytes than asked.
 *
 * With every call that fails, nothing hangs, each operation ends once, a send
 * that succeeded was received, traffic works again afterwards, and no
 * descriptor is left.
 */
#include <cerrno>
#include <deque>
#include <string>
#include <vector>

#include "tests/harness/fixture.h"

extern "C" {
#include "base/env.h"
#include "tests/harness/holdings.h"
#include "tests/harness/os_fault.h"
struct fi_provider *fi_prov_ini(void);
}

namespace
{

/* The errors that each call may return. */
std::vector<int> errors_of(int call)
{
	switch (call) {
	case TDT_OS_SOCKET:
	case TDT_OS_EVENTFD:
	case TDT_OS_MEMFD_CREATE:
	case TDT_OS_EPOLL_CREATE1:
	case TDT_OS_PIDFD_OPEN:
		return { EMFILE, ENOMEM };
	case TDT_OS_BIND:
		return { EADDRINUSE, EACCES };
	case TDT_OS_ACCEPT4:
		return { EMFILE, ECONNABORTED, EINTR, ENOBUFS };
	case TDT_OS_CONNECT:
		return { ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, EAGAIN };
	case TDT_OS_SEND:
	case TDT_OS_SENDMSG:
		return { EAGAIN, EINTR, ENOBUFS, ECONNRESET, EPIPE };
	case TDT_OS_RECVMSG: /* of a socket where a packet is known to be */
		return { EINTR, ENOMEM };
	case TDT_OS_RECV:
	case TDT_OS_READV:
		return { EAGAIN, EINTR, ENOMEM, ECONNRESET };
	case TDT_OS_READ:
	case TDT_OS_WRITE:
		return { EAGAIN, EINTR };
	case TDT_OS_EPOLL_WAIT:
	case TDT_OS_POLL:
		return { EINTR };
	case TDT_OS_FALLOCATE:
		return { ENOSPC, EINTR, ENOMEM };
	case TDT_OS_PROCESS_VM_READV:
		return { EPERM, ENOSYS, ENOMEM, EFAULT, ESRCH };
	case TDT_OS_MEMBARRIER:
		return { ENOSYS, EPERM };
	case TDT_OS_GETRANDOM:
		return { EINTR, ENOSYS };
	case TDT_OS_PPOLL:
	case TDT_OS_CLOSE:
		return { EINTR };
	case TDT_OS_THREAD_CREATE:
		return { EAGAIN };
	case TDT_OS_OUTQ:
		return {}; /* never, of a socket */
	case TDT_OS_FSTAT:
	case TDT_OS_GET_SEALS:
		return {}; /* always or never: see CallsThatNeverWork */
	default:
		return { ENOMEM, EPERM };
	}
}

/* Parameter: FI_TANDEM_SHM. */
class Turn : public testing::TestWithParam<int>
{
protected:
	struct fi_provider *prov = fi_prov_ini();
	struct tdm_env saved = tdm_env;
	struct tdt_world *w = nullptr;
	bool strict = false;	   /* the faults must not be noticed */
	std::string problem;	   /* of the exchange under way; empty: fine */
	std::deque<Bytes> buffers; /* of the exchange under way */

	void SetUp() override
	{
		tdt_log_expect("");
		setenv("TANDEM_TEST_DEADLINE", "50", 0);
		tdm_env.shm = static_cast<enum tdm_shm_mode>(GetParam());
		tdm_env.conn_timeout_ms = 3000;
		tdt_os_install();
	}

	void TearDown() override
	{
		tdt_os_remove();
		tdm_env = saved;
	}

	int open()
	{
		struct tdt_attr attr;
		int ret;

		tdt_attr_init(&attr);
		attr.eps = 2;
		attr.prov = prov;
		attr.no_tcp_only = 1;
		ret = tdt_world_open(&attr, &w);
		if (ret)
			w = nullptr;
		return ret;
	}

	void bad(const std::string &what)
	{
		if (problem.empty())
			problem = what;
	}

	/*
	 * One tagged message; both sides end. Until a fault has struck, and
	 * from heal() on, both must end well.
	 */
	void exchange(int from, size_t len)
	{
		struct tdt_ep *s = &w->eps[from], *r = &w->eps[!from];
		struct tdt_comp sc, rc;
		ssize_t ret;

		if (!problem.empty())
			return; /* operations may be under way */
		buffers.push_back(filled(len, 5));
		Bytes &out = buffers.back();
		buffers.emplace_back(len);
		Bytes &in = buffers.back();
		struct iovec ov = iov_of(out.data(), len);
		struct iovec iv = iov_of(in.data(), len);

		memset(&sc, 0, sizeof(sc));
		memset(&rc, 0, sizeof(rc));
		if (tdt_trecv(r, &iv, len, 0, &in))
			return bad("cannot post");
		ret = tdt_tsend(s, r, &ov, len, &out);
		if (!ret && tdt_wait(s, &out, &sc))
			return bad("send never ended");
		if (ret)
			sc.err = static_cast<int>(-ret);
		if (sc.err)
			fi_cancel(&r->ep->fid, &in);
		if (tdt_wait(r, &in, &rc))
			return bad(std::string("receive never ended; send: ") +
				   fi_strerror(sc.err));
		judge(sc.err, rc.err);
		if (!rc.err && tdt_differs(in.data(), len, 5) >= 0)
			bad("wrong bytes");
	}

	void judge(int send, int receive)
	{
		if (!send && receive)
			bad(std::string("sent, but received: ") +
			    fi_strerror(receive));
		if (send && (strict || !tdt_os_struck()))
			bad(std::string("send failed by itself: ") +
			    fi_strerror(send));
	}

	void talk()
	{
		for (size_t len : { 8u, 3000u, 200000u }) {
			exchange(0, len);
			exchange(1, len);
		}
	}

	/* The fault is over; the pairs that it broke are found out. */
	void heal()
	{
		exchange(0, 16);
		exchange(1, 16);
		tdt_os_clear();
	}

	/* The exchange: open, talk, heal, talk, close. */
	std::string live()
	{
		int ret;

		problem.clear();
		ret = open();
		if (ret) {
			if (!tdt_os_struck())
				return "open failed by itself: " +
				       std::string(tdt_error());
			tdt_os_clear();
			if (open())
				return "second open: " +
				       std::string(tdt_error());
		} else {
			talk();
			heal();
		}
		talk();
		if (problem.empty() && tdt_pending(w))
			bad("an operation ended twice");
		if (w->bad)
			bad("a CQ read failed");
		if (tdt_world_close(w))
			bad("close: " + std::string(tdt_error()));
		w = nullptr;
		buffers.clear();
		return problem;
	}

	/* Which of @n calls to fail: all of the first, then ever fewer. */
	static std::vector<unsigned> turns(unsigned n)
	{
		std::vector<unsigned> list;

		for (unsigned k = 1; k <= n; k += k < 16 ? 1 : k / 5)
			list.push_back(k);
		return list;
	}
};

TEST_P(Turn, EachCallFailsOnce)
{
	/* Every system call fails in turn. */
	unsigned count[TDT_OS_CALLS];
	size_t files;

	ASSERT_EQ("", live());
	files = tdt_open_files();
	ASSERT_EQ(0, open());
	talk();
	for (int c = 0; c < TDT_OS_CALLS; c++)
		count[c] = tdt_os_count(static_cast<enum tdt_os_call>(c));
	ASSERT_EQ(0, tdt_world_close(w));
	for (int c = 0; c < TDT_OS_CALLS; c++) {
		auto call = static_cast<enum tdt_os_call>(c);

		for (unsigned k : turns(count[c])) {
			for (int err : errors_of(c)) {
				tdt_os_clear();
				tdt_fail_nth(call, k, err);
				EXPECT_EQ("", live())
					<< tdt_os_name(call) << " " << k
					<< " of " << count[c] << ": "
					<< strerror(err);
				tdt_os_clear();
				ASSERT_EQ(files, tdt_open_files())
					<< tdt_os_name(call) << " " << k << ": "
					<< strerror(err);
			}
		}
	}
}

TEST_P(Turn, CallsThatNeverWork)
{
	/* Limits and seccomp: a pair for which the system refuses a means of
	 * shared memory uses another way; no message is lost and no operation
	 * fails. */
	static const struct {
		enum tdt_os_call call;
		int err;
	} never[] = {
		{ TDT_OS_MEMFD_CREATE, ENOSYS },
		{ TDT_OS_MEMFD_CREATE, EMFILE },
		{ TDT_OS_FALLOCATE, ENOSPC },
		{ TDT_OS_FALLOCATE, EOPNOTSUPP },
		{ TDT_OS_ADD_SEALS, EPERM },
		{ TDT_OS_GET_SEALS, EPERM },
		{ TDT_OS_FSTAT, EPERM },
		{ TDT_OS_MMAP, ENOMEM },
		{ TDT_OS_PROCESS_VM_READV, EPERM },
		{ TDT_OS_PROCESS_VM_READV, ENOSYS },
		{ TDT_OS_PIDFD_OPEN, ENOSYS },
		{ TDT_OS_PIDFD_OPEN, EMFILE },
		{ TDT_OS_MEMBARRIER, ENOSYS },
		{ TDT_OS_GETRANDOM, ENOSYS },
	};

	strict = true;
	for (auto &n : never) {
		problem.clear();
		tdt_os_clear();
		tdt_fail_from(n.call, 1, n.err);
		if (open()) {
			/* The open may say so; nothing may be half open. */
			EXPECT_NE(0u, tdt_os_struck()) << tdt_error();
			continue;
		}
		talk();
		talk();
		EXPECT_EQ("", problem)
			<< tdt_os_name(n.call) << ": " << strerror(n.err);
		EXPECT_EQ(0, tdt_world_close(w)) << tdt_error();
		w = nullptr;
		buffers.clear();
	}
}

TEST_P(Turn, CallsMoveFewBytes)
{
	/* A read or write that ends at any byte is not noticed. */
	for (int c : { TDT_OS_SEND, TDT_OS_SENDMSG, TDT_OS_RECV, TDT_OS_READV,
		       TDT_OS_PROCESS_VM_READV }) {
		auto call = static_cast<enum tdt_os_call>(c);

		/* Attach packets are whole: a cut send of them is a fault. */
		if (GetParam() != TDM_SHM_OFF && c != TDT_OS_PROCESS_VM_READV)
			continue;
		for (size_t bytes : { 1u, 7u, 1000u }) {
			tdt_os_clear();
			ASSERT_EQ(0, open());
			tdt_short_all(call, bytes);
			exchange(0, 3000);
			exchange(1, 20000);
			if (bytes > 1)
				exchange(0, 200000);
			EXPECT_EQ("", problem)
				<< tdt_os_name(call) << " " << bytes;
			ASSERT_EQ(0, tdt_world_close(w));
		}
	}
}

INSTANTIATE_TEST_SUITE_P(Shm, Turn, testing::Values(TDM_SHM_AUTO, TDM_SHM_OFF),
			 [](const testing::TestParamInfo<int> &p) {
				 return p.param == TDM_SHM_OFF ? "off" : "auto";
			 });

} // namespace

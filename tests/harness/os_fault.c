/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that fail on demand; see os_fault.h. Each wrapper counts, asks
 * struck() whether it is its turn, and otherwise makes the system's call.
 * Locking: none. Calls count, and fail, in the thread that installed the
 * wrappers; in others they are the system's.
 */
#include "os_fault.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "base/os.h"

static struct {
	unsigned count;	  /* calls so far */
	unsigned fail_at; /* 0: none */
	unsigned fail_last;
	int err;
	unsigned short_at; /* 0: none */
	int short_on;
	size_t bytes;
	size_t less; /* or all but so many */
} state[TDT_OS_CALLS];

static unsigned struck_total;
static __thread int mine; /* this thread installed the wrappers */
static int cut_off, no_memory;

/* Longer than every time-out of the product. It never becomes less. */
#define LEAP_NS (3600 * 1000000000ull)

static uint64_t leapt_ns;

static const char *const names[TDT_OS_CALLS] = {
	"socket",	 "bind",	"listen",	  "accept4",
	"connect",	 "getsockname", "getpeername",	  "getsockopt",
	"setsockopt",	 "shutdown",	"ifreq",	  "getifaddrs",
	"send",		 "recv",	"sendmsg",	  "recvmsg",
	"readv",	 "read",	"write",	  "poll",
	"epoll_create1", "epoll_ctl",	"epoll_wait",	  "eventfd",
	"memfd_create",	 "fallocate",	"ftruncate",	  "fstat",
	"add_seals",	 "get_seals",	"mmap",		  "process_vm_readv",
	"pidfd_open",	 "membarrier",	"getrandom",	  "open_file",
	"unlink",	 "pread",	"pwrite",	  "flock",
	"file_lock",	 "outq",	"timerfd_create", "timerfd_settime",
	"thread_create", "ppoll",	"close",	  "now",
};

const char *tdt_os_name(enum tdt_os_call call)
{
	return names[call];
}

/* Count a call; not 0 when it fails, errno is set then. */
static int struck(enum tdt_os_call c)
{
	unsigned n;

	if (!mine)
		return 0;
	n = ++state[c].count;
	if (!state[c].fail_at || n < state[c].fail_at || n > state[c].fail_last)
		return 0;
	struck_total++;
	errno = state[c].err;
	return 1;
}

/* Most bytes this call may move; after struck() counted it. */
static size_t cut(enum tdt_os_call c, size_t len)
{
	unsigned n;
	size_t most;

	if (!mine)
		return len;
	n = state[c].count;
	most = state[c].bytes;
	if (state[c].less)
		most = len > state[c].less ? len - state[c].less : len;
	if (!state[c].short_at || n < state[c].short_at ||
	    (n > state[c].short_at && !state[c].short_on) || len <= most)
		return len;
	struck_total++;
	return most;
}

/* The same for a socket: packets are moved whole. */
static size_t cut_stream(enum tdt_os_call c, int fd, size_t len)
{
	int type = SOCK_STREAM;
	socklen_t n = sizeof(type);

	(void)tdm_os_system.getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n);
	return type == SOCK_STREAM ? cut(c, len) : len;
}

/* Does no byte pass at @fd now? errno is set then. */
static int parted(void)
{
	if (!cut_off || !mine)
		return 0;
	errno = EAGAIN;
	return 1;
}

/* Is memory refused now? errno is set then. */
static int poor(void)
{
	if (!no_memory || !mine)
		return 0;
	errno = ENOMEM;
	return 1;
}

enum { CUT_IOV = 64 };

/* Copy iov[count] to out[], cut to @bytes. Returns the elements used. */
static size_t cut_iov(struct iovec *out, const struct iovec *iov, size_t count,
		      size_t bytes)
{
	size_t i;

	for (i = 0; i < count && i < CUT_IOV && bytes; i++) {
		out[i] = iov[i];
		out[i].iov_len = tdm_min(out[i].iov_len, bytes);
		bytes -= out[i].iov_len;
	}
	return i;
}

static size_t total(const struct iovec *iov, size_t count)
{
	size_t i, sum = 0;

	for (i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

#define SYS tdm_os_system

#define PLAIN(call, id, params, args)                                          \
	static int os_##call params                                            \
	{                                                                      \
		return struck(id) ? -1 : SYS.call args;                        \
	}

PLAIN(socket, TDT_OS_SOCKET, (int d, int t, int p), (d, t, p))
PLAIN(bind, TDT_OS_BIND, (int fd, const struct sockaddr *a, socklen_t n),
      (fd, a, n))
PLAIN(listen, TDT_OS_LISTEN, (int fd, int n), (fd, n))
PLAIN(accept4, TDT_OS_ACCEPT4,
      (int fd, struct sockaddr *a, socklen_t *n, int f), (fd, a, n, f))
PLAIN(connect, TDT_OS_CONNECT, (int fd, const struct sockaddr *a, socklen_t n),
      (fd, a, n))
PLAIN(getsockname, TDT_OS_GETSOCKNAME,
      (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
PLAIN(getpeername, TDT_OS_GETPEERNAME,
      (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
PLAIN(setsockopt, TDT_OS_SETSOCKOPT,
      (int fd, int l, int o, const void *v, socklen_t n), (fd, l, o, v, n))
PLAIN(shutdown, TDT_OS_SHUTDOWN, (int fd, int how), (fd, how))
PLAIN(ifreq, TDT_OS_IFREQ, (int fd, unsigned long q, struct ifreq *r),
      (fd, q, r))
PLAIN(getifaddrs, TDT_OS_GETIFADDRS, (struct ifaddrs * *l), (l))
PLAIN(poll, TDT_OS_POLL, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
PLAIN(epoll_create1, TDT_OS_EPOLL_CREATE1, (int f), (f))
PLAIN(epoll_ctl, TDT_OS_EPOLL_CTL,
      (int e, int op, int fd, struct epoll_event *ev), (e, op, fd, ev))
PLAIN(epoll_wait, TDT_OS_EPOLL_WAIT,
      (int e, struct epoll_event *ev, int n, int ms), (e, ev, n, ms))
PLAIN(eventfd, TDT_OS_EVENTFD, (unsigned int v, int f), (v, f))
PLAIN(timerfd_create, TDT_OS_TIMERFD_CREATE, (int c, int f), (c, f))
PLAIN(timerfd_settime, TDT_OS_TIMERFD_SETTIME,
      (int fd, int f, const struct itimerspec *n, struct itimerspec *o),
      (fd, f, n, o))
PLAIN(outq, TDT_OS_OUTQ, (int fd, int *n), (fd, n))
PLAIN(thread_create, TDT_OS_THREAD_CREATE,
      (pthread_t * t, void *(*run)(void *), void *arg), (t, run, arg))
PLAIN(ppoll, TDT_OS_PPOLL,
      (struct pollfd * p, nfds_t n, const struct timespec *t,
       const sigset_t *m),
      (p, n, t, m))
PLAIN(ftruncate, TDT_OS_FTRUNCATE, (int fd, off_t n), (fd, n))
PLAIN(fstat, TDT_OS_FSTAT, (int fd, struct stat *st), (fd, st))
PLAIN(add_seals, TDT_OS_ADD_SEALS, (int fd, int s), (fd, s))
PLAIN(get_seals, TDT_OS_GET_SEALS, (int fd), (fd))
PLAIN(pidfd_open, TDT_OS_PIDFD_OPEN, (pid_t p, unsigned int f), (p, f))
PLAIN(membarrier, TDT_OS_MEMBARRIER, (int c, unsigned int f, int cpu),
      (c, f, cpu))

PLAIN(open_file, TDT_OS_OPEN_FILE, (const char *p, int f, mode_t m), (p, f, m))
PLAIN(unlink, TDT_OS_UNLINK, (const char *p), (p))
PLAIN(flock, TDT_OS_FLOCK, (int fd, int op), (fd, op))
PLAIN(file_lock, TDT_OS_FILE_LOCK, (int fd, short type, int wait),
      (fd, type, wait))

static int os_memfd_create(const char *name, unsigned int flags)
{
	return struck(TDT_OS_MEMFD_CREATE) || poor() ?
		       -1 :
		       SYS.memfd_create(name, flags);
}

static int os_fallocate(int fd, int mode, off_t offset, off_t len)
{
	return struck(TDT_OS_FALLOCATE) || poor() ?
		       -1 :
		       SYS.fallocate(fd, mode, offset, len);
}

/* Linux closes the descriptor whatever close(2) returns. */
static int os_close(int fd)
{
	int err = struck(TDT_OS_CLOSE) ? errno : 0;
	int ret = SYS.close(fd);

	if (!err)
		return ret;
	errno = err;
	return -1;
}

/* A network that is parted leaves questions unanswered. */
static int os_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	int ret = struck(TDT_OS_GETSOCKOPT) ?
			  -1 :
			  SYS.getsockopt(fd, level, name, val, len);

	if (!ret && cut_off && level == IPPROTO_TCP && name == TCP_INFO) {
		struct tcp_info *info = val;

		info->tcpi_unacked = info->tcpi_retransmits = 1;
		info->tcpi_last_ack_recv = 1u << 30;
	}
	return ret;
}

static ssize_t os_pread(int fd, void *buf, size_t len, off_t at)
{
	return struck(TDT_OS_PREAD) ? -1 : SYS.pread(fd, buf, len, at);
}

static ssize_t os_pwrite(int fd, const void *buf, size_t len, off_t at)
{
	return struck(TDT_OS_PWRITE) ? -1 : SYS.pwrite(fd, buf, len, at);
}

static ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	return struck(TDT_OS_GETRANDOM) ? -1 : SYS.getrandom(buf, len, flags);
}

static uint64_t os_now_ns(void)
{
	int err = errno; /* a clock leaves it alone */

	if (struck(TDT_OS_NOW))
		__atomic_add_fetch(&leapt_ns, LEAP_NS, __ATOMIC_RELAXED);
	errno = err;
	return SYS.now_ns() + __atomic_load_n(&leapt_ns, __ATOMIC_RELAXED);
}

static uint64_t os_tick_ns(void)
{
	return SYS.tick_ns() + __atomic_load_n(&leapt_ns, __ATOMIC_RELAXED);
}

static void *os_mmap(void *a, size_t len, int prot, int flags, int fd,
		     off_t off)
{
	return struck(TDT_OS_MMAP) || poor() ?
		       MAP_FAILED :
		       SYS.mmap(a, len, prot, flags, fd, off);
}

static ssize_t os_send(int fd, const void *buf, size_t len, int flags)
{
	return struck(TDT_OS_SEND) || parted() ?
		       -1 :
		       SYS.send(fd, buf, cut_stream(TDT_OS_SEND, fd, len),
				flags);
}

static ssize_t os_recv(int fd, void *buf, size_t len, int flags)
{
	return struck(TDT_OS_RECV) || parted() ?
		       -1 :
		       SYS.recv(fd, buf, cut_stream(TDT_OS_RECV, fd, len),
				flags);
}

static ssize_t os_read(int fd, void *buf, size_t len)
{
	return struck(TDT_OS_READ) ? -1 :
				     SYS.read(fd, buf, cut(TDT_OS_READ, len));
}

static ssize_t os_write(int fd, const void *buf, size_t len)
{
	return struck(TDT_OS_WRITE) ?
		       -1 :
		       SYS.write(fd, buf, cut(TDT_OS_WRITE, len));
}

static ssize_t os_readv(int fd, const struct iovec *iov, int count)
{
	struct iovec part[CUT_IOV];
	size_t all, n;

	if (struck(TDT_OS_READV) || parted())
		return -1;
	all = total(iov, (size_t)count);
	n = cut(TDT_OS_READV, all);
	if (n == all)
		return SYS.readv(fd, iov, count);
	return SYS.readv(fd, part, (int)cut_iov(part, iov, (size_t)count, n));
}

/* A message that carries descriptors is not cut: the kernel does not either. */
static ssize_t os_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct iovec part[CUT_IOV];
	struct msghdr m = *msg;
	size_t all, n;

	if (struck(TDT_OS_SENDMSG) || parted())
		return -1;
	all = total(msg->msg_iov, msg->msg_iovlen);
	n = msg->msg_controllen ? all : cut_stream(TDT_OS_SENDMSG, fd, all);
	if (n == all)
		return SYS.sendmsg(fd, msg, flags);
	m.msg_iov = part;
	m.msg_iovlen = cut_iov(part, msg->msg_iov, msg->msg_iovlen, n);
	return SYS.sendmsg(fd, &m, flags);
}

static ssize_t os_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return struck(TDT_OS_RECVMSG) ? -1 : SYS.recvmsg(fd, msg, flags);
}

static ssize_t os_process_vm_readv(pid_t pid, const struct iovec *local,
				   unsigned long lcount,
				   const struct iovec *remote,
				   unsigned long rcount, unsigned long flags)
{
	struct iovec part[CUT_IOV];
	size_t all, n;

	if (struck(TDT_OS_PROCESS_VM_READV))
		return -1;
	all = total(local, lcount);
	n = cut(TDT_OS_PROCESS_VM_READV, all);
	if (n == all)
		return SYS.process_vm_readv(pid, local, lcount, remote, rcount,
					    flags);
	return SYS.process_vm_readv(pid, part, cut_iov(part, local, lcount, n),
				    remote, rcount, flags);
}

void tdt_os_install(void)
{
	tdt_os_clear();
	mine = 1;
	tdm_os.socket = os_socket;
	tdm_os.bind = os_bind;
	tdm_os.listen = os_listen;
	tdm_os.accept4 = os_accept4;
	tdm_os.connect = os_connect;
	tdm_os.getsockname = os_getsockname;
	tdm_os.getpeername = os_getpeername;
	tdm_os.getsockopt = os_getsockopt;
	tdm_os.setsockopt = os_setsockopt;
	tdm_os.shutdown = os_shutdown;
	tdm_os.ifreq = os_ifreq;
	tdm_os.getifaddrs = os_getifaddrs;
	tdm_os.send = os_send;
	tdm_os.recv = os_recv;
	tdm_os.sendmsg = os_sendmsg;
	tdm_os.recvmsg = os_recvmsg;
	tdm_os.readv = os_readv;
	tdm_os.read = os_read;
	tdm_os.write = os_write;
	tdm_os.poll = os_poll;
	tdm_os.epoll_create1 = os_epoll_create1;
	tdm_os.epoll_ctl = os_epoll_ctl;
	tdm_os.epoll_wait = os_epoll_wait;
	tdm_os.eventfd = os_eventfd;
	tdm_os.memfd_create = os_memfd_create;
	tdm_os.fallocate = os_fallocate;
	tdm_os.ftruncate = os_ftruncate;
	tdm_os.fstat = os_fstat;
	tdm_os.add_seals = os_add_seals;
	tdm_os.get_seals = os_get_seals;
	tdm_os.mmap = os_mmap;
	tdm_os.process_vm_readv = os_process_vm_readv;
	tdm_os.pidfd_open = os_pidfd_open;
	tdm_os.membarrier = os_membarrier;
	tdm_os.getrandom = os_getrandom;
	tdm_os.open_file = os_open_file;
	tdm_os.unlink = os_unlink;
	tdm_os.pread = os_pread;
	tdm_os.pwrite = os_pwrite;
	tdm_os.flock = os_flock;
	tdm_os.file_lock = os_file_lock;
	tdm_os.outq = os_outq;
	tdm_os.timerfd_create = os_timerfd_create;
	tdm_os.timerfd_settime = os_timerfd_settime;
	tdm_os.thread_create = os_thread_create;
	tdm_os.ppoll = os_ppoll;
	tdm_os.close = os_close;
	tdm_os.now_ns = os_now_ns;
	tdm_os.tick_ns = os_tick_ns;
}

void tdt_os_remove(void)
{
	tdt_os_clear();
	mine = cut_off = no_memory = 0;
	tdm_os = tdm_os_system;
}

void tdt_fail_nth(enum tdt_os_call call, unsigned nth, int err)
{
	tdt_fail_span(call, nth, 1, err);
}

void tdt_fail_span(enum tdt_os_call call, unsigned nth, unsigned many, int err)
{
	state[call].fail_at = state[call].count + nth;
	state[call].fail_last = state[call].fail_at + many - 1;
	state[call].err = err;
}

void tdt_fail_from(enum tdt_os_call call, unsigned nth, int err)
{
	tdt_fail_nth(call, nth, err);
	state[call].fail_last = ~0u;
}

void tdt_short_nth(enum tdt_os_call call, unsigned nth, size_t bytes)
{
	state[call].short_at = state[call].count + nth;
	state[call].short_on = 0;
	state[call].bytes = bytes;
	state[call].less = 0;
}

void tdt_less_nth(enum tdt_os_call call, unsigned nth, size_t less)
{
	tdt_short_nth(call, nth, 0);
	state[call].less = less;
}

void tdt_short_all(enum tdt_os_call call, size_t bytes)
{
	tdt_short_nth(call, 1, bytes);
	state[call].short_on = 1;
}

void tdt_os_partition(int on)
{
	cut_off = on;
}

void tdt_os_no_memory(int on)
{
	no_memory = on;
}

void tdt_os_clear(void)
{
	memset(state, 0, sizeof(state));
	struck_total = 0;
}

unsigned tdt_os_count(enum tdt_os_call call)
{
	return state[call].count;
}

unsigned tdt_os_struck(void)
{
	return struck_total;
}

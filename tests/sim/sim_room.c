/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of the room, and the rest of the table of base/os.h: see sim.h.
 *
 * Locking: none, one thread.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/env.h"
#include "sim_file.h"

enum {
	FIRST_PID = 1000000,
	/*
	 * So many have addresses that are in the list of local ones. All
	 * processes have the same list: the provider keeps one for the process.
	 */
	LOCAL_HOSTS = 3,
};

struct tds_weather tds_weather;

static struct tds_proc procs[TDS_PROCS];
static unsigned count;
static struct tds_proc *self = procs;
static uint64_t ghost_ns; /* what the dead have slept */

struct tds_proc *tds_proc_new(int host)
{
	struct tds_proc *p = &procs[count++];

	if (count > TDS_PROCS)
		abort();
	memset(p, 0, sizeof(*p));
	p->host = host;
	p->pid = FIRST_PID + (int)count - 1;
	p->fds_most = TDS_FDS;
	return p;
}

struct tds_proc *tds_proc_of(int pid)
{
	int i = pid - FIRST_PID;

	return i >= 0 && i < (int)count ? &procs[i] : NULL;
}

void tds_enter(struct tds_proc *proc)
{
	self = proc;
	tdm_env.shm = proc->shm_on ? TDM_SHM_AUTO : TDM_SHM_OFF;
}

struct tds_proc *tds_self(void)
{
	return self;
}

void tds_kill(struct tds_proc *proc)
{
	tds_memory_detach(proc);
	tds_fds_close(proc);
	proc->dead = 1;
	proc->fds_most = 0;
}

/* ---- sockets of both families -------------------------------------------- */

static int s_socket(int domain, int type, int protocol)
{
	(void)type;
	(void)protocol;
	if (domain == AF_UNIX)
		return tds_unix_socket();
	return domain == AF_INET ? tds_tcp_socket() : tds_fail(EAFNOSUPPORT);
}

static int is_unix(int fd)
{
	struct tds_file *f = tds_file_of(fd);

	return f && f->kind == TDS_UNIX;
}

static int s_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return is_unix(fd) ? tds_unix_bind(fd, addr, len) :
			     tds_tcp_bind(fd, addr, len);
}

static int s_listen(int fd, int backlog)
{
	return is_unix(fd) ? tds_unix_listen(fd, backlog) :
			     tds_tcp_listen(fd, backlog);
}

static int s_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	(void)flags;
	return is_unix(fd) ? tds_unix_accept(fd) :
			     tds_tcp_accept(fd, addr, len);
}

static int s_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return is_unix(fd) ? tds_unix_connect(fd, addr, len) :
			     tds_tcp_connect(fd, addr, len);
}

static int s_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return tds_tcp_name(fd, addr, len, 0);
}

static int s_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return tds_tcp_name(fd, addr, len, 1);
}

static int s_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	return is_unix(fd) ? tds_unix_getsockopt(fd, level, name, val, len) :
			     tds_tcp_getsockopt(fd, level, name, val, len);
}

static int s_setsockopt(int fd, int level, int name, const void *val,
			socklen_t len)
{
	(void)level;
	(void)name;
	(void)val;
	(void)len;
	return tds_file_of(fd) ? tds_did(0) : tds_fail(EBADF);
}

static ssize_t s_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	(void)flags;
	return is_unix(fd) ? tds_unix_send(fd, &msg) :
			     tds_tcp_send(fd, &iov, 1);
}

static ssize_t s_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (flags & MSG_PEEK)
		return tds_tcp_peek(fd);
	return is_unix(fd) ? tds_unix_recv(fd, &msg) :
			     tds_tcp_recv(fd, &iov, 1);
}

static ssize_t s_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	(void)flags;
	return is_unix(fd) ? tds_unix_send(fd, msg) :
			     tds_tcp_send(fd, msg->msg_iov, msg->msg_iovlen);
}

static ssize_t s_recvmsg(int fd, struct msghdr *msg, int flags)
{
	(void)flags;
	return is_unix(fd) ? tds_unix_recv(fd, msg) :
			     tds_tcp_recv(fd, msg->msg_iov, msg->msg_iovlen);
}

static ssize_t s_readv(int fd, const struct iovec *iov, int n)
{
	return tds_tcp_recv(fd, iov, (size_t)n);
}

/* ---- the rest ------------------------------------------------------------ */

static int s_pidfd_open(pid_t pid, unsigned int flags)
{
	struct tds_proc *p = tds_proc_of(pid);

	(void)flags;
	return p && !p->dead ? tds_pidfd(p) : tds_fail(ESRCH);
}

static int s_membarrier(int cmd, unsigned int flags, int cpu)
{
	(void)flags;
	(void)cpu;
	return cmd ? 0 : INT32_MAX; /* a query: all of them */
}

static ssize_t s_getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *p = buf;
	size_t i;

	(void)flags;
	for (i = 0; i < len; i++)
		p[i] = (unsigned char)tds_random(256);
	return (ssize_t)len;
}

/* In one allocation, as freeifaddrs(3) of glibc expects it. */
static int s_getifaddrs(struct ifaddrs **list)
{
	struct all {
		struct ifaddrs i[TDS_HOSTS];
		struct sockaddr_in a[TDS_HOSTS];
	} *all = calloc(1, sizeof(*all));
	int k, n = LOCAL_HOSTS;

	if (!all)
		return tds_fail(ENOMEM);
	for (k = 0; k < n; k++) {
		all->a[k].sin_family = AF_INET;
		all->a[k].sin_addr = tds_host_ip(k);
		all->i[k].ifa_addr = (struct sockaddr *)&all->a[k];
		all->i[k].ifa_name = (char *)(uintptr_t)"sim";
		all->i[k].ifa_next = k + 1 < n ? &all->i[k + 1] : NULL;
	}
	*list = all->i;
	return tds_did(0);
}

static int s_ifreq(int fd, unsigned long request, struct ifreq *req)
{
	(void)fd;
	(void)request;
	(void)req;
	return tds_fail(ENODEV);
}

static int s_getrlimit(int resource, struct rlimit *limit)
{
	limit->rlim_cur = limit->rlim_max =
		resource == RLIMIT_NOFILE ? TDS_FDS : RLIM_INFINITY;
	return 0;
}

static int s_yield(void)
{
	tds_advance(1000);
	return 0;
}

/* No file and no thread is in this room. */
static int s_open_file(const char *pathname, int flags, mode_t mode)
{
	(void)pathname;
	(void)flags;
	(void)mode;
	return tds_fail(ENOENT);
}

static int s_stat(const char *pathname, struct stat *st)
{
	(void)pathname;
	(void)st;
	return tds_fail(ENOENT);
}

static int s_thread_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	(void)thread;
	(void)run;
	(void)arg;
	return tds_fail(EAGAIN);
}

static uint64_t s_now_ns(void)
{
	if (self->dead)
		return tds_now() + (ghost_ns += TDS_MS);
	tds_advance_read();
	return tds_now();
}

static uint64_t s_tick_ns(void)
{
	return tds_now() - tds_now() % (4 * TDS_MS);
}

static void sockets_install(void)
{
	tdm_os.socket = s_socket;
	tdm_os.bind = s_bind;
	tdm_os.listen = s_listen;
	tdm_os.accept4 = s_accept4;
	tdm_os.connect = s_connect;
	tdm_os.getsockname = s_getsockname;
	tdm_os.getpeername = s_getpeername;
	tdm_os.getsockopt = s_getsockopt;
	tdm_os.setsockopt = s_setsockopt;
	tdm_os.shutdown = tds_tcp_shutdown;
	tdm_os.outq = tds_tcp_outq;
	tdm_os.send = s_send;
	tdm_os.recv = s_recv;
	tdm_os.sendmsg = s_sendmsg;
	tdm_os.recvmsg = s_recvmsg;
	tdm_os.readv = s_readv;
}

void tds_begin(uint64_t seed)
{
	count = 0;
	ghost_ns = 0;
	self = &procs[0];
	memset(procs, 0, sizeof(procs));
	tds_time_begin(seed);
	tds_net_begin();
	sockets_install();
	tds_file_install();
	tds_memory_install();
	tdm_os.pidfd_open = s_pidfd_open;
	tdm_os.membarrier = s_membarrier;
	tdm_os.getrandom = s_getrandom;
	tdm_os.getifaddrs = s_getifaddrs;
	tdm_os.ifreq = s_ifreq;
	tdm_os.getrlimit = s_getrlimit;
	tdm_os.yield = s_yield;
	tdm_os.open_file = s_open_file;
	tdm_os.stat = s_stat;
	tdm_os.thread_create = s_thread_create;
	tdm_os.now_ns = s_now_ns;
	tdm_os.tick_ns = s_tick_ns;
}

void tds_end(void)
{
	tdm_os = tdm_os_system;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The OS call table, filled with the system's own calls. Thin adapters stand in
 * where libc has no such function, or one with variadic or other parameters.
 *
 * Invariants:
 *  1. tdm_os_system is never written; tests change tdm_os only.
 *  2. A socket or file that is open has its bit in `sockets`, if there is room
 *     for it.
 * Locking: none, the table is not changed while a fabric is open; the bits are
 * atomic.
 */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"

/*
 * Descriptors below this number have a bit. Pages of the array in which no bit
 * was ever set take no memory.
 */
enum { SOCKETS_MOST = 1 << 20 };

static tdm_a64 sockets[SOCKETS_MOST / 64];

static int remember(int fd)
{
	if (fd >= 0 && fd < SOCKETS_MOST)
		tdm_a64_fetch_or(&sockets[fd / 64], 1ull << (fd % 64));
	return fd;
}

static int sys_socket(int domain, int type, int protocol)
{
	return remember(socket(domain, type, protocol));
}

static int sys_open_file(const char *pathname, int flags, mode_t mode)
{
	return remember(open(pathname, flags, mode));
}

static int sys_file_lock(int fd, short type, int wait)
{
	struct flock lock = { .l_type = type,
			      .l_whence = SEEK_SET,
			      .l_len = 1 };

	return fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
}

static int sys_close(int fd)
{
	if (fd >= 0 && fd < SOCKETS_MOST &&
	    tdm_a64_load_relaxed(&sockets[fd / 64]) & 1ull << (fd % 64))
		tdm_a64_fetch_and(&sockets[fd / 64], ~(1ull << (fd % 64)));
	return close(fd);
}

void tdm_os_close_sockets(void)
{
	int i;

	for (i = 0; i < SOCKETS_MOST / 64; i++) {
		uint64_t bits = tdm_a64_load_relaxed(&sockets[i]);

		/*
		 * Skip words that are 0 already: a store would allocate their
		 * page.
		 */
		if (bits)
			tdm_a64_store_relaxed(&sockets[i], 0);
		for (; bits; bits &= bits - 1)
			(void)close(i * 64 + __builtin_ctzll(bits));
	}
}

static int read_urandom(uint8_t *p, size_t len)
{
	int fd = tdm_os.open_file("/dev/urandom", O_RDONLY | O_CLOEXEC, 0);
	int ret = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (len && !ret) {
		n = tdm_os.read(fd, p, len);
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (!n || errno != EINTR) {
			ret = n ? -errno : -EIO;
		}
	}
	tdm_os.close(fd);
	return ret;
}

int tdm_os_random(void *buf, size_t len)
{
	uint8_t *p = buf;
	ssize_t n;

	while (len) {
		n = tdm_os.getrandom(p, len, 0);
		/*
		 * Kernels before 3.17 do not have the call; some sandboxes
		 * forbid it.
		 */
		if (n < 0 && (errno == ENOSYS || errno == EPERM))
			return read_urandom(p, len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int sys_eventfd(unsigned int value, int flags)
{
	return eventfd(value, flags);
}

static int sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	return epoll_ctl(epfd, op, fd, ev);
}

static int sys_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getsockname(fd, addr, len);
}

static int sys_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getpeername(fd, addr, len);
}

static int sys_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return remember(accept4(fd, addr, len, flags));
}

static int sys_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

static int sys_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

static int sys_timerfd_create(int clock, int flags)
{
	return timerfd_create(clock, flags);
}

static int sys_add_seals(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals);
}

static int sys_get_seals(int fd)
{
	return fcntl(fd, F_GET_SEALS);
}

static int sys_pidfd_open(pid_t pid, unsigned int flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static int sys_membarrier(int cmd, unsigned int flags, int cpu_id)
{
	return (int)syscall(SYS_membarrier, cmd, flags, cpu_id);
}

static int sys_outq(int fd, int *bytes)
{
	return ioctl(fd, SIOCOUTQ, bytes);
}

static int sys_ifreq(int fd, unsigned long request, struct ifreq *req)
{
	return ioctl(fd, request, req);
}

static int sys_getrlimit(int resource, struct rlimit *limit)
{
	return getrlimit(resource, limit);
}

static int sys_thread_create(pthread_t *thread, void *(*run)(void *arg),
			     void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = ret;
	return ret ? -1 : 0;
}

static uint64_t sys_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t sys_tick_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int tdm_os_failed(const char *call)
{
	int err = errno;

	TDM_INFO(CORE, "%s: %s", call, strerror(err));
	return -err;
}

rlim_t tdm_os_fd_limit(void)
{
	struct rlimit limit;

	return tdm_os.getrlimit(RLIMIT_NOFILE, &limit) ? RLIM_INFINITY :
							 limit.rlim_cur;
}

#define SYSTEM_CALLS                                                           \
	{                                                                      \
		.socket = sys_socket,                                          \
		.bind = sys_bind,                                              \
		.listen = listen,                                              \
		.accept4 = sys_accept4,                                        \
		.connect = sys_connect,                                        \
		.getsockname = sys_getsockname,                                \
		.getpeername = sys_getpeername,                                \
		.getsockopt = getsockopt,                                      \
		.setsockopt = setsockopt,                                      \
		.outq = sys_outq,                                              \
		.ifreq = sys_ifreq,                                            \
		.getifaddrs = getifaddrs,                                      \
		.shutdown = shutdown,                                          \
		.send = send,                                                  \
		.recv = recv,                                                  \
		.sendmsg = sendmsg,                                            \
		.recvmsg = recvmsg,                                            \
		.readv = readv,                                                \
		.read = read,                                                  \
		.write = write,                                                \
		.close = sys_close,                                            \
		.open_file = sys_open_file,                                    \
		.unlink = unlink,                                              \
		.stat = stat,                                                  \
		.pread = pread,                                                \
		.pwrite = pwrite,                                              \
		.flock = flock,                                                \
		.file_lock = sys_file_lock,                                    \
		.poll = poll,                                                  \
		.ppoll = ppoll,                                                \
		.epoll_create1 = epoll_create1,                                \
		.epoll_ctl = sys_epoll_ctl,                                    \
		.epoll_wait = epoll_wait,                                      \
		.eventfd = sys_eventfd,                                        \
		.timerfd_create = sys_timerfd_create,                          \
		.timerfd_settime = timerfd_settime,                            \
		.memfd_create = memfd_create,                                  \
		.fallocate = fallocate,                                        \
		.ftruncate = ftruncate,                                        \
		.fstat = fstat,                                                \
		.add_seals = sys_add_seals,                                    \
		.get_seals = sys_get_seals,                                    \
		.mmap = mmap,                                                  \
		.munmap = munmap,                                              \
		.process_vm_readv = process_vm_readv,                          \
		.pidfd_open = sys_pidfd_open,                                  \
		.membarrier = sys_membarrier,                                  \
		.getrandom = getrandom,                                        \
		.getaddrinfo = getaddrinfo,                                    \
		.freeaddrinfo = freeaddrinfo,                                  \
		.getrlimit = sys_getrlimit,                                    \
		.yield = sched_yield,                                          \
		.thread_create = sys_thread_create,                            \
		.now_ns = sys_now_ns,                                          \
		.tick_ns = sys_tick_ns,                                        \
	}

const struct tdm_os tdm_os_system = SYSTEM_CALLS;

struct tdm_os tdm_os = SYSTEM_CALLS;

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The OS call table. Every system call that can fail goes through it, so that
 * a test can make each call fail in turn, cut it short, or replace the clock.
 * The entries have the prototypes and the meaning of the calls they are named
 * after (section 2 of the manual): result -1 and errno on failure.
 *
 * Memory from malloc/free is not in the table: tests interpose it.
 */
#ifndef TDM_BASE_OS_H
#define TDM_BASE_OS_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

struct addrinfo;
struct ifaddrs;
struct ifreq;
struct itimerspec;

struct tdm_os {
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*accept4)(int fd, struct sockaddr *addr, socklen_t *len,
		       int flags);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*getsockname)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*getpeername)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*getsockopt)(int fd, int level, int name, void *val,
			  socklen_t *len);
	int (*setsockopt)(int fd, int level, int name, const void *val,
			  socklen_t len);
	int (*shutdown)(int fd, int how);
	/* ioctl(SIOCOUTQ): bytes of a TCP socket the peer has not acked. */
	int (*outq)(int fd, int *bytes);
	/* ioctl(2) with a request of netdevice(7). */
	int (*ifreq)(int fd, unsigned long request, struct ifreq *req);
	int (*getifaddrs)(struct ifaddrs **list);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	ssize_t (*readv)(int fd, const struct iovec *iov, int count);
	ssize_t (*read)(int fd, void *buf, size_t len);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	int (*close)(int fd);
	/*
	 * open(2) of a file with @mode. The descriptor is closed in a child of
	 * fork(2): tdm_os_close_sockets().
	 */
	int (*open_file)(const char *pathname, int flags, mode_t mode);
	int (*unlink)(const char *pathname);
	int (*stat)(const char *pathname, struct stat *st);
	ssize_t (*pread)(int fd, void *buf, size_t len, off_t offset);
	ssize_t (*pwrite)(int fd, const void *buf, size_t len, off_t offset);
	int (*flock)(int fd, int operation);
	/*
	 * An open file description lock of the first byte: @type F_RDLCK,
	 * F_WRLCK or F_UNLCK. With @wait the call blocks until it is granted;
	 * else it fails with EAGAIN.
	 */
	int (*file_lock)(int fd, short type, int wait);
	int (*poll)(struct pollfd *fds, nfds_t nfds, int timeout_ms);
	int (*ppoll)(struct pollfd *fds, nfds_t nfds,
		     const struct timespec *timeout, const sigset_t *mask);
	int (*epoll_create1)(int flags);
	int (*epoll_ctl)(int epfd, int op, int fd, struct epoll_event *ev);
	int (*epoll_wait)(int epfd, struct epoll_event *ev, int max,
			  int timeout_ms);
	int (*eventfd)(unsigned int value, int flags);
	int (*timerfd_create)(int clock, int flags);
	int (*timerfd_settime)(int fd, int flags,
			       const struct itimerspec *new_value,
			       struct itimerspec *old_value);
	int (*memfd_create)(const char *name, unsigned int flags);
	int (*fallocate)(int fd, int mode, off_t offset, off_t len);
	int (*ftruncate)(int fd, off_t len);
	int (*fstat)(int fd, struct stat *st);
	/* fcntl(F_ADD_SEALS) and fcntl(F_GET_SEALS) of a memfd. */
	int (*add_seals)(int fd, int seals);
	int (*get_seals)(int fd);
	void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd,
		      off_t offset);
	int (*munmap)(void *addr, size_t len);
	ssize_t (*process_vm_readv)(pid_t pid, const struct iovec *local,
				    unsigned long local_count,
				    const struct iovec *remote,
				    unsigned long remote_count,
				    unsigned long flags);
	int (*pidfd_open)(pid_t pid, unsigned int flags);
	/* MEMBARRIER commands; see membarrier(2). */
	int (*membarrier)(int cmd, unsigned int flags, int cpu_id);
	ssize_t (*getrandom)(void *buf, size_t len, unsigned int flags);
	/* getaddrinfo(3): its own codes, not errno. May take seconds. */
	int (*getaddrinfo)(const char *node, const char *service,
			   const struct addrinfo *hints,
			   struct addrinfo **list);
	void (*freeaddrinfo)(struct addrinfo *list);
	int (*getrlimit)(int resource, struct rlimit *limit);
	/* sched_yield(2). */
	int (*yield)(void);
	/* pthread_create(3); the thread takes no signals. */
	int (*thread_create)(pthread_t *thread, void *(*run)(void *arg),
			     void *arg);
	/* CLOCK_MONOTONIC in nanoseconds. */
	uint64_t (*now_ns)(void);
	/*
	 * The same clock as of the last tick of the kernel, 10 ms ago at most:
	 * CLOCK_MONOTONIC_COARSE, which takes a tenth of the time.
	 */
	uint64_t (*tick_ns)(void);
};

/* The table in use; tests replace entries before opening a fabric. */
extern struct tdm_os tdm_os;

/* The system's own calls, for restoring the table. */
extern const struct tdm_os tdm_os_system;

/*
 * Called when the call named @call has failed: logs that with its errno, at
 * INFO. Returns -errno.
 */
int tdm_os_failed(const char *call);

/*
 * Not 0 when a read from a socket that has failed with @err is made again later:
 * nothing has come, a signal has, or the kernel has no memory.
 */
static inline int tdm_os_later(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR ||
	       err == ENOMEM || err == ENOBUFS;
}

/*
 * Fill @buf with @len random bytes, from getrandom(2), or from /dev/urandom
 * where getrandom(2) does not work. Returns 0, or -errno.
 */
int tdm_os_random(void *buf, size_t len);

/*
 * How many descriptors the process may have: the soft RLIMIT_NOFILE, or
 * RLIM_INFINITY if it is unknown. A new descriptor has the lowest free number,
 * so that its number is about the count of those in use.
 */
rlim_t tdm_os_fd_limit(void);

/*
 * In a child of fork(2): close the sockets and files that the parent opened
 * through the table. Async-signal-safe.
 */
void tdm_os_close_sockets(void);

#endif /* TDM_BASE_OS_H */

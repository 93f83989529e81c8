/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that fail on demand: the table tdm_os (base/os.h) wrapped entry
 * by entry. For programs that link libtandem-core.la.
 *
 * Calls count and fail in the thread that installs the wrappers only; a leap of
 * the clock is seen by all.
 * Ordinals count from 1, from the last tdt_os_count() on; a fault stays armed
 * until it struck or tdt_os_clear().
 */
#ifndef TDT_OS_FAULT_H
#define TDT_OS_FAULT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tdt_os_call {
	TDT_OS_SOCKET,
	TDT_OS_BIND,
	TDT_OS_LISTEN,
	TDT_OS_ACCEPT4,
	TDT_OS_CONNECT,
	TDT_OS_GETSOCKNAME,
	TDT_OS_GETPEERNAME,
	TDT_OS_GETSOCKOPT,
	TDT_OS_SETSOCKOPT,
	TDT_OS_SHUTDOWN,
	TDT_OS_IFREQ,
	TDT_OS_GETIFADDRS,
	TDT_OS_SEND,
	TDT_OS_RECV,
	TDT_OS_SENDMSG,
	TDT_OS_RECVMSG,
	TDT_OS_READV,
	TDT_OS_READ,
	TDT_OS_WRITE,
	TDT_OS_POLL,
	TDT_OS_EPOLL_CREATE1,
	TDT_OS_EPOLL_CTL,
	TDT_OS_EPOLL_WAIT,
	TDT_OS_EVENTFD,
	TDT_OS_MEMFD_CREATE,
	TDT_OS_FALLOCATE,
	TDT_OS_FTRUNCATE,
	TDT_OS_FSTAT,
	TDT_OS_ADD_SEALS,
	TDT_OS_GET_SEALS,
	TDT_OS_MMAP,
	TDT_OS_PROCESS_VM_READV,
	TDT_OS_PIDFD_OPEN,
	TDT_OS_MEMBARRIER,
	TDT_OS_GETRANDOM,
	TDT_OS_OPEN_FILE,
	TDT_OS_UNLINK,
	TDT_OS_PREAD,
	TDT_OS_PWRITE,
	TDT_OS_FLOCK,
	TDT_OS_FILE_LOCK,
	TDT_OS_OUTQ,
	TDT_OS_TIMERFD_CREATE,
	TDT_OS_TIMERFD_SETTIME,
	TDT_OS_THREAD_CREATE,
	TDT_OS_PPOLL,
	TDT_OS_CLOSE,
	TDT_OS_NOW, /* does not fail: the clock leaps ahead, for good */
	TDT_OS_CALLS
};

const char *tdt_os_name(enum tdt_os_call call);

/* Put the wrappers in place; take them out again, all faults forgotten. */
void tdt_os_install(void);
void tdt_os_remove(void);

/* The @nth call from now fails with @err (positive errno). */
void tdt_fail_nth(enum tdt_os_call call, unsigned nth, int err);

/* As above, and so do those after it, @many in all. */
void tdt_fail_span(enum tdt_os_call call, unsigned nth, unsigned many, int err);

/* As tdt_fail_nth(), and so do all calls after it. */
void tdt_fail_from(enum tdt_os_call call, unsigned nth, int err);

/*
 * The @nth call from now moves @bytes at most; send, recv, sendmsg, recvmsg,
 * readv, read, write and process_vm_readv only.
 */
void tdt_short_nth(enum tdt_os_call call, unsigned nth, size_t bytes);

/* The same, but all bytes except the last @less. */
void tdt_less_nth(enum tdt_os_call call, unsigned nth, size_t less);

/* As tdt_short_nth(), for every call from now on. */
void tdt_short_all(enum tdt_os_call call, size_t bytes);

/*
 * While @on, no byte passes a socket and nothing is acknowledged; no memory can
 * be mapped. Not counted as faults; tdt_os_clear() does not end it.
 */
void tdt_os_partition(int on);
void tdt_os_no_memory(int on);

/* Forget all faults, count from 0 again. */
void tdt_os_clear(void);

/* Calls since the last clear; faults that struck. */
unsigned tdt_os_count(enum tdt_os_call call);
unsigned tdt_os_struck(void);

#ifdef __cplusplus
}
#endif

#endif /* TDT_OS_FAULT_H */

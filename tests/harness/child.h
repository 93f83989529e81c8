/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers in processes of their own. A child is this program again, started
 * with a role instead of tests, so that it has a fresh libfabric; parent and
 * child talk over a SEQPACKET socket. A child dies with its parent.
 */
#ifndef TDT_CHILD_H
#define TDT_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "world.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tdt_child {
	pid_t pid; /* 0: none */
	int fd;	   /* to the child */
};

/*
 * A role: runs in the child with the socket to the parent; its result is the
 * exit status.
 */
typedef int (*tdt_role)(int fd, const char *arg);

/* Announce a role; before main(), from TDT_ROLE(). */
void tdt_role_add(const char *name, tdt_role role);

#define TDT_ROLE(name)                                                         \
	static int name(int fd, const char *arg);                              \
	__attribute__((constructor)) static void name##_add(void)              \
	{                                                                      \
		tdt_role_add(#name, name);                                     \
	}                                                                      \
	static int name(int fd, const char *arg)

/* In main(): run the role this process was started for; -1 when for none. */
int tdt_child_main(void);

/*
 * Start a child. @arg may be NULL. The environment is this process's.
 * Errors: -errno.
 */
int tdt_child_start(struct tdt_child *child, const char *role, const char *arg);

/*
 * The same with @program, a copy of this one. A child whose program is set-user-ID
 * does not die with its parent: prctl(2), PR_SET_PDEATHSIG.
 */
int tdt_child_start_copy(struct tdt_child *child, const char *program,
			 const char *role, const char *arg);

/* Send a signal; SIGKILL also waits for the end. */
void tdt_child_kill(struct tdt_child *child, int sig);

/*
 * Wait for the end. Returns the exit status, 128 + signal, or -1 when the
 * deadline is over (the child is killed then).
 */
int tdt_child_wait(struct tdt_child *child);

/* One message over the socket. 0 or -errno. */
int tdt_tell(int fd, const void *buf, size_t len);

/* Wait for one message up to the deadline. Bytes, or -errno; 0: closed. */
ssize_t tdt_hear(int fd, void *buf, size_t len);

/* The same without waiting: -EAGAIN. */
ssize_t tdt_hear_now(int fd, void *buf, size_t len);

/* A raw address in a message. */
struct tdt_name {
	size_t len; /* bytes */
	unsigned char bytes[TDT_NAME_BYTES];
};

/* Tell the other process the address of @ep. 0 or -errno. */
int tdt_tell_name(int fd, const struct tdt_ep *ep);

/*
 * Wait for the address of the other process's endpoint, up to the deadline, and
 * insert it into the AV of @ep. Out: *@peer. 0, or -1: no such message, or it
 * was not inserted.
 */
int tdt_hear_name(int fd, struct tdt_ep *ep, fi_addr_t *peer);

#ifdef __cplusplus
}
#endif

#endif /* TDT_CHILD_H */

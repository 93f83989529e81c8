/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open files of simulated processes, for the files of this folder: see sim.h.
 * A file is what several descriptors, also of several processes, may refer to.
 *
 * Locking: none, one thread.
 */
#ifndef TDS_SIM_FILE_H
#define TDS_SIM_FILE_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/os.h"
#include "sim.h"

enum tds_kind {
	TDS_TCP,
	TDS_UNIX,
	TDS_EPOLL,
	TDS_EVENT,
	TDS_TIMER,
	TDS_MEMORY,
	TDS_PID,
	TDS_KINDS
};

/* A file, the first member of what each kind has of its own. */
struct tds_file {
	enum tds_kind kind;
	unsigned refs;		 /* descriptors, and messages that carry it */
	struct tdm_list watches; /* struct tds_watch of epoll sets */
};

/* A file in an epoll set. */
struct tds_watch {
	struct tdm_list of_file, of_set;
	struct tds_file *file;
	int fd;
	struct epoll_event ev;
};

/* What each kind can do. */
struct tds_kind_ops {
	/* Events that hold now, POLL*, which are also EPOLL*. */
	unsigned (*events)(struct tds_file *f);
	/* The last descriptor was closed: free @f. */
	void (*last_close)(struct tds_file *f);
};

extern const struct tds_kind_ops tds_tcp_ops, tds_unix_ops, tds_memory_ops;

/* A file of @bytes, zeroed, without a descriptor. Never NULL. */
void *tds_file_new(enum tds_kind kind, size_t bytes);

/* A descriptor of the process for @f. -1: EMFILE; @f is released then. */
int tds_fd_new(struct tds_file *f);

/* The file of @fd; NULL: EBADF, or it is of another kind (ENOTSOCK). */
struct tds_file *tds_file_of(int fd);
void *tds_kind_of(int fd, enum tds_kind kind);

void tds_file_hold(struct tds_file *f);
void tds_file_release(struct tds_file *f);
unsigned tds_events(struct tds_file *f);

/* The calls of sim_file.c, in tdm_os. */
void tds_file_install(void);

/* Close all descriptors of @p. */
void tds_fds_close(struct tds_proc *p);

/* A descriptor that is readable when @p is dead. */
int tds_pidfd(struct tds_proc *p);

/* Count a call with its result, which goes into the digest. Returns @ret. */
int tds_did(int ret);
int tds_fail(int err); /* errno; returns -1 */

/* The process with @pid, or NULL. */
struct tds_proc *tds_proc_of(int pid);

/* ---- sim_net.c ----------------------------------------------------------- */

void tds_net_begin(void);
void tds_net_run(void); /* what is due happens */
uint64_t tds_net_next(void);
int tds_tcp_socket(void);

/* Calls of base/os.h for sockets; unix sockets: sim_unix.c. */
int tds_tcp_bind(int fd, const struct sockaddr *addr, socklen_t len);
int tds_tcp_listen(int fd, int backlog);
int tds_tcp_accept(int fd, struct sockaddr *addr, socklen_t *len);
int tds_tcp_connect(int fd, const struct sockaddr *addr, socklen_t len);
int tds_tcp_name(int fd, struct sockaddr *addr, socklen_t *len, int peer);
int tds_tcp_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
int tds_tcp_shutdown(int fd, int how);
int tds_tcp_outq(int fd, int *bytes);
ssize_t tds_tcp_send(int fd, const struct iovec *iov, size_t count);
ssize_t tds_tcp_recv(int fd, const struct iovec *iov, size_t count);
ssize_t tds_tcp_peek(int fd); /* what a recv() of one byte would return */

int tds_unix_socket(void);
int tds_unix_bind(int fd, const struct sockaddr *addr, socklen_t len);
int tds_unix_listen(int fd, int backlog);
int tds_unix_accept(int fd);
int tds_unix_connect(int fd, const struct sockaddr *addr, socklen_t len);
int tds_unix_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
ssize_t tds_unix_send(int fd, const struct msghdr *msg);
ssize_t tds_unix_recv(int fd, struct msghdr *msg);

/* ---- sim_memory.c -------------------------------------------------------- */

void tds_memory_install(void);		    /* its calls, in tdm_os */
void tds_memory_detach(struct tds_proc *p); /* nobody sees what it writes */

/* ---- sim_time.c ---------------------------------------------------------- */

void tds_time_begin(uint64_t seed);
uint64_t tds_time_next(void); /* of timers */
void tds_advance_read(void);  /* the clock is read */

/* Linux closes the descriptor whatever close(2) returns. */
int tds_close(int fd);

#endif /* TDS_SIM_FILE_H */

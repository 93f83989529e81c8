/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated machine room: the calls of base/os.h for several processes that
 * live in this one, in one thread, with a clock of its own and random numbers
 * from a seed. A play with the same seed makes the same calls with the same
 * results.
 *
 * Simulated are descriptors, TCP (sim_net.c), packets between processes of a host
 * with descriptors in them (sim_unix.c), epoll, eventfd, poll (sim_file.c), the
 * clock, the timers of libevent (sim_time.c), process_vm_readv. Shared memory is
 * the kernel's own, by memfd_create(2) and mmap(2) (sim_memory.c).
 *
 * Calls are made in the name of one process, that of tds_enter(). Times are in
 * nanoseconds of the simulated CLOCK_MONOTONIC.
 *
 * Locking: none, one thread.
 */
#ifndef TDS_SIM_H
#define TDS_SIM_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TDS_PROCS = 24, /* of one play, the dead included */
	TDS_HOSTS = 6,
	TDS_FDS = 128, /* of a process */
};

#define TDS_MS 1000000ull
#define TDS_S 1000000000ull
#define TDS_NEVER UINT64_MAX

/* How rough the room is: in each case one of so many, 0: never. */
struct tds_weather {
	unsigned short_io; /* a send or receive moves fewer bytes */
	unsigned again;	   /* it moves none: EAGAIN, EINTR, ENOBUFS */
	uint64_t delay_ns; /* most that a segment is under way */
	size_t sndbuf, rcvbuf;
	int cma; /* process_vm_readv(2) is allowed */
};

struct tds_file;

struct tds_proc {
	int host, pid;
	int dead;	 /* all of its descriptors were closed by the kernel */
	uint64_t paused; /* it makes no call until then */
	int shm_on;	 /* FI_TANDEM_SHM=auto, else off */
	struct tds_file *fds[TDS_FDS];
	unsigned char cloexec[TDS_FDS];
	unsigned nfds, fds_most;
};

extern struct tds_weather tds_weather;

/* ---- the room ------------------------------------------------------------ */

/*
 * Take over tdm_os and begin with @seed: no process, no file, no partition. The
 * clock goes on, hours later.
 */
void tds_begin(uint64_t seed);

/* The system's calls are back. */
void tds_end(void);

/* A new process on @host. Never NULL. */
struct tds_proc *tds_proc_new(int host);

/* Calls are made by @proc from now on; tdm_env is made that of it. */
void tds_enter(struct tds_proc *proc);
struct tds_proc *tds_self(void);

/*
 * The kernel ends @proc: it closes all descriptors, without a word to the peers.
 * What the process writes to shared memory afterwards nobody sees, and its calls
 * fail; the objects that it had can be closed.
 */
void tds_kill(struct tds_proc *proc);

/* The address of @host, network byte order. */
struct in_addr tds_host_ip(int host);

/* ---- time and chance ----------------------------------------------------- */

uint64_t tds_now(void);
void tds_advance(uint64_t ns);

/* When the next thing happens by itself: a segment, a timer; or TDS_NEVER. */
uint64_t tds_next_event(void);

/* A number below @below, from the seed; 0 if @below is 0. */
uint64_t tds_random(uint64_t below);

/* One of @n? Never if @n is 0. */
int tds_one_of(unsigned n);

/*
 * Called when a process sleeps in a call for @ms: the others go on. May be NULL.
 */
extern void (*tds_others_run)(unsigned ms);

/* ---- faults -------------------------------------------------------------- */

/* No segment passes between hosts @a and @b, or all do again. */
void tds_part(int a, int b, int on);
void tds_heal_all(void);

/* A segment between @a and @b takes @ns longer, in both directions. */
void tds_clog(int a, int b, uint64_t ns);

/*
 * Break a connection between @a and @b, drawn at random, as a middlebox does:
 * both ends get a reset; segments under way are lost. Returns 0: there is none;
 * 1; or 2: an end has not read @greeting bytes of it.
 */
int tds_reset(const struct tds_proc *a, const struct tds_proc *b,
	      uint64_t greeting);

/*
 * Change a bit of those that are under way between @a and @b, one drawn at random.
 * Returns 0: there is none; else as tds_reset().
 */
int tds_flip(const struct tds_proc *a, const struct tds_proc *b,
	     uint64_t greeting);

/*
 * Has the endpoint @other an attempt under way to reach one that was at @old, or one
 * from there whose caller has closed, which it may read yet?
 */
int tds_unmet(const struct sockaddr_in *old, const struct sockaddr_in *other);

/* ---- what is left -------------------------------------------------------- */

unsigned tds_open_files(void);	  /* of all processes */
unsigned tds_open_mappings(void); /* of all processes */
unsigned tds_open_timers(void);

/* Bytes written to and read from TCP so far: who moves some is not idle. */
uint64_t tds_tcp_moved(void);

/* Calls so far, and a sum over their results: equal in each play of a seed. */
uint64_t tds_calls(void);
uint64_t tds_digest(void);
void tds_note(uint64_t value);

/* Print what happens, TANDEM_SIM_TRACE. Takes a printf format. */
extern int tds_tracing;
void tds_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif /* TDS_SIM_H */

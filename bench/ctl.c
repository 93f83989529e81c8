/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See ctl.h.
 */
#include "bench/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A side that waits for the other one yields after so many looks. */
enum { POLLS_YIELD = 4096 };

struct bench_ctl *bench_ctl_mine;

uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void bench_die(const char *what, int err)
{
	struct bench_ctl *c = bench_ctl_mine;

	if (!c) {
		fprintf(stderr, "bench: %s: %s\n", what, strerror(err));
		exit(1);
	}
	if (!c->failed) {
		snprintf(c->why, sizeof(c->why), "%s: %s", what, strerror(err));
		c->failed = err ? err : EIO;
	}
	_exit(1);
}

static void futex_sleep(volatile uint32_t *word, uint32_t value, int ms)
{
	struct timespec t = { .tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000L };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

static void futex_wake(volatile uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

struct bench_ctl *bench_ctl_make(int *fd)
{
	struct bench_ctl *c;

	*fd = memfd_create("bench", 0);
	if (*fd < 0 || ftruncate(*fd, sizeof(*c)))
		bench_die("memfd", errno);
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (c == MAP_FAILED)
		bench_die("mmap", errno);
	return c;
}

void bench_ctl_drop(struct bench_ctl *c, int fd)
{
	munmap(c, sizeof(*c));
	close(fd);
}

struct bench_ctl *bench_ctl_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct bench_ctl *c;

	if (fd < 0)
		bench_die(path, errno);
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c == MAP_FAILED)
		bench_die("mmap", errno);
	close(fd);
	return c;
}

void bench_ctl_give(struct bench_ctl *c, const struct bench_order *order)
{
	c->order = *order;
	c->come = 0;
	__atomic_store_n(&c->go, c->go + 1, __ATOMIC_RELEASE);
	futex_wake(&c->go);
}

int bench_ctl_wait(struct bench_ctl *c, uint64_t until)
{
	uint32_t done;
	int i;

	for (i = 0; i < BENCH_SIDES; i++) {
		while ((done = __atomic_load_n(&c->done[i],
					       __ATOMIC_ACQUIRE)) != c->go) {
			if (c->failed)
				return c->failed;
			if (bench_now() > until)
				return ETIMEDOUT;
			futex_sleep(&c->done[i], done, 100);
		}
	}
	return 0;
}

uint32_t bench_ctl_next(struct bench_ctl *c, uint32_t last)
{
	uint32_t number;

	while ((number = __atomic_load_n(&c->go, __ATOMIC_ACQUIRE)) == last)
		futex_sleep(&c->go, last, 1000);
	return number;
}

void bench_ctl_done(struct bench_ctl *c, int side, uint32_t number)
{
	__atomic_store_n(&c->done[side], number, __ATOMIC_RELEASE);
	futex_wake(&c->done[side]);
}

void bench_ctl_meet(struct bench_ctl *c, int side)
{
	uint64_t mine = c->meet[side][0] + 1;
	uint32_t polls = 0;

	__atomic_store_n(&c->meet[side][0], mine, __ATOMIC_RELEASE);
	while (__atomic_load_n(&c->meet[!side][0], __ATOMIC_ACQUIRE) < mine) {
		bench_relax();
		if (!(++polls % POLLS_YIELD))
			sched_yield();
		if (c->failed)
			_exit(1);
	}
}

void bench_ctl_gather(struct bench_ctl *first, uint32_t sides)
{
	uint32_t come = __atomic_add_fetch(&first->come, 1, __ATOMIC_ACQ_REL);
	uint32_t all = (come + sides - 1) / sides * sides;

	if (come == all)
		futex_wake(&first->come);
	while ((come = __atomic_load_n(&first->come, __ATOMIC_ACQUIRE)) < all)
		futex_sleep(&first->come, come, 100);
}

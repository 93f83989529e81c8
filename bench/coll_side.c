/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See coll.h. A member that has done its part makes progress until all have:
 * others may need it.
 */
#include "bench/coll.h"

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

enum { SLEEP_MS = 100 };

uint64_t coll_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void coll_sleep(uint32_t *word, uint32_t value)
{
	const struct timespec t = { .tv_nsec = SLEEP_MS * 1000000L };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

void coll_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void coll_die(struct coll_seat *seat, const char *what, const char *why)
{
	snprintf(seat->why, sizeof(seat->why), "%s: %s", what, why);
	_exit(1);
}

struct coll_page *coll_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct coll_page *page;

	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (fd < 0 || page == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return page;
}

/* The value that member @rank contributes at @i. */
static uint64_t value(uint32_t rank, size_t i)
{
	return rank * 1000003u + i;
}

static void fill(struct coll_member *m)
{
	size_t i;

	for (i = 0; i < COLL_MOST_BYTES / 8; i++) {
		m->in[i] = value(m->rank, i);
		m->out[i] = m->seat->kind == COLL_BROADCAST && !m->rank ?
				    value(0, i) :
				    0;
	}
}

/* The right value at @i of the result of @m. */
static uint64_t right(const struct coll_member *m, size_t i)
{
	size_t block = m->seat->bytes / 8 / COLL_MEMBERS;
	uint64_t sum = 0;
	uint32_t r;

	switch (m->seat->kind) {
	case COLL_BROADCAST:
		return value(0, i);
	case COLL_ALLREDUCE:
		for (r = 0; r < COLL_MEMBERS; r++)
			sum += value(r, i);
		return sum;
	case COLL_ALLGATHER:
		return value((uint32_t)(i / block), i % block);
	default:
		return value((uint32_t)(i / block),
			     m->rank * block + i % block);
	}
}

static void check(const struct coll_member *m)
{
	size_t i, n = m->seat->kind == COLL_BARRIER ? 0 : m->seat->bytes / 8;

	for (i = 0; i < n; i++) {
		if (m->out[i] != right(m, i)) {
			m->seat->wrong = 1;
			return;
		}
	}
}

/* Once with the data checked, then as often as ordered. */
static void carry_out(struct coll_member *m)
{
	uint32_t i;

	fill(m);
	if (m->run(m)) {
		m->seat->lacks = 1;
		return;
	}
	check(m);
	m->seat->begin[m->rank] = coll_now();
	for (i = 0; i < m->seat->count; i++)
		(void)!m->run(m);
	m->seat->end[m->rank] = coll_now();
}

void coll_serve(struct coll_member *m)
{
	struct coll_seat *s = m->seat;
	uint32_t go, last = 0;

	m->in = calloc(1, COLL_MOST_BYTES);
	m->out = calloc(1, COLL_MOST_BYTES);
	while ((go = __atomic_load_n(&s->go, __ATOMIC_ACQUIRE)) != UINT32_MAX) {
		if (go == last) {
			coll_sleep(&s->go, last);
			continue;
		}
		last = go;
		carry_out(m);
		__atomic_add_fetch(&s->done, 1, __ATOMIC_ACQ_REL);
		while (__atomic_load_n(&s->done, __ATOMIC_ACQUIRE) <
		       go * COLL_MEMBERS) {
			m->poll(m);
			sched_yield();
		}
		coll_wake(&s->done);
	}
	free(m->in);
	free(m->out);
}

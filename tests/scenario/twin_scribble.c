/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The evil twin in shared memory: a thread writes the memory that this process
 * shares, its segments and bounce areas and the hints page of its peer, while the
 * peer reads them. Locking: the flags below are atomic; the memory has none on
 * purpose, so the thread sanitizer is told not to look.
 */
#include "twin_break.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/region.h"

enum {
	AREAS = 32,
	HITS = 400,	  /* between two looks for new areas */
	NEAR = 24,	  /* slots that are hit most */
	PAUSE = 200,	  /* yields between two hits, at most */
	AREA_WORDS = 512, /* of 8 bytes: the heads of chunks, and the first */
};

static struct {
	uint64_t random;
	atomic_int end;
	pthread_t thread;
	struct {
		uint8_t *base;
		size_t bytes;
	} areas[AREAS];
	size_t count;
} scribe;

static uint64_t chance(uint64_t below)
{
	return tdt_chance(&scribe.random, below);
}

/* Find what this process shares and may write. */
static void look(void)
{
	unsigned long from, to;
	char line[512], right[8];
	FILE *f = fopen("/proc/self/maps", "r");

	scribe.count = 0;
	while (f && fgets(line, sizeof(line), f) && scribe.count < AREAS) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, right) != 3 ||
		    strncmp(right, "rw-s", 4) != 0 ||
		    !strstr(line, "memfd:tandem"))
			continue;
		scribe.areas[scribe.count].base = (uint8_t *)from;
		scribe.areas[scribe.count++].bytes = to - from;
	}
	if (f)
		fclose(f);
}

__attribute__((no_sanitize("thread"))) static void
change(volatile uint64_t *word)
{
	uint64_t v = *word;

	tdt_change(&scribe.random, (uint8_t *)&v, sizeof(v));
	*word = v;
}

__attribute__((no_sanitize("thread"))) static void
copy(volatile uint64_t *to, const volatile uint64_t *from, size_t words)
{
	size_t i;

	for (i = 0; i < words; i++)
		to[i] = from ? from[i] : 0;
}

/* A slot of a ring: a field of the head or the body, or all of it. */
static void hit_slot(uint8_t *slots, size_t count)
{
	enum { WORDS = TDM_SHM_SLOT_BYTES / 8 };
	size_t near = count < NEAR ? count : NEAR;
	size_t k = (size_t)chance(chance(4) ? near : count);
	uint64_t *slot = (uint64_t *)(slots + k * TDM_SHM_SLOT_BYTES);
	uint64_t *other =
		(uint64_t *)(slots + (size_t)chance(near) * TDM_SHM_SLOT_BYTES);

	switch (chance(8)) {
	case 0: /* replay, or another order */
		copy(slot, other, WORDS);
		break;
	case 1:
		copy(slot, NULL, WORDS);
		break;
	case 2: /* the head of one, the body of another */
		copy(slot, other, 2);
		break;
	case 3:
		change(slot + chance(WORDS));
		break;
	default:
		change(slot + chance(2));
	}
}

static void hit_head(uint64_t *seg)
{
	static const size_t at[] = { 16, 24, 128, 256, 264, 384, 512 };

	change(seg + at[chance(sizeof(at) / sizeof(at[0]))] / 8);
}

static void hit(void)
{
	size_t i = (size_t)chance(scribe.count);
	uint64_t *base = (uint64_t *)(void *)scribe.areas[i].base;
	size_t bytes = scribe.areas[i].bytes, words = bytes / 8;

	if (*base != TDM_SHM_MAGIC)
		change(base + chance(chance(2) || words < AREA_WORDS ?
					     words :
					     AREA_WORDS));
	else if (!chance(4))
		hit_head(base);
	else
		hit_slot(scribe.areas[i].base + sizeof(struct tdm_shm_seg),
			 (bytes - sizeof(struct tdm_shm_seg)) /
				 TDM_SHM_SLOT_BYTES);
}

static void *scribble(void *arg)
{
	unsigned n, pause;

	(void)arg;
	for (n = 0; !atomic_load(&scribe.end); n++) {
		if (n % HITS == 0)
			look();
		if (scribe.count)
			hit();
		for (pause = (unsigned)chance(PAUSE); pause; pause--)
			sched_yield();
	}
	return NULL;
}

void tdt_scribble_begin(uint64_t seed)
{
	memset(&scribe, 0, sizeof(scribe));
	scribe.random = ~seed;
	if (pthread_create(&scribe.thread, NULL, scribble, NULL))
		abort();
}

void tdt_scribble_end(void)
{
	atomic_store(&scribe.end, 1);
	pthread_join(scribe.thread, NULL);
}

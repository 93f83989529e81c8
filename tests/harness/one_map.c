/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One mapping of each shared segment per process; see one_map.h. A file is
 * known by device and inode, a mapping by its address; each is kept until its
 * last user unmaps it.
 */
#include "one_map.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/os.h"

struct map {
	struct map *next;
	dev_t dev;
	ino_t ino;
	void *base;
	size_t len; /* bytes */
	unsigned users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map *maps; /* G: lock */
static size_t shared;	 /* G: lock */

static struct map *by_file(const struct stat *st, size_t len)
{
	struct map *m;

	for (m = maps; m; m = m->next) {
		if (m->dev == st->st_dev && m->ino == st->st_ino &&
		    m->len >= len)
			return m;
	}
	return NULL;
}

static void *map_new(const struct stat *st, void *base, size_t len)
{
	struct map *m = malloc(sizeof(*m));

	if (!m)
		abort();
	m->dev = st->st_dev;
	m->ino = st->st_ino;
	m->base = base;
	m->len = len;
	m->users = 1;
	m->next = maps;
	maps = m;
	return base;
}

static void *one_mmap(void *addr, size_t len, int prot, int flags, int fd,
		      off_t off)
{
	struct stat st;
	struct map *m;
	void *base;

	if (fd < 0 || off || !(flags & MAP_SHARED) || fstat(fd, &st))
		return tdm_os_system.mmap(addr, len, prot, flags, fd, off);
	pthread_mutex_lock(&lock);
	m = by_file(&st, len);
	if (m) {
		m->users++;
		shared++;
		base = m->base;
	} else {
		base = tdm_os_system.mmap(addr, len, prot, flags, fd, off);
		if (base != MAP_FAILED)
			map_new(&st, base, len);
	}
	pthread_mutex_unlock(&lock);
	return base;
}

static int one_munmap(void *base, size_t len)
{
	struct map **at, *m;
	int ret = 0;

	pthread_mutex_lock(&lock);
	for (at = &maps; *at && (*at)->base != base; at = &(*at)->next)
		;
	m = *at;
	if (!m) {
		ret = tdm_os_system.munmap(base, len);
	} else if (!--m->users) {
		*at = m->next;
		ret = tdm_os_system.munmap(m->base, m->len);
		free(m);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void tdt_one_map_install(void)
{
	shared = 0;
	tdm_os.mmap = one_mmap;
	tdm_os.munmap = one_munmap;
}

void tdt_one_map_remove(void)
{
	if (maps)
		abort();
	tdm_os.mmap = tdm_os_system.mmap;
	tdm_os.munmap = tdm_os_system.munmap;
}

size_t tdt_one_map_shared(void)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = shared;
	pthread_mutex_unlock(&lock);
	return n;
}

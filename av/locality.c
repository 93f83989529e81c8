/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IP addresses of this network namespace. See locality.h.
 *
 * The list is small (one entry per interface address) and changes rarely, so
 * it is scanned linearly and read again at most once a second, and only when an
 * address is not found. A stale entry does no harm: the attach decides.
 *
 * Locking: a mutex of its own, innermost.
 */
#include "av/locality.h"

#include <ifaddrs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

#define REREAD_NS 1000000000ull

static struct {
	pthread_mutex_t lock;
	struct tdm_addr *ips; /* ips[count], ports 0 */
	size_t count;
	uint64_t filter;  /* tdm_locality_filter() */
	uint64_t read_ns; /* when last read; 0: never */
} here = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Read the list of interface addresses again. On failure the old list stays. */
static void reread(void)
{
	struct ifaddrs *list, *i;
	struct tdm_addr *ips;
	uint64_t filter = 0;
	size_t n = 0;

	here.read_ns = tdm_os.now_ns();
	if (tdm_os.getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next)
		n++;
	ips = calloc(n + 1, sizeof(*ips));
	if (ips) {
		n = 0;
		for (i = list; i; i = i->ifa_next) {
			if (!i->ifa_addr)
				continue;
			if (!tdm_addr_from_bind(&ips[n], i->ifa_addr,
						sizeof(struct sockaddr_in6)))
				filter |= 1ull
					  << (tdm_addr_ip_hash(&ips[n++]) & 63);
		}
		free(here.ips);
		here.filter = filter;
		here.ips = ips;
		here.count = n;
	}
	freeifaddrs(list);
}

static int is_stale(void)
{
	return !here.read_ns || tdm_os.now_ns() - here.read_ns > REREAD_NS;
}

static int listed(const struct tdm_addr *a)
{
	size_t i;

	for (i = 0; i < here.count; i++) {
		if (tdm_addr_same_ip(&here.ips[i], a))
			return 1;
	}
	return 0;
}

int tdm_locality_lists(const struct tdm_addr *a)
{
	int yes;

	pthread_mutex_lock(&here.lock);
	yes = listed(a);
	if (!yes && is_stale()) {
		reread();
		yes = listed(a);
	}
	pthread_mutex_unlock(&here.lock);
	return yes;
}

uint64_t tdm_locality_filter(void)
{
	uint64_t filter;

	pthread_mutex_lock(&here.lock);
	if (is_stale())
		reread();
	filter = here.filter;
	pthread_mutex_unlock(&here.lock);
	return filter;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many file descriptors, and how much memory, *strangers* get: peers that prove no
 * key and are not in the address vector. A stranger may be a new client, or an attacker who sends
 * HELLO with one made-up port after the other. So all strangers are served
 * while descriptors are plentiful, and bounded when they are not. Of the
 * descriptors that the process may have,
 *
 *   - the last quarter is not for strangers at an IP where a quarter of all are
 *     strangers' sessions already;
 *   - the last sixteenth is for peers in the address vector.
 *
 * A caller for which there is no descriptor by these rules gets the place of a
 * stranger whose session has been unused for 5 s, or is told BUSY and tries
 * again. Long before that, peers of idle connections are asked for an idle
 * close (idle_close.c); a stranger's answer counts as use.
 *
 * The number of a new descriptor stands for the count of those in use, since
 * the system hands out the lowest free number. No check is made while numbers
 * are small, except after a stranger has lost its place: the next descriptor may
 * have the number that it had, so a few numbers are looked at.
 */
#include "tcp/wire/share.h"

#include <sys/stat.h>

#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/atomic.h"
#include "base/log.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/idle_close.h"

static const uint64_t unused_ns = 5000000000ull;

enum {
	LOOKS = 16,
	ANNOUNCED_BYTES = 1024,	 /* that an announced operation takes, about */
	HOLDS_LEAST = 64 * 1024, /* bytes; less is no relief */
};

/* Of the process: 1: strangers have lost their places, so numbers are free. */
static tdm_a32 evicted;

/* Not 0 when @fd is in the last @part-th of @most numbers of descriptors. */
static int beyond(int fd, rlim_t most, unsigned part)
{
	return (rlim_t)fd >= most - most / part;
}

/* Not 0 when the numbers [@from, @to), or all but a few of them, are in use. */
static int full(rlim_t from, rlim_t to)
{
	unsigned used = 0, i;
	struct stat st;

	for (i = 0; i < LOOKS; i++) {
		rlim_t fd = from + (to - from) * i / LOOKS;

		used += !tdm_os.fstat((int)fd, &st);
	}
	return used >= LOOKS - 1;
}

/*
 * Returns which part of the @most descriptors of the process the new one, @fd,
 * is of: 16: the last sixteenth; 4: the last quarter; 0: the rest.
 */
static unsigned part_of(int fd, rlim_t most)
{
	if (beyond(fd, most, 16))
		return 16;
	if (!tdm_a32_load_relaxed(&evicted))
		return beyond(fd, most, 4) ? 4 : 0;
	if (!beyond(fd, most, 4) && !full(0, most - most / 4)) {
		tdm_a32_store_relaxed(&evicted, 0);
		return 0;
	}
	return full(most - most / 4, most - most / 16) ? 16 : 4;
}

int tdm_share_reserved(int fd)
{
	return beyond(fd, tdm_os_fd_limit(), 16);
}

int tdm_share_known(const struct tdm_tcp *tcp, const struct tdm_addr *from)
{
	return tdm_av_may_know(tcp->a.av, from);
}

/*
 * Not 0 when @c has a session with a stranger, at the IP of @addr or (NULL) at
 * any.
 */
static int is_strangers(const struct tdm_conn *c, const struct tdm_addr *addr)
{
	return tdm_conn_live(c) && c->fi_addr == FI_ADDR_UNSPEC &&
	       !c->mirrored && !c->tcp->a.keys &&
	       (!addr || tdm_addr_same_ip(&c->addr, addr));
}

static size_t sessions(const struct tdm_tcp *tcp, const struct tdm_addr *addr)
{
	struct tdm_list *pos;
	size_t n = 0;

	tdm_list_for_each(pos, &tcp->conns)
		n += (size_t)is_strangers(
			tdm_list_entry(pos, struct tdm_conn, all), addr);
	return n;
}

/* Returns for how many nanoseconds these checks have seen @c unused. */
static uint64_t unused(struct tdm_conn *c, uint64_t now)
{
	if (c->seen_used != c->used) {
		c->seen_used = c->used;
		c->seen_ns = now;
	}
	return now - c->seen_ns;
}

int tdm_share_evict(struct tdm_tcp *tcp, const struct tdm_addr *addr)
{
	uint64_t now = tdm_os.now_ns(), most = unused_ns;
	struct tdm_conn *worst = NULL;
	struct tdm_list *pos;

	if (tcp->a.keys)
		return 0;
	tdm_list_for_each(pos, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if (is_strangers(c, addr) && unused(c, now) >= most) {
			most = unused(c, now);
			worst = c;
		}
	}
	if (!worst)
		return 0;
	TDM_INFO(EP_CTRL, "descriptors are short: a stranger's unused session "
			  "ends");
	tdm_conn_fail(worst, FI_ECONNRESET, 0);
	return 1;
}

uint64_t tdm_share_announced(const struct tdm_tcp *tcp)
{
	struct tdm_list *pos;
	uint64_t n = 0;

	tdm_list_for_each(pos, &tcp->conns) {
		const struct tdm_conn *c =
			tdm_list_entry(pos, struct tdm_conn, all);

		n += is_strangers(c, NULL) ? c->announced_most : 0;
		if (n >= TDM_WIRE_RTS_COUNT)
			break;
	}
	return n;
}

/* Returns about how many bytes the peer of @c has this endpoint hold. */
static uint64_t holds(const struct tdm_conn *c)
{
	uint64_t announced = c->busy ? c->busy->announced : 0;

	return announced * ANNOUNCED_BYTES + c->rx_charged - c->rx_freed +
	       c->kept;
}

int tdm_share_relieve(struct tdm_tcp *tcp)
{
	struct tdm_conn *worst = NULL;
	struct tdm_list *pos;
	uint64_t most = HOLDS_LEAST;

	tdm_list_for_each(pos, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if (is_strangers(c, NULL) && holds(c) > most) {
			most = holds(c);
			worst = c;
		}
	}
	if (!worst)
		return 0;
	TDM_CONN_INFO(worst, "memory is out: this stranger's session, which "
			     "holds most of it, ends");
	tdm_conn_fail(worst, FI_ECONNRESET, FI_ENOMEM);
	tdm_credit_drop(worst, 1);
	return 1;
}

int tdm_share_ok(struct tdm_tcp *tcp, int fd, const struct tdm_addr *addr)
{
	const struct tdm_addr *of = NULL;
	rlim_t most = tdm_os_fd_limit();
	unsigned part = tcp->a.keys ? 0 : part_of(fd, most);

	if (!part || tdm_av_find(tcp->a.av, addr) != FI_ADDR_UNSPEC)
		return 1;
	if (part != 16) {
		if (sessions(tcp, addr) < most / 4)
			return 1;
		of = addr;
	}
	if (tdm_share_evict(tcp, of)) {
		tdm_a32_store_relaxed(&evicted, 1);
		return 1;
	}
	tdm_idle_close_crowd(tcp, fd);
	return 0;
}

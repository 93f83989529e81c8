/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios in which something goes wrong: see play.h. Peers in processes of
 * their own have the address p->addr[0][ELSEWHERE]. Locking: none, one thread.
 */
#include "cast.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "tests/harness/fault.h"
#include "tests/harness/os_fault.h"

enum {
	ELSEWHERE = TDT_PLAY_EPS - 1,
	LEFT = 12, /* injects of a peer that closes */
};

struct fi_provider *fi_prov_ini(void);

/*
 * An endpoint that receives what comes; 'x': exit without closing; 'f': have a
 * child that keeps all descriptors, then say so. @arg: the number of the tier.
 */
TDT_ROLE(scenario_sink)
{
	static char buf[1 << 20];
	struct tdt_world *w;
	struct tdt_attr attr;
	fi_addr_t parent;
	char cmd;

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.prov = fi_prov_ini();
	tdm_env.shm = atoi(arg) == TDT_TIER_TCP ? TDM_SHM_OFF : TDM_SHM_AUTO;
	attr.no_tcp_only = 1;
	attr.caps |= FI_RMA | FI_ATOMIC;
	if (tdt_world_open(&attr, &w) || tdt_tell_name(fd, &w->eps[0]) ||
	    tdt_hear_name(fd, &w->eps[0], &parent))
		return 1;
	tdt_recv(&w->eps[0], buf, sizeof(buf), buf);
	for (;;) {
		ssize_t n = tdt_hear_now(fd, &cmd, 1);

		if (n == 0 || (n == 1 && cmd == 'x'))
			_exit(0);
		if (n == 1 && cmd == 'f' && !fork()) {
			tdt_hear(fd, &cmd, 1); /* until the test closes it */
			_exit(0);
		}
		if (n == 1)
			tdt_tell(fd, &cmd, 1);
		if (tdt_progress(w) && w->eps[0].comp_count) {
			w->eps[0].comp_count = 0;
			tdt_recv(&w->eps[0], buf, sizeof(buf), buf);
		}
	}
}

/* Start such a peer, and exchange a message. Not 0: it cannot be. */
static int start(struct tdt_play *p, struct tdt_child *child)
{
	char tier[16];

	child->pid = 0;
	child->fd = -1;
	snprintf(tier, sizeof(tier), "%d", (int)p->tier);
	if (tdt_child_start(child, "scenario_sink", tier) ||
	    tdt_hear_name(child->fd, tdt_play_ep(p, 0),
			  &p->addr[0][ELSEWHERE]) ||
	    tdt_tell_name(child->fd, tdt_play_ep(p, 0))) {
		if (!tdt_play_struck(p))
			tdt_play_wrong(p, "no peer in a process of its own");
		tdt_child_kill(child, SIGKILL);
		return -1;
	}
	return 0;
}

/* A send to it, which may fail with @err. */
static struct tdt_move *send_to(struct tdt_play *p, size_t len, int err)
{
	struct tdt_move *m;
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = TDT_SEND;
	op.len = len;
	m = tdt_play_op(p, 0, ELSEWHERE, &op, NULL);
	m->may = err;
	return m;
}

static int ended(struct tdt_play *p, void *arg)
{
	struct tdt_move *m = arg;

	(void)p;
	return m->ended;
}

/* Send to a peer that has gone, until a send says so. */
static void send_until_lost(struct tdt_play *p)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	struct tdt_move *m;

	do {
		if (p->count > TDT_PLAY_MOVES / 2)
			tdt_play_wait(p);
		m = send_to(p, 100, FI_ECONNRESET);
		if (tdt_play_until(p, ended, m, "a send to the dead"))
			return;
	} while (!m->err && tdt_now_ms() < end);
	if (!m->err)
		tdt_play_wrong(p, "no send to the dead has failed");
	if (m->err == FI_ECONNREFUSED)
		m->may = FI_ECONNREFUSED;
}

void tdt_act_peer_exits(struct tdt_play *p)
{
	struct tdt_child child;

	if (start(p, &child))
		return;
	send_to(p, 3000, 0);
	tdt_play_pass(p, 0, 1, 100, 1);
	tdt_play_wait(p);
	tdt_tell(child.fd, "x", 1);
	tdt_child_wait(&child);
	send_until_lost(p);
	tdt_play_pass(p, 0, 1, 100, 1);
	tdt_play_wait(p);
}

/* Killed in the middle of transfers. */
void tdt_act_peer_killed(struct tdt_play *p)
{
	struct tdt_child child;
	int i, n = (int)tdt_play_random(p, 6);

	if (start(p, &child))
		return;
	send_to(p, 8, 0);
	tdt_play_wait(p);
	send_to(p, 600000, FI_ECONNRESET);
	send_to(p, 3000, FI_ECONNRESET);
	for (i = 0; i < n; i++)
		tdt_play_turn(p);
	tdt_child_kill(&child, SIGKILL);
	tdt_play_pass(p, 0, 1, 100, 1);
	tdt_play_wait(p);
	send_until_lost(p);
	tdt_play_wait(p);
}

/* A message without a receive is announced, however short it is. */
void tdt_set_no_credit(struct tdt_attr *attr)
{
	(void)attr;
	tdm_env.unexp_max_bytes = 0;
}

/* An operation of endpoint @ep that may end with the peer's close. */
static struct tdt_move *open_op(struct tdt_play *p, size_t ep, struct tdt_op op)
{
	struct tdt_move *m = tdt_play_op(p, ep, !ep, &op, NULL);

	m->may = FI_ECONNRESET;
	return m;
}

/*
 * Endpoint 1 closes while both sides have operations open: sends that nobody
 * receives, long messages under way, injects that are announced and that the
 * close leaves to the peer. Endpoint 0 ends all of its own, each once, and receives
 * the injects unless its peer is killed before it has left them.
 */
void tdt_act_peer_leaves(struct tdt_play *p)
{
	struct tdt_op send = { .call = TDT_SEND, .tagged = 1, .tag = 1 };
	struct tdt_op ack = { .call = TDT_SENDMSG, .tagged = 1, .tag = 1 };
	struct tdt_op inject = { .call = TDT_INJECT, .tagged = 1 };
	struct tdt_move *left[LEFT];
	uint64_t i;

	tdt_play_pass(p, 1, 0, 30, 1); /* endpoint 0 grants no credit */
	tdt_play_wait(p);
	send.len = 300000;
	ack.len = 100;
	ack.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
	inject.len = 3000;
	for (i = 0; i < 2; i++) {
		open_op(p, i, send);
		open_op(p, i, ack);
		tdt_play_pass(p, i, !i, 600000, 1);
	}
	for (i = 0; i < LEFT; i++) {
		inject.tag = 10 + i;
		left[i] = open_op(p, 1, inject);
	}
	tdt_play_turn(p);
	if (p->side) {
		tdt_play_close(p);
		return;
	}
	send.call = TDT_RECV;
	send.len = inject.len;
	for (i = 0; i < LEFT; i++) {
		send.tag = 10 + i;
		tdt_play_op(p, 0, 1, &send, left[i]);
	}
	tdt_play_wait(p);
}

/* Stopped: nothing fails, and nothing is lost. */
void tdt_act_peer_stops(struct tdt_play *p)
{
	struct tdt_child child;
	int i;

	if (start(p, &child))
		return;
	send_to(p, 8, 0);
	tdt_play_wait(p);
	tdt_child_kill(&child, SIGSTOP);
	send_to(p, 100, 0);
	send_to(p, 300000, 0);
	for (i = 0; i < 20; i++)
		tdt_play_turn(p);
	tdt_child_kill(&child, SIGCONT);
	tdt_play_wait(p);
	tdt_tell(child.fd, "x", 1);
	tdt_child_wait(&child);
}

/* Its child holds copies of all descriptors, and outlives it. */
void tdt_act_fork(struct tdt_play *p)
{
	struct tdt_child child;
	char cmd;

	if (start(p, &child))
		return;
	send_to(p, 8, 0);
	tdt_play_wait(p);
	tdt_tell(child.fd, "f", 1);
	tdt_hear(child.fd, &cmd, 1);
	kill(child.pid, SIGKILL);
	send_until_lost(p);
	tdt_play_wait(p);
	tdt_child_kill(&child, SIGKILL);
}

/* ---- the network ---------------------------------------------------------- */

/* Reset every TCP connection of this process, as a middlebox may. */
static void reset_all(void)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	struct sockaddr_storage name;
	socklen_t len;
	int fd;

	for (fd = 3; fd < 256; fd++) {
		len = sizeof(name);
		if (!getpeername(fd, (struct sockaddr *)&name, &len) &&
		    name.ss_family == AF_INET)
			connect(fd, &unspec, sizeof(unspec));
	}
}

void tdt_act_reset(struct tdt_play *p)
{
	int i;

	for (i = 0; i < 3; i++) {
		tdt_play_pass(p, 0, 1, 200, 1);
		tdt_play_pass(p, 1, 0, 100000, 1);
		if (i)
			tdt_play_turn(p);
		p->lenient = 1;
		reset_all();
		tdt_play_wait(p);
		tdt_play_pass(p, 0, 1, 200, 1);
		tdt_play_pass(p, 1, 0, 200, 1);
		tdt_play_wait(p); /* finds out what is broken */
		p->lenient = 0;
		tdt_play_pass(p, 0, 1, 200, 1);
		tdt_play_pass(p, 1, 0, 200, 1);
		tdt_play_wait(p);
	}
}

/* No byte passes for a while: nothing fails, and nothing is lost. */
void tdt_act_partition(struct tdt_play *p)
{
	int i;

	tdt_play_pass(p, 0, 1, 200, 1);
	tdt_play_wait(p);
	for (i = 0; i < 3; i++) {
		tdt_os_partition(1);
		tdt_play_pass(p, 0, 1, 3000, 1);
		tdt_play_pass(p, 1, 0, 100000, 1);
		tdt_play_turn(p);
		tdt_play_turn(p);
		tdt_os_partition(0);
		tdt_play_wait(p);
	}
}

/* No byte passes for longer than the peer time-out. */
void tdt_act_silence(struct tdt_play *p)
{
	struct tdt_move *in, *back;

	tdm_env.peer_timeout_ms = 100;
	tdt_play_pass(p, 0, 1, 200, 1);
	tdt_play_wait(p);
	tdt_os_partition(1);
	in = tdt_play_pass(p, 0, 1, 100000, 1);
	back = tdt_play_pass(p, 1, 0, 100000, 1);
	in[1].expect = back[1].expect = FI_ETIMEDOUT;
	in[1].may = back[1].may = FI_ECONNRESET;
	tdt_play_until(p, ended, in + 1, "a send into silence");
	tdt_os_partition(0);
	tdt_play_wait(p);
}

/* The peer comes back at the same address, as another one. */
void tdt_act_restart(struct tdt_play *p)
{
	struct tdt_attr attr;
	struct tdt_op op;
	struct tdt_move *m;
	int i;

	tdt_play_attr(p, &attr);
	attr.eps = 1;
	if (tdt_play_more(p, &attr) || tdt_play_know(p, 0, 2))
		return;
	attr.service = tdt_port_of(p, 2);
	tdt_play_pass(p, 0, 2, 3000, 1);
	tdt_play_wait(p);
	tdt_play_close_more(p);
	if (tdt_play_more(p, &attr))
		return;
	memset(&op, 0, sizeof(op));
	op.call = TDT_SEND;
	op.tagged = 1;
	op.len = 10;
	op.tag = 5;
	m = tdt_play_op(p, 0, 2, &op, NULL); /* the old one may have gone */
	m->may = FI_ECONNRESET;
	tdt_play_until(p, ended, m, "a send to who has come back");
	tdt_play_wait(p);
	for (i = 0; i < 2; i++)
		tdt_play_pass(p, 0, 2, 3000, 1);
	tdt_play_wait(p);
	tdt_play_close_more(p);
}

/* ---- this process --------------------------------------------------------- */

/* Descriptors run out when the connection comes, and are there later. */
void tdt_act_descriptors(struct tdt_play *p)
{
	struct rlimit old, few;
	int fd, i;

	getrlimit(RLIMIT_NOFILE, &old);
	fd = dup(0);
	close(fd);
	few = old;
	few.rlim_cur = (rlim_t)fd + 1 + tdt_play_random(p, 3);
	tdt_play_pass(p, 0, 1, 200, 1);
	setrlimit(RLIMIT_NOFILE, &few);
	for (i = 0; i < 10; i++)
		tdt_play_turn(p);
	setrlimit(RLIMIT_NOFILE, &old);
	tdt_play_wait(p);
	tdt_play_pass(p, 1, 0, 20000, 1);
	tdt_play_wait(p);
}

/* Nothing can be mapped or allocated while messages come. */
void tdt_act_memory(struct tdt_play *p)
{
	struct tdt_op op;
	struct tdt_move *out;
	int i;

	tdt_play_pass(p, 0, 1, 8, 1);
	tdt_play_wait(p);
	memset(&op, 0, sizeof(op));
	op.call = TDT_SEND;
	op.tagged = 1;
	op.len = 6000;
	out = tdt_play_op(p, 0, 1, &op, NULL);
	tdt_os_no_memory(1);
	tdt_alloc_none(1);
	for (i = 0; i < 10; i++)
		tdt_play_turn(p);
	tdt_alloc_none(0);
	tdt_os_no_memory(0);
	op.call = TDT_RECV;
	tdt_play_op(p, 1, TDT_PLAY_EPS, &op, out);
	tdt_play_pass(p, 0, 1, 100000, 1);
	tdt_play_wait(p);
}

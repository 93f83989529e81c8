/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process of the evil twin: see twin.h. Its own crash is none of the test's
 * business. Locking: none, one thread; twin_scribble.c has the other.
 */
#include "twin.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/env.h"
#include "stage.h"
#include "twin_break.h"

struct fi_provider *fi_prov_ini(void);

enum {
	STEPS = 40,
	PASSES = 12,	     /* of progress after a step, at most */
	CONTACT_MS = 200,    /* until the first message has arrived */
	BREAK_FROM = 0x7710, /* begins another sequence than the wire's */
};

static struct {
	uint64_t random;
	struct tdt_world *w;
	fi_addr_t to;
	uint64_t key;
	unsigned char out[TDT_TWIN_LARGE], in[TDT_TWIN_LARGE];
	unsigned char region[TDT_TWIN_REGION];
} twin;

static size_t chance(size_t below)
{
	return (size_t)tdt_chance(&twin.random, below);
}

static void progress(void)
{
	tdt_progress(twin.w);
	twin.w->eps[0].comp_count = 0;
}

static void message(enum tdt_call call, size_t len)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = call;
	op.tagged = chance(4) != 0;
	op.tag = chance(4);
	op.buf = call < TDT_RECV ? twin.out : twin.in;
	op.len = len;
	op.addr = twin.to;
	op.context = &twin;
	op.data = twin.random;
	(void)tdt_post_once(&twin.w->eps[0], &op);
}

/* Reads, writes, atomic operations: some where there is nothing. */
static void one_sided(void)
{
	struct fid_ep *ep = twin.w->eps[0].ep;
	uint64_t key = chance(6) ? twin.key : twin.key + 1;
	uint64_t at = chance(8) ? 8 * chance(TDT_TWIN_REGION / 8) :
				  ~(uint64_t)chance(64);
	size_t len = chance(2) ? 8 : chance(30000);

	switch (chance(4)) {
	case 0:
		(void)!fi_read(ep, twin.in, len, NULL, twin.to, at, key, &twin);
		break;
	case 1:
		(void)!fi_atomic(ep, twin.out, 1, NULL, twin.to, at, key,
				 FI_UINT64, FI_SUM, &twin);
		break;
	default:
		(void)!fi_write(ep, twin.out, len, NULL, twin.to, at, key,
				&twin);
	}
}

static void step(void)
{
	size_t n;

	switch (chance(8)) {
	case 0:
	case 1:
		message(TDT_SEND, chance(200));
		break;
	case 2:
		message(TDT_SEND, chance(9000));
		break;
	case 3:
		message(TDT_SENDDATA, 10000 + chance(TDT_TWIN_LARGE - 10000));
		break;
	case 4:
	case 5:
		message(TDT_RECV, sizeof(twin.in));
		break;
	default:
		one_sided();
	}
	for (n = chance(PASSES); n; n--)
		progress();
}

static void break_it(uint64_t seed, enum tdt_tier tier)
{
	tdt_wire_break(1);
	if (tier == TDT_TIER_SHM)
		tdt_scribble_begin(seed);
}

static int open_endpoint(int fd, const struct tdt_twin_order *o,
			 struct fid_mr **mr)
{
	struct tdt_attr attr;
	struct tdt_ep *ep;

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.prov = fi_prov_ini();
	attr.no_tcp_only = 1;
	attr.caps |= FI_RMA | FI_ATOMIC;
	tdm_env.shm = o->tier == TDT_TIER_TCP ? TDM_SHM_OFF : TDM_SHM_AUTO;
	tdm_env.cma = (o->seed & 1) == 0;
	tdm_env.conn_timeout_ms = 3000;
	if (tdt_world_open(&attr, &twin.w))
		return -1;
	ep = &twin.w->eps[0];
	return fi_mr_reg(ep->domain, twin.region, sizeof(twin.region),
			 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, TDT_TWIN_KEY, 0,
			 mr, NULL) ||
	       tdt_tell_name(fd, ep) ||
	       fi_av_insert(ep->av, o->victim.bytes, 1, &twin.to, 0, NULL) != 1;
}

/* Until the victim has the first message, if it gets it. */
static void contact(void)
{
	uint64_t end = tdt_now_ms() + CONTACT_MS;
	struct tdt_ep *ep = &twin.w->eps[0];

	message(TDT_SEND, 8);
	while (!ep->comp_count && tdt_now_ms() < end)
		tdt_progress(twin.w);
	ep->comp_count = 0;
}

/* Not 0: it cannot go on. */
static int obey(int fd, const struct tdt_twin_order *o)
{
	struct fid_mr *mr = NULL;
	size_t from, end, i;

	twin.random = o->seed + BREAK_FROM;
	twin.key = o->key;
	from = chance(5) ? 1 + chance(STEPS - 8) : 0;
	end = chance(6);
	tdt_wire_begin(o->seed, o->tier);
	if (open_endpoint(fd, o, &mr))
		return 1;
	for (i = 0; i < STEPS; i++) {
		if (i == from)
			break_it(o->seed, o->tier);
		if (i == 0)
			contact();
		step();
	}
	if (end == 0)
		raise(SIGKILL);
	if (end == 1)
		_exit(0);
	if (o->tier == TDT_TIER_SHM)
		tdt_scribble_end();
	tdt_wire_break(0);
	fi_close(&mr->fid);
	tdt_world_close(twin.w);
	tdt_wire_end();
	return tdt_tell(fd, "d", 1);
}

int tdt_twin(int fd)
{
	struct rlimit no_core = { 0, 0 };
	struct tdt_twin_order order;
	int null = open("/dev/null", O_WRONLY);

	/* It may break itself as well; nobody wants to read that. */
	setrlimit(RLIMIT_CORE, &no_core);
	dup2(null, STDERR_FILENO);
	close(null);
	tdt_play_begin();
	while (tdt_hear(fd, &order, sizeof(order)) == sizeof(order)) {
		if (obey(fd, &order))
			return 1;
	}
	return 0;
}

TDT_ROLE(scenario_twin)
{
	(void)arg;
	return tdt_twin(fd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer over TCP that greets as it should and then sends anything, in pieces of any
 * length, to an endpoint that has operations of all kinds with it. An input has a
 * byte that chooses who connects, one that chooses the pieces, and the bytes.
 * However the session ends, each operation ends once, memory that nobody may write
 * is as before, and all objects close.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "base/os.h"
#include "tcp/wire/greeting.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/drive.h"
#include "tests/harness/no_diag.h"

struct fi_provider *fi_prov_ini(void);

enum {
	SENDS = 6,
	RECEIVES = 6,
	OPS = SENDS + RECEIVES,
	SHORT = 100,
	LONG = 300000, /* is announced */
	REGION_BYTES = 8192,
	WRITABLE = 1, /* keys */
	READ_ONLY = 2,
};

struct victim {
	struct tdt_world *w;
	struct tdt_ep *ep;
	fi_addr_t peer;
	struct fi_context2 ctx[OPS];
	uint8_t *buf[OPS];
	int open[OPS], multi[OPS];
	uint8_t *region[2];
	struct fid_mr *mr[2];
	int listener, fd; /* of the peer */
	struct sockaddr_in addr;
};

/* ---- the endpoint -------------------------------------------------------- */

static void ended(struct victim *v, const struct tdt_comp *c)
{
	int i;

	for (i = 0; i < OPS; i++) {
		if (c->context != &v->ctx[i])
			continue;
		tdt_must(v->open[i]);
		v->open[i] = v->multi[i] && c->err != FI_ECANCELED &&
			     !(c->flags & FI_MULTI_RECV);
		return;
	}
	/* Else it is of an inject, or of data that came with a write. */
	tdt_must(!c->context);
}

static void pass(struct victim *v)
{
	size_t i;

	tdt_progress(v->w);
	tdt_must(!v->w->bad);
	for (i = 0; i < v->ep->comp_count; i++)
		ended(v, &v->ep->comps[i]);
	v->ep->comp_count = 0;
}

/* Make passes until @done(@v); a promise is broken when that never comes. */
static void until(struct victim *v, int (*done)(struct victim *v))
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	while (!done(v)) {
		pass(v);
		tdt_must(tdt_now_ms() < end);
	}
}

static void *buffer(struct victim *v, int i, size_t len)
{
	v->buf[i] = calloc(1, len);
	if (!v->buf[i])
		abort();
	return v->buf[i];
}

static void receives(struct victim *v)
{
	struct fid_ep *ep = v->ep->ep;
	int i;

	for (i = SENDS; i < OPS; i++) {
		size_t len = i % 2 ? SHORT : LONG;
		struct iovec iov = { buffer(v, i, len), len };
		const struct fi_msg msg = {
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = FI_ADDR_UNSPEC,
			.context = &v->ctx[i],
		};
		ssize_t ret;

		v->multi[i] = i == OPS - 1;
		if (v->multi[i])
			ret = fi_recvmsg(ep, &msg, FI_MULTI_RECV);
		else if (i < SENDS + 2)
			ret = fi_recv(ep, iov.iov_base, len, NULL,
				      FI_ADDR_UNSPEC, &v->ctx[i]);
		else
			ret = fi_trecv(ep, iov.iov_base, len, NULL,
				       FI_ADDR_UNSPEC, 0, ~(uint64_t)0,
				       &v->ctx[i]);
		v->open[i] = 1;
		tdt_must(!ret);
	}
}

/* Operations with the peer, as many as are taken. */
static void sends(struct victim *v)
{
	struct fid_ep *ep = v->ep->ep;
	fi_addr_t to = v->peer;
	int i;

	for (i = 0; i < SENDS; i++)
		buffer(v, i, i == 1 ? LONG : SHORT);
	v->open[0] = !fi_send(ep, v->buf[0], SHORT, NULL, to, &v->ctx[0]);
	v->open[1] = !fi_tsend(ep, v->buf[1], LONG, NULL, to, 1, &v->ctx[1]);
	v->open[2] = !fi_read(ep, v->buf[2], SHORT, NULL, to, 0, 1, &v->ctx[2]);
	v->open[3] =
		!fi_write(ep, v->buf[3], SHORT, NULL, to, 0, 1, &v->ctx[3]);
	v->open[4] = !fi_fetch_atomic(ep, v->buf[4], 1, NULL, v->buf[4] + 8,
				      NULL, to, 0, 1, FI_UINT64, FI_SUM,
				      &v->ctx[4]);
	v->open[5] = !fi_tsend(ep, v->buf[5], SHORT, NULL, to, 2, &v->ctx[5]);
}

static void expose(struct victim *v, int i, uint64_t key, uint64_t access)
{
	v->region[i] = calloc(1, REGION_BYTES);
	if (!v->region[i] ||
	    fi_mr_reg(v->ep->domain, v->region[i], REGION_BYTES, access, 0, key,
		      0, &v->mr[i], NULL))
		abort();
}

static void begin(struct victim *v)
{
	struct tdt_attr attr;

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.caps |= FI_RMA | FI_ATOMIC;
	attr.prov = fi_prov_ini();
	attr.tcp_last = 1;
	/* A session that breaks has an end. */
	setenv("FI_TANDEM_RESUME", "no", 1);
	tdm_os.socket = tdt_no_diag;
	if (tdt_world_open(&attr, &v->w))
		abort();
	v->ep = &v->w->eps[0];
	expose(v, 0, WRITABLE, FI_REMOTE_READ | FI_REMOTE_WRITE);
	expose(v, 1, READ_ONLY, FI_REMOTE_READ);
	receives(v);
}

/* Have the first @n operations ended? */
static int have_ended(const struct victim *v, int n)
{
	while (n && !v->open[n - 1])
		n--;
	return !n;
}

static int sends_ended(struct victim *v)
{
	return have_ended(v, SENDS);
}

static int all_ended(struct victim *v)
{
	return have_ended(v, OPS);
}

static void finish(struct victim *v)
{
	int i;

	until(v, sends_ended);
	for (i = SENDS; i < OPS; i++)
		fi_cancel(&v->ep->ep->fid, &v->ctx[i]);
	until(v, all_ended);
	for (i = 0; i < REGION_BYTES; i++)
		tdt_must(!v->region[1][i]);
	tdt_must(!fi_close(&v->mr[0]->fid) && !fi_close(&v->mr[1]->fid));
	tdt_must(!tdt_world_close(v->w));
	for (i = 0; i < OPS; i++)
		free(v->buf[i]);
	free(v->region[0]);
	free(v->region[1]);
}

/* ---- the peer ------------------------------------------------------------ */

static void peer_open(struct victim *v)
{
	socklen_t len = sizeof(v->addr);

	v->fd = -1;
	v->addr.sin_family = AF_INET;
	v->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (v->listener < 0 ||
	    bind(v->listener, (struct sockaddr *)&v->addr, len) ||
	    listen(v->listener, 8) ||
	    getsockname(v->listener, (struct sockaddr *)&v->addr, &len) ||
	    fi_av_insert(v->ep->av, &v->addr, 1, &v->peer, 0, NULL) != 1)
		abort();
}

static int accepted(struct victim *v)
{
	v->fd = accept(v->listener, NULL, NULL);
	return v->fd >= 0;
}

/* Has a whole greeting come? */
static int greeted(struct victim *v)
{
	uint8_t b[TDM_WIRE_GREETING_BYTES];

	return recv(v->fd, b, sizeof(b), MSG_PEEK | MSG_DONTWAIT) == sizeof(b);
}

static void hello(struct victim *v)
{
	uint8_t b[TDM_WIRE_GREETING_BYTES];
	struct tdm_wire_greeting g = {
		.kind = TDM_WIRE_HELLO,
		.oldest = TDM_WIRE_VERSION,
		.newest = TDM_WIRE_VERSION,
		.id = { 7 },
		.credit = TDM_WIRE_CREDIT_LEAST,
		.eager = TDM_WIRE_EAGER_BYTES,
		.rts = TDM_WIRE_RTS_COUNT,
	};

	if (tdm_addr_from_bind(&g.addr, &v->addr, sizeof(v->addr)))
		abort();
	tdm_wire_greeting_encode(b, &g);
	tdt_must(send(v->fd, b, sizeof(b), MSG_NOSIGNAL) == sizeof(b));
}

/* Begin a session: the endpoint connects, or the peer does. */
static void meet(struct victim *v, int endpoint_connects)
{
	if (endpoint_connects) {
		sends(v);
		until(v, accepted);
		until(v, greeted);
		hello(v);
		return;
	}
	v->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(v->fd, (struct sockaddr *)v->ep->name,
		    (socklen_t)v->ep->namelen))
		abort();
	hello(v);
	until(v, greeted);
	sends(v);
}

/* Take what the endpoint sent. */
static void hear(struct victim *v)
{
	static uint8_t b[65536];

	while (recv(v->fd, b, sizeof(b), MSG_DONTWAIT) > 0)
		;
}

static void say(struct victim *v, const uint8_t *data, size_t size,
		unsigned pieces)
{
	while (size) {
		size_t n = pieces % 4 ? 1 + pieces % 61 : size;

		n = n < size ? n : size;
		if (send(v->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return; /* the session has ended */
		data += n;
		size -= n;
		pieces = pieces * 5 + 3;
		pass(v);
		hear(v);
	}
}

int tdt_fuzz_session(const uint8_t *data, size_t size)
{
	struct victim v = { .fd = -1 };
	int i;

	if (size < 2)
		return 0;
	begin(&v);
	peer_open(&v);
	meet(&v, data[0] & 1);
	say(&v, data + 2, size - 2, data[1]);
	for (i = 0; i < 3; i++) {
		pass(&v);
		hear(&v);
	}
	close(v.listener);
	close(v.fd);
	finish(&v);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One endpoint of tandem for the probe of tandem-doctor: opened and driven by
 * libfabric's public interface alone. One thread.
 */
#ifndef TANDEM_PROBE_H
#define TANDEM_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_tagged.h>

#include "fi_ext_tandem.h"
#include "tools/endpoint.h"

enum {
	PROBE_LARGE_BYTES = 1 << 20, /* longest message */
	PROBE_ADDR_BYTES = 96,	     /* an address as text */
};

/* Tags of requests; the answer to a request has its tag and PROBE_ANSWER. */
enum probe_kind {
	PROBE_HELLO = 1, /* address of the sender, NUL, its facts, NUL */
	PROBE_ECHO = 2,	 /* any bytes; the answer has the same */
	PROBE_VIEW = 3,	 /* the answer is the path that the other side sees */
	PROBE_ANSWER = 16,
};

/* What the command line says. */
struct probe_options {
	const char *host, *service; /* of the peer; NULL: any comes */
	const char *key_file;	    /* or NULL */
	const char *facts;	    /* told to the peer as it is */
	unsigned seconds;	    /* until an answer counts as missing */
};

/* Its address tells which operation has ended. */
struct probe_op {
	struct fi_context2 ctx; /* first */
	int done;
	int err; /* positive fi_errno */
	size_t len;
	uint64_t tag;
	fi_addr_t src;
};

struct probe {
	struct tool_endpoint at;
	struct tdm_report_ops *report; /* NULL: a release without it */
	char name[PROBE_ADDR_BYTES];
	struct probe_op tx, rx;
	uint64_t heard_ns; /* time of the last completion */
	char error[160];   /* text that goes with the last failure */
	uint8_t *in, *out; /* PROBE_LARGE_BYTES each */
};

/*
 * Open an endpoint that can reach o->host, or the best one if that is NULL, and
 * print the line "endpoint". Returns 0, or a negative fi_errno with p->error
 * set. probe_close() may follow in any case.
 */
int probe_open(struct probe *p, const struct probe_options *o);
void probe_close(struct probe *p);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t probe_now_ns(void);

/*
 * Post p->in as the receive of a message with @tag, or with any if @tag is 0.
 * Returns 0 or a negative fi_errno.
 */
int probe_receive(struct probe *p, uint64_t tag);

/*
 * Send the first @len bytes of p->out; p->tx tells the end. Repeats while the
 * provider has no room, until @deadline_ns. Returns 0 or a negative fi_errno.
 */
int probe_send(struct probe *p, size_t len, fi_addr_t to, uint64_t tag,
	       uint64_t deadline_ns);

/*
 * Make progress until @op has ended or until @deadline_ns (0: no limit). Sleeps
 * when nothing has happened for a while. Returns 0, -FI_ETIMEDOUT, or the
 * negative fi_errno with which an operation failed, p->error set.
 */
int probe_wait(struct probe *p, const struct probe_op *op,
	       uint64_t deadline_ns);

/*
 * Write how the peer @addr is reached to @text of @bytes: path, reason, how
 * large messages come in and go out (numbers of fi_ext_tandem.h), text of the
 * reason, with tabs between.
 */
void probe_view(const struct probe *p, fi_addr_t addr, char *text,
		size_t bytes);

#endif /* TANDEM_PROBE_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control connection of tandem-perf: one TCP connection on which the two
 * sides say who they are, tell each other their addresses, and agree on each
 * step. Lines of text, of which the first is the greeting; a line that begins
 * with "error" ends the exchange.
 *
 * No function but perf_control_hear() blocks. One thread.
 */
#ifndef TANDEM_PERF_CONTROL_H
#define TANDEM_PERF_CONTROL_H

#include <stddef.h>

enum {
	PERF_PROTOCOL = 1, /* raised with each change of the lines */
	PERF_LINE_BYTES = 2048,
	PERF_TEXT_BYTES = 512,
};

struct perf_control {
	int fd; /* -1: none */
	unsigned timeout_s;
	char peer[128];		  /* who the other side is, for messages */
	char in[PERF_LINE_BYTES]; /* received, @have bytes */
	size_t have;
	int closed; /* the other side has closed the connection, in order */
	int told;   /* @error is what the other side says */
	char error[PERF_TEXT_BYTES]; /* set by what returns -1 */
	/* Called again and again while a line is waited for; may be NULL. */
	int (*progress)(void *arg);
	void *arg;
};

/*
 * Listen at @port of all addresses, or at any free port if that is "0". Returns
 * the descriptor, or -1 with @c->error set. Out: *@number, the port.
 */
int perf_control_listen(struct perf_control *c, const char *port,
			unsigned *number);

/* Wait for a caller at @listener and greet it. Returns 0 or -1. */
int perf_control_accept(struct perf_control *c, int listener);

/* Connect to @port of @host and greet the server. Returns 0 or -1. */
int perf_control_connect(struct perf_control *c, const char *host,
			 const char *port);

/*
 * The address of this side of the connection as text, in @text of @bytes, which
 * is empty if there is none.
 */
void perf_control_address(const struct perf_control *c, char *text,
			  size_t bytes);

/* Send a line. Returns 0 or -1. */
int perf_control_say(struct perf_control *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Receive a line into @line of PERF_LINE_BYTES. Waits for it, making progress,
 * at most @c->timeout_s seconds (@patient: for any time). Returns 0 or -1.
 */
int perf_control_hear(struct perf_control *c, char *line, int patient);

/*
 * Look whether a line is there, without waiting. Returns 1: @line has it; 0: there
 * is none; -1: the other side is gone or has failed.
 */
int perf_control_look(struct perf_control *c, char *line);

/*
 * Look whether the other side is still there, and leave the lines for
 * perf_control_look(). Returns 0; -1: it is gone or has failed.
 */
int perf_control_check(struct perf_control *c);

/* Set @c->error. Returns -1. */
int perf_control_fail(struct perf_control *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Close the connection, if there is one. */
void perf_control_close(struct perf_control *c);

#endif /* TANDEM_PERF_CONTROL_H */

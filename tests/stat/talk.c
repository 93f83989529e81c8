/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process for the tests of tandem-stat: an endpoint that does what the lines
 * of its standard input say and answers each with a line. While it waits for a
 * line it computes, as far as libfabric can tell: it makes no call.
 *
 *	insert NAME      put an address, as printed at the start, into the AV
 *	receive          post a receive for any message
 *	wait             until that has ended
 *	send INDEX N     a message of N bytes, until it has ended
 *	post INDEX N     the same, not waiting
 *	spin             make progress until the next line comes
 *	sleep            sleep in fi_cq_sread until killed
 *	end              close the endpoint
 *
 * No lock: one thread.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "tools/probe.h"

enum { TALK_TAG = 7, LINE_BYTES = 256, DEADLINE_S = 60 };

static uint64_t deadline(void)
{
	return probe_now_ns() + DEADLINE_S * 1000000000ull;
}

static int line_waits(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return poll(&in, 1, 0) != 0;
}

static int insert(struct probe *p, const char *name)
{
	fi_addr_t to;

	return fi_av_insertsvc(p->at.av, name, NULL, &to, 0, NULL) == 1 ?
		       0 :
		       -FI_EINVAL;
}

static int send_to(struct probe *p, const char *args, int wait)
{
	unsigned long index, n;
	int ret;

	if (sscanf(args, "%lu %lu", &index, &n) != 2 || n > PROBE_LARGE_BYTES)
		return -FI_EINVAL;
	ret = probe_send(p, n, index, TALK_TAG, deadline());
	return ret || !wait ? ret : probe_wait(p, &p->tx, deadline());
}

/* The application finds nothing: completions stay where they are. */
static int spin(struct probe *p)
{
	ssize_t ret;

	puts("ok");
	do {
		ret = fi_cq_read(p->at.cq, NULL, 0);
	} while ((!ret || ret == -FI_EAGAIN) && !line_waits());
	return 0;
}

static int sleep_for_ever(struct probe *p)
{
	struct fi_cq_tagged_entry e;

	puts("ok");
	while (fi_cq_sread(p->at.cq, &e, 1, NULL, -1) != -FI_EAVAIL)
		;
	return 0;
}

/* Returns 1: the endpoint is to be closed. *@ret: the result otherwise. */
static int obey(struct probe *p, const char *line, int *ret)
{
	const char *args = strchr(line, ' ');

	args = args ? args + 1 : "";
	if (!strncmp(line, "insert", 6))
		*ret = insert(p, args);
	else if (!strncmp(line, "receive", 7))
		*ret = probe_receive(p, 0);
	else if (!strncmp(line, "wait", 4))
		*ret = probe_wait(p, &p->rx, deadline());
	else if (!strncmp(line, "send", 4) || !strncmp(line, "post", 4))
		*ret = send_to(p, args, *line == 's');
	else if (!strncmp(line, "spin", 4))
		*ret = spin(p);
	else if (!strncmp(line, "sleep", 5))
		*ret = sleep_for_ever(p);
	else
		return 1;
	return 0;
}

int main(void)
{
	const struct probe_options o = { .seconds = DEADLINE_S };
	char line[LINE_BYTES];
	struct probe p;
	int ret;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	ret = probe_open(&p, &o);
	while (!ret && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (obey(&p, line, &ret))
			break;
		if (ret)
			break;
		if (strcmp(line, "spin"))
			puts("ok");
	}
	if (ret)
		printf("failed\t%s\t%s\n", fi_strerror(-ret), p.error);
	probe_close(&p);
	return ret ? 1 : 0;
}

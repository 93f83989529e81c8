/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of tandem-doctor that calls libfabric:
 *
 *	probe entries              what fi_getinfo(3) offers of tandem
 *	probe listen [-f FACTS] [-k KEYFILE]
 *
 * It prints lines "NAME<tab>VALUE..." and leaves conclusions to tandem-doctor.
 * FACTS is a text that the peer of an exchange gets as it is.
 *
 * Invariant: bytes of the peer are used as messages of a kind only after their
 * length was checked.
 * No lock: one thread.
 */
#include "tools/probe.h"

#include <inttypes.h>
#include <link.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

enum {
	VIEW_BYTES = 200,
	NO_ANSWER = 1, /* exit status */
	USAGE = 2,
};

static int tell_failure(const struct probe *p, const char *step, int ret)
{
	printf("failed\t%s\t%d\t%s\n", step, -ret, p->error);
	return NO_ANSWER;
}

/* ---- entries ------------------------------------------------------------- */

/* A callback of dl_iterate_phdr(3). */
static int tell_file(struct dl_phdr_info *file, size_t size, void *unused)
{
	const char *name = strrchr(file->dlpi_name, '/');

	if (name && strstr(name, "/libtandem-fi"))
		printf("module\t%s\n", file->dlpi_name);
	if (name && strstr(name, "/libfabric.so"))
		printf("library\t%s\n", file->dlpi_name);
	return 0;
}

static void tell_params(void)
{
	struct fi_param *list;
	int i, n;

	if (fi_getparams(&list, &n))
		return;
	for (i = 0; i < n; i++) {
		if (!strncmp(list[i].name, "FI_TANDEM_", 10))
			printf("parameter\t%s\n", list[i].name);
		if (!strcmp(list[i].name, "FI_PROVIDER_PATH"))
			printf("search\t%s\n", list[i].help_string);
	}
	fi_freeparams(list);
}

static void tell_entry(const struct fi_info *i)
{
	char ip[PROBE_ADDR_BYTES] = "?";

	getnameinfo(i->src_addr, (socklen_t)i->src_addrlen, ip, sizeof(ip),
		    NULL, 0, NI_NUMERICHOST);
	printf("entry\t%s\t%s\t%s\n", i->domain_attr->name, ip,
	       i->fabric_attr->name);
}

static int entries(void)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL, *i;
	uint32_t version = fi_version();
	int ret;

	if (!hints)
		return NO_ANSWER;
	hints->fabric_attr->prov_name = strdup("tandem");
	ret = fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, hints, &list);
	fi_freeinfo(hints);
	printf("libfabric\t%u.%u\n", FI_MAJOR(version), FI_MINOR(version));
	dl_iterate_phdr(tell_file, NULL);
	tell_params();
	if (ret) {
		printf("failed\tfi_getinfo\t%d\t%s\n", -ret, fi_strerror(-ret));
		return NO_ANSWER;
	}
	version = list->fabric_attr->prov_version;
	printf("release\t%u.%u\n", FI_MAJOR(version), FI_MINOR(version));
	for (i = list; i; i = i->next)
		tell_entry(i);
	fi_freeinfo(list);
	return 0;
}

/* ---- listen -------------------------------------------------------------- */

/* Write address and facts of this side to p->out. Returns their length. */
static size_t put_hello(struct probe *p, const char *facts)
{
	int n = snprintf((char *)p->out, PROBE_LARGE_BYTES, "%s%c%s", p->name,
			 '\0', facts);

	return (size_t)n + 1;
}

/*
 * Find the facts in the hello in p->in, which follow the address. Returns NULL
 * if it is none.
 */
static const char *hello_facts(const struct probe *p)
{
	const uint8_t *end;

	if (!p->rx.len || p->in[p->rx.len - 1])
		return NULL;
	end = memchr(p->in, 0, p->rx.len - 1);
	return end ? (const char *)end + 1 : NULL;
}

/* Prepare the answer to the request in p->in. Returns its length, 0: none. */
static size_t put_answer(struct probe *p, const char *facts, fi_addr_t *to)
{
	*to = p->rx.src;
	switch (p->rx.tag) {
	case PROBE_HELLO:
		if (!hello_facts(p) || fi_av_insertsvc(p->av, (char *)p->in,
						       NULL, to, 0, NULL) != 1)
			return 0;
		printf("asked\t%s\n", (char *)p->in);
		return put_hello(p, facts);
	case PROBE_ECHO:
		memcpy(p->out, p->in, p->rx.len);
		return p->rx.len;
	case PROBE_VIEW:
		probe_view(p, *to, (char *)p->out, VIEW_BYTES);
		return strlen((char *)p->out) + 1;
	default:
		return 0;
	}
}

/* Answers requests until the process is killed or the queue fails. */
static int listen_for(const struct probe_options *o)
{
	struct probe p;
	fi_addr_t to;
	size_t len;
	uint64_t tag;
	int ret = probe_open(&p, o);

	/* Not longer than tandem-doctor, however that ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!ret) {
		ret = probe_receive(&p, 0);
		if (!ret)
			ret = probe_wait(&p, &p.rx, 0);
		len = ret ? 0 : put_answer(&p, o->facts, &to);
		tag = p.rx.tag | PROBE_ANSWER;
		if (!len || to == FI_ADDR_NOTAVAIL)
			continue;
		/* A peer that ends before its answer concerns that peer only. */
		if (!probe_send(&p, len, to, tag, 0))
			probe_wait(&p, &p.tx, 0);
		p.tx.err = 0;
	}
	ret = tell_failure(&p, "listen", ret);
	probe_close(&p);
	return ret;
}

/* ---- command line -------------------------------------------------------- */

int main(int argc, char **argv)
{
	struct probe_options o = { .facts = "", .seconds = 10 };
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "f:k:")) != -1) {
		switch (c) {
		case 'f':
			o.facts = optarg;
			break;
		case 'k':
			o.key_file = optarg;
			break;
		default:
			return USAGE;
		}
	}
	argc -= optind;
	argv += optind;
	if (argc == 1 && !strcmp(argv[0], "entries"))
		return entries();
	if (argc == 1 && !strcmp(argv[0], "listen"))
		return listen_for(&o);
	fprintf(stderr, "usage: probe entries | listen\n");
	return USAGE;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of tandem-doctor that calls libfabric:
 *
 *	probe entries              what fi_getinfo(3) offers of tandem
 *
 * It prints lines "NAME<tab>VALUE..." and leaves conclusions to tandem-doctor.
 No lock: one thread.
 */
#include <link.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

enum {
	ADDR_BYTES = 96, /* an address as text */
	NO_ANSWER = 1,	 /* exit status */
	USAGE = 2,
};

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
	char ip[ADDR_BYTES] = "?";

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

/* ---- command line -------------------------------------------------------- */

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "entries"))
		return entries();
	fprintf(stderr, "usage: probe entries\n");
	return USAGE;
}

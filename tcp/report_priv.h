/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The printed report, FI_TANDEM_REPORT: report.c visits an endpoint and its
 * peers, and a form writes what it shows of them to memory.
 */
#ifndef TDM_TCP_REPORT_PRIV_H
#define TDM_TCP_REPORT_PRIV_H

#include <stdio.h>

#include "av/addr.h"
#include "fi_ext_tandem.h"

struct tdm_root;

/* A peer in a report. */
struct tdm_report_peer {
	fi_addr_t index;
	struct tdm_addr addr;
	struct tdm_report_path path;
	int removed; /* 1: its address is not in the address vector any more */
};

/* Reasons, enum tdm_reason, that totals count apart. */
enum { TDM_REPORT_REASONS = 16 };

struct tdm_report_totals {
	size_t peers, shm, tcp, foreign;
	size_t cma; /* of shm: large messages are read, in one direction at least */
	size_t lost;
	size_t reasons[TDM_REPORT_REASONS]; /* peers, by path.reason */
	struct tdm_report_counts all;
};

/* The endpoint, and the stream for what is said of it. */
struct tdm_sheet {
	FILE *out;
	struct tdm_root *root;
	const char *self; /* IP:PORT */
	int open; /* 1: the process ends before the endpoint is closed */
	struct tdm_report_totals totals;
	/* Errors of peers: bits of report_text.c's table of errors. */
	uint32_t errors;
	int bounce; /* 1: large messages of a peer are copied */
};

struct tdm_report_form {
	int idle; /* 1: peers without a path and without operations too */
	void (*begin)(struct tdm_sheet *s);
	void (*peer)(struct tdm_sheet *s, const struct tdm_report_peer *p);
	void (*end)(struct tdm_sheet *s); /* totals are complete */
};

/* report_text.c, report_json.c */
extern const struct tdm_report_form tdm_report_plain, tdm_report_summary,
	tdm_report_full, tdm_report_json;

/*
 * Names of enum tdm_report_kind and enum tdm_report_large, "" for none:
 * report_text.c.
 */
extern const char *const tdm_report_kinds[4];
extern const char *const tdm_report_larges[4];

/* Services that a foreign provider lacks, and who gives them instead. */
struct tdm_report_lacking {
	uint64_t lack; /* enum tdm_report_lack */
	const char *text;
};

extern const struct tdm_report_lacking tdm_report_lacks[5];

#endif /* TDM_TCP_REPORT_PRIV_H */

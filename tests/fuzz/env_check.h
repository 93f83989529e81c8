/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of the FI_TANDEM_* variables and their values, for env_fuzz.c. */
#ifndef TDT_ENV_CHECK_H
#define TDT_ENV_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The judgement on a value, by the warnings about it. */
enum tdt_env_verdict {
	TDT_ENV_TAKEN,	 /* none came */
	TDT_ENV_OUTSIDE, /* a number out of range: the nearest is used */
	TDT_ENV_REFUSED	 /* not understood: the default is used */
};

/* A variable. */
struct tdt_env_row {
	const char *name; /* without FI_TANDEM_ */
	/*
	 * Abort unless the verdict on @text, which is empty for a key alone, is
	 * right, and so is what the members of tdm_env are then.
	 */
	void (*check)(const struct tdt_env_row *row, const char *text,
		      enum tdt_env_verdict verdict);
	void *to; /* the member of tdm_env that takes the value */
	size_t bytes;
	uint64_t lo, hi; /* of a number, in the unit of the variable */
	void *also;	 /* another member that may change; NULL: none */
	size_t also_bytes;
};

enum { TDT_ENV_ROWS = 25 };

extern const struct tdt_env_row tdt_env_rows[TDT_ENV_ROWS];

/* setsockopt(2) of a kernel whose congestion controls are reno and cubic. */
int tdt_env_setsockopt(int fd, int level, int name, const void *val,
		       socklen_t len);

#endif /* TDT_ENV_CHECK_H */

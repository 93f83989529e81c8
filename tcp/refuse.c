/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines about refused hints and calls; see refuse.h.
 *
 * The level is per thread: fi_getinfo(3) makes the same checks for applications
 * and for layered providers, and the checks do not know for which.
 */
#include "tcp/refuse.h"

#include <rdma/fi_errno.h>

static _Thread_local enum fi_log_level level = FI_LOG_INFO;

enum { NAMES_BYTES = 512 };

void tdm_refuse_set_level(enum fi_log_level to)
{
	level = to;
}

enum fi_log_level tdm_refuse_level(void)
{
	return level;
}

int tdm_refuse_amount(const char *what, uint64_t asked, uint64_t most)
{
	TDM_REFUSED("hint %s: %llu asked for, at most %llu offered", what,
		    (unsigned long long)asked, (unsigned long long)most);
	return -FI_ENODATA;
}

int tdm_refuse_bits(const char *what, enum fi_type type, uint64_t missing)
{
	char names[NAMES_BYTES] = "";

	/* Bits that libfabric has no name for leave the text empty. */
	fi_tostr_r(names, sizeof(names), &missing, type);
	TDM_REFUSED("hint %s: not offered: %s%s0x%llx", what, names,
		    *names ? ", " : "", (unsigned long long)missing);
	return -FI_ENODATA;
}

int tdm_refuse_value(const char *what, enum fi_type type, uint32_t asked)
{
	char name[NAMES_BYTES] = "";

	fi_tostr_r(name, sizeof(name), &asked, type);
	TDM_REFUSED("hint %s: not offered: %s (%u)", what, name, asked);
	return -FI_ENODATA;
}

int tdm_refuse_hint(const char *what, const char *why)
{
	TDM_REFUSED("hint %s: %s", what, why);
	return -FI_ENODATA;
}

int tdm_refuse_call(int ret, const char *call, const char *why)
{
	TDM_INFO(EP_CTRL, "%s: %s", call, why);
	return ret;
}

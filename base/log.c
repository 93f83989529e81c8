/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider under whose name lines are logged. tcp/provider.c fills in its
 * calls when the module is loaded; tests that link parts without the module log
 * under the same name.
 *
 * Lock: none. tdm_prov is not written after the module is loaded.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

struct fi_provider tdm_prov = { .name = "tandem" };

void tdm_tell_user(const char *fmt, ...)
{
	char text[800];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (fi_log_enabled(&tdm_prov, FI_LOG_WARN, FI_LOG_CORE))
		TDM_WARN(CORE, "%s", text);
	else
		fprintf(stderr, "tandem: %s\n", text);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FI_TANDEM_* parameters: defined so that fi_info -e lists them, read
 * once, clamped. A value that cannot be understood costs one warning and
 * leaves the default. Programs that run with raised privileges
 * (AT_SECURE) get the defaults whatever the environment says.
 *
 * Spec: fi_tandem(7), ENVIRONMENT. The table below and that section list the
 * same names, which a check compares.
 */
#include "tcp/env.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include <rdma/fi_errno.h>

#include "tdm_base.h"
#include "tdm_log.h"
#include "tdm_provider.h"

#define DEFAULTS                                                               \
	{                                                                      \
		.shm = TDM_SHM_AUTO,                                           \
		.conn_timeout_ms = 60 * 1000,                                  \
		.peer_timeout_ms = 60 * 1000,                                  \
		.eager_bytes = 64 * 1024,                                      \
		.shm_eager_bytes = 8 * 1024,                                   \
		.unexp_max_bytes = 256u << 20,                                 \
		.cma = 1,                                                      \
	}

/* Sound before tdm_env_init() too: parts are used without a provider. */
struct tdm_env tdm_env = DEFAULTS;

static const struct tdm_env defaults = DEFAULTS;

/* Each parser returns 0, or -1 when @text makes no sense. */
static int parse_shm(const char *text)
{
	if (!strcasecmp(text, "auto"))
		tdm_env.shm = TDM_SHM_AUTO;
	else if (!strcasecmp(text, "off"))
		tdm_env.shm = TDM_SHM_OFF;
	else if (!strcasecmp(text, "only"))
		tdm_env.shm = TDM_SHM_ONLY;
	else
		return -1;
	return 0;
}

static int parse_iface(const char *text)
{
	tdm_env.iface = text;
	return *text ? 0 : -1;
}

/* A plain decimal number; clamped to [lo, hi]. */
static int parse_number(const char *text, uint64_t lo, uint64_t hi,
			uint64_t *out)
{
	uint64_t v = 0;

	if (!*text || strlen(text) > 18)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (uint64_t)(*text - '0');
	}
	*out = tdm_clamp(v, lo, hi);
	return 0;
}

static int parse_port_range(const char *text)
{
	char low[8];
	const char *dash = strchr(text, '-');
	uint64_t a, b;

	if (!dash || (size_t)(dash - text) >= sizeof(low))
		return -1;
	memcpy(low, text, (size_t)(dash - text));
	low[dash - text] = '\0';
	if (parse_number(low, 1, 65535, &a) ||
	    parse_number(dash + 1, 1, 65535, &b) || a > b)
		return -1;
	tdm_env.port_low = (uint16_t)a;
	tdm_env.port_high = (uint16_t)b;
	return 0;
}

static int parse_seconds(const char *text, unsigned *ms)
{
	uint64_t s;

	if (parse_number(text, 0, 24 * 3600, &s))
		return -1;
	*ms = (unsigned)s * 1000;
	return 0;
}

static int parse_conn_timeout(const char *text)
{
	return parse_seconds(text, &tdm_env.conn_timeout_ms);
}

static int parse_peer_timeout(const char *text)
{
	return parse_seconds(text, &tdm_env.peer_timeout_ms);
}

static int parse_bytes(const char *text, uint64_t lo, uint64_t hi, size_t *out)
{
	uint64_t v;

	if (parse_number(text, lo, hi, &v))
		return -1;
	*out = (size_t)v;
	return 0;
}

static int parse_eager(const char *text)
{
	return parse_bytes(text, 256, 1 << 20, &tdm_env.eager_bytes);
}

static int parse_shm_eager(const char *text)
{
	return parse_bytes(text, 256, 16 << 10, &tdm_env.shm_eager_bytes);
}

static int parse_unexp_max(const char *text)
{
	return parse_bytes(text, 1 << 20, 1ull << 40, &tdm_env.unexp_max_bytes);
}

static int parse_bool(const char *text, int *out)
{
	static const char *const yes[] = { "1", "yes", "true", "on" };
	static const char *const no[] = { "0", "no", "false", "off" };
	size_t i;

	for (i = 0; i < TDM_ARRAY_LEN(yes); i++) {
		if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
			*out = !strcasecmp(text, yes[i]);
			return 0;
		}
	}
	return -1;
}

static int parse_cma(const char *text)
{
	return parse_bool(text, &tdm_env.cma);
}

static int parse_report(const char *text)
{
	return parse_bool(text, &tdm_env.report);
}

static const struct {
	const char *name;
	int (*parse)(const char *text);
	const char *help;
} params[] = {
	{ "shm", parse_shm,
	  "shared memory: auto, off, or only (default: auto)" },
	{ "iface", parse_iface,
	  "name of the network interface to use (default: the best one)" },
	{ "port_range", parse_port_range,
	  "LOW-HIGH, TCP ports of endpoints (default: any)" },
	{ "conn_timeout", parse_conn_timeout,
	  "seconds until a peer that cannot be reached fails operations; 0: "
	  "never (default: 60)" },
	{ "peer_timeout", parse_peer_timeout,
	  "seconds until a silent network counts as a lost peer; 0: never "
	  "(default: 60)" },
	{ "eager_size", parse_eager,
	  "bytes, largest message sent over TCP before the receiver asks for "
	  "it (default: 65536)" },
	{ "shm_eager_size", parse_shm_eager,
	  "bytes, largest message copied through a shared-memory ring "
	  "(default: 8192)" },
	{ "unexp_max", parse_unexp_max,
	  "bytes of unexpected messages held per endpoint (default: 256 MiB)" },
	{ "cma", parse_cma,
	  "let the receiver read large messages from the sender's memory "
	  "(process_vm_readv) (default: yes)" },
	{ "report", parse_report,
	  "print each peer, its path and its traffic when an endpoint closes "
	  "(default: no)" },
};

void tdm_env_init(void)
{
	char *text;
	size_t i;

	tdm_env = defaults;
	for (i = 0; i < TDM_ARRAY_LEN(params); i++) {
		struct tdm_env before = tdm_env;

		fi_param_define(&tdm_prov, params[i].name, FI_PARAM_STRING,
				"%s", params[i].help);
		if (getauxval(AT_SECURE) ||
		    fi_param_get_str(&tdm_prov, params[i].name, &text) || !text)
			continue;
		if (params[i].parse(text)) {
			tdm_env = before;
			TDM_WARN(CORE,
				 "parameter %s: \"%.64s\" not understood, "
				 "using the default",
				 params[i].name, text);
		}
	}
}

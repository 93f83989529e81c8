/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FI_TANDEM_* parameters: defined so that fi_info -g lists them, read
 * once, clamped. A value that cannot be understood costs one warning and
 * leaves the default; an unknown name that begins with FI_TANDEM_ costs a
 * warning too, which tdm_tell_user() puts where users see it. Programs that run
 * with raised privileges (AT_SECURE) get the defaults whatever the environment
 * says, and no warning.
 *
 * Lock: none. tdm_env is written before the provider has another thread, and
 * only read afterwards.
 * Spec: fi_tandem(7), ENVIRONMENT. The table below and that section list the
 * same names, which a check compares.
 */
#include "base/env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/base.h"
#include "base/congestion.h"
#include "base/folder.h"
#include "base/iflist.h"
#include "base/log.h"
#include "base/number.h"
#include "base/spelling.h"

#define DEFAULTS                                                               \
	{                                                                      \
		.shm = TDM_SHM_AUTO,                                           \
		.conn_timeout_ms = 60 * 1000,                                  \
		.refused_timeout_ms = (unsigned)TDM_REFUSED_UNSET,             \
		.peer_timeout_ms = 60 * 1000,                                  \
		.eager_bytes = 64 * 1024,                                      \
		.shm_eager_bytes = 8 * 1024,                                   \
		.unexp_max_bytes = 256u << 20,                                 \
		.inject_max_bytes = 64u << 20,                                 \
		.cma = 1,                                                      \
		.resume = 1,                                                   \
		.stat = 1,                                                     \
	}

/*
 * The defaults hold before tdm_env_init() too: tests use parts without a
 * provider.
 */
struct tdm_env tdm_env = DEFAULTS;

static const struct tdm_env defaults = DEFAULTS;

/* The variable of a parameter, as a user writes it. */
enum { ENV_NAME_BYTES = TDM_SPELLING_BYTES };

/* Longest name of a provider that FI_TANDEM_LOCAL takes, and one more. */
enum { LOCAL_NAME_BYTES = 64 };

static const char env_prefix[] = "FI_TANDEM_";

static const char *env_name(const char *param, char *buf)
{
	size_t n = sizeof(env_prefix) - 1, i;

	memcpy(buf, env_prefix, n);
	for (i = 0; param[i] && n < ENV_NAME_BYTES - 1; i++)
		buf[n++] = (char)toupper((unsigned char)param[i]);
	buf[n] = '\0';
	return buf;
}

/* The result of parsing a text. */
enum { OK, CLAMPED, NONSENSE = -1 };

struct param {
	const char *name;
	int (*parse)(const struct param *p, const char *text);
	const char *values; /* accepted values, in words for users */
	const char *help;
	uint64_t lo, hi; /* smallest and largest number, in its unit */
	void *to;	 /* the variable that takes the value */
};

/*
 * Set *@out to 1 if @text is a word of the list @yes, to 0 if it is one of @no.
 * A space follows each word of a list.
 */
static int parse_word(const char *text, const char *yes, const char *no,
		      int *out)
{
	const char *lists[] = { no, yes };
	size_t n = strlen(text);
	int i;

	for (i = 0; i < 2; i++) {
		const char *w = lists[i], *end;

		for (; (end = strchr(w, ' ')); w = end + 1) {
			if ((size_t)(end - w) == n &&
			    !strncasecmp(w, text, n)) {
				*out = i;
				return OK;
			}
		}
	}
	return NONSENSE;
}

#define YES "1 yes true on "
#define NO "0 no false off "

static int parse_bool(const struct param *p, const char *text)
{
	return parse_word(text, YES, NO, p->to);
}

/* A value that is not understood counts as yes: nothing goes in clear by mistake. */
static int parse_tls(const struct param *p, const char *text)
{
	if (!*text || parse_bool(p, text) == OK)
		return OK;
	tdm_tell_user("FI_TANDEM_TLS=%.64s is not understood (%s): TLS is used",
		      text, p->values);
	*(int *)p->to = 1;
	return OK;
}

static int parse_shm(const struct param *p, const char *text)
{
	int on;

	(void)p;
	if (!strcasecmp(text, "only")) {
		tdm_env.shm = TDM_SHM_ONLY;
		return OK;
	}
	if (parse_word(text, YES "auto ", NO, &on))
		return NONSENSE;
	tdm_env.shm = on ? TDM_SHM_AUTO : TDM_SHM_OFF;
	return OK;
}

/*
 * A provider's name. "off" and "tandem" are no providers that could be a peer of
 * ours.
 */
static int parse_local(const struct param *p, const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	int on;

	(void)p;
	tdm_env.local = NULL;
	if (!strcasecmp(text, "tandem"))
		return OK;
	if (!parse_word(text, "", NO, &on)) {
		tdm_env.shm = TDM_SHM_OFF;
		return OK;
	}
	if (text[n] || n >= LOCAL_NAME_BYTES)
		return NONSENSE;
	tdm_env.local = text;
	return OK;
}

static int parse_text(const struct param *p, const char *text)
{
	*(const char **)p->to = text;
	return OK;
}

static int parse_shm_dir(const struct param *p, const char *text)
{
	(void)parse_text(p, text);
	return tdm_folder_name_ok(text) ? OK : NONSENSE;
}

static int parse_iface(const struct param *p, const char *text)
{
	(void)parse_text(p, text);
	return tdm_iflist_ok(text) ? OK : NONSENSE;
}

static int parse_congestion(const struct param *p, const char *text)
{
	(void)parse_text(p, text);
	return tdm_congestion_ok(text) ? OK : NONSENSE;
}

static int parse_stand_in(const struct param *p, const char *text)
{
	static const char *const names[] = { "tcp", "sockets" };
	size_t i;
	int on;

	(void)p;
	if (!parse_word(text, "", NO, &on)) {
		tdm_env.stand_in = NULL;
		return OK;
	}
	for (i = 0; i < TDM_ARRAY_LEN(names); i++) {
		if (!strcasecmp(text, names[i])) {
			tdm_env.stand_in = names[i];
			return OK;
		}
	}
	return NONSENSE;
}

/*
 * The form named by the @n bytes at @word, or -1. A Boolean is a form too.
 */
static int form_of(const char *word, size_t n)
{
	static const struct {
		const char *name;
		enum tdm_form form;
	} forms[] = {
		{ "summary", TDM_FORM_SUMMARY },
		{ "full", TDM_FORM_FULL },
		{ "json", TDM_FORM_JSON },
	};
	char copy[8];
	size_t i;
	int on;

	if (n >= sizeof(copy))
		return -1;
	memcpy(copy, word, n);
	copy[n] = '\0';
	for (i = 0; i < TDM_ARRAY_LEN(forms); i++) {
		if (!strcasecmp(copy, forms[i].name))
			return forms[i].form;
	}
	if (parse_word(copy, YES, NO, &on))
		return -1;
	return on ? TDM_FORM_PLAIN : TDM_FORM_NONE;
}

/*
 * FORM, FORM:FILE or FILE. A word that is no form is a file only if it looks like
 * one, so that a misspelt form is not taken for a file.
 */
static int parse_report(const struct param *p, const char *text)
{
	size_t n = strcspn(text, ":");
	int form = form_of(text, n);

	(void)p;
	tdm_env.report_file = NULL;
	if (form > 0 && text[n])
		tdm_env.report_file = text + n + 1;
	else if (form < 0 && (strchr(text, '/') || strstr(text, "%p")))
		tdm_env.report_file = text;
	if (form < 0 && tdm_env.report_file)
		form = TDM_FORM_PLAIN;
	if (form < 0 || (form == TDM_FORM_NONE && text[n]) ||
	    (tdm_env.report_file && !*tdm_env.report_file))
		return NONSENSE;
	tdm_env.report = (enum tdm_form)form;
	return OK;
}

static int clamp(const struct param *p, uint64_t v, uint64_t *out)
{
	*out = tdm_clamp(v, p->lo, p->hi);
	return *out == v ? OK : CLAMPED;
}

/* Parse a number that ends with a unit of @list. */
static int parse_number(const struct param *p, const char *text,
			const struct tdm_unit *list, uint64_t *out)
{
	uint64_t v;

	return tdm_number_parse(text, list, &v) ? NONSENSE : clamp(p, v, out);
}

/* A letter, alone or with B or iB. */
#define UNIT(letter, factor)                                                   \
	{ letter, factor }, { letter "B", factor },                            \
	{                                                                      \
		letter "iB", factor                                            \
	}

static int parse_bytes(const struct param *p, const char *text)
{
	static const struct tdm_unit list[] = {
		UNIT("K", 1 << 10),    UNIT("M", 1 << 20), UNIT("G", 1 << 30),
		UNIT("T", 1ull << 40), { "B", 1 },	   { "", 1 },
	};
	uint64_t v = 0;
	int ret = parse_number(p, text, list, &v);

	if (ret != NONSENSE)
		*(size_t *)p->to = (size_t)v;
	return ret;
}

static int parse_seconds(const struct param *p, const char *text)
{
	static const struct tdm_unit list[] = {
		{ "s", 1 },    { "m", 60 }, { "min", 60 },
		{ "h", 3600 }, { "", 1 },
	};
	uint64_t v = 0;
	int ret = parse_number(p, text, list, &v);

	if (ret != NONSENSE)
		*(unsigned *)p->to = (unsigned)v * 1000;
	return ret;
}

/* LOW-HIGH, or a single port. */
static int parse_port_range(const struct param *p, const char *text)
{
	const char *dash = strchr(text, '-'), *end = text + strlen(text);
	uint64_t low, high, a, b;
	int ret;

	if (tdm_number_digits(text, dash ? dash : end, &low) ||
	    (dash && tdm_number_digits(dash + 1, end, &high)))
		return NONSENSE;
	if (!dash)
		high = low;
	if (low > high)
		return NONSENSE;
	ret = clamp(p, low, &a);
	if (clamp(p, high, &b) || ret)
		ret = CLAMPED;
	tdm_env.port_low = (uint16_t)a;
	tdm_env.port_high = (uint16_t)b;
	return ret;
}

static const struct param params[] = {
	{ "shm", parse_shm, "auto, off, only",
	  "shared memory: auto, off, or only (default: auto)", 0, 0, NULL },
	{ "local", parse_local, "tandem, off, or the name of a provider",
	  "what carries messages between processes of a host: tandem's shared "
	  "memory, off (tcp), or the provider with this name, such as shm "
	  "(default: tandem)",
	  0, 0, NULL },
	{ "shm_dir", parse_shm_dir, "a path from / on, at most 45 bytes",
	  "folder, of mode 0700, that processes in several network namespaces "
	  "of this host see, to share memory across them (default: none)",
	  0, 0, &tdm_env.shm_dir },
	{ "iface", parse_iface,
	  "names such as eth0 or ib*, networks such as 10.0.0.0/8, with commas; "
	  "^ before those to leave out",
	  "network interfaces to use: names such as eth0 or ib*, networks such "
	  "as 10.0.0.0/8, with commas; ^ before those to leave out (default: "
	  "all)",
	  0, 0, &tdm_env.iface },
	{ "port_range", parse_port_range, "LOW-HIGH or a port, 1 to 65535",
	  "LOW-HIGH, TCP ports of endpoints (default: any)", 1, 65535, NULL },
	{ "conn_timeout", parse_seconds,
	  "0 to 86400 seconds, such as 10s or 2m",
	  "seconds until a peer that cannot be reached fails operations, 0 to "
	  "86400; 0: never (default: 60)",
	  0, 24 * 3600, &tdm_env.conn_timeout_ms },
	{ "refused_timeout", parse_seconds,
	  "0 to 86400 seconds, such as 2s or 1m",
	  "seconds until a peer at whose address nobody listens fails "
	  "operations, 0 to 86400 (default: that of conn_timeout; 2 for a peer "
	  "that was there)",
	  0, 24 * 3600, &tdm_env.refused_timeout_ms },
	{ "peer_timeout", parse_seconds,
	  "0 to 86400 seconds, such as 10s or 2m",
	  "seconds until a silent network counts as a lost peer, 0 to 86400; "
	  "0: never (default: 60)",
	  0, 24 * 3600, &tdm_env.peer_timeout_ms },
	{ "resume", parse_bool, "yes or no",
	  "go on over a new TCP connection when one is lost (default: yes)", 0,
	  1, &tdm_env.resume },
	{ "crc", parse_bool, "yes or no",
	  "checksums over all that goes over TCP, if the peer knows them "
	  "(default: no)",
	  0, 1, &tdm_env.crc },
	{ "congestion", parse_congestion,
	  "system, or one in /proc/sys/net/ipv4/tcp_allowed_congestion_control",
	  "congestion control of TCP: a name of tcp(7), or system "
	  "(default: reno within this host, else system)",
	  0, 0, &tdm_env.congestion },
	{ "auth_key_file", parse_text, "the path of a file",
	  "file, of mode 0600, with the authorization key of endpoints for "
	  "which the program sets none, 16 to 64 bytes (default: none)",
	  0, 0, &tdm_env.auth_key_file },
	{ "auth_key", parse_text, "16 to 64 bytes",
	  "the same key itself, 16 to 64 bytes, for launchers that hand one to "
	  "each process of a job (default: none)",
	  0, 0, &tdm_env.auth_key },
	{ "tls", parse_tls, "yes or no",
	  "TLS 1.3 over TCP, with the key, or with certificates (default: no)",
	  0, 1, &tdm_env.tls },
	{ "tls_cert", parse_text, "the path of a file",
	  "file in PEM with the certificate of this process, and those between "
	  "it and one of tls_ca (default: none)",
	  0, 0, &tdm_env.tls_cert },
	{ "tls_key", parse_text, "the path of a file",
	  "file in PEM with the private key of that certificate (default: none)",
	  0, 0, &tdm_env.tls_key },
	{ "tls_ca", parse_text, "the path of a file",
	  "file in PEM with the certificates that admit peers (default: none)",
	  0, 0, &tdm_env.tls_ca },
	{ "eager_size", parse_bytes, "256 to 1048576 bytes, such as 64K",
	  "bytes, largest message sent over TCP before the receiver asks for "
	  "it, 256 to 1048576 (default: 65536)",
	  256, 1 << 20, &tdm_env.eager_bytes },
	{ "shm_eager_size", parse_bytes, "256 to 16384 bytes, such as 4K",
	  "bytes, largest message copied through a shared-memory ring, 256 to "
	  "16384 (default: 8192)",
	  256, 16 << 10, &tdm_env.shm_eager_bytes },
	{ "unexp_max", parse_bytes,
	  "1048576 to 1099511627776 bytes, such as 1G",
	  "bytes of unexpected messages held per endpoint, 1 MiB to 1 TiB "
	  "(default: 256 MiB)",
	  1 << 20, 1ull << 40, &tdm_env.unexp_max_bytes },
	{ "inject_max", parse_bytes,
	  "65536 to 1099511627776 bytes, such as 64M",
	  "bytes of injected messages that wait in the process, 64 KiB to 1 "
	  "TiB (default: 64 MiB)",
	  64 << 10, 1ull << 40, &tdm_env.inject_max_bytes },
	{ "cma", parse_bool, "yes or no",
	  "let the receiver read large messages from the sender's memory "
	  "(process_vm_readv) (default: yes)",
	  0, 1, &tdm_env.cma },
	{ "stand_in", parse_stand_in, "tcp or sockets",
	  "tcp or sockets: be offered under that provider's name, in its "
	  "place, to programs that know providers by name (default: no)",
	  0, 0, NULL },
	{ "report", parse_report,
	  "yes, no, summary, full or json, then :FILE, or a FILE with / or %p",
	  "print each peer, its path and its traffic when an endpoint closes: "
	  "yes, summary, full or json, to standard error, or with :FILE to that "
	  "file, in whose name %p is the process id (default: no)",
	  0, 0, NULL },
	{ "stat", parse_bool, "yes or no",
	  "let the command tandem-stat read what endpoints and paths are doing "
	  "(default: yes)",
	  0, 1, &tdm_env.stat },
};

static void read_param(const struct param *p, const char *text)
{
	struct tdm_env before = tdm_env;
	char name[ENV_NAME_BYTES];

	/*
	 * An empty value counts as unset, as it does for other libfabric
	 * parameters.
	 */
	if (!*text)
		return;
	switch (p->parse(p, text)) {
	case NONSENSE:
		tdm_env = before;
		tdm_tell_user(
			"%s=%.64s is not understood (%s): the default is used",
			env_name(p->name, name), text, p->values);
		break;
	case CLAMPED:
		tdm_tell_user(
			"%s=%.64s is out of range (%s): the nearest value is "
			"used",
			env_name(p->name, name), text, p->values);
		break;
	default:
		break;
	}
}

/* ---- names --------------------------------------------------------------- */

static void check_name(const char *var, size_t len)
{
	char name[ENV_NAME_BYTES], known[ENV_NAME_BYTES], best[ENV_NAME_BYTES];
	size_t least = SIZE_MAX, d, i;

	len = tdm_min(len, sizeof(name) - 1);
	memcpy(name, var, len);
	name[len] = '\0';
	for (i = 0; i < TDM_ARRAY_LEN(params); i++) {
		d = tdm_spelling_distance(name,
					  env_name(params[i].name, known));
		if (!d)
			return;
		if (d < least) {
			least = d;
			memcpy(best, known, sizeof(best));
		}
	}
	tdm_tell_user("%s is no parameter of this version; the nearest is %s",
		      name, best);
}

/*
 * Warn of variables that begin with FI_TANDEM_ and are no parameter: misspelt.
 */
static void check_names(void)
{
	char **var;

	for (var = environ; var && *var; var++) {
		if (!strncmp(*var, env_prefix, sizeof(env_prefix) - 1))
			check_name(*var, strcspn(*var, "="));
	}
}

/*
 * The type that fi_info -g shows. The core reads numbers without the units that
 * fi_tandem(7) promises, so parameters with a number are texts.
 */
static enum fi_param_type type_of(const struct param *p)
{
	return p->parse == parse_bool || p->parse == parse_tls ?
		       FI_PARAM_BOOL :
		       FI_PARAM_STRING;
}

/* Not 0: the core, which logs each value and lists it, must not know it. */
static int is_secret(const struct param *p)
{
	return p->to == &tdm_env.auth_key;
}

/* Not 0: an empty value is one that cannot be used, not the same as none. */
static int is_key(const struct param *p)
{
	return is_secret(p) || p->to == &tdm_env.auth_key_file;
}

static void get_param(const struct param *p)
{
	char name[ENV_NAME_BYTES], *text = getenv(env_name(p->name, name));
	int on;

	if (text && is_key(p)) {
		*(const char **)p->to = text; /* an empty one too */
	} else if (is_secret(p)) {
		return;
	} else if (type_of(p) == FI_PARAM_STRING) {
		if (!fi_param_get_str(&tdm_prov, p->name, &text) && text)
			read_param(p, text);
	} else if (text && p->parse(p, text)) {
		/* The core would warn a second time, and of an empty one. */
		read_param(p, text);
	} else if (!text) {
		int ret = fi_param_get_bool(&tdm_prov, p->name, &on);

		if (!ret)
			*(int *)p->to = on;
		else if (ret != -FI_ENODATA && p->parse == parse_tls)
			(void)parse_tls(p, "(in a file)");
	}
}

void tdm_env_init(void)
{
	size_t i;

	tdm_env = defaults;
	for (i = 0; i < TDM_ARRAY_LEN(params); i++) {
		if (!is_secret(&params[i]))
			fi_param_define(&tdm_prov, params[i].name,
					type_of(&params[i]), "%s",
					params[i].help);
		if (!getauxval(AT_SECURE))
			get_param(&params[i]);
	}
	if (!getauxval(AT_SECURE))
		check_names();
}

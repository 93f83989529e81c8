/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second model of each FI_TANDEM_* variable, written from fi_tandem(7),
 * ENVIRONMENT. env_fuzz.c compares base/env.c with it.
 */
#include "tests/fuzz/env_check.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/env.h"
#include "base/iflist.h"
#include "tests/fuzz/fuzz.h"

/* ---- words --------------------------------------------------------------- */

/* Returns 1 or 0, the Boolean that @text is, or -1. */
static int boolean(const char *text)
{
	static const char *const words[] = { "0",     "1",    "no",  "yes",
					     "false", "true", "off", "on" };
	int i;

	for (i = 0; i < 8; i++) {
		if (!strcasecmp(text, words[i]))
			return i & 1;
	}
	return -1;
}

static void check_bool(const struct tdt_env_row *row, const char *text,
		       enum tdt_env_verdict verdict)
{
	const int on = *(int *)row->to;

	tdt_must(on == 0 || on == 1);
	tdt_must(verdict ==
		 (boolean(text) < 0 ? TDT_ENV_REFUSED : TDT_ENV_TAKEN));
	tdt_must(verdict == TDT_ENV_REFUSED || on == boolean(text));
}

/* A value that is not understood counts as yes. */
static void check_tls(const struct tdt_env_row *row, const char *text,
		      enum tdt_env_verdict verdict)
{
	(void)row;
	tdt_must(verdict ==
		 (boolean(text) < 0 ? TDT_ENV_REFUSED : TDT_ENV_TAKEN));
	tdt_must(tdm_env.tls == !!boolean(text));
}

static void check_shm(const struct tdt_env_row *row, const char *text,
		      enum tdt_env_verdict verdict)
{
	int want = boolean(text) == 1 ? TDM_SHM_AUTO :
		   !boolean(text)     ? TDM_SHM_OFF :
					-1;

	(void)row;
	if (!strcasecmp(text, "auto"))
		want = TDM_SHM_AUTO;
	if (!strcasecmp(text, "only"))
		want = TDM_SHM_ONLY;
	tdt_must(verdict == (want < 0 ? TDT_ENV_REFUSED : TDT_ENV_TAKEN));
	tdt_must(want < 0 || (int)tdm_env.shm == want);
}

static void check_local(const struct tdt_env_row *row, const char *text,
			enum tdt_env_verdict verdict)
{
	const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_");

	(void)row;
	tdt_must(verdict ==
		 (text[n] || n > 63 ? TDT_ENV_REFUSED : TDT_ENV_TAKEN));
	if (verdict == TDT_ENV_REFUSED)
		return;
	tdt_must((tdm_env.shm == TDM_SHM_OFF) == !boolean(text));
	if (!strcasecmp(text, "tandem") || !boolean(text))
		tdt_must(!tdm_env.local);
	else
		tdt_must(tdm_env.local && !strcmp(tdm_env.local, text));
}

static void check_stand_in(const struct tdt_env_row *row, const char *text,
			   enum tdt_env_verdict verdict)
{
	const int known = !strcasecmp(text, "tcp") ||
			  !strcasecmp(text, "sockets");

	(void)row;
	tdt_must(verdict ==
		 (known || !boolean(text) ? TDT_ENV_TAKEN : TDT_ENV_REFUSED));
	if (verdict == TDT_ENV_TAKEN)
		tdt_must(known ? !strcasecmp(tdm_env.stand_in, text) :
				 !tdm_env.stand_in);
}

/* Returns the form of a report that the @n bytes at @text are, or -1. */
static int form_of(const char *text, size_t n)
{
	static const char *const forms[] = { "summary", "full", "json" };
	char word[16];
	int i;

	snprintf(word, sizeof(word), "%.*s", (int)n, text);
	for (i = 0; i < 3; i++) {
		if (!strcasecmp(word, forms[i]))
			return TDM_FORM_SUMMARY + i;
	}
	return boolean(word);
}

/* FORM, FORM:FILE, or a FILE with / or %p in it. */
static void check_report(const struct tdt_env_row *row, const char *text,
			 enum tdt_env_verdict verdict)
{
	const size_t n = strcspn(text, ":");
	const int form = form_of(text, n);
	const char *file = text[n] ? text + n + 1 : NULL;
	int fits = !file || (*file && form != TDM_FORM_NONE);

	(void)row;
	if (form < 0) {
		file = text;
		fits = strchr(text, '/') || strstr(text, "%p");
	}
	tdt_must(verdict == (fits ? TDT_ENV_TAKEN : TDT_ENV_REFUSED));
	if (!fits)
		return;
	tdt_must((int)tdm_env.report == (form < 0 ? TDM_FORM_PLAIN : form));
	tdt_must(file ? tdm_env.report_file &&
				 !strcmp(tdm_env.report_file, file) :
			!tdm_env.report_file);
}

/* ---- texts --------------------------------------------------------------- */

static void check_text(const struct tdt_env_row *row, const char *text,
		       enum tdt_env_verdict verdict)
{
	const char *const taken = *(const char **)row->to;

	tdt_must(verdict == TDT_ENV_TAKEN && taken && !strcmp(taken, text));
}

static void check_shm_dir(const struct tdt_env_row *row, const char *text,
			  enum tdt_env_verdict verdict)
{
	tdt_must(verdict == (*text == '/' && strlen(text) <= 45 ?
				     TDT_ENV_TAKEN :
				     TDT_ENV_REFUSED));
	if (verdict == TDT_ENV_TAKEN)
		check_text(row, text, verdict);
}

int tdt_env_setsockopt(int fd, int level, int name, const void *val,
		       socklen_t len)
{
	static const char *const known[] = { "reno", "cubic" };
	size_t i;

	(void)fd;
	tdt_must(level == IPPROTO_TCP && name == TCP_CONGESTION);
	for (i = 0; i < TDM_ARRAY_LEN(known); i++) {
		if (len == strlen(known[i]) && !memcmp(val, known[i], len))
			return 0;
	}
	errno = ENOENT;
	return -1;
}

static void check_congestion(const struct tdt_env_row *row, const char *text,
			     enum tdt_env_verdict verdict)
{
	const int known = !strcmp(text, "system") || !strcmp(text, "reno") ||
			  !strcmp(text, "cubic");

	tdt_must(verdict == (known ? TDT_ENV_TAKEN : TDT_ENV_REFUSED));
	if (known)
		check_text(row, text, verdict);
}

/* A list that was taken can be used. */
static void check_iface(const struct tdt_env_row *row, const char *text,
			enum tdt_env_verdict verdict)
{
	static const struct sockaddr_in in = { .sin_family = AF_INET,
					       .sin_addr = { 0x0100007f } };
	static const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	const struct sockaddr *ip = (const struct sockaddr *)&in;
	const struct sockaddr *ip6 = (const struct sockaddr *)&in6;

	tdt_must(verdict ==
		 (tdm_iflist_ok(text) ? TDT_ENV_TAKEN : TDT_ENV_REFUSED));
	if (verdict == TDT_ENV_REFUSED)
		return;
	check_text(row, text, verdict);
	tdt_must(tdm_iflist_place(text, "eth0", ip) <= strlen(text) + 1);
	tdt_must(tdm_iflist_place(text, "eth0", ip6) <= strlen(text) + 1);
}

/* ---- numbers ------------------------------------------------------------- */

struct unit {
	const char *text;
	uint64_t factor;
};

/*
 * The spellings of units that fi_tandem(7) has. The last one of a list is the
 * empty one. Others may be taken, and mean what their first letter does.
 */
static const struct unit sizes[] = {
	{ "K", 1ull << 10 }, { "KB", 1ull << 10 }, { "KiB", 1ull << 10 },
	{ "M", 1ull << 20 }, { "MB", 1ull << 20 }, { "MiB", 1ull << 20 },
	{ "G", 1ull << 30 }, { "GB", 1ull << 30 }, { "GiB", 1ull << 30 },
	{ "T", 1ull << 40 }, { "TB", 1ull << 40 }, { "TiB", 1ull << 40 },
	{ "", 1 },
};

static const struct unit times[] = {
	{ "s", 1 },
	{ "m", 60 },
	{ "h", 3600 },
	{ "", 1 },
};

/* Not 0: the factor of the unit at @text; in *@known 1 if the manual has it. */
static uint64_t factor_of(const struct unit *list, const char *text, int *known)
{
	const struct unit *u;

	*known = 1;
	for (u = list;; u++) {
		if (!strcasecmp(u->text, text))
			return u->factor;
		if (!*u->text)
			break;
	}
	*known = 0;
	for (u = list; *u->text; u++) {
		if (!strncasecmp(u->text, text, 1))
			return u->factor;
	}
	return 1;
}

/* @got, in the unit of the variable, is the number that @text is, or an end. */
static void check_number(const struct tdt_env_row *row, const struct unit *list,
			 const char *text, enum tdt_env_verdict verdict,
			 uint64_t got)
{
	const size_t n = strspn(text, "0123456789");
	int known;
	const uint64_t factor = factor_of(list, text + n, &known);
	/* Too large a number becomes the largest. */
	const uint64_t v = n ? strtoull(text, NULL, 10) : 0;

	if (verdict == TDT_ENV_REFUSED) {
		tdt_must(!n || !known);
		return;
	}
	tdt_must(n && got >= row->lo && got <= row->hi);
	if (v > row->hi / factor)
		tdt_must(verdict == TDT_ENV_OUTSIDE && got == row->hi);
	else if (v * factor < row->lo)
		tdt_must(verdict == TDT_ENV_OUTSIDE && got == row->lo);
	else
		tdt_must(verdict == TDT_ENV_TAKEN && got == v * factor);
}

static void check_bytes(const struct tdt_env_row *row, const char *text,
			enum tdt_env_verdict verdict)
{
	check_number(row, sizes, text, verdict, *(size_t *)row->to);
}

static void check_seconds(const struct tdt_env_row *row, const char *text,
			  enum tdt_env_verdict verdict)
{
	const unsigned ms = *(unsigned *)row->to;

	tdt_must(verdict == TDT_ENV_REFUSED || !(ms % 1000));
	check_number(row, times, text, verdict, ms / 1000);
}

/* Numbers far beyond every range are not told apart. */
static uint64_t whole(const char *text)
{
	const uint64_t v = strtoull(text, NULL, 10);

	return v / 10 < UINT64_MAX / 100 ? v : UINT64_MAX;
}

static uint64_t port_at(const char *text)
{
	return tdm_clamp(strtoull(text, NULL, 10), 1, 65535);
}

static void check_ports(const struct tdt_env_row *row, const char *text,
			enum tdt_env_verdict verdict)
{
	const char *dash = strchr(text, '-');
	const char *high = dash ? dash + 1 : text;
	const size_t n = strspn(text, "0123456789");
	const size_t m = strspn(high, "0123456789");
	const int form = n && m && !high[m] && (!dash || dash == text + n);
	const uint64_t a = n ? whole(text) : 0;
	const uint64_t b = m ? whole(high) : 0;
	const int inside = a && a <= row->hi && b && b <= row->hi;

	if (verdict == TDT_ENV_REFUSED) {
		tdt_must(!form || a > b);
		return;
	}
	tdt_must(form && a <= b);
	tdt_must(verdict == (inside ? TDT_ENV_TAKEN : TDT_ENV_OUTSIDE));
	tdt_must(tdm_env.port_low == port_at(text));
	tdt_must(tdm_env.port_high == port_at(high));
}

/* ---- the table ----------------------------------------------------------- */

const struct tdt_env_row tdt_env_rows[TDT_ENV_ROWS] = {
	{ "SHM", check_shm, &tdm_env.shm, sizeof(tdm_env.shm), 0, 0, NULL, 0 },
	{ "LOCAL", check_local, &tdm_env.local, sizeof(tdm_env.local), 0, 0,
	  &tdm_env.shm, sizeof(tdm_env.shm) },
	{ "SHM_DIR", check_shm_dir, &tdm_env.shm_dir, sizeof(tdm_env.shm_dir),
	  0, 0, NULL, 0 },
	{ "IFACE", check_iface, &tdm_env.iface, sizeof(tdm_env.iface), 0, 0,
	  NULL, 0 },
	{ "PORT_RANGE", check_ports, &tdm_env.port_low,
	  sizeof(tdm_env.port_low), 1, 65535, &tdm_env.port_high,
	  sizeof(tdm_env.port_high) },
	{ "CONN_TIMEOUT", check_seconds, &tdm_env.conn_timeout_ms,
	  sizeof(tdm_env.conn_timeout_ms), 0, 86400, NULL, 0 },
	{ "REFUSED_TIMEOUT", check_seconds, &tdm_env.refused_timeout_ms,
	  sizeof(tdm_env.refused_timeout_ms), 0, 86400, NULL, 0 },
	{ "PEER_TIMEOUT", check_seconds, &tdm_env.peer_timeout_ms,
	  sizeof(tdm_env.peer_timeout_ms), 0, 86400, NULL, 0 },
	{ "RESUME", check_bool, &tdm_env.resume, sizeof(tdm_env.resume), 0, 0,
	  NULL, 0 },
	{ "CRC", check_bool, &tdm_env.crc, sizeof(tdm_env.crc), 0, 0, NULL, 0 },
	{ "AUTH_KEY_FILE", check_text, &tdm_env.auth_key_file,
	  sizeof(tdm_env.auth_key_file), 0, 0, NULL, 0 },
	{ "AUTH_KEY", check_text, &tdm_env.auth_key, sizeof(tdm_env.auth_key),
	  0, 0, NULL, 0 },
	{ "TLS", check_tls, &tdm_env.tls, sizeof(tdm_env.tls), 0, 0, NULL, 0 },
	{ "TLS_CERT", check_text, &tdm_env.tls_cert, sizeof(tdm_env.tls_cert),
	  0, 0, NULL, 0 },
	{ "TLS_KEY", check_text, &tdm_env.tls_key, sizeof(tdm_env.tls_key), 0,
	  0, NULL, 0 },
	{ "TLS_CA", check_text, &tdm_env.tls_ca, sizeof(tdm_env.tls_ca), 0, 0,
	  NULL, 0 },
	{ "EAGER_SIZE", check_bytes, &tdm_env.eager_bytes,
	  sizeof(tdm_env.eager_bytes), 256, 1 << 20, NULL, 0 },
	{ "SHM_EAGER_SIZE", check_bytes, &tdm_env.shm_eager_bytes,
	  sizeof(tdm_env.shm_eager_bytes), 256, 16 << 10, NULL, 0 },
	{ "UNEXP_MAX", check_bytes, &tdm_env.unexp_max_bytes,
	  sizeof(tdm_env.unexp_max_bytes), 1 << 20, 1ull << 40, NULL, 0 },
	{ "INJECT_MAX", check_bytes, &tdm_env.inject_max_bytes,
	  sizeof(tdm_env.inject_max_bytes), 64 << 10, 1ull << 40, NULL, 0 },
	{ "CMA", check_bool, &tdm_env.cma, sizeof(tdm_env.cma), 0, 0, NULL, 0 },
	{ "STAND_IN", check_stand_in, &tdm_env.stand_in,
	  sizeof(tdm_env.stand_in), 0, 0, NULL, 0 },
	{ "REPORT", check_report, &tdm_env.report, sizeof(tdm_env.report), 0, 0,
	  &tdm_env.report_file, sizeof(tdm_env.report_file) },
	{ "STAT", check_bool, &tdm_env.stat, sizeof(tdm_env.stat), 0, 0, NULL,
	  0 },
	{ "CONGESTION", check_congestion, &tdm_env.congestion,
	  sizeof(tdm_env.congestion), 0, 0, NULL, 0 },
};

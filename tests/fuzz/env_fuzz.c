/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables FI_TANDEM_* (base/env.c, base/env_key.c) with any text. An
 * input is a byte that chooses the variable, then its text. With
 * FI_TANDEM_AUTH_KEY_FILE the text is what that file holds; with one choice
 * more it is the rest of a name, and perhaps "=" and a value.
 *
 * fi_tandem(7), ENVIRONMENT: a value is taken as it says; or it is a number out
 * of range, and becomes the nearest end; or it is not understood, and leaves
 * the default. Each of the last two costs one warning, which names the
 * variable. No other parameter changes. env_check.c knows what the values mean.
 *
 * An input has an environment of its own, with one variable in memory of
 * exactly its length: setenv(3) would keep a copy of each text. The linker
 * replaces calls of libfabric (--wrap): it keeps each definition of a parameter
 * for ever, so it gets one of each; and warnings are counted instead of logged
 * while an input is tried.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "base/env.h"
#include "base/env_key.h"
#include "base/os.h"
#include "base/spelling.h"
#include "tests/fuzz/env_check.h"
#include "tests/fuzz/fuzz.h"

int __real_fi_param_define(const struct fi_provider *provider, const char *name,
			   enum fi_param_type type, const char *fmt, ...);
int __wrap_fi_param_define(const struct fi_provider *provider, const char *name,
			   enum fi_param_type type, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int __real_fi_log_enabled(const struct fi_provider *provider,
			  enum fi_log_level level, enum fi_log_subsys subsys);
int __wrap_fi_log_enabled(const struct fi_provider *provider,
			  enum fi_log_level level, enum fi_log_subsys subsys);
void __real_fi_log(const struct fi_provider *provider, enum fi_log_level level,
		   enum fi_log_subsys subsys, const char *func, int line,
		   const char *fmt, ...);
void __wrap_fi_log(const struct fi_provider *provider, enum fi_log_level level,
		   enum fi_log_subsys subsys, const char *func, int line,
		   const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static const char prefix[] = "FI_TANDEM_";

/* ---- warnings and definitions -------------------------------------------- */

static struct {
	int trying; /* 1: an input is tried */
	int count;  /* of the warnings since the parameters were read */
	char last[1024];
} told;

int __wrap_fi_log_enabled(const struct fi_provider *provider,
			  enum fi_log_level level, enum fi_log_subsys subsys)
{
	if (told.trying)
		return level == FI_LOG_WARN;
	return __real_fi_log_enabled(provider, level, subsys);
}

void __wrap_fi_log(const struct fi_provider *provider, enum fi_log_level level,
		   enum fi_log_subsys subsys, const char *func, int line,
		   const char *fmt, ...)
{
	char text[sizeof(told.last)]; /* libfabric prints no longer ones */
	va_list args;
	size_t n;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!told.trying) {
		__real_fi_log(provider, level, subsys, func, line, "%s", text);
		return;
	}
	n = strlen(text);
	tdt_must(n && text[n - 1] == '\n');
	text[n - 1] = '\0';
	told.count++;
	memcpy(told.last, text, n);
}

/* Returns the row whose name is @name as @compare sees it, or NULL. */
static const struct tdt_env_row *
row_of(const char *name, int (*compare)(const char *a, const char *b))
{
	size_t i;

	for (i = 0; i < TDT_ENV_ROWS; i++) {
		if (!compare(tdt_env_rows[i].name, name))
			return &tdt_env_rows[i];
	}
	return NULL;
}

int __wrap_fi_param_define(const struct fi_provider *provider, const char *name,
			   enum fi_param_type type, const char *fmt, ...)
{
	char help[1024], *none = NULL, **whole = environ;
	union {
		char *text;
		int on;
	} value;
	va_list args;
	int ret;

	/* A parameter without a row would not be tried. */
	tdt_must(!told.trying || row_of(name, strcasecmp) != NULL);
	/* libfabric warns of some values that it is asked for. */
	environ = &none;
	ret = fi_param_get((struct fi_provider *)provider, name, &value);
	environ = whole;
	if (ret != -FI_ENOENT)
		return 0;
	va_start(args, fmt);
	vsnprintf(help, sizeof(help), fmt, args);
	va_end(args);
	return __real_fi_param_define(provider, name, type, "%s", help);
}

/*
 * Returns what the warning, which begins with the variable of @row and its
 * value @text, says of that.
 */
static enum tdt_env_verdict verdict_of(const struct tdt_env_row *row,
				       const char *text)
{
	static const char refused[] = " is not understood (";
	static const char outside[] = " is out of range (";
	char begin[128];
	const char *rest = told.last;
	size_t n;

	if (!told.count)
		return TDT_ENV_TAKEN;
	tdt_must(told.count == 1);
	n = (size_t)snprintf(begin, sizeof(begin), "%s%s=%.64s", prefix,
			     row->name, text);
	tdt_must(!strncmp(rest, begin, n));
	rest += n;
	if (!strncmp(rest, refused, sizeof(refused) - 1))
		return TDT_ENV_REFUSED;
	tdt_must(!strncmp(rest, outside, sizeof(outside) - 1));
	return TDT_ENV_OUTSIDE;
}

/* ---- keys ---------------------------------------------------------------- */

static int is_file(const struct tdt_env_row *row)
{
	return row && row->to == &tdm_env.auth_key_file;
}

static int is_key(const struct tdt_env_row *row)
{
	return is_file(row) || row->to == &tdm_env.auth_key;
}

/* The bytes of the file of the key. */
static struct {
	const uint8_t *at;
	size_t bytes;
} content;

/* tdm_os.open_file(): a file that only its owner can read. */
static int open_content(const char *pathname, int flags, mode_t mode)
{
	const int fd = memfd_create("key", MFD_CLOEXEC);

	(void)pathname;
	(void)flags;
	(void)mode;
	tdt_must(fd >= 0 && !fchmod(fd, S_IRUSR | S_IWUSR));
	tdt_must(pwrite(fd, content.at, content.bytes, 0) ==
		 (ssize_t)content.bytes);
	return fd;
}

/*
 * The key is the @n bytes at @p, or cannot be used: never the same as none. A
 * warning does not tell it.
 */
static void check_key(const uint8_t *p, size_t n, const char *warning)
{
	struct tdm_auth_keys *keys = (struct tdm_auth_keys *)&content;
	const int ret = tdm_env_key(&keys);

	if (n >= TDM_AUTH_LEAST_BYTES && n <= TDM_AUTH_MOST_BYTES) {
		tdt_must(!ret && !told.count);
		tdt_must(keys && keys->count == 1 && !keys->key[0].id);
		tdt_must(tdm_auth_is(&keys->key[0], p, n));
		tdm_auth_free(keys);
	} else {
		tdt_must(ret == -FI_ENOKEY && !keys);
		tdt_must(told.count == 1 && !strcmp(told.last, warning));
	}
}

/* The key in the variable, or in the file that it names. */
static void check_auth(const struct tdt_env_row *row, const char *text)
{
	size_t n = content.bytes;

	if (!is_file(row)) {
		check_key((const uint8_t *)text, strlen(text),
			  "FI_TANDEM_AUTH_KEY cannot be used: "
			  "a key has 16 to 64 bytes");
		return;
	}
	if (n && content.at[n - 1] == '\n')
		n--;
	if (n && content.at[n - 1] == '\r')
		n--;
	tdm_os.open_file = open_content;
	check_key(content.at, n,
		  "FI_TANDEM_AUTH_KEY_FILE=/key cannot be used: "
		  "a key has 16 to 64 bytes");
	tdm_os.open_file = tdm_os_system.open_file;
}

/* ---- one input ----------------------------------------------------------- */

/* Not 0 when the @bytes at @member of tdm_env are as in @before. */
static int same(const struct tdm_env *before, const void *member, size_t bytes)
{
	const size_t at = (size_t)((const char *)member - (char *)&tdm_env);

	return !memcmp(member, (const char *)before + at, bytes);
}

/* Not 0 when the members of @row are as in @before. */
static int unchanged(const struct tdm_env *before,
		     const struct tdt_env_row *row)
{
	return same(before, row->to, row->bytes) &&
	       (!row->also || same(before, row->also, row->also_bytes));
}

static int takes(const struct tdt_env_row *row, const void *member)
{
	return row && (member == row->to || member == row->also);
}

/* No member has changed, but for those of @row, or NULL. */
static void only_changed(const struct tdm_env *before,
			 const struct tdt_env_row *row)
{
	const struct tdt_env_row *r;

	for (r = tdt_env_rows; r < tdt_env_rows + TDT_ENV_ROWS; r++) {
		tdt_must(takes(row, r->to) || same(before, r->to, r->bytes));
		tdt_must(!r->also || takes(row, r->also) ||
			 same(before, r->also, r->also_bytes));
	}
}

/* Read the parameters anew from an environment of @variable alone, or none. */
static void read_env(char *variable)
{
	char *alone[] = { variable, NULL }, **whole = environ;

	told.count = 0;
	environ = alone;
	tdm_env_init();
	environ = whole;
}

/* Give @row's variable the text @text. */
static void try_value(const struct tdm_env *before,
		      const struct tdt_env_row *row, const char *text,
		      char *variable)
{
	const int set = *text || is_key(row);
	enum tdt_env_verdict verdict;

	read_env(variable);
	only_changed(before, row);
	verdict = verdict_of(row, text);
	/* An empty value is the same as none, but for a key. */
	if (set)
		row->check(row, text, verdict);
	else
		tdt_must(verdict == TDT_ENV_TAKEN);
	/* For TLS, a value that is not understood counts as yes. */
	if (!set || (verdict == TDT_ENV_REFUSED && row->to != &tdm_env.tls))
		tdt_must(unchanged(before, row));
	if (is_key(row))
		check_auth(row, text);
}

/* A variable of another name has no effect, but costs a warning. */
static void try_name(const struct tdm_env *before, char *variable)
{
	static const char nearest[] = "; the nearest is FI_TANDEM_";
	const int n = (int)strcspn(variable, "=");
	char name[TDM_SPELLING_BYTES];
	const char *at;

	/* A longer one is cut. */
	snprintf(name, sizeof(name), "%.*s", n, variable);
	if (row_of(name + sizeof(prefix) - 1, strcmp))
		return;
	read_env(variable);
	only_changed(before, NULL);
	tdt_must(told.count == 1);
	tdt_must(!strncmp(told.last, name, strlen(name)));
	at = strstr(told.last + strlen(name), nearest);
	tdt_must(at && row_of(at + sizeof(nearest) - 1, strcmp));
}

/* FI_TANDEM_ and @a, @b and @c, in memory of exactly that length, or NULL. */
static char *joined(const char *a, const char *b, const char *c)
{
	const size_t n = sizeof(prefix) + strlen(a) + strlen(b) + strlen(c);
	char *s = malloc(n);

	if (s)
		snprintf(s, n, "%s%s%s%s", prefix, a, b, c);
	return s;
}

int tdt_fuzz_env(const uint8_t *data, size_t size)
{
	const size_t choice = size ? data[0] % (TDT_ENV_ROWS + 1) : 0;
	const struct tdt_env_row *row =
		choice < TDT_ENV_ROWS ? &tdt_env_rows[choice] : NULL;
	const struct tdm_env outside = tdm_env;
	char *text, *variable = NULL;
	struct tdm_env before;

	if (!size)
		return 0;
	content.at = data + 1;
	content.bytes = size - 1;
	text = is_file(row) ? tdt_text((const uint8_t *)"/key", 4) :
			      tdt_text(data + 1, size - 1);
	variable = row ? joined(row->name, "=", text) : joined(text, "", "");
	if (variable) {
		told.trying = 1;
		tdm_os.setsockopt = tdt_env_setsockopt;
		read_env(NULL);
		before = tdm_env;
		if (row)
			try_value(&before, row, text, variable);
		else
			try_name(&before, variable);
		tdm_os.setsockopt = tdm_os_system.setsockopt;
		told.trying = 0;
	}
	tdm_env = outside;
	free(variable);
	free(text);
	return 0;
}

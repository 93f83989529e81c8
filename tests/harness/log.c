/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of the tests: fi_import_log(3) replaces libfabric's log output, so
 * that warnings are seen in process and in order, without touching stderr.
 *
 * Locking: one mutex, since a provider may log from any thread.
 * Spec: rdma/fi_ext.h, struct fid_logging.
 */
#include "log.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "world.h"

enum { LOG_LINES = 256, LOG_EXPECTED = 16, LOG_LINE_BYTES = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LOG_LINES][LOG_LINE_BYTES]; /* G: lock */
static size_t line_count;		 /* G: lock; may exceed LOG_LINES */
static char expected[LOG_EXPECTED][128]; /* G: lock */
static size_t expected_count;		 /* G: lock */
static char heard[LOG_LINES][LOG_LINE_BYTES]; /* G: lock */
static size_t heard_count;		      /* G: lock */
static int listening; /* most verbose level to keep; changed by one thread */
static int verbose;   /* set once: most verbose level to print, -1 for none */

static int ours(const struct fi_provider *prov)
{
	return prov && prov->name && !strcmp(prov->name, tdt_prov_name());
}

static int log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags)
{
	(void)subsys;
	(void)flags;
	if (level == FI_LOG_WARN)
		return ours(prov) || verbose >= FI_LOG_WARN;
	return (int)level <= verbose || (ours(prov) && (int)level <= listening);
}

static int log_ready(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags,
		     uint64_t *showtime)
{
	(void)showtime;
	return log_enabled(prov, level, subsys, flags);
}

static void log_line(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, const char *func, int line,
		     const char *msg)
{
	(void)subsys;
	if ((int)level <= verbose)
		fprintf(stderr, "%s:%s:%d: %s", prov->name, func, line, msg);
	if (!ours(prov))
		return;
	pthread_mutex_lock(&lock);
	if (listening && (int)level <= listening && heard_count < LOG_LINES)
		snprintf(heard[heard_count++], LOG_LINE_BYTES, "%s", msg);
	if (level != FI_LOG_WARN) {
		pthread_mutex_unlock(&lock);
		return;
	}
	if (line_count < LOG_LINES)
		snprintf(lines[line_count], LOG_LINE_BYTES, "%s:%d: %s", func,
			 line, msg);
	line_count++;
	pthread_mutex_unlock(&lock);
}

static struct fi_ops_log log_ops = {
	.size = sizeof(log_ops),
	.enabled = log_enabled,
	.ready = log_ready,
	.log = log_line,
};

static struct fid_logging log_fid = {
	.fid = { .fclass = FI_CLASS_LOG },
	.ops = &log_ops,
};

static int level_of_environment(void)
{
	static const char *const names[] = { "warn", "trace", "info", "debug" };
	const char *s = getenv("FI_LOG_LEVEL");
	int i;

	if (!s)
		return -1;
	for (i = 0; i < 4; i++) {
		if (!strcmp(s, names[i]))
			return i;
	}
	return 0;
}

void tdt_log_start(void)
{
	int ret;

	verbose = level_of_environment();
	ret = fi_import_log(FI_VERSION(1, 21), 0, &log_fid);
	if (ret)
		fprintf(stderr, "tests: fi_import_log: %s\n",
			fi_strerror(-ret));
}

void tdt_log_reset(void)
{
	pthread_mutex_lock(&lock);
	line_count = 0;
	expected_count = 0;
	pthread_mutex_unlock(&lock);
}

void tdt_log_listen(int level)
{
	pthread_mutex_lock(&lock);
	heard_count = 0;
	listening = level;
	pthread_mutex_unlock(&lock);
}

size_t tdt_log_heard(const char *text)
{
	size_t i, n = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < heard_count; i++)
		n += strstr(heard[i], text) != NULL;
	pthread_mutex_unlock(&lock);
	return n;
}

void tdt_log_expect(const char *text)
{
	pthread_mutex_lock(&lock);
	if (expected_count < LOG_EXPECTED)
		snprintf(expected[expected_count++], sizeof(expected[0]), "%s",
			 text);
	pthread_mutex_unlock(&lock);
}

static size_t kept(void)
{
	return line_count < LOG_LINES ? line_count : LOG_LINES;
}

size_t tdt_log_count(const char *text)
{
	size_t i, n = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < kept(); i++)
		n += strstr(lines[i], text) != NULL;
	pthread_mutex_unlock(&lock);
	return n;
}

const char *tdt_log_unexpected(void)
{
	const char *found = NULL;
	size_t i, k;

	pthread_mutex_lock(&lock);
	for (i = 0; i < kept() && !found; i++) {
		for (k = 0; k < expected_count; k++) {
			if (strstr(lines[i], expected[k]))
				break;
		}
		if (k == expected_count)
			found = lines[i];
	}
	pthread_mutex_unlock(&lock);
	return found;
}

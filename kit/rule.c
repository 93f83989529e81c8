/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a rule ends.
 *
 * Invariant: a result is stored before objects are closed if the rule is broken
 * or not offered, and after it if it held. So a crash while they close breaks a
 * rule that would have held, and changes no other result.
 *
 * No lock: one thread; what the provider does in others is a breach.
 */
#include "kit/rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kit/app.h"
#include "kit/node.h"

struct kit_subject kit_subject;
struct kit_outcome *kit_outcome;

static char breach[KIT_TEXT_BYTES];
static int ending, forgiving;

void kit_step(const char *text, ...)
{
	va_list args;

	va_start(args, text);
	vsnprintf(kit_outcome->step, KIT_TEXT_BYTES, text, args);
	va_end(args);
}

void kit_breach(const char *text, ...)
{
	va_list args;

	if (*breach || forgiving)
		return;
	va_start(args, text);
	vsnprintf(breach, sizeof(breach), text, args);
	va_end(args);
}

void kit_forgive(void)
{
	forgiving = 1;
}

/* Store the result, close, and exit; from within a close: exit alone. */
static __attribute__((noreturn)) void end(enum kit_result result)
{
	if (ending++)
		_exit(0);
	kit_outcome->result = result;
	kit_close_all();
	kit_app_close();
	_exit(0);
}

void kit_broken(const char *text, ...)
{
	va_list args;

	if (kit_outcome->result == KIT_OPEN) {
		va_start(args, text);
		vsnprintf(kit_outcome->text, KIT_TEXT_BYTES, text, args);
		va_end(args);
		kit_outcome->result = KIT_BROKEN;
	}
	end(KIT_BROKEN);
}

void kit_absent(const char *text, ...)
{
	va_list args;

	kit_no_breach();
	va_start(args, text);
	vsnprintf(kit_outcome->text, KIT_TEXT_BYTES, text, args);
	va_end(args);
	end(KIT_ABSENT);
}

void kit_no_breach(void)
{
	if (*breach)
		kit_broken("%s", breach);
}

void kit_return(void)
{
	kit_no_breach();
	kit_close_all();
	kit_app_close();
	kit_no_breach();
	kit_outcome->result = KIT_HELD;
	_exit(0);
}

int64_t kit_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t kit_patience_ms(void)
{
	return (int64_t)kit_subject.seconds * 1000 / 4;
}

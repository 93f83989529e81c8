/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is stopped in a function and killed some instructions later,
 * by ptrace(2). The function is found by its symbol in this program, of which
 * the other process runs another copy.
 */
#ifndef TDT_STEPS_H
#define TDT_STEPS_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The offset in the file's image of the function @name of this program; a
 * compiler may have added a suffix (NAME.part.0). 0: there is none.
 */
uint64_t tdt_symbol(const char *name);

enum tdt_steps_end {
	TDT_STEPS_KILLED,    /* where it was meant to be */
	TDT_STEPS_MISSED,    /* it ended before it got there */
	TDT_STEPS_FORBIDDEN, /* ptrace(2) is refused here */
};

/*
 * Attach to @pid and set the mark @symbol. Calls by one thread: it is the
 * tracer. 0 or -errno.
 */
int tdt_steps_attach(pid_t pid, uint64_t symbol);

/*
 * Let it run until it comes to the mark for the @nth time, then for @steps
 * instructions, then kill it. Returns when it has ended.
 */
enum tdt_steps_end tdt_steps_kill(pid_t pid, unsigned nth, unsigned steps);

#ifdef __cplusplus
}
#endif

#endif /* TDT_STEPS_H */

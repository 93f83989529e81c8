/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of rules. The parent never calls the provider: libfabric is first
 * used behind fork(), so each rule meets a provider that has just been loaded.
 *
 * Invariant: the processes of a rule are one process group, which has ended when
 * kit_run() returns.
 *
 * No lock: one thread.
 */
#include "kit/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void child(const struct kit_rule *rule, const sigset_t *before,
		  pid_t parent)
{
	const struct rlimit none = { 0, 0 };

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setrlimit(RLIMIT_CORE, &none);
	sigprocmask(SIG_SETMASK, before, NULL);
	rule->run();
	kit_return();
}

/* Returns whether @pid ended in time. @chld is blocked. */
static int await(pid_t pid, const sigset_t *chld, int *status)
{
	int64_t until = kit_now_ms() + (int64_t)kit_subject.seconds * 1000;
	int64_t left;

	for (;;) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return 1;
		left = until - kit_now_ms();
		if (left <= 0)
			return 0;
		sigtimedwait(chld, NULL,
			     &(struct timespec){ left / 1000,
						 left % 1000 * 1000000 });
	}
}

static void crashed(struct kit_outcome *o, int status)
{
	char what[64];

	if (WIFSIGNALED(status))
		snprintf(what, sizeof(what), "crashed with SIG%s",
			 sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(what, sizeof(what), "ended with exit status %d",
			 WEXITSTATUS(status));
	o->result = KIT_BROKEN;
	snprintf(o->text, sizeof(o->text), "%s: %.150s", what, o->step);
}

/* A result that was stored stays: what happens then is not what it is about. */
static void judge(struct kit_outcome *o, int in_time, int status)
{
	if (o->result == KIT_HELD && in_time && !status)
		return;
	if (o->result == KIT_BROKEN || o->result == KIT_ABSENT)
		return;
	if (!in_time) {
		o->result = KIT_BROKEN;
		snprintf(o->text, sizeof(o->text), "hung for %u s: %.150s",
			 kit_subject.seconds, o->step);
	} else {
		crashed(o, status);
	}
}

int kit_run(const struct kit_rule *rule, struct kit_outcome *outcome)
{
	sigset_t chld, before;
	int in_time, status = 0;
	pid_t pid, self = getpid();

	kit_outcome = mmap(NULL, sizeof(*kit_outcome), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kit_outcome == MAP_FAILED)
		return -errno;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &before);
	fflush(NULL);
	pid = fork();
	if (!pid)
		child(rule, &before, self);
	if (pid > 0) {
		setpgid(pid, pid);
		in_time = await(pid, &chld, &status);
		kill(-pid, SIGKILL);
		if (!in_time)
			waitpid(pid, &status, 0);
		memcpy(outcome, kit_outcome, sizeof(*outcome));
		judge(outcome, in_time, status);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	munmap(kit_outcome, sizeof(*kit_outcome));
	return pid < 0 ? -errno : 0;
}

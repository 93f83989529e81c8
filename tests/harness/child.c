/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes for the tests: see child.h. The role and the descriptor are
 * passed in the environment (TDT_ROLE, TDT_FD, TDT_ARG).
 */
#include "child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive.h"

enum { ROLES = 32 };

static struct {
	const char *name;
	tdt_role role;
} roles[ROLES];

void tdt_role_add(const char *name, tdt_role role)
{
	size_t i = 0;

	while (i < ROLES && roles[i].name)
		i++;
	if (i == ROLES)
		abort();
	roles[i].name = name;
	roles[i].role = role;
}

int tdt_child_main(void)
{
	const char *name = getenv("TDT_ROLE"), *fd = getenv("TDT_FD");
	size_t i;

	if (!name || !fd)
		return -1;
	for (i = 0; i < ROLES && roles[i].name; i++) {
		if (!strcmp(roles[i].name, name))
			return roles[i].role(atoi(fd), getenv("TDT_ARG"));
	}
	fprintf(stderr, "tests: no role %s\n", name);
	return 127;
}

static void become(const char *program, int fd, const char *role,
		   const char *arg)
{
	char number[16], name[] = "tests";
	char *argv[] = { name, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%d", fd);
	setenv("TDT_ROLE", role, 1);
	setenv("TDT_FD", number, 1);
	if (arg)
		setenv("TDT_ARG", arg, 1);
	else
		unsetenv("TDT_ARG");
	execv(program, argv);
	_exit(126);
}

int tdt_child_start(struct tdt_child *child, const char *role, const char *arg)
{
	return tdt_child_start_copy(child, "/proc/self/exe", role, arg);
}

int tdt_child_start_copy(struct tdt_child *child, const char *program,
			 const char *role, const char *arg)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return -errno;
	child->pid = fork();
	if (child->pid < 0) {
		close(sv[0]);
		close(sv[1]);
		child->pid = 0;
		return -errno;
	}
	if (!child->pid) {
		int fd = dup(sv[1]); /* not close-on-exec */

		become(program, fd, role, arg);
	}
	close(sv[1]);
	child->fd = sv[0];
	return 0;
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void forget(struct tdt_child *child)
{
	close(child->fd);
	child->pid = 0;
	child->fd = -1;
}

void tdt_child_kill(struct tdt_child *child, int sig)
{
	int status;

	if (!child->pid)
		return;
	kill(child->pid, sig);
	if (sig != SIGKILL)
		return;
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	forget(child);
}

int tdt_child_wait(struct tdt_child *child)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	int status = 0;
	pid_t pid;

	for (;;) {
		pid = waitpid(child->pid, &status, WNOHANG);
		if (pid == child->pid)
			break;
		if (tdt_now_ms() > end) {
			tdt_child_kill(child, SIGKILL);
			return -1;
		}
		poll(NULL, 0, 1);
	}
	forget(child);
	return status_of(status);
}

int tdt_tell(int fd, const void *buf, size_t len)
{
	ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

	return n < 0 ? -errno : 0;
}

ssize_t tdt_hear_now(int fd, void *buf, size_t len)
{
	ssize_t n = recv(fd, buf, len, MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

ssize_t tdt_hear(int fd, void *buf, size_t len)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int ret;

	do {
		ret = poll(&p, 1, (int)tdt_deadline_ms());
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	return ret ? tdt_hear_now(fd, buf, len) : -ETIMEDOUT;
}

int tdt_tell_name(int fd, const struct tdt_ep *ep)
{
	struct tdt_name name;

	memset(&name, 0, sizeof(name));
	name.len = ep->namelen;
	memcpy(name.bytes, ep->name, ep->namelen);
	return tdt_tell(fd, &name, sizeof(name));
}

int tdt_hear_name(int fd, struct tdt_ep *ep, fi_addr_t *peer)
{
	struct tdt_name name;

	if (tdt_hear(fd, &name, sizeof(name)) != sizeof(name) ||
	    fi_av_insert(ep->av, name.bytes, 1, peer, 0, NULL) != 1)
		return -1;
	return 0;
}

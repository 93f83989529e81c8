/* SPDX-License-Identifier: BSD-2-Clause */
/* See sever.h. */
#include "sever.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/harness/seeded.h"

/* Is @fd a TCP socket that is connected? */
static int connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer), type_len = sizeof(int);
	int type;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) &&
	       type == SOCK_STREAM &&
	       !getpeername(fd, (struct sockaddr *)&peer, &len) &&
	       (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

int tdt_soak_sever(int pid, uint64_t *random)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int drawn = -1, fd, ret;
	uint64_t n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(e->d_name), 0);
		if (fd < 0)
			continue;
		if (!connected(fd) || tdt_seeded(random, ++n)) {
			close(fd);
			continue;
		}
		if (drawn >= 0)
			close(drawn);
		drawn = fd;
	}
	if (dir)
		closedir(dir);
	if (pidfd >= 0)
		close(pidfd);
	if (drawn < 0)
		return -1;
	/* The kernel resets a connection that is dissolved: connect(2). */
	ret = connect(drawn, &none, sizeof(none));
	close(drawn);
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder of FI_TANDEM_SHM_DIR: see folder.h.
 *
 * A socket outlives its process as a file. connect(2) of a datagram socket tells
 * whether a process has it without a connection that its owner would notice:
 * EPROTOTYPE, it is there, but of another type; ECONNREFUSED, nobody has it.
 *
 * Lock: none; the file system orders what processes do.
 */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

static const char prefix[] = "tandem-";

tdm_static_assert(TDM_FOLDER_NAME_MOST + 1 + sizeof("tandem-6-") - 1 +
				  2 * (sizeof(struct sockaddr_in6) -
				       offsetof(struct sockaddr_in6,
						sin6_port)) <
			  sizeof(((struct sockaddr_un *)0)->sun_path),
		  "names of sockets fit");

static int same_everywhere(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;

	if (sa->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
		       IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
	return ntohl(in->sin_addr.s_addr) >> 24 == 127 ||
	       ntohl(in->sin_addr.s_addr) >> 16 == 0xa9fe;
}

int tdm_folder_serves(const struct sockaddr *sa)
{
	return tdm_env.shm_dir && !same_everywhere(sa);
}

static socklen_t path_of(struct sockaddr_un *un, const char *name)
{
	int n;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	n = snprintf(un->sun_path, sizeof(un->sun_path), "%s/%s",
		     tdm_env.shm_dir, name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n +
			   1);
}

socklen_t tdm_folder_name(struct sockaddr_un *un, const struct sockaddr *sa)
{
	const int v4 = sa->sa_family == AF_INET;
	const unsigned char *byte = (const void *)sa;
	size_t end = v4 ? offsetof(struct sockaddr_in, sin_zero) :
			  sizeof(struct sockaddr_in6);
	char name[sizeof(un->sun_path)];
	size_t n, i;

	n = (size_t)snprintf(name, sizeof(name), "%s%c-", prefix,
			     v4 ? '4' : '6');
	/* port, address and, of IPv6, flow and scope */
	for (i = offsetof(struct sockaddr_in, sin_port); i < end; i++)
		n += (size_t)snprintf(name + n, sizeof(name) - n, "%02x",
				      byte[i]);
	return path_of(un, name);
}

int tdm_folder_has(const struct sockaddr *sa)
{
	struct sockaddr_un un;
	struct stat st;

	if (!tdm_folder_serves(sa))
		return 0;
	tdm_folder_name(&un, sa);
	return !tdm_os.stat(un.sun_path, &st) && S_ISSOCK(st.st_mode);
}

/* Returns why the folder cannot be used, or NULL. */
static const char *fault(void)
{
	const int fd = tdm_os.open_file(tdm_env.shm_dir,
					O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	const char *why = NULL;
	struct stat st;

	if (fd < 0)
		return strerror(errno);
	if (tdm_os.fstat(fd, &st))
		why = strerror(errno);
	else if (st.st_uid != geteuid())
		why = "it belongs to another user";
	else if (st.st_mode & (S_IRWXG | S_IRWXO))
		why = "others have access to it: chmod 700";
	tdm_os.close(fd);
	return why;
}

int tdm_folder_check(void)
{
	static tdm_a32 told;
	const char *why = fault();

	if (!why)
		return 0;
	if (!tdm_a32_load_relaxed(&told))
		tdm_tell_user("FI_TANDEM_SHM_DIR=%s cannot be used: %s",
			      tdm_env.shm_dir, why);
	tdm_a32_store_relaxed(&told, 1);
	return -ENOTDIR;
}

/* Not 0 when no process has bound the socket *@un. */
static int is_stale(const struct sockaddr_un *un)
{
	const int fd = tdm_os.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int stale;

	if (fd < 0)
		return 0;
	stale = tdm_os.connect(fd, (const struct sockaddr *)un, sizeof(*un)) &&
		errno == ECONNREFUSED;
	tdm_os.close(fd);
	return stale;
}

int tdm_folder_reclaim(const struct sockaddr_un *un)
{
	return is_stale(un) ? tdm_os.unlink(un->sun_path) : -1;
}

void tdm_folder_sweep(void)
{
	DIR *dir = opendir(tdm_env.shm_dir);
	struct sockaddr_un un;
	struct dirent *e;
	struct stat st;

	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) ||
		    strlen(tdm_env.shm_dir) + strlen(e->d_name) + 2 >
			    sizeof(un.sun_path))
			continue;
		path_of(&un, e->d_name);
		if (!tdm_os.stat(un.sun_path, &st) && S_ISSOCK(st.st_mode) &&
		    st.st_mtime < time(NULL) - 1)
			(void)!tdm_folder_reclaim(&un);
	}
	if (dir)
		closedir(dir);
}

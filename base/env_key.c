/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key for programs that set none themselves, as those of MPI: in a file that
 * only its owner can read, or in the environment of the job. A key that cannot be
 * used is an error, never the same as none: the endpoint would be open to all.
 *
 * The file is read each time an endpoint is enabled, and its bytes are wiped.
 *
 * Lock: none. Spec: fi_tandem(7), KEYS.
 */
#include "base/env_key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

/* A key, an end of line, and a byte more to see that there is no more. */
enum { FILE_MOST_BYTES = TDM_AUTH_MOST_BYTES + 3 };

static const char bad_size[] = "a key has 16 to 64 bytes";

/* Returns why nobody but this user can be trusted to know what @fd holds, or NULL. */
static const char *exposed(int fd)
{
	struct stat st;

	if (tdm_os.fstat(fd, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is no regular file";
	if (st.st_uid != geteuid())
		return "it belongs to another user";
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return "others have access to it: chmod 600";
	return NULL;
}

/* Read up to @room bytes of @fd to @p. Returns their number, or -errno. */
static ssize_t read_all(int fd, uint8_t *p, size_t room)
{
	size_t got = 0;
	ssize_t n;

	while (got < room) {
		n = tdm_os.read(fd, p + got, room - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Take the key from the @n bytes of a file at @p. Returns why it is none, or NULL. */
static const char *take(const uint8_t *p, size_t n, struct tdm_auth_keys **keys)
{
	if (n && p[n - 1] == '\n')
		n--;
	if (n && p[n - 1] == '\r')
		n--;
	if (!tdm_auth_size_ok(n))
		return bad_size;
	*keys = tdm_auth_one(p, n);
	return *keys ? NULL : strerror(ENOMEM);
}

/* Take the key from the file at @path. Returns why that cannot be, or NULL. */
static const char *from_file(const char *path, struct tdm_auth_keys **keys)
{
	/* O_NONBLOCK: one that is a pipe must not hold up the caller. */
	const int fd = tdm_os.open_file(
		path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	uint8_t bytes[FILE_MOST_BYTES];
	const char *why;
	ssize_t n;

	if (fd < 0)
		return errno == ELOOP ? "it is a symbolic link" :
					strerror(errno);
	why = exposed(fd);
	if (!why) {
		n = read_all(fd, bytes, sizeof(bytes));
		why = n < 0 ? strerror((int)-n) : take(bytes, (size_t)n, keys);
		tdm_auth_wipe(bytes, sizeof(bytes));
	}
	tdm_os.close(fd);
	return why;
}

int tdm_env_key(struct tdm_auth_keys **keys)
{
	const char *path = tdm_env.auth_key_file, *text = tdm_env.auth_key;
	const char *why;

	*keys = NULL;
	if (path) {
		why = from_file(path, keys);
		if (!why)
			return 0;
		tdm_tell_user("FI_TANDEM_AUTH_KEY_FILE=%s cannot be used: %s",
			      path, why);
		return -FI_ENOKEY;
	}
	if (!text)
		return 0;
	if (!tdm_auth_size_ok(strlen(text))) {
		tdm_tell_user("FI_TANDEM_AUTH_KEY cannot be used: %s",
			      bad_size);
		return -FI_ENOKEY;
	}
	*keys = tdm_auth_one(text, strlen(text));
	return *keys ? 0 : -FI_ENOMEM;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Spec: memfd_create(2), fcntl(2) "File Sealing". */
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/os.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int tdm_sealed_seals(int single_writer)
{
	return F_SEAL_SHRINK | F_SEAL_GROW |
	       (single_writer ? F_SEAL_FUTURE_WRITE : 0);
}

/*
 * Linux kills a process that makes a file, memfds included, larger than
 * RLIMIT_FSIZE unless it handles SIGXFSZ.
 */
int tdm_sealed_allowed(size_t bytes)
{
	struct rlimit limit;

	return tdm_os.getrlimit(RLIMIT_FSIZE, &limit) ||
	       limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

static int create(struct tdm_sealed *m, const char *name, size_t bytes,
		  int single_writer)
{
	void *base;
	int fd, ret;

	if (!tdm_sealed_allowed(bytes))
		return -EFBIG;
	fd = tdm_os.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return tdm_os_failed("memfd_create");
	m->fd_plus1 = fd + 1;
	do {
		ret = tdm_os.fallocate(fd, 0, 0, (off_t)bytes);
	} while (ret && errno == EINTR);
	if (ret)
		return tdm_os_failed("fallocate");
	base = tdm_os.mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED)
		return tdm_os_failed("mmap");
	m->base = base;
	m->bytes = bytes;
	if (tdm_os.add_seals(fd, tdm_sealed_seals(single_writer) | F_SEAL_SEAL))
		return tdm_os_failed("fcntl F_ADD_SEALS");
	return 0;
}

int tdm_sealed_create(struct tdm_sealed *m, const char *name, size_t bytes,
		      int single_writer)
{
	int ret;

	memset(m, 0, sizeof(*m));
	ret = create(m, name, bytes, single_writer);
	if (ret)
		tdm_sealed_fini(m);
	return ret;
}

void tdm_sealed_fini(struct tdm_sealed *m)
{
	if (m->fd_plus1)
		tdm_os.close(m->fd_plus1 - 1);
	if (m->base)
		tdm_os.munmap(m->base, m->bytes);
	memset(m, 0, sizeof(*m));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed memory: creating, checking and mapping it.
 *
 * Invariants:
 *  1. Memory is allocated (fallocate) before it is mapped, and seals prevent
 *     that it shrinks or gets holes: no access to a mapping can fail.
 *  2. A single-writer region has one writable mapping, made before the seal; no
 *     process, not even its maker, can make another.
 * Locking: domain lock held by the callers; no shared state here.
 * Spec: memfd_create(2), fcntl(2) "File Sealing", doc/PROTOCOL-shm.md.
 */
#include "shm/region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/os.h"

enum { SEALS_SIZE = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static int seals_of(int single_writer)
{
	return SEALS_SIZE | (single_writer ? F_SEAL_FUTURE_WRITE : 0);
}

/*
 * Linux kills a process that makes a file, memfds included, larger than
 * RLIMIT_FSIZE unless it handles SIGXFSZ.
 */
int tdm_shm_region_allowed(size_t bytes)
{
	struct rlimit limit;

	return tdm_os.getrlimit(RLIMIT_FSIZE, &limit) ||
	       limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

static int create(struct tdm_shm_region *r, const char *name, size_t bytes,
		  int single_writer)
{
	void *base;
	int fd;

	if (!tdm_shm_region_allowed(bytes))
		return -EFBIG;
	fd = tdm_os.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return tdm_os_failed("memfd_create");
	r->fd_plus1 = fd + 1;
	if (tdm_os.fallocate(fd, 0, 0, (off_t)bytes))
		return tdm_os_failed("fallocate");
	base = tdm_os.mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED)
		return tdm_os_failed("mmap");
	r->base = base;
	r->bytes = bytes;
	if (tdm_os.add_seals(fd, seals_of(single_writer)))
		return tdm_os_failed("fcntl F_ADD_SEALS");
	return 0;
}

int tdm_shm_region_create(struct tdm_shm_region *r, const char *name,
			  size_t bytes, int single_writer)
{
	int ret;

	memset(r, 0, sizeof(*r));
	ret = create(r, name, bytes, single_writer);
	if (ret)
		tdm_shm_region_fini(r);
	return ret;
}

int tdm_shm_region_map(struct tdm_shm_region *r, int fd, size_t bytes,
		       int single_writer)
{
	int want = (seals_of(single_writer) & ~F_SEAL_SEAL);
	int prot = PROT_READ | (single_writer ? 0 : PROT_WRITE);
	struct stat st;
	void *base;
	int seals;

	memset(r, 0, sizeof(*r));
	if (tdm_os.fstat(fd, &st))
		return -errno;
	seals = tdm_os.get_seals(fd);
	if (seals < 0 && errno != EINVAL && errno != EBADF)
		return -errno;
	if (seals < 0 || (seals & want) != want || !S_ISREG(st.st_mode) ||
	    st.st_size != (off_t)bytes || (uint64_t)st.st_blocks * 512 < bytes)
		return TDM_SHM_BAD_REGION;
	base = tdm_os.mmap(NULL, bytes, prot, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	r->base = base;
	r->bytes = bytes;
	return 0;
}

void tdm_shm_region_handed(struct tdm_shm_region *r)
{
	if (r->fd_plus1)
		tdm_os.close(r->fd_plus1 - 1);
	r->fd_plus1 = 0;
}

void tdm_shm_region_fini(struct tdm_shm_region *r)
{
	tdm_shm_region_handed(r);
	if (r->base)
		tdm_os.munmap(r->base, r->bytes);
	memset(r, 0, sizeof(*r));
}

int tdm_shm_seg_check(const struct tdm_shm_seg *seg, uint32_t slots,
		      uint32_t gen, const uint8_t incarnation[16])
{
	struct tdm_shm_seg head;

	memcpy(&head, seg, offsetof(struct tdm_shm_seg, pad0));
	if (head.magic != TDM_SHM_MAGIC ||
	    head.version < TDM_SHM_VERSION_LEAST ||
	    head.version > TDM_SHM_VERSION_MOST || head.slots != slots ||
	    head.bytes != tdm_shm_seg_bytes(slots) || head.gen != gen ||
	    memcmp(head.incarnation, incarnation, sizeof(head.incarnation)))
		return -1;
	return 0;
}

void tdm_shm_seg_init(struct tdm_shm_seg *seg, uint32_t slots, uint32_t gen,
		      const uint8_t incarnation[16])
{
	seg->magic = TDM_SHM_MAGIC;
	seg->version = TDM_SHM_VERSION_MOST;
	seg->slots = slots;
	seg->bytes = (uint32_t)tdm_shm_seg_bytes(slots);
	seg->gen = gen;
	memcpy(seg->incarnation, incarnation, sizeof(seg->incarnation));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed memory (base/sealed.h): checking and mapping that of a peer.
 *
 * Locking: domain lock held by the callers; no shared state here.
 * Spec: fcntl(2) "File Sealing", doc/PROTOCOL-shm.md.
 */
#include "shm/region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/os.h"
#include "base/sealed.h"

int tdm_shm_region_allowed(size_t bytes)
{
	return tdm_sealed_allowed(bytes);
}

int tdm_shm_region_create(struct tdm_shm_region *r, const char *name,
			  size_t bytes, int single_writer)
{
	struct tdm_sealed m;
	int ret = tdm_sealed_create(&m, name, bytes, single_writer);

	r->base = m.base;
	r->bytes = m.bytes;
	r->fd_plus1 = m.fd_plus1;
	return ret;
}

int tdm_shm_region_map(struct tdm_shm_region *r, int fd, size_t bytes,
		       int single_writer)
{
	int want = tdm_sealed_seals(single_writer);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file behind a named address vector. See shared.h.
 *
 * Invariants:
 *  1. A user of the file holds a shared flock(2) on it. While a process holds
 *     the exclusive lock, no other uses the file. A file without users is
 *     stale, whatever it contains: it is made again or removed. The kernel
 *     drops the lock of a process that dies.
 *  2. A file is made again or removed under the exclusive lock only; a process
 *     that gets a lock on a removed file starts over. A file with users is
 *     never truncated.
 *  3. One writer at a time: an open file description lock on the first byte,
 *     dropped by the kernel as well. Readers need no lock: a change is complete
 *     when head->gen has its number, and an entry is complete when its checksum
 *     matches.
 *  4. Data beyond the head are copied out of the file before they are used. The
 *     pages of the head are allocated at the start, so that no store to it can
 *     fail.
 *
 * The order of stores: first the element of the array and the entry, by
 * pwrite(2), then, each by a release store, the block's number, end, and gen. A
 * process that has loaded gen and a block's number with acquire gets entries of
 * that age or newer from pread(2).
 *
 * Spec: fi_av(3) name, map_addr, FI_READ.
 */
#include "av/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"

/*
 * An open gives up after other processes have removed the file this many times.
 */
enum { OPEN_TRIES = 100 };

/* ---- bytes of the file --------------------------------------------------- */

static int put_bytes(struct tdm_shared *s, const void *buf, size_t len,
		     uint64_t at)
{
	ssize_t n = tdm_os.pwrite(s->fd, buf, len, (off_t)at);

	if (n == (ssize_t)len)
		return 0;
	return n < 0 && errno == ENOSPC ? -FI_ENOSPC : -FI_EIO;
}

/* Write the array's element of @index: the index, or FI_ADDR_NOTAVAIL. */
static int put_element(struct tdm_shared *s, uint32_t index, int used)
{
	fi_addr_t addr = used ? index : FI_ADDR_NOTAVAIL;

	return put_bytes(s, &addr, sizeof(addr), tdm_shared_array_at(index));
}

static int put_entry(struct tdm_shared *s, uint32_t index,
		     const struct tdm_addr *a)
{
	struct tdm_shared_entry e;

	memset(&e, 0, sizeof(e));
	if (a)
		tdm_shared_encode(&e, a);
	return put_bytes(s, &e, sizeof(e), tdm_shared_entry_at(index));
}

/*
 * Write FI_ADDR_NOTAVAIL to the array's elements of a block that never had an
 * entry.
 */
static int put_none(struct tdm_shared *s, uint32_t block)
{
	fi_addr_t none[TDM_SHARED_BLOCK];
	size_t i;

	for (i = 0; i < TDM_SHARED_BLOCK; i++)
		none[i] = FI_ADDR_NOTAVAIL;
	return put_bytes(s, none, sizeof(none),
			 tdm_shared_array_at(block * TDM_SHARED_BLOCK));
}

int tdm_shared_reserve(struct tdm_shared *s, size_t count)
{
	uint64_t b = tdm_a64_load_relaxed(&s->head->ready), want;
	int ret = 0;

	count = tdm_min(count, (size_t)TDM_SHARED_MOST);
	want = (count + TDM_SHARED_BLOCK - 1) / TDM_SHARED_BLOCK;
	for (; !ret && b < want; b++) {
		ret = put_none(s, (uint32_t)b);
		if (!ret)
			tdm_a64_store_relaxed(&s->head->ready, b + 1);
	}
	return ret;
}

int tdm_shared_read(struct tdm_shared *s, uint32_t block)
{
	ssize_t n = tdm_os.pread(
		s->fd, s->copy, sizeof(s->copy),
		(off_t)tdm_shared_entry_at(block * TDM_SHARED_BLOCK));

	return n == (ssize_t)sizeof(s->copy) ? 0 : -FI_EIO;
}

/* ---- changes ------------------------------------------------------------- */

int tdm_shared_hold(struct tdm_shared *s, short type, int wait)
{
	int ret;

	do {
		ret = tdm_os.file_lock(s->fd, type, wait);
	} while (ret && errno == EINTR);
	if (!ret)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -FI_EAGAIN : -errno;
}

void tdm_shared_release(struct tdm_shared *s)
{
	(void)!tdm_os.file_lock(s->fd, F_UNLCK, 0);
}

static uint64_t begin(struct tdm_shared *s)
{
	uint64_t change = tdm_a64_load_relaxed(&s->head->begun) + 1;

	tdm_a64_store_relaxed(&s->head->begun, change);
	/* If the process dies from here on, begun differs from gen. */
	tdm_fence_full();
	return change;
}

static void complete(struct tdm_shared *s, uint64_t change)
{
	tdm_a64_store_release(&s->head->gen, change);
}

int tdm_shared_put(struct tdm_shared *s, uint32_t index,
		   const struct tdm_addr *a)
{
	uint64_t end = tdm_a64_load_relaxed(&s->head->end), change;
	uint32_t block = index / TDM_SHARED_BLOCK;
	int ret;

	if (index >= TDM_SHARED_MOST)
		return -FI_ENOSPC;
	change = begin(s);
	ret = tdm_shared_reserve(s, (size_t)index + 1);
	if (!ret)
		ret = put_element(s, index, a != NULL);
	if (!ret)
		ret = put_entry(s, index, a);
	if (ret)
		(void)!put_element(s, index, !a);
	tdm_a64_store_release(&s->head->block[block], change);
	if (!ret && a && index >= end)
		tdm_a64_store_release(&s->head->end, index + 1);
	complete(s, change);
	s->block[block] = change;
	s->seen = change;
	return ret;
}

/*
 * Free the invalid entries of @block and write the block's elements of the
 * array anew. Out: *@end is raised past the last valid entry.
 */
static int repair_block(struct tdm_shared *s, uint32_t block, uint64_t *end)
{
	uint32_t first = block * TDM_SHARED_BLOCK, i;
	fi_addr_t element[TDM_SHARED_BLOCK];
	struct tdm_addr a;
	int ret = tdm_shared_read(s, block), used;

	for (i = 0; !ret && i < TDM_SHARED_BLOCK; i++) {
		used = tdm_shared_decode(&s->copy[i], &a);
		element[i] = used > 0 ? first + i : FI_ADDR_NOTAVAIL;
		if (used < 0)
			ret = put_entry(s, first + i, NULL);
		if (used > 0 && first + i >= *end)
			*end = first + i + 1;
	}
	return ret ? ret :
		     put_bytes(s, element, sizeof(element),
			       tdm_shared_array_at(first));
}

int tdm_shared_repair(struct tdm_shared *s)
{
	uint64_t end = tdm_a64_load_relaxed(&s->head->end), change;
	uint32_t b;
	int ret;

	if (end > TDM_SHARED_MOST)
		return -FI_EIO;
	change = begin(s);
	/* An insert that was begun set at most the entry next to the end. */
	for (b = 0; b <= end / TDM_SHARED_BLOCK && b < TDM_SHARED_BLOCKS; b++) {
		ret = repair_block(s, b, &end);
		if (ret)
			return ret;
		tdm_a64_store_release(&s->head->block[b], change);
	}
	tdm_a64_store_release(&s->head->end, end);
	complete(s, change);
	TDM_INFO(AV, "%s: a writer died, %llu entries looked through",
		 s->pathname, (unsigned long long)end);
	return 0;
}

/* ---- opening and closing ------------------------------------------------- */

static int lock_users(int fd, int operation)
{
	int ret;

	do {
		ret = tdm_os.flock(fd, operation);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

/* Write an empty table to a file that has no users. */
static int format_file(struct tdm_shared *s, uint32_t format)
{
	struct tdm_shared_fixed fixed;

	tdm_shared_fixed_init(&fixed, format);
	if (tdm_os.ftruncate(s->fd, 0) ||
	    tdm_os.ftruncate(s->fd, TDM_SHARED_FILE_BYTES) ||
	    tdm_os.fallocate(s->fd, 0, 0, TDM_SHARED_HEAD_BYTES))
		return -errno;
	return put_bytes(s, &fixed, sizeof(fixed), 0);
}

/*
 * Returns 0 when the open file is a plain file of this user, without access for
 * others. Out: *@st. Errors: -FI_EACCES; -FI_EAGAIN: it has been removed.
 */
static int check_file(const struct tdm_shared *s, struct stat *st)
{
	if (tdm_os.fstat(s->fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() ||
	    st->st_mode & (S_IRWXG | S_IRWXO) || st->st_nlink > 1)
		return -FI_EACCES;
	return st->st_nlink ? 0 : -FI_EAGAIN;
}

/*
 * Called when the file has no users: write an empty table, or report (FI_READ)
 * that there is no vector.
 */
static int take_over(struct tdm_shared *s, const struct tdm_shared_attr *attr)
{
	struct stat st;
	int ret = check_file(s, &st);

	if (ret)
		return ret;
	if (!attr->reader)
		ret = format_file(s, attr->format);
	if (attr->reader || ret)
		(void)!tdm_os.unlink(s->pathname);
	return attr->reader ? -FI_ENOENT : ret;
}

/* Become a user of the open file. -FI_EAGAIN: it was removed, open it again. */
static int join(struct tdm_shared *s, const struct tdm_shared_attr *attr)
{
	struct tdm_shared_fixed fixed;
	struct stat st;
	ssize_t n;
	int ret = check_file(s, &st);

	if (ret)
		return ret;
	ret = lock_users(s->fd, LOCK_EX | LOCK_NB);
	if (!ret)
		ret = take_over(s, attr);
	else if (ret == -EWOULDBLOCK)
		ret = 0;
	/* flock(2) drops the exclusive lock before it takes the shared one. */
	if (!ret)
		ret = lock_users(s->fd, LOCK_SH);
	if (!ret)
		ret = check_file(s, &st);
	if (ret)
		return ret;
	memset(&fixed, 0, sizeof(fixed));
	n = tdm_os.pread(s->fd, &fixed, sizeof(fixed), 0);
	if (n < 0)
		return -errno;
	return tdm_shared_fixed_check(&fixed, (uint64_t)st.st_size,
				      attr->format);
}

static int open_path(struct tdm_shared *s, const struct tdm_shared_attr *attr)
{
	int flags = attr->reader ? O_RDONLY : O_RDWR | O_CREAT, ret, i;

	for (i = 0; i < OPEN_TRIES; i++) {
		s->fd = tdm_os.open_file(s->pathname,
					 flags | O_NOFOLLOW | O_CLOEXEC |
						 O_NONBLOCK,
					 S_IRUSR | S_IWUSR);
		if (s->fd < 0)
			return errno == ELOOP || errno == EPERM ||
					       errno == EISDIR ?
				       -FI_EACCES :
				       -errno;
		ret = join(s, attr);
		if (ret != -FI_EAGAIN)
			return ret;
		tdm_os.close(s->fd);
		s->fd = -1;
	}
	return -FI_EBUSY;
}

static void *map(const struct tdm_shared *s, void *at, size_t bytes,
		 off_t offset)
{
	int prot = s->reader || offset ? PROT_READ : PROT_READ | PROT_WRITE;
	int flags = MAP_SHARED | (at ? MAP_FIXED_NOREPLACE : 0);
	void *p = tdm_os.mmap(at, bytes, prot, flags, s->fd, offset);

	if (p == MAP_FAILED)
		return NULL;
	/* A kernel without MAP_FIXED_NOREPLACE treats the address as a hint. */
	return p;
}

static int map_file(struct tdm_shared *s, void *map_addr)
{
	/* Before the head: mapped anywhere, that could take @map_addr. */
	if (map_addr)
		s->array = map(s, map_addr, TDM_SHARED_ARRAY_BYTES,
			       TDM_SHARED_ARRAY);
	if (!s->array)
		s->array =
			map(s, NULL, TDM_SHARED_ARRAY_BYTES, TDM_SHARED_ARRAY);
	s->head = map(s, NULL, TDM_SHARED_HEAD_BYTES, 0);
	return s->array && s->head ? 0 : -FI_ENOMEM;
}

int tdm_shared_open(const struct tdm_shared_attr *attr,
		    struct tdm_shared **shared)
{
	struct tdm_shared *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -FI_ENOMEM;
	s->fd = -1;
	s->reader = attr->reader;
	ret = tdm_shared_pathname(s->pathname, geteuid(), attr->domain,
				  attr->name);
	if (ret)
		goto err;
	ret = open_path(s, attr);
	if (ret)
		goto err;
	ret = map_file(s, attr->map_addr);
	if (ret)
		goto err;
	*shared = s;
	return 0;
err:
	TDM_INFO(AV, "address vector \"%s\", %s: %s", attr->name, s->pathname,
		 fi_strerror(-ret));
	tdm_shared_close(s);
	return ret;
}

void tdm_shared_close(struct tdm_shared *s)
{
	struct stat st;

	if (!s)
		return;
	if (s->head)
		tdm_os.munmap(s->head, TDM_SHARED_HEAD_BYTES);
	if (s->array)
		tdm_os.munmap(s->array, TDM_SHARED_ARRAY_BYTES);
	if (s->fd >= 0) {
		/*
		 * The lock fails unless this is the last user. Check again: the
		 * pathname may name another file by now.
		 */
		if (!lock_users(s->fd, LOCK_EX | LOCK_NB) &&
		    !check_file(s, &st))
			(void)!tdm_os.unlink(s->pathname);
		tdm_os.close(s->fd);
	}
	free(s);
}

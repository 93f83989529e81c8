/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared memory of simulated processes: the kernel's memfd and mmap, behind
 * descriptors of ours. A process that dies keeps its mappings until its objects
 * are closed, but as copies of its own, so that nobody sees what it writes.
 *
 * Locking: none, one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim_file.h"

struct memory {
	struct tds_file f;
	int fd; /* the kernel's */
};

struct mapping {
	struct tdm_list node;
	struct tds_proc *proc;
	void *at;
	size_t len;
	int prot;
};

static struct tdm_list mappings = { &mappings, &mappings };
static unsigned open_mappings;

static unsigned memory_events(struct tds_file *f)
{
	(void)f;
	return POLLIN | POLLOUT;
}

static void memory_close(struct tds_file *f)
{
	tdm_os_system.close(((struct memory *)f)->fd);
	free(f);
}

const struct tds_kind_ops tds_memory_ops = { memory_events, memory_close };

static int s_memfd_create(const char *name, unsigned int flags)
{
	struct memory *m;
	int fd = tdm_os_system.memfd_create(name, flags);

	if (fd < 0)
		return -1;
	m = tds_file_new(TDS_MEMORY, sizeof(*m));
	m->fd = fd;
	return tds_fd_new(&m->f);
}

static int real(int fd)
{
	struct memory *m = tds_kind_of(fd, TDS_MEMORY);

	return m ? m->fd : -1;
}

static int s_fallocate(int fd, int mode, off_t at, off_t len)
{
	return tds_did(tdm_os_system.fallocate(real(fd), mode, at, len));
}

static int s_ftruncate(int fd, off_t len)
{
	return tds_did(tdm_os_system.ftruncate(real(fd), len));
}

static int s_fstat(int fd, struct stat *st)
{
	struct tds_file *f = tds_file_of(fd);

	if (!f)
		return tds_fail(EBADF);
	if (f->kind == TDS_MEMORY)
		return tds_did(tdm_os_system.fstat(real(fd), st));
	memset(st, 0, sizeof(*st));
	if (f->kind == TDS_TCP || f->kind == TDS_UNIX)
		st->st_mode = S_IFSOCK;
	return tds_did(0);
}

static int s_add_seals(int fd, int seals)
{
	return tds_did(tdm_os_system.add_seals(real(fd), seals));
}

static int s_get_seals(int fd)
{
	return tds_did(tdm_os_system.get_seals(real(fd)));
}

static void *s_mmap(void *at, size_t len, int prot, int flags, int fd,
		    off_t offset)
{
	struct mapping *m;
	int from = fd < 0 ? -1 : real(fd);
	void *p;

	if (fd >= 0 && from < 0) {
		tds_fail(EBADF);
		return MAP_FAILED;
	}
	p = tdm_os_system.mmap(at, len, prot, flags, from, offset);
	tds_did(p != MAP_FAILED);
	if (p == MAP_FAILED)
		return p;
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	m->proc = tds_self();
	m->at = p;
	m->len = len;
	m->prot = prot;
	tdm_list_append(&mappings, &m->node);
	open_mappings++;
	return p;
}

static int s_munmap(void *at, size_t len)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &mappings) {
		struct mapping *m = tdm_list_entry(pos, struct mapping, node);

		if (m->at != at)
			continue;
		tdm_list_del(&m->node);
		free(m);
		open_mappings--;
		break;
	}
	return tds_did(tdm_os_system.munmap(at, len));
}

static ssize_t s_process_vm_readv(pid_t pid, const struct iovec *local,
				  unsigned long lcount,
				  const struct iovec *remote,
				  unsigned long rcount, unsigned long flags)
{
	struct tds_proc *p = tds_proc_of(pid);

	if (!p || p->dead)
		return tds_fail(ESRCH);
	if (!tds_weather.cma)
		return tds_fail(EPERM);
	return tds_did((int)tdm_os_system.process_vm_readv(
		getpid(), local, lcount, remote, rcount, flags));
}

void tds_memory_detach(struct tds_proc *proc)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &mappings) {
		struct mapping *m = tdm_list_entry(pos, struct mapping, node);
		void *copy;

		if (m->proc != proc)
			continue;
		copy = malloc(m->len);
		if (!copy)
			abort();
		memcpy(copy, m->at, m->len);
		if (mmap(m->at, m->len, PROT_READ | PROT_WRITE,
			 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED)
			abort();
		memcpy(m->at, copy, m->len);
		free(copy);
	}
}

unsigned tds_open_mappings(void)
{
	return open_mappings;
}

void tds_memory_install(void)
{
	tdm_os.memfd_create = s_memfd_create;
	tdm_os.fallocate = s_fallocate;
	tdm_os.ftruncate = s_ftruncate;
	tdm_os.fstat = s_fstat;
	tdm_os.add_seals = s_add_seals;
	tdm_os.get_seals = s_get_seals;
	tdm_os.mmap = s_mmap;
	tdm_os.munmap = s_munmap;
	tdm_os.process_vm_readv = s_process_vm_readv;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stopping and killing at an instruction: see steps.h. The mark is a breakpoint
 * instruction, which is taken out when it has been met for the last time.
 * Locking: none; one tracer at a time.
 */
#include "steps.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

static struct {
	unsigned long address, word; /* of the mark, and what was there */
} mark;

static int matches(const char *symbol, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(symbol, name, n) && (!symbol[n] || symbol[n] == '.');
}

static uint64_t search(const unsigned char *elf, const char *name)
{
	const Elf64_Ehdr *h = (const void *)elf;
	const Elf64_Shdr *s = (const void *)(elf + h->e_shoff);
	uint64_t found = 0;
	size_t i, k;

	for (i = 0; i < h->e_shnum; i++) {
		const Elf64_Sym *sym = (const void *)(elf + s[i].sh_offset);
		const char *text = (const char *)elf;

		if (s[i].sh_type != SHT_SYMTAB)
			continue;
		text += s[s[i].sh_link].sh_offset;
		for (k = 0; k < s[i].sh_size / sizeof(*sym); k++) {
			if (ELF64_ST_TYPE(sym[k].st_info) == STT_FUNC &&
			    sym[k].st_value &&
			    !strstr(text + sym[k].st_name, ".cold") &&
			    matches(text + sym[k].st_name, name))
				found = sym[k].st_value;
		}
	}
	return found;
}

uint64_t tdt_symbol(const char *name)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t found = 0;
	struct stat st;
	void *elf;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st)) {
		elf = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd,
			   0);
		if (elf != MAP_FAILED) {
			found = search(elf, name);
			munmap(elf, (size_t)st.st_size);
		}
	}
	close(fd);
	return found;
}

/* Where the program begins in the memory of @pid. */
static unsigned long base_of(pid_t pid)
{
	char path[64];
	unsigned long base = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%lx", &base) != 1)
		base = 0;
	fclose(f);
	return base;
}

/* Wait for the next stop; the signal, 0: it has ended. */
static int stopped(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return 0;
	}
	return WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

static int put(pid_t pid, unsigned long word)
{
	return ptrace(PTRACE_POKETEXT, pid, mark.address, word) ? -errno : 0;
}

int tdt_steps_attach(pid_t pid, uint64_t symbol)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) ||
	    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
		return -errno;
	if (!stopped(pid))
		return -ESRCH;
	mark.address = base_of(pid) + symbol;
	errno = 0;
	mark.word =
		(unsigned long)ptrace(PTRACE_PEEKTEXT, pid, mark.address, NULL);
	if (errno)
		return -errno;
	return put(pid, (mark.word & ~0xfful) | 0xcc);
}

/* The process has met the mark: step back to it. */
static void step_back(pid_t pid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		return;
	regs.rip = mark.address;
	ptrace(PTRACE_SETREGS, pid, NULL, &regs);
}

static enum tdt_steps_end kill_there(pid_t pid, enum tdt_steps_end how)
{
	kill(pid, SIGKILL);
	while (stopped(pid))
		;
	return how;
}

/*
 * Run to the mark. A signal of the process is passed on; a stop by
 * PTRACE_INTERRUPT or an event has none.
 */
static int to_mark(pid_t pid)
{
	int sig = 0;

	for (;;) {
		if (ptrace(PTRACE_CONT, pid, NULL, (long)sig))
			return 0;
		sig = stopped(pid);
		if (!sig || sig == SIGTRAP)
			return sig;
	}
}

enum tdt_steps_end tdt_steps_kill(pid_t pid, unsigned nth, unsigned steps)
{
	unsigned i;

	for (i = 1;; i++) {
		if (!to_mark(pid))
			return TDT_STEPS_MISSED;
		step_back(pid);
		put(pid, mark.word);
		if (i == nth)
			break;
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || !stopped(pid))
			return TDT_STEPS_MISSED;
		put(pid, (mark.word & ~0xfful) | 0xcc);
	}
	for (i = 0; i < steps; i++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || !stopped(pid))
			return TDT_STEPS_MISSED;
	}
	return kill_there(pid, TDT_STEPS_KILLED);
}

#else /* the breakpoint instruction and the registers are those of x86-64 */

uint64_t tdt_symbol(const char *name)
{
	(void)name;
	return 1;
}

int tdt_steps_attach(pid_t pid, uint64_t symbol)
{
	(void)pid;
	(void)symbol;
	return -ENOSYS;
}

enum tdt_steps_end tdt_steps_kill(pid_t pid, unsigned nth, unsigned steps)
{
	(void)pid;
	(void)nth;
	(void)steps;
	return TDT_STEPS_FORBIDDEN;
}

#endif

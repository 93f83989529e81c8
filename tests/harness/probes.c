/* SPDX-License-Identifier: BSD-2-Clause */
/* See probes.h. */
#include "probes.h"

#ifdef __x86_64__
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST_PLACES = 256, MOST_HITS = 4096, NOP = 0x90, BREAK = 0xcc };

/* One place of a probe. @args: as the note has them, "8@%rax -4@$5". */
struct place {
	uint8_t *at;
	char name[32];
	char args[128];
};

static struct place places[MOST_PLACES];
static int n_places;
static struct tdt_probe_hit hits[MOST_HITS];
static atomic_size_t n_hits;

struct object {
	const char *module;
	char path[1024];
	uintptr_t base;
};

static int match_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *o = arg;

	(void)size;
	if (!strstr(info->dlpi_name, o->module) ||
	    strlen(info->dlpi_name) >= sizeof(o->path))
		return 0;
	strcpy(o->path, info->dlpi_name);
	o->base = info->dlpi_addr;
	return 1;
}

/* ---- arguments ------------------------------------------------------------ */

/* A register's names by width, 64 to 8 bits, and its place in a ucontext. */
static const struct {
	const char *names;
	int greg;
} registers[] = {
	{ "rax eax ax al", REG_RAX },	   { "rbx ebx bx bl", REG_RBX },
	{ "rcx ecx cx cl", REG_RCX },	   { "rdx edx dx dl", REG_RDX },
	{ "rsi esi si sil", REG_RSI },	   { "rdi edi di dil", REG_RDI },
	{ "rbp ebp bp bpl", REG_RBP },	   { "rsp esp sp spl", REG_RSP },
	{ "r8 r8d r8w r8b", REG_R8 },	   { "r9 r9d r9w r9b", REG_R9 },
	{ "r10 r10d r10w r10b", REG_R10 }, { "r11 r11d r11w r11b", REG_R11 },
	{ "r12 r12d r12w r12b", REG_R12 }, { "r13 r13d r13w r13b", REG_R13 },
	{ "r14 r14d r14w r14b", REG_R14 }, { "r15 r15d r15w r15b", REG_R15 },
};

/* The register that *@text, behind its "%", names; advances *@text. */
static uint64_t reg(const char **text, const greg_t *gregs)
{
	size_t n = strcspn(*text, " ,)"), i;
	const char *name = *text, *w;

	*text += n;
	for (i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		for (w = registers[i].names; *w; w += strspn(w, " ")) {
			if (strcspn(w, " ") == n && !memcmp(w, name, n))
				return (uint64_t)gregs[registers[i].greg];
			w += strcspn(w, " ");
		}
	}
	return 0;
}

/* The value of the operand @text of @size bytes, negative: signed. */
static uint64_t value(const char *text, long size, const greg_t *gregs)
{
	unsigned shift = 64 - 8 * (unsigned)labs(size);
	uint64_t v = 0;
	char *end;

	if (*text == '%') {
		text++;
		v = reg(&text, gregs);
	} else if (*text == '$') {
		v = (uint64_t)strtoll(text + 1, NULL, 0);
	} else {
		v = (uint64_t)strtoll(text, &end, 0);
		text = end;
		if (*text == '(' && text[1] == '%') {
			text += 2;
			v += reg(&text, gregs);
		}
		if (*text == ',' && text[1] == '%') {
			uint64_t index;

			text += 2;
			index = reg(&text, gregs);
			v += index *
			     (*text == ',' ? strtoul(text + 1, NULL, 0) : 1);
		}
		memcpy(&v, (const void *)(uintptr_t)v, (size_t)labs(size));
	}
	v <<= shift;
	return size < 0 ? (uint64_t)((int64_t)v >> shift) : v >> shift;
}

static void on_break(int sig, siginfo_t *info, void *context)
{
	const greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *at = (const uint8_t *)gregs[REG_RIP] - 1;
	struct tdt_probe_hit *h;
	const char *arg;
	char *text;
	size_t n;
	int i;

	(void)sig;
	(void)info;
	for (i = 0; i < n_places && places[i].at != at; i++)
		;
	if (i == n_places)
		abort();
	n = atomic_fetch_add(&n_hits, 1);
	if (n >= MOST_HITS)
		return;
	h = &hits[n];
	h->name = places[i].name;
	h->args = 0;
	for (arg = places[i].args; *arg && h->args < TDT_PROBE_ARGS;) {
		long size = strtol(arg, &text, 10);

		h->arg[h->args++] = value(text + 1, size, gregs);
		arg = text + strcspn(text, " ");
		arg += strspn(arg, " ");
	}
}

/* ---- places --------------------------------------------------------------- */

static int put(uint8_t *at, uint8_t byte)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;

	if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		return -1;
	*at = byte;
	return mprotect((void *)page, 4096, PROT_READ | PROT_EXEC);
}

/* Add the place that the note @desc of @size bytes describes. */
static int add(const uint8_t *desc, size_t size, const char *provider,
	       uintptr_t base)
{
	const char *owner = (const char *)desc + 3 * sizeof(uint64_t);
	const char *name, *args;
	struct place *p = &places[n_places];
	uint64_t pc;

	/* Three addresses, and three strings that end. */
	if (size < 3 * sizeof(uint64_t) + 3 || desc[size - 1])
		return -1;
	name = owner + strlen(owner) + 1;
	args = name + strlen(name) + 1;
	if (strcmp(owner, provider))
		return 0;
	if (n_places == MOST_PLACES)
		return -1;
	memcpy(&pc, desc, sizeof(pc));
	p->at = (uint8_t *)(base + pc);
	if (*p->at != NOP)
		return -1;
	if (strlen(name) >= sizeof(p->name) || strlen(args) >= sizeof(p->args))
		return -1;
	strcpy(p->name, name);
	strcpy(p->args, args);
	n_places++;
	return 0;
}

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Find the places in the @size notes at @p. */
static int walk(const uint8_t *p, size_t size, const char *provider,
		uintptr_t base)
{
	const uint8_t *end = p + size;
	ElfW(Nhdr) n;

	while (p + sizeof(n) <= end) {
		memcpy(&n, p, sizeof(n));
		p += sizeof(n) + padded(n.n_namesz);
		if (add(p, n.n_descsz, provider, base))
			return -1;
		p += padded(n.n_descsz);
	}
	return 0;
}

/* Find the places in the file @elf, which is mapped. */
static int find(const uint8_t *elf, const char *provider, uintptr_t base)
{
	const ElfW(Ehdr) *e = (const void *)elf;
	const ElfW(Shdr) *s = (const void *)(elf + e->e_shoff);
	const char *names = (const char *)elf + s[e->e_shstrndx].sh_offset;
	int i;

	for (i = 0; i < e->e_shnum; i++) {
		if (!strcmp(names + s[i].sh_name, ".note.stapsdt"))
			return walk(elf + s[i].sh_offset, s[i].sh_size,
				    provider, base);
	}
	return 0;
}

static int find_in(const struct object *o, const char *provider)
{
	int fd = open(o->path, O_RDONLY | O_CLOEXEC), ret = -1;
	struct stat st;
	void *elf;

	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	elf = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (elf != MAP_FAILED) {
		ret = find(elf, provider, o->base);
		munmap(elf, (size_t)st.st_size);
	}
	return ret;
}

static struct sigaction before;

int tdt_probes_arm(const char *module, const char *provider)
{
	struct sigaction act = { .sa_sigaction = on_break,
				 .sa_flags = SA_SIGINFO };
	struct object o = { .module = module };
	int i;

	tdt_probes_disarm();
	atomic_store(&n_hits, 0);
	if (!dl_iterate_phdr(match_object, &o) || find_in(&o, provider) ||
	    !n_places || sigaction(SIGTRAP, &act, &before)) {
		i = n_places ? -1 : 0;
		n_places = 0;
		return o.path[0] ? i : -1;
	}
	for (i = 0; i < n_places; i++) {
		if (put(places[i].at, BREAK)) {
			tdt_probes_disarm();
			return -1;
		}
	}
	return n_places;
}

void tdt_probes_disarm(void)
{
	int i;

	/* Names stay in their places, for the hits that were kept. */
	for (i = 0; i < n_places; i++)
		put(places[i].at, NOP);
	if (n_places)
		sigaction(SIGTRAP, &before, NULL);
	n_places = 0;
}

const struct tdt_probe_hit *tdt_probes_hits(size_t *n)
{
	*n = atomic_load(&n_hits);
	if (*n > MOST_HITS)
		*n = MOST_HITS;
	return hits;
}

#else /* another processor */

int tdt_probes_arm(const char *module, const char *provider)
{
	(void)module;
	(void)provider;
	return -1;
}

void tdt_probes_disarm(void)
{
}

const struct tdt_probe_hit *tdt_probes_hits(size_t *n)
{
	*n = 0;
	return NULL;
}

#endif

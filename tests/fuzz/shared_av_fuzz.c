/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a named address vector (av/shared_format.c), which other
 * processes write, fed with anything. An input is a byte that chooses the form,
 * and whether sums are made right, then the bytes of that form: the head of a
 * file, entries, an address to be stored, or the names that make a pathname.
 * What is accepted has what av/shared.c and av/follow.c rely on, and do not
 * check again.
 *
 * Both copy heads and entries out of the file before they are looked at, so no
 * mapping is needed here: each is in memory of exactly its length, aligned as
 * malloc(3) does.
 */
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/shared_format.h"
#include "tests/fuzz/fuzz.h"

enum { FORMS = 4, RIGHT = 4 }; /* of the first byte */

/* ---- heads --------------------------------------------------------------- */

/*
 * All that is mapped, and all that is read and written by an index, is inside
 * the file; the fields are those that a writer of this version stores.
 */
static void head_accepted(const struct tdm_shared_fixed *fixed, uint64_t bytes,
			  uint32_t format)
{
	struct tdm_shared_fixed want;

	tdt_must(bytes == TDM_SHARED_FILE_BYTES);
	tdt_must(sizeof(struct tdm_shared_head) <= tdm_shared_array_at(0));
	tdt_must(tdm_shared_array_at(TDM_SHARED_MOST) <=
		 tdm_shared_entry_at(0));
	tdt_must(tdm_shared_entry_at(TDM_SHARED_MOST) <= bytes);
	tdt_must(fixed->most == TDM_SHARED_MOST &&
		 fixed->block == TDM_SHARED_BLOCK &&
		 fixed->entry_bytes == sizeof(struct tdm_shared_entry));
	tdm_shared_fixed_init(&want, format);
	tdt_must(!memcmp(fixed, &want, sizeof(want)));
}

/* The error says what is wrong. */
static void head_refused(const struct tdm_shared_fixed *fixed, uint64_t bytes,
			 uint32_t format, int ret)
{
	struct tdm_shared_fixed want;

	tdt_must(ret == -FI_EIO || ret == -FI_ENOPROTOOPT || ret == -FI_EINVAL);
	if (ret == -FI_EIO)
		return;
	tdt_must(bytes >= sizeof(*fixed));
	tdm_shared_fixed_init(&want, fixed->format);
	tdt_must(!memcmp(fixed->magic, want.magic, sizeof(want.magic)));
	if (ret == -FI_ENOPROTOOPT)
		tdt_must(fixed->version != TDM_SHARED_VERSION);
	else
		tdt_must(bytes == TDM_SHARED_FILE_BYTES &&
			 fixed->format != format &&
			 !memcmp(fixed, &want, sizeof(want)));
}

/*
 * The size of a file, the address format of the vector, and the file's first
 * bytes. Of a file that is shorter than a head, no more is there.
 */
static void head(const uint8_t *p, size_t n)
{
	struct {
		uint64_t bytes;
		uint32_t format, zero;
	} in;
	struct tdm_shared_fixed *fixed;
	size_t room;
	int ret;

	tdt_take(&in, 12, p, n);
	p += tdm_min(n, (size_t)12);
	n -= tdm_min(n, (size_t)12);
	room = (size_t)tdm_min(in.bytes, (uint64_t)sizeof(*fixed));
	fixed = malloc(room ? room : 1);
	if (!fixed)
		return;
	tdt_take(fixed, room, p, n);
	ret = tdm_shared_fixed_check(fixed, in.bytes, in.format);
	if (ret)
		head_refused(fixed, in.bytes, in.format, ret);
	else
		head_accepted(fixed, in.bytes, in.format);
	free(fixed);
}

/* ---- entries ------------------------------------------------------------- */

/* FNV-1a of all that is before the sum, with the lowest bit set. */
static uint32_t sum_of(const struct tdm_shared_entry *e)
{
	const uint8_t *byte = (const uint8_t *)e;
	uint32_t sum = 0x811c9dc5;
	size_t i;

	for (i = 0; i < sizeof(*e) - sizeof(e->sum); i++)
		sum = (sum ^ byte[i]) * 0x01000193;
	return sum | 1;
}

/*
 * An address that was found is like one that an application passes: of the
 * family that was said, with a port and an IP, without a key, and all unused
 * bytes 0. Its entry is the only one that has it.
 */
static void entry_accepted(const struct tdm_shared_entry *e,
			   const struct tdm_addr *a)
{
	const int family = a->u.sa.sa_family;
	struct tdm_shared_entry again;
	struct tdm_addr b;

	tdt_must(e->sum == sum_of(e));
	tdt_must((e->kind == 4 && family == AF_INET) ||
		 (e->kind == 6 && family == AF_INET6));
	tdt_must(tdm_addr_port(a) && !a->key);
	tdt_must(!tdm_addr_from_sockaddr(&b, &a->u, tdm_addr_len(a)) &&
		 tdm_addr_equal(a, &b));
	tdm_shared_encode(&again, a);
	tdt_must(!memcmp(e, &again, sizeof(again)));
}

static void entry(const uint8_t *p, size_t n, int right)
{
	static const struct tdm_shared_entry none;
	struct tdm_shared_entry *e = malloc(sizeof(*e));
	struct tdm_addr a, before;
	int ret;

	if (!e)
		return;
	tdt_take(e, sizeof(*e), p, n);
	if (right)
		e->sum = sum_of(e);
	memset(&a, 0xa5, sizeof(a));
	memset(&before, 0xa5, sizeof(before));
	ret = tdm_shared_decode(e, &a);
	tdt_must(ret == 1 || ret == 0 || ret == -FI_EIO);
	/* An entry is free if and only if all of it is 0. */
	tdt_must(!ret == !memcmp(e, &none, sizeof(none)));
	if (ret == 1)
		entry_accepted(e, &a);
	else
		tdt_must(tdm_addr_equal(&a, &before));
	free(e);
}

static void entries(const uint8_t *p, size_t n, int right)
{
	size_t one;

	for (; n; p += one, n -= one) {
		one = tdm_min(n, sizeof(struct tdm_shared_entry));
		entry(p, one, right);
	}
}

/* Each address that an application may pass is found as it was stored. */
static void stored(const uint8_t *p, size_t n)
{
	struct tdm_shared_entry e;
	struct tdm_addr a, b;

	if (tdm_addr_from_sockaddr(&a, p, n))
		return;
	tdm_shared_encode(&e, &a);
	tdt_must(tdm_shared_decode(&e, &b) == 1 && tdm_addr_equal(&a, &b));
}

/* ---- names --------------------------------------------------------------- */

/*
 * Returns what follows in @path after @text, each byte of which is itself or
 * %XX.
 */
static const char *after(const char *path, const char *text)
{
	char hex[4];

	for (; *text; text++) {
		snprintf(hex, sizeof(hex), "%%%02X", (unsigned char)*text);
		if (!strncmp(path, hex, 3)) {
			path += 3;
			continue;
		}
		tdt_must(*text == *path && *path != '/' && *path != '.' &&
			 *path != '%');
		path++;
	}
	return path;
}

static size_t escaped_bytes(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += strspn(text, "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-_") ?
			     1 :
			     3;
	return n;
}

/* A name of a file in one folder, that no other vector has; or none fits. */
static void path_of(uint32_t uid, const char *domain, const char *name)
{
	char *path = malloc(TDM_SHARED_PATHNAME_BYTES), front[64];
	const int front_len =
		snprintf(front, sizeof(front), "/dev/shm/tandem-av.%u.", uid);
	const size_t bytes = (size_t)front_len - strlen("/dev/shm/") +
			     escaped_bytes(domain) + 1 + escaped_bytes(name);
	const char *at;

	if (!path)
		return;
	memset(path, '#', TDM_SHARED_PATHNAME_BYTES);
	if (tdm_shared_pathname(path, uid, domain, name)) {
		/* A character may take as much room as one that is escaped. */
		tdt_must(!*name || bytes > 255 - 2);
	} else {
		tdt_must(*name && bytes <= 255);
		tdt_must(!strncmp(path, front, (size_t)front_len));
		at = after(path + front_len, domain);
		tdt_must(*at == '.');
		tdt_must(!*after(at + 1, name));
	}
	free(path);
}

/* A user id, the name of the domain, NUL, and that of the vector. */
static void names(const uint8_t *p, size_t n)
{
	char *domain, *name;
	uint32_t uid;

	tdt_take(&uid, sizeof(uid), p, n);
	p += tdm_min(n, sizeof(uid));
	n -= tdm_min(n, sizeof(uid));
	domain = tdt_text(p, n);
	p += tdm_min(n, strlen(domain) + 1);
	n -= tdm_min(n, strlen(domain) + 1);
	name = tdt_text(p, n);
	path_of(uid, domain, name);
	free(domain);
	free(name);
}

int tdt_fuzz_shared_av(const uint8_t *data, size_t size)
{
	uint8_t *exact;

	if (!size)
		return 0;
	exact = tdt_exact(data + 1, size - 1);
	switch (data[0] % FORMS) {
	case 0:
		head(exact, size - 1);
		break;
	case 1:
		entries(exact, size - 1, data[0] & RIGHT);
		break;
	case 2:
		stored(exact, size - 1);
		break;
	default:
		names(exact, size - 1);
	}
	free(exact);
	return 0;
}

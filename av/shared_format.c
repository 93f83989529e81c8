/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a named address vector: see shared_format.h.
 *
 * An entry has a checksum, since a process may read it while another writes it:
 * a copy with a correct checksum is complete. The checksum does not protect
 * against an attacker, who could only insert addresses, as any user of the file
 * can.
 *
 * No state: no lock. shared.c takes the lock of the file.
 */
#include "av/shared_format.h"

#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

static const uint8_t magic[8] = { 't', 'd', 'm', '-', 'a', 'v', '\r', '\n' };

static int is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/*
 * Write @text at @at, a part of a file name that ends before @end. Returns the new
 * end, or NULL: there is no room.
 */
static char *escape(char *at, const char *end, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (end - at < 4)
			return NULL;
		if (is_plain(*text)) {
			*at++ = *text;
			continue;
		}
		*at++ = '%';
		*at++ = hex[c >> 4];
		*at++ = hex[c & 15];
	}
	return at;
}

int tdm_shared_pathname(char pathname[TDM_SHARED_PATHNAME_BYTES],
			unsigned int uid, const char *domain, const char *name)
{
	static const char folder[] = "/dev/shm/";
	/* A file name has 255 bytes at most. */
	const char *end = pathname + sizeof(folder) - 1 + 256;
	char *at = pathname;

	if (!*name)
		return -FI_EINVAL;
	at += snprintf(pathname, TDM_SHARED_PATHNAME_BYTES, "%standem-av.%u.",
		       folder, uid);
	at = escape(at, end, domain);
	if (at && end - at >= 2) {
		*at++ = '.';
		at = escape(at, end, name);
	} else {
		at = NULL;
	}
	if (!at)
		return -FI_EINVAL;
	*at = '\0';
	return 0;
}

void tdm_shared_fixed_init(struct tdm_shared_fixed *fixed, uint32_t format)
{
	memset(fixed, 0, sizeof(*fixed));
	memcpy(fixed->magic, magic, sizeof(magic));
	fixed->version = TDM_SHARED_VERSION;
	fixed->format = format;
	fixed->most = TDM_SHARED_MOST;
	fixed->block = TDM_SHARED_BLOCK;
	fixed->entry_bytes = sizeof(struct tdm_shared_entry);
}

int tdm_shared_fixed_check(const struct tdm_shared_fixed *fixed, uint64_t bytes,
			   uint32_t format)
{
	struct tdm_shared_fixed want;

	tdm_shared_fixed_init(&want, format);
	if (bytes < sizeof(*fixed) ||
	    memcmp(fixed->magic, magic, sizeof(magic)))
		return -FI_EIO;
	if (fixed->version != want.version)
		return -FI_ENOPROTOOPT;
	if (bytes != TDM_SHARED_FILE_BYTES)
		return -FI_EIO;
	want.format = fixed->format;
	if (memcmp(fixed, &want, sizeof(want)))
		return -FI_EIO;
	return fixed->format == format ? 0 : -FI_EINVAL;
}

/* FNV-1a; never 0. */
static uint32_t sum_of(const struct tdm_shared_entry *e)
{
	const uint8_t *byte = (const uint8_t *)e;
	uint32_t sum = 2166136261u;
	size_t i;

	for (i = 0; i < offsetof(struct tdm_shared_entry, sum); i++)
		sum = (sum ^ byte[i]) * 16777619u;
	return sum | 1;
}

void tdm_shared_encode(struct tdm_shared_entry *e, const struct tdm_addr *a)
{
	memset(e, 0, sizeof(*e));
	if (a->u.sa.sa_family == AF_INET) {
		e->kind = 4;
		e->port = a->u.in.sin_port;
		memcpy(e->ip, &a->u.in.sin_addr, 4);
	} else {
		e->kind = 6;
		e->port = a->u.in6.sin6_port;
		e->scope = a->u.in6.sin6_scope_id;
		memcpy(e->ip, &a->u.in6.sin6_addr, 16);
	}
	e->sum = sum_of(e);
}

int tdm_shared_decode(const struct tdm_shared_entry *e, struct tdm_addr *a)
{
	static const struct tdm_shared_entry none;
	struct tdm_shared_entry again;
	struct tdm_addr raw, found;

	if (!memcmp(e, &none, sizeof(none)))
		return 0;
	if (e->sum != sum_of(e) || (e->kind != 4 && e->kind != 6))
		return -FI_EIO;
	memset(&raw, 0, sizeof(raw));
	if (e->kind == 4) {
		raw.u.in.sin_family = AF_INET;
		raw.u.in.sin_port = e->port;
		memcpy(&raw.u.in.sin_addr, e->ip, 4);
	} else {
		raw.u.in6.sin6_family = AF_INET6;
		raw.u.in6.sin6_port = e->port;
		raw.u.in6.sin6_scope_id = e->scope;
		memcpy(&raw.u.in6.sin6_addr, e->ip, 16);
	}
	/*
	 * The bytes are checked like an address that an application passes;
	 * they must also be those that tdm_shared_encode() would store for it.
	 */
	if (tdm_addr_from_sockaddr(&found, &raw.u, sizeof(raw.u)))
		return -FI_EIO;
	tdm_shared_encode(&again, &found);
	if (memcmp(e, &again, sizeof(again)))
		return -FI_EIO;
	*a = found;
	return 1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of network interfaces; see iflist.h. No state: no lock. */
#include "base/iflist.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

/* One item of a list. */
struct item {
	char text[64];
	sa_family_t family; /* 0: a name */
	uint8_t net[16];    /* a network, or an address: all its bits */
	unsigned bits;
};

/*
 * Returns the value of the decimal number @text, or -1 when it is larger than
 * @most or no number.
 */
static int number(const char *text, unsigned most)
{
	unsigned v = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (unsigned)(*text - '0');
		if (v > most)
			return -1;
	}
	return (int)v;
}

static unsigned family_bits(sa_family_t family)
{
	return family == AF_INET ? 32 : 128;
}

/*
 * Parse the @len bytes at @text into *@item. Returns 0, or -1: @len is too
 * large, or the text has a slash and is not a valid network.
 */
static int read_item(const char *text, size_t len, struct item *item)
{
	char *slash;
	int bits;

	if (len >= sizeof(item->text))
		return -1;
	memcpy(item->text, text, len);
	item->text[len] = '\0';
	slash = strchr(item->text, '/');
	if (slash)
		*slash = '\0';
	item->family = AF_UNSPEC;
	if (inet_pton(AF_INET, item->text, item->net) == 1)
		item->family = AF_INET;
	else if (inet_pton(AF_INET6, item->text, item->net) == 1)
		item->family = AF_INET6;
	item->bits = family_bits(item->family);
	if (!slash)
		return 0;
	bits = item->family ? number(slash + 1, item->bits) : -1;
	if (bits < 0)
		return -1;
	item->bits = (unsigned)bits;
	return 0;
}

static int in_network(const struct item *item, const struct sockaddr *ip)
{
	const void *ip4 = &((const struct sockaddr_in *)ip)->sin_addr;
	const void *ip6 = &((const struct sockaddr_in6 *)ip)->sin6_addr;
	const uint8_t *b = ip->sa_family == AF_INET ? ip4 : ip6;
	unsigned whole = item->bits / 8, more = item->bits % 8;

	if (ip->sa_family != item->family || memcmp(b, item->net, whole) != 0)
		return 0;
	return !more || !((b[whole] ^ item->net[whole]) >> (8 - more));
}

static int means(const struct item *item, const char *name,
		 const struct sockaddr *ip)
{
	return item->family ? in_network(item, ip) :
			      !fnmatch(item->text, name, FNM_CASEFOLD);
}

/*
 * Steps through a list: each call moves *@at to the next item and returns the
 * item's length without separators, 0 at the end. Sets *@except to 1 at the
 * first item that excludes interfaces.
 */
static size_t next_item(const char **at, int *except)
{
	*at += strspn(*at, ", \t");
	if (**at == '^') {
		*except = 1;
		*at += strspn(*at, "^, \t");
	}
	return strcspn(*at, ", \t^");
}

int tdm_iflist_ok(const char *list)
{
	struct item item;
	int except = 0;
	size_t n;

	for (; (n = next_item(&list, &except)); list += n) {
		if (read_item(list, n, &item))
			return 0;
	}
	return 1;
}

unsigned tdm_iflist_place(const char *list, const char *name,
			  const struct sockaddr *ip)
{
	unsigned place = 0, n_wanted = 0;
	struct item item;
	int except = 0;
	size_t n;

	for (; (n = next_item(&list, &except)); list += n) {
		n_wanted += !except;
		if (read_item(list, n, &item) || !means(&item, name, ip))
			continue;
		if (except)
			return 0;
		if (!place)
			place = n_wanted;
	}
	return n_wanted ? place : 1;
}

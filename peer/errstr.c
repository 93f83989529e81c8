/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of an error: see errstr.h. The reasons are those of fi_tandem(7), FAULTS.
 *
 * Lock: none; the caller guards struct tdm_errlast.
 */
#include "peer/errstr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

enum { TEXT_BYTES = 256 };

static _Thread_local char text[TEXT_BYTES];

static const struct {
	int err;
	const char *why;
} reasons[] = {
	{ FI_ECONNRESET, "the peer died or closed its endpoint" },
	{ FI_ESHUTDOWN, "the peer closed its endpoint" },
	{ FI_ECONNREFUSED, "no endpoint answers at this address" },
	{ FI_ETIMEDOUT, "its host does not answer" },
	{ FI_ECONNABORTED, "the address was removed from the address vector, "
			   "or the sender gave the message up" },
	{ FI_ENOPROTOOPT, "the peer speaks another version of the protocol" },
	{ FI_EKEYREJECTED, "the peer does not know the key, or only one "
			   "side uses TLS" },
	{ FI_EACCES, "the target has not granted this key, range or access" },
	{ FI_EHOSTUNREACH, "there is no way to its host" },
	{ FI_ETRUNC, "the message is longer than the buffer" },
	{ FI_EADDRNOTAVAIL, "the source, or the context or group at the "
			    "target, is unknown" },
	{ FI_EOPNOTSUPP, "the peer's version lacks this operation" },
	{ FI_EPROTO, "the peer broke the protocol" },
};

int tdm_errpeer_set(union tdm_errpeer *peer, const void *err_data, size_t len)
{
	sa_family_t family;

	memset(peer, 0, sizeof(*peer));
	if (len != sizeof(peer->in) && len != sizeof(peer->in6))
		return 0;
	memcpy(&family,
	       (const char *)err_data + offsetof(struct sockaddr, sa_family),
	       sizeof(family));
	if (family != (len == sizeof(peer->in) ? AF_INET : AF_INET6))
		return 0;
	memcpy(peer, err_data, len);
	return 1;
}

void tdm_errlast_eq(struct tdm_errlast *last, struct fi_eq_err_entry *to,
		    const struct fi_eq_err_entry *from)
{
	void *buf = to->err_data_size ? to->err_data : NULL;
	size_t n = tdm_min(to->err_data_size, from->err_data_size);

	*to = *from;
	if (buf) {
		if (n)
			memcpy(buf, from->err_data, n);
		to->err_data = buf;
		to->err_data_size = n;
	}
	last->data = to->err_data;
	last->err = from->err;
	last->prov_errno = from->prov_errno;
	tdm_errpeer_set(&last->peer, from->err_data, from->err_data_size);
}

/* Returns where the text ends when @n bytes are added at @at. */
static size_t end(size_t at, int n)
{
	return n < 0 ? at : tdm_min(at + (size_t)n, sizeof(text) - 1);
}

static size_t put_peer(size_t at, const union tdm_errpeer *peer)
{
	char ip[INET6_ADDRSTRLEN] = "";

	if (peer->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &peer->in.sin_addr, ip, sizeof(ip));
		return end(at, snprintf(text + at, sizeof(text) - at, ": %s:%u",
					ip, ntohs(peer->in.sin_port)));
	}
	if (peer->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &peer->in6.sin6_addr, ip, sizeof(ip));
		return end(at,
			   snprintf(text + at, sizeof(text) - at, ": [%s]:%u",
				    ip, ntohs(peer->in6.sin6_port)));
	}
	return at;
}

static void compose(const struct tdm_errlast *last)
{
	size_t at, i;

	at = end(0, snprintf(text, sizeof(text), "%s",
			     fi_strerror(last->prov_errno)));
	at = put_peer(at, &last->peer);
	for (i = 0; i < TDM_ARRAY_LEN(reasons); i++) {
		if (reasons[i].err == last->err)
			snprintf(text + at, sizeof(text) - at, ": %s",
				 reasons[i].why);
	}
}

const char *tdm_errstr(const struct tdm_errlast *last, int prov_errno,
		       const void *err_data, char *buf, size_t len)
{
	const char *says = fi_strerror(prov_errno);

	if (last->err && prov_errno == last->prov_errno &&
	    err_data == last->data) {
		compose(last);
		says = text;
	}
	if (buf && len)
		snprintf(buf, len, "%s", says);
	return says;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See addr.h. No state: no lock. */
#include "shm/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>

#include <rdma/fi_errno.h>

#include "base/os.h"

int tdm_shm_sockaddr_check(const void *sa, size_t len)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (len == sizeof(in)) {
		memcpy(&in, sa, sizeof(in));
		return in.sin_family == AF_INET && in.sin_port ? 0 : -1;
	}
	if (len == sizeof(in6)) {
		memcpy(&in6, sa, sizeof(in6));
		return in6.sin6_family == AF_INET6 && in6.sin6_port ? 0 : -1;
	}
	return -1;
}

int tdm_shm_addr_set(struct tdm_shm_addr *a, const void *sa, size_t len)
{
	if (!sa || tdm_shm_sockaddr_check(sa, len))
		return -FI_EINVAL;
	memset(a, 0, sizeof(*a));
	a->len = (uint32_t)len;
	memcpy(a->sa, sa, len);
	/*
	 * The padding of sockaddr_in, and the flow info, do not distinguish
	 * endpoints.
	 */
	if (len == sizeof(struct sockaddr_in))
		memset(a->sa + offsetof(struct sockaddr_in, sin_zero), 0, 8);
	else
		memset(a->sa + offsetof(struct sockaddr_in6, sin6_flowinfo), 0,
		       4);
	return 0;
}

int tdm_shm_addr_choose(struct tdm_shm_addr *a)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	uint8_t *ip = in.sin6_addr.s6_addr;
	int ret = tdm_os_random(ip, sizeof(in.sin6_addr));

	ip[0] = 0xfd;
	in.sin6_port = htons(1);
	return ret ? ret : tdm_shm_addr_set(a, &in, sizeof(in));
}

const char *tdm_shm_addr_ip(const struct tdm_shm_addr *a, char *buf, size_t len)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (a->len == sizeof(in)) {
		memcpy(&in, a->sa, sizeof(in));
		return inet_ntop(AF_INET, &in.sin_addr, buf, (socklen_t)len);
	}
	memcpy(&in6, a->sa, sizeof(in6));
	return inet_ntop(AF_INET6, &in6.sin6_addr, buf, (socklen_t)len);
}

unsigned tdm_shm_addr_port(const struct tdm_shm_addr *a)
{
	in_port_t port;

	/* The port is at the same offset in both families. */
	memcpy(&port, a->sa + offsetof(struct sockaddr_in, sin_port),
	       sizeof(port));
	return ntohs(port);
}

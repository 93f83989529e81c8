/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of an endpoint: the socket that will listen is bound to the port
 * asked for, or to a free one of FI_TANDEM_PORT_RANGE.
 *
 * Lock: held in all of this file. Spec: fi_tandem(7), FI_TANDEM_PORT_RANGE.
 */
#include "tcp/wire/port.h"

#include <errno.h>

#include <rdma/fi_errno.h>

#include "base/advice.h"
#include "base/env.h"
#include "base/log.h"
#include "tcp/wire/tcp.h"

static int bind_once(int fd, const struct tdm_addr *addr)
{
	return tdm_os.bind(fd, &addr->u.sa, (socklen_t)tdm_addr_len(addr)) ?
		       -errno :
		       0;
}

int tdm_port_reuse(int fd)
{
	int on = 1;

	return tdm_os.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
				 sizeof(on)) ?
		       -errno :
		       0;
}

/*
 * Bind @fd to @addr. The option of tdm_port_reuse() is set only if binding fails without
 * it, and by tdm_tcp_listen() once we listen: of two endpoints that do not
 * listen yet, only one may hold the port.
 */
static int bind_port(int fd, const struct tdm_addr *addr)
{
	int ret = bind_once(fd, addr);

	if (ret != -FI_EADDRINUSE || !tdm_addr_port(addr))
		return ret;
	ret = tdm_port_reuse(fd);
	return ret ? ret : bind_once(fd, addr);
}

/*
 * Not 0 when another port may succeed after the error @ret. EACCES: the port is
 * a privileged one, ip(7).
 */
static int taken(int ret)
{
	return ret == -FI_EADDRINUSE || ret == -FI_EACCES;
}

/*
 * Bind to any free port of the configured range, beginning at a random one; in
 * a second round also to ports that only old connections have.
 */
static int bind_range(struct tdm_tcp *tcp, int fd, struct tdm_addr *addr)
{
	unsigned low = tdm_env.port_low, high = tdm_env.port_high;
	unsigned n = high - low + 1, i, start = tcp->dice % n;
	int ret = -FI_EADDRINUSE;

	for (i = 0; i < 2 * n && taken(ret); i++) {
		tdm_addr_set_port(addr, (uint16_t)(low + (start + i) % n));
		ret = i == n ? tdm_port_reuse(fd) : 0;
		if (!ret)
			ret = bind_once(fd, addr);
	}
	return ret;
}

/* The user can mend a range of ports, the application a port. */
static void tell_unbound(const struct tdm_addr *addr, int ranged, int err)
{
	char text[TDM_ADDR_STR_BYTES];
	const char *where = tdm_addr_text(addr, text, sizeof(text));

	if (ranged)
		TDM_WARN(EP_CTRL,
			 "fi_enable: no port of FI_TANDEM_PORT_RANGE=%u-%u can "
			 "be bound, the last tried is %s: %s: %s",
			 tdm_env.port_low, tdm_env.port_high, where,
			 fi_strerror(-err), tdm_advice(-err));
	else
		TDM_INFO(EP_CTRL, "fi_enable: %s cannot be bound: %s: %s",
			 where, fi_strerror(-err), tdm_advice(-err));
}

int tdm_tcp_bind(struct tdm_tcp *tcp, struct tdm_addr *addr)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	const int ranged = !tdm_addr_port(addr) && tdm_env.port_low &&
			   tdm_env.port_high >= tdm_env.port_low;
	int fd, on = 1, ret;

	tdm_assert_held(tcp->a.engine->lock);
	fd = tdm_os.socket(addr->u.sa.sa_family,
			   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (addr->u.sa.sa_family == AF_INET6)
		tdm_os.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on,
				  sizeof(on));
	ret = ranged ? bind_range(tcp, fd, addr) : bind_port(fd, addr);
	if (!ret && tdm_os.getsockname(fd, (struct sockaddr *)&sa, &len))
		ret = -errno;
	if (!ret)
		ret = tdm_addr_from_bind(addr, &sa, len);
	if (ret) {
		tell_unbound(addr, ranged, ret);
		tdm_os.close(fd);
		return ret;
	}
	if (tcp->listener.fd >= 0)
		tdm_os.close(tcp->listener.fd);
	tcp->listener.fd = fd;
	tcp->addr = *addr;
	return 0;
}

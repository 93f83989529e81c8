/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reno, which every kernel has, does not pace: a control that does, such as bbr, makes
 * long messages within a host take up to three times as long. See
 * doc/adr/0047-congestion-control.md.
 */
#include "base/congestion.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

static const char kernels_own[] = "system";

static int set(int fd, const char *name)
{
	return tdm_os.setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
				 (socklen_t)strlen(name));
}

int tdm_congestion_ok(const char *name)
{
	int fd, ok;

	if (!strcmp(name, kernels_own))
		return 1;
	fd = tdm_os.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = tdm_os.socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 1;
	ok = !set(fd, name);
	tdm_os.close(fd);
	return ok;
}

void tdm_congestion_set(int fd, int is_here)
{
	const char *name = tdm_env.congestion;

	if (!name)
		name = is_here ? "reno" : kernels_own;
	if (strcmp(name, kernels_own) && set(fd, name))
		TDM_DBG(EP_CTRL, "congestion control %s: %s", name,
			fi_strerror(errno));
}

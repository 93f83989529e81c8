/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider entry that libfabric loads, and the composition root: here the
 * parameters are read, and domain.c hands the shared-memory peer to the link.
 *
 * fi_prov_ini() runs under a lock of the libfabric core: it must not call
 * fi_getinfo or anything else that enters the core's initialisation.
 */
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "tcp/domain.h"
#include "tcp/ep.h"
#include "tcp/env.h"
#include "tcp/getinfo.h"
#include "tdm_log.h"
#include "tdm_provider.h"

/* The peer structures of <rdma/providers/fi_peer.h> are those of 2.x. */
enum { OLDEST_MAJOR = 2, OLDEST_MINOR = 1 };

/* libfabric's end, which is that of the process. */
static void prov_cleanup(void)
{
	tdm_report_exit();
}

struct fi_provider tdm_prov = {
	.name = "tandem",
	.version = FI_VERSION(1, 0),
	.getinfo = tdm_getinfo,
	.fabric = tdm_fabric_open,
	.cleanup = prov_cleanup,
};

/* libfabric declares no prototype for what it looks up by name. */
struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	if (FI_VERSION_LT(fi_version(), FI_VERSION(OLDEST_MAJOR, OLDEST_MINOR)))
		return NULL;
	/*
	 * The core hides providers older than the version an application asks
	 * for, so claim the version that is running.
	 */
	tdm_prov.fi_version = fi_version();
	tdm_env_init();
	tdm_fork_init();
	return &tdm_prov;
}

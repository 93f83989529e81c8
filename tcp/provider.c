/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider entry that libfabric loads; the parameters are read here.
 *
 * fi_prov_ini() runs under a lock of the libfabric core: it must not call
 * fi_getinfo or anything else that enters the core's initialisation.
 */
#include "tcp/provider.h"

#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "base/env.h"
#include "base/log.h"
#include "config.h"
#include "tcp/build.h"
#include "tcp/domain.h"
#include "tcp/ep.h"
#include "tcp/fabric.h"
#include "tcp/fork.h"
#include "tcp/getinfo.h"
#include "tcp/report.h"
#include "tcp/tier.h"

/* The structures of <rdma/providers/fi_peer.h> are those of libfabric 2.x. */
enum { OLDEST_MAJOR = 2, OLDEST_MINOR = 1 };

/* Added to the release of a stand-in: above all versions of libfabric's own. */
enum { STAND_IN_MAJOR = 10000 };

/* Called when libfabric is unloaded, at the end of the process. */
static void prov_cleanup(void)
{
	tdm_report_exit();
}

uint32_t tdm_info_protocol(void)
{
	if (!tdm_env.stand_in)
		return TDM_PROTO;
	return strcmp(tdm_env.stand_in, "tcp") ? FI_PROTO_SOCK_TCP :
						 FI_PROTO_XNET;
}

/*
 * Of two providers with one name the core offers that with the higher version;
 * libfabric's own have 100 times its release. The log and the filters of the
 * core use our new name, parameters the name they were defined under.
 */
static void stand_in(void)
{
	if (!tdm_env.stand_in)
		return;
	tdm_prov.name = tdm_env.stand_in;
	tdm_prov.version = FI_VERSION(STAND_IN_MAJOR + TDM_RELEASE_MAJOR,
				      TDM_RELEASE_MINOR);
	TDM_INFO(CORE,
		 "tandem stands in for the provider %s, which is hidden "
		 "(FI_TANDEM_STAND_IN)",
		 tdm_env.stand_in);
}

/* libfabric declares no prototype for what it looks up by name. */
struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	if (FI_VERSION_LT(fi_version(), FI_VERSION(OLDEST_MAJOR, OLDEST_MINOR)))
		return NULL;
	tdm_prov.version = FI_VERSION(TDM_RELEASE_MAJOR, TDM_RELEASE_MINOR);
	tdm_prov.getinfo = tdm_getinfo;
	tdm_prov.fabric = tdm_fabric_open;
	tdm_prov.cleanup = prov_cleanup;
	/*
	 * The core hides providers older than the version an application asks
	 * for, so claim the version that is running.
	 */
	tdm_prov.fi_version = fi_version();
	tdm_env_init();
	tdm_tier_choose();
	TDM_INFO(CORE, "tandem %s on libfabric %u.%u (%s)", PACKAGE_VERSION,
		 FI_MAJOR(fi_version()), FI_MINOR(fi_version()), TDM_BUILD);
	stand_in();
	tdm_fork_init();
	return &tdm_prov;
}

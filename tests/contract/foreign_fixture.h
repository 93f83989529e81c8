/* SPDX-License-Identifier: BSD-2-Clause */
/* Worlds whose foreign peer, FI_TANDEM_LOCAL, is the provider of liar.h. */
#ifndef TDT_FOREIGN_FIXTURE_H
#define TDT_FOREIGN_FIXTURE_H

#include <cstdlib>
#include <string>

#include <rdma/fi_ext.h>

#include "tests/harness/fixture.h"

extern "C" {
#include "base/env.h"
#include "fi_ext_tandem.h"
#include "tcp/tier.h"
struct fi_provider *fi_prov_ini(void);
}

/* The operation has not ended: the provider alone knows how. */
enum { OPEN_END = -1 };

class Foreign : public Case
{
protected:
	const struct tdm_tier_ops *tier = tdm_tier[TDM_TRANSPORT_LOCAL];
	struct tdm_env saved = tdm_env;

	Foreign()
	{
		attr.prov = provider();
		attr.eps = 2;
		attr.no_tcp_only = 1;
		tdm_env.shm = TDM_SHM_AUTO;
		tdm_env.local = "liar";
		tdm_tier[TDM_TRANSPORT_LOCAL] = &tdm_tier_foreign;
		lie("");
	}

	void TearDown() override
	{
		Case::TearDown();
		unsetenv("TANDEM_LIE");
		tdm_env = saved;
		tdm_tier[TDM_TRANSPORT_LOCAL] = tier;
	}

	/*
	 * libfabric begins its list of parameters anew at the first call of an
	 * application, so that comes before tandem defines its own.
	 */
	static struct fi_provider *provider()
	{
		struct fi_param *all;
		int count;

		if (!fi_getparams(&all, &count))
			fi_freeparams(all);
		return fi_prov_ini();
	}

	static void lie(const char *what)
	{
		setenv("TANDEM_LIE", what, 1);
	}

	/* The layout of a receive entry changed with libfabric 2.3. */
	static bool has_liar()
	{
		return FI_VERSION_LT(fi_version(), FI_VERSION(2, 3)) ==
		       FI_VERSION_LT(FI_VERSION(FI_MAJOR_VERSION,
						FI_MINOR_VERSION),
				     FI_VERSION(2, 3));
	}

	std::string reason(size_t of = 1)
	{
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path p = {};

		p.size = sizeof(p);
		EXPECT_EQ(0, fi_open_ops(&ep(of)->ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		EXPECT_EQ(0, ops->path(ep(of)->ep, addr(ep(of), rx()), &p));
		return p.reason_text;
	}

	bool by_liar()
	{
		return reason() == "messages by another provider";
	}

	/* How the operation has ended when the provider has had its passes. */
	int ending(struct tdt_ep *at, const void *context)
	{
		for (int pass = 0; pass < 64; pass++)
			tdt_progress(w);
		for (size_t i = 0; i < at->comp_count; i++) {
			struct tdt_comp c = at->comps[i];

			if (c.context != context)
				continue;
			EXPECT_EQ(0, tdt_wait(at, context, nullptr));
			return c.err;
		}
		return OPEN_END;
	}
};

#endif /* TDT_FOREIGN_FIXTURE_H */

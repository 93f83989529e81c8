/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path the other tests think they are on is the one their messages take:
 * fi_tandem(7), LOCALITY and REPORT.
 */
#include <rdma/fi_ext.h>

#include "fi_ext_tandem.h"
#include "tests/harness/fixture.h"

namespace
{

class Path : public Case
{
protected:
	struct tdm_report_path path(struct tdt_ep *at, fi_addr_t a)
	{
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path p;

		memset(&p, 0, sizeof(p));
		p.size = sizeof(p);
		p.path = 99;
		EXPECT_EQ(0, fi_open_ops(&at->ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		if (ops) {
			EXPECT_LE(sizeof(*ops), ops->size);
			EXPECT_EQ(0, ops->path(at->ep, a, &p));
		}
		return p;
	}

	bool tcp_only(size_t i) const
	{
		return tdt_path() == TDT_REMOTE ||
		       (tdt_path() == TDT_MIXED && i + 1 == w->count);
	}

	void expect_asked_for();
};

void Path::expect_asked_for()
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (size_t i = 0; i < w->count; i++) {
		for (size_t k = 0; k < w->count; k++) {
			if (i == k)
				continue;
			struct tdm_report_path p = path(ep(i), ep(i)->peers[k]);
			uint32_t want = tcp_only(i) || tcp_only(k) ?
						TDM_REPORT_TCP :
						TDM_REPORT_SHM;

			EXPECT_EQ(want, p.path)
				<< i << " to " << k << ": " << p.reason_text;
			EXPECT_EQ(1u, p.tx_msgs);
			EXPECT_EQ(1u, p.rx_msgs);
			EXPECT_EQ(1u, p.tx_bytes);
			EXPECT_EQ(1u, p.rx_bytes);
			EXPECT_EQ(want == TDM_REPORT_SHM, p.reason == 0);
		}
	}
}

TEST_F(Path, IsTheOneAskedFor)
{
	/* fi_tandem(7), LOCALITY: "Two endpoints use shared memory when all of
	 * this holds ... Everything else is reached by TCP." */
	ONLY_TANDEM();
	OK(expect_asked_for());
}

TEST_F(Path, OfDatagramEndpointsIsTheSame)
{
	/* As above: which type they have is not among the conditions. */
	ONLY_TANDEM();
	attr.type = FI_EP_DGRAM;
	OK(expect_asked_for());
}

TEST_F(Path, IsNoneBeforeTheFirstMessage)
{
	/* fi_tandem(7), REPORT: "path.path is 0 (no path was ever agreed)". */
	ONLY_TANDEM();
	OPEN();
	EXPECT_EQ(uint32_t(TDM_REPORT_NONE), path(rx(), 1).path);
}

TEST_F(Path, BadIndexIsEinval)
{
	/* fi_ext_tandem.h: "-FI_EINVAL when addr is not in the address
	 * vector". */
	struct tdm_report_ops *ops = nullptr;
	struct tdm_report_path p;

	p.size = sizeof(p);
	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, fi_open_ops(&rx()->ep->fid, TDM_REPORT_OPS, 0,
				 reinterpret_cast<void **>(&ops), nullptr));
	EXPECT_EQ(-FI_EINVAL, ops->path(rx()->ep, w->count, &p));
	EXPECT_EQ(-FI_EINVAL, ops->path(rx()->ep, FI_ADDR_UNSPEC, &p));
}

} // namespace

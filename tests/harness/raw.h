/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects opened call by call, as an application opens them, for tests of the
 * calls themselves. At the end what was opened is closed: contexts, endpoints,
 * then all else, in reverse order.
 */
#ifndef TDT_RAW_H
#define TDT_RAW_H

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "world.h"

class Raw : public testing::Test
{
protected:
	struct fi_info *hints = nullptr, *info = nullptr;
	struct fid_fabric *fabric = nullptr;
	struct fid_domain *domain = nullptr;
	std::vector<struct fid *> opened;

	void SetUp() override
	{
		renew();
	}

	void TearDown() override
	{
		close_all();
		fi_freeinfo(hints);
		drop();
	}

	void drop()
	{
		if (info)
			fi_freeinfo(info);
		info = nullptr;
	}

	/* Hints that ask for nothing but the provider. */
	void renew()
	{
		if (hints)
			fi_freeinfo(hints);
		hints = fi_allocinfo();
		hints->fabric_attr->prov_name = strdup(tdt_prov_name());
		hints->ep_attr->type = FI_EP_RDM;
	}

	int get(uint32_t version = TDT_API, const char *node = nullptr,
		const char *service = nullptr, uint64_t flags = 0)
	{
		drop();
		return fi_getinfo(version, node, service, flags, hints, &info);
	}

	/* Remember what @fid was opened as. */
	template <typename T> T *keep(T *fid)
	{
		opened.push_back(&fid->fid);
		return fid;
	}

	/* Of which rank an object is when all are closed; the first go first. */
	static int rank(const struct fid *fid)
	{
		switch (fid->fclass) {
		case FI_CLASS_TX_CTX:
		case FI_CLASS_RX_CTX:
			return 0;
		case FI_CLASS_EP:
		case FI_CLASS_SEP:
			return 1;
		default:
			return 2;
		}
	}

	void close_all()
	{
		std::stable_sort(opened.begin(), opened.end(),
				 [](struct fid *a, struct fid *b) {
					 return rank(a) > rank(b);
				 });
		while (!opened.empty()) {
			EXPECT_EQ(0, fi_close(opened.back()));
			opened.pop_back();
		}
		fabric = nullptr;
		domain = nullptr;
	}

	/* Fabric and domain of info. */
	void open_domain()
	{
		ASSERT_NE(nullptr, info);
		ASSERT_EQ(0, fi_fabric(info->fabric_attr, &fabric, nullptr));
		keep(fabric);
		ASSERT_EQ(0, fi_domain(fabric, info, &domain, nullptr));
		keep(domain);
	}

	struct fid_av *av(int rx_ctx_bits = 0)
	{
		struct fi_av_attr attr;
		struct fid_av *fid = nullptr;

		memset(&attr, 0, sizeof(attr));
		attr.rx_ctx_bits = rx_ctx_bits;
		EXPECT_EQ(0, fi_av_open(domain, &attr, &fid, nullptr));
		return keep(fid);
	}

	struct fid_cq *cq(enum fi_cq_format format = FI_CQ_FORMAT_TAGGED)
	{
		struct fi_cq_attr attr;
		struct fid_cq *fid = nullptr;

		memset(&attr, 0, sizeof(attr));
		attr.format = format;
		EXPECT_EQ(0, fi_cq_open(domain, &attr, &fid, nullptr));
		return keep(fid);
	}

	struct fid_cntr *cntr()
	{
		struct fid_cntr *fid = nullptr;

		EXPECT_EQ(0, fi_cntr_open(domain, nullptr, &fid, nullptr));
		return keep(fid);
	}

	/* fi_endpoint(); NULL and a failed test when it is refused. */
	struct fid_ep *endpoint()
	{
		struct fid_ep *ep = nullptr;

		EXPECT_EQ(0, fi_endpoint(domain, info, &ep, nullptr));
		return ep ? keep(ep) : nullptr;
	}
};

#endif /* TDT_RAW_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CQ on a fake engine, with writers and readers whose entries are told
 * apart by one number.
 */
#ifndef TDT_CQ_FIXTURE_H
#define TDT_CQ_FIXTURE_H

#include <gtest/gtest.h>

#include "fake_engine.h"

extern "C" {
#include "peer/cq.h"
#include <rdma/fi_domain.h>
}

namespace tdt
{

inline void *ctx(uint64_t n)
{
	return reinterpret_cast<void *>(n);
}

class CqFixture : public testing::Test
{
protected:
	FakeEngine engine;
	struct tdm_cq *cq = nullptr;
	struct fid_cq *fid = nullptr;
	struct fid_peer_cq *peer = nullptr;

	int open(struct fi_cq_attr attr, int source = 0)
	{
		int ret = tdm_cq_open(&engine.engine, &attr, source, ctx(77),
				      &cq);

		granted = attr;
		if (!ret) {
			fid = tdm_cq_fid(cq);
			peer = tdm_cq_export(cq, TDM_TRANSPORT_TCP);
		}
		return ret;
	}

	void must_open(enum fi_cq_format format, size_t size = 0,
		       enum fi_wait_obj obj = FI_WAIT_NONE, int source = 0)
	{
		struct fi_cq_attr attr = {};

		attr.format = format;
		attr.size = size;
		attr.wait_obj = obj;
		ASSERT_EQ(open(attr, source), 0);
	}

	/* Entry @n, every field told apart. */
	ssize_t write(uint64_t n)
	{
		ssize_t ret = 0;

		engine.locked([&] { ret = write_held(n); });
		return ret;
	}

	ssize_t write_held(uint64_t n)
	{
		return peer->owner_ops->write(peer, ctx(n), n + 1, n + 2,
					      ctx(n + 3), n + 4, n + 5, n + 6);
	}

	ssize_t write_err(uint64_t n, void *data = nullptr, size_t len = 0)
	{
		struct fi_cq_err_entry e = {};
		ssize_t ret = 0;

		e.op_context = ctx(n);
		e.flags = FI_RECV;
		e.err = FI_ECANCELED;
		e.prov_errno = static_cast<int>(n);
		e.olen = 9;
		e.src_addr = 5;
		e.err_data = data;
		e.err_data_size = len;
		engine.locked(
			[&] { ret = peer->owner_ops->writeerr(peer, &e); });
		return ret;
	}

	/* Read one entry of format CONTEXT; the context or the error. */
	int64_t next()
	{
		struct fi_cq_entry e = {};
		ssize_t ret = fi_cq_read(fid, &e, 1);

		return ret == 1 ? reinterpret_cast<int64_t>(e.op_context) : ret;
	}

	void TearDown() override
	{
		if (fid) {
			EXPECT_EQ(fi_close(&fid->fid), 0);
		}
	}

	struct fi_cq_attr granted = {};
};

} // namespace tdt

#endif /* TDT_CQ_FIXTURE_H */

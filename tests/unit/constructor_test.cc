/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every constructor that an application can call, with one of its allocations
 * after the other failing: -FI_ENOMEM, or an object that works without what
 * failed, and nothing left behind that keeps its domain from being closed.
 */
#include <functional>

#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

extern "C" {
#include "base/env.h"
#include "tests/harness/fault.h"
struct fi_provider *fi_prov_ini(void);
}

namespace
{

class Constructor : public Case
{
protected:
	struct tdm_env saved = tdm_env;

	Constructor()
	{
		tdt_log_expect("");
		tdm_env.shm = TDM_SHM_AUTO;
		attr.prov = fi_prov_ini();
		attr.eps = 2;
		attr.no_tcp_only = 1;
		attr.caps |= FI_RMA | FI_NAMED_RX_CTX;
	}

	void SetUp() override
	{
		if (!tdt_alloc_can_fail())
			GTEST_SKIP() << "linked without --wrap=malloc";
		OPEN();
	}

	/* The domain has come to no harm. */
	void TearDown() override
	{
		if (w) {
			EXPECT_EQ(0, tdt_warm_up(w));
		}
		Case::TearDown();
		tdm_env = saved;
	}

	/*
	 * @make the object again and again until no allocation is left to
	 * fail; @undo what it made.
	 */
	void each(const std::function<int()> &make,
		  const std::function<void()> &undo, unsigned least = 1)
	{
		unsigned nth = 1, failed;

		do {
			tdt_alloc_fail(nth, 0);
			int ret = make();
			failed = tdt_alloc_stop();

			if (!ret)
				undo();
			else
				ASSERT_EQ(-FI_ENOMEM, ret) << nth;
			ASSERT_TRUE(failed || !ret) << nth;
		} while (failed && ++nth < 1000);
		EXPECT_FALSE(failed);
		EXPECT_LT(least, nth);
	}

	/* The same for an object that only has to be closed. */
	template <typename F>
	void object(const std::function<int(F **)> &make, unsigned least = 1)
	{
		F *f = nullptr;

		each([&] { return make(&f); },
		     [&] {
			     EXPECT_EQ(0, fi_close(&f->fid));
			     f = nullptr;
		     },
		     least);
	}

	struct fid_domain *domain()
	{
		return rx()->domain;
	}

	struct fi_info *contexts(size_t n)
	{
		struct fi_info *i = fi_dupinfo(w->info);

		i->ep_attr->tx_ctx_cnt = n;
		i->ep_attr->rx_ctx_cnt = n;
		return i;
	}
};

TEST_F(Constructor, Domain)
{
	object<struct fid_domain>([&](struct fid_domain **d) {
		return fi_domain(w->fabric, w->info, d, nullptr);
	});
}

TEST_F(Constructor, DomainWithAKey)
{
	struct fi_info *i = fi_dupinfo(w->info);

	i->domain_attr->auth_key_size = 16;
	i->domain_attr->auth_key =
		reinterpret_cast<uint8_t *>(strdup("sixteen bytes ok"));
	object<struct fid_domain>(
		[&](struct fid_domain **d) {
			return fi_domain(w->fabric, i, d, nullptr);
		},
		2);
	fi_freeinfo(i);
}

TEST_F(Constructor, DomainWithAThread)
{
	struct fi_info *i = fi_dupinfo(w->info);

	i->domain_attr->control_progress = FI_PROGRESS_AUTO;
	i->domain_attr->data_progress = FI_PROGRESS_AUTO;
	object<struct fid_domain>(
		[&](struct fid_domain **d) {
			return fi_domain(w->fabric, i, d, nullptr);
		},
		2);
	fi_freeinfo(i);
}

TEST_F(Constructor, Queues)
{
	for (enum fi_wait_obj obj : { FI_WAIT_NONE, FI_WAIT_FD }) {
		struct fi_cq_attr cq = {};
		struct fi_cntr_attr cntr = {};
		struct fi_eq_attr eq = {};

		cq.wait_obj = cntr.wait_obj = eq.wait_obj = obj;
		object<struct fid_cq>([&](struct fid_cq **q) {
			return fi_cq_open(domain(), &cq, q, nullptr);
		});
		object<struct fid_cntr>([&](struct fid_cntr **c) {
			return fi_cntr_open(domain(), &cntr, c, nullptr);
		});
		object<struct fid_eq>([&](struct fid_eq **q) {
			return fi_eq_open(w->fabric, &eq, q, nullptr);
		});
	}
}

TEST_F(Constructor, Sets)
{
	object<struct fid_poll>([&](struct fid_poll **p) {
		struct fi_poll_attr a = {};

		return domain()->ops->poll_open(domain(), &a, p);
	});
	object<struct fid_wait>([&](struct fid_wait **s) {
		struct fi_wait_attr a = {};

		a.wait_obj = FI_WAIT_UNSPEC;
		return w->fabric->ops->wait_open(w->fabric, &a, s);
	});
}

TEST_F(Constructor, AddressVectorAndRegion)
{
	static char buf[64];

	object<struct fid_av>([&](struct fid_av **v) {
		struct fi_av_attr a = {};

		return fi_av_open(domain(), &a, v, nullptr);
	});
	object<struct fid_mr>([&](struct fid_mr **m) {
		return fi_mr_reg(domain(), buf, sizeof(buf), FI_REMOTE_READ, 0,
				 0, 0, m, nullptr);
	});
	object<struct fid_mr>(
		[&](struct fid_mr **m) {
			static uint8_t key[] = "a secret of some length";
			struct iovec v = { buf, sizeof(buf) };
			struct fi_mr_attr a = {};

			a.mr_iov = &v;
			a.iov_count = 1;
			a.auth_key = key;
			a.auth_key_size = sizeof(key);
			return fi_mr_regattr(domain(), &a, 0, m);
		},
		3);
}

TEST_F(Constructor, SharedContexts)
{
	object<struct fid_ep>([&](struct fid_ep **s) {
		return fi_srx_context(domain(), w->info->rx_attr, s, nullptr);
	});
	object<struct fid_stx>([&](struct fid_stx **s) {
		return fi_stx_context(domain(), w->info->tx_attr, s, nullptr);
	});
}

TEST_F(Constructor, Aliases)
{
	object<struct fid_ep>([&](struct fid_ep **a) {
		return fi_ep_alias(rx()->ep, a,
				   FI_TRANSMIT | FI_DELIVERY_COMPLETE);
	});
}

TEST_F(Constructor, ScalableEndpoints)
{
	struct fi_info *i = contexts(3);

	object<struct fid_ep>(
		[&](struct fid_ep **s) {
			return fi_scalable_ep(domain(), i, s, nullptr);
		},
		4);
	fi_freeinfo(i);
}

TEST_F(Constructor, Contexts)
{
	struct fi_info *i = contexts(3);
	struct fid_ep *sep;

	ASSERT_EQ(0, fi_scalable_ep(domain(), i, &sep, nullptr));
	object<struct fid_ep>([&](struct fid_ep **c) {
		return fi_tx_context(sep, 1, nullptr, c, nullptr);
	});
	object<struct fid_ep>([&](struct fid_ep **c) {
		return fi_rx_context(sep, 2, nullptr, c, nullptr);
	});
	EXPECT_EQ(0, fi_close(&sep->fid));
	fi_freeinfo(i);
}

/* Opened, bound and enabled, as one act. */
TEST_F(Constructor, EnabledEndpoint)
{
	struct fid_ep *e = nullptr;
	struct fid_eq *eq;

	ASSERT_EQ(0, fi_eq_open(w->fabric, nullptr, &eq, nullptr));
	auto undo = [&] {
		EXPECT_EQ(0, fi_close(&e->fid));
		e = nullptr;
	};
	each(
		[&] {
			int ret = fi_endpoint(domain(), w->info, &e, nullptr);

			if (ret)
				return ret;
			(void)(!(ret = fi_ep_bind(e, &rx()->av->fid, 0)) &&
			       !(ret = fi_ep_bind(e, &eq->fid, 0)) &&
			       !(ret = fi_ep_bind(e, &rx()->tx_cq->fid,
						  FI_TRANSMIT)) &&
			       !(ret = fi_ep_bind(e, &rx()->rx_cq->fid,
						  FI_RECV)) &&
			       !(ret = fi_enable(e)));
			if (ret)
				undo();
			return ret;
		},
		undo, 5);
	EXPECT_EQ(0, fi_close(&eq->fid));
}

/* With its receive side in a shared context. */
TEST_F(Constructor, EnabledEndpointOfSharedContexts)
{
	struct fi_info *i = contexts(FI_SHARED_CONTEXT);
	struct fid_ep *srx, *e = nullptr;
	struct fid_stx *stx;

	ASSERT_EQ(0, fi_srx_context(domain(), i->rx_attr, &srx, nullptr));
	ASSERT_EQ(0, fi_stx_context(domain(), i->tx_attr, &stx, nullptr));
	auto undo = [&] {
		EXPECT_EQ(0, fi_close(&e->fid));
		e = nullptr;
	};
	each(
		[&] {
			int ret = fi_endpoint(domain(), i, &e, nullptr);

			if (ret)
				return ret;
			(void)(!(ret = fi_ep_bind(e, &rx()->av->fid, 0)) &&
			       !(ret = fi_ep_bind(e, &srx->fid, 0)) &&
			       !(ret = fi_ep_bind(e, &stx->fid, 0)) &&
			       !(ret = fi_ep_bind(e, &rx()->tx_cq->fid,
						  FI_TRANSMIT)) &&
			       !(ret = fi_ep_bind(e, &rx()->rx_cq->fid,
						  FI_RECV)) &&
			       !(ret = fi_enable(e)));
			if (ret)
				undo();
			return ret;
		},
		undo, 4);
	EXPECT_EQ(0, fi_close(&srx->fid));
	EXPECT_EQ(0, fi_close(&stx->fid));
	fi_freeinfo(i);
}

/* With one context each way. */
TEST_F(Constructor, EnabledScalableEndpoint)
{
	struct fi_info *i = contexts(2);
	struct fid_ep *sep = nullptr, *tx = nullptr, *rxc = nullptr;
	auto undo = [&] {
		for (struct fid_ep **f : { &tx, &rxc, &sep }) {
			if (*f) {
				EXPECT_EQ(0, fi_close(&(*f)->fid));
			}
			*f = nullptr;
		}
	};

	each(
		[&] {
			int ret;

			(void)(!(ret = fi_scalable_ep(domain(), i, &sep,
						      nullptr)) &&
			       !(ret = fi_scalable_ep_bind(sep, &rx()->av->fid,
							   0)) &&
			       !(ret = fi_tx_context(sep, 0, nullptr, &tx,
						     nullptr)) &&
			       !(ret = fi_rx_context(sep, 0, nullptr, &rxc,
						     nullptr)) &&
			       !(ret = fi_ep_bind(tx, &rx()->tx_cq->fid,
						  FI_TRANSMIT)) &&
			       !(ret = fi_ep_bind(rxc, &rx()->rx_cq->fid,
						  FI_RECV)) &&
			       !(ret = fi_enable(tx)) &&
			       !(ret = fi_enable(rxc)) &&
			       !(ret = fi_enable(sep)));
			if (ret)
				undo();
			return ret;
		},
		undo, 6);
	fi_freeinfo(i);
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the whole of tandem offers to another owner, and which imports it refuses:
 * fi_tandem(7), BELOW ANOTHER OWNER; fi_peer(3).
 */
#include "whole_side.h"

namespace
{

class WholeOpen : public testing::Test
{
protected:
	struct fi_info *h = nullptr, *info = nullptr;
	struct fid_fabric *fabric = nullptr;
	struct fid_domain *domain = nullptr;
	struct fid_peer_cq pcq = {};
	struct fid_peer_cntr pcntr = {};
	struct fid_peer_srx psrx = {};
	struct fi_ops_cq_owner cq_ops = {};
	struct fi_ops_cntr_owner cntr_ops = {};
	struct fi_ops_srx_owner srx_ops = {};

	void SetUp() override
	{
		pcq.owner_ops = &cq_ops;
		pcntr.owner_ops = &cntr_ops;
		psrx.owner_ops = &srx_ops;
		h = whole::hints();
	}

	void TearDown() override
	{
		if (domain) {
			EXPECT_EQ(0, fi_close(&domain->fid));
		}
		if (fabric) {
			EXPECT_EQ(0, fi_close(&fabric->fid));
		}
		fi_freeinfo(info);
		fi_freeinfo(h);
	}

	int ask()
	{
		fi_freeinfo(info);
		info = nullptr;
		return tdm_getinfo(fi_version(), nullptr, nullptr, 0, h, &info);
	}

	void open_domain()
	{
		ASSERT_EQ(0, ask());
		ASSERT_EQ(0,
			  tdm_fabric_open(info->fabric_attr, &fabric, nullptr));
		fabric->api_version = fi_version();
		ASSERT_EQ(0, fi_domain(fabric, info, &domain, nullptr));
	}

	struct fid_ep *import_srx()
	{
		struct fi_peer_srx_context ctx = { sizeof(ctx), &psrx };
		struct fi_rx_attr attr = {};
		struct fid_ep *srx = nullptr;

		attr.op_flags = FI_PEER;
		EXPECT_EQ(0, fi_srx_context(domain, &attr, &srx, &ctx));
		memset(&ctx, 0xff, sizeof(ctx)); /* it is the caller's again */
		return srx;
	}
};

TEST_F(WholeOpen, OffersWhatOwnersAskFor)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER 1. fi_getinfo(3) 2.1, FI_PEER. */
	ASSERT_EQ(0, ask());
	EXPECT_EQ(nullptr, info->next);
	EXPECT_NE(0u, info->caps & FI_PEER);
	EXPECT_NE(0u, info->caps & FI_AV_USER_ID);
	EXPECT_NE(0u, info->domain_attr->caps & FI_PEER);
	EXPECT_NE(0u, info->domain_attr->caps & FI_AV_USER_ID);
	EXPECT_EQ(0u, info->caps & (FI_TRIGGER | FI_NAMED_RX_CTX));
	EXPECT_EQ(4u, info->tx_attr->iov_limit);
	EXPECT_EQ(4u, info->rx_attr->iov_limit);
	h->tx_attr->iov_limit = h->rx_attr->iov_limit = 8;
	h->caps |= FI_TAGGED;
	ASSERT_EQ(0, ask());
	EXPECT_EQ(8u, info->rx_attr->iov_limit);
	EXPECT_EQ(uint64_t(FI_TAGGED),
		  info->caps & (FI_MSG | FI_TAGGED | FI_RMA));
	h->caps &= ~FI_PEER;
	ASSERT_EQ(0, ask());
	EXPECT_EQ(0u, info->caps & FI_PEER);
	EXPECT_EQ(0u, info->domain_attr->caps & FI_PEER);
}

TEST_F(WholeOpen, RefusesWhatAnOwnerCannotHave)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER 2. */
	const uint64_t caps = h->caps;

	for (uint64_t more : { FI_TRIGGER, FI_NAMED_RX_CTX,
			       FI_SOURCE | FI_SOURCE_ERR, FI_COLLECTIVE }) {
		h->caps = caps | FI_TAGGED | more;
		EXPECT_EQ(-FI_ENODATA, ask()) << more;
	}
	h->caps = caps;
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	EXPECT_EQ(-FI_ENODATA, ask());
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->max_group_id = 3;
	EXPECT_EQ(-FI_ENODATA, ask());
	h->domain_attr->max_group_id = 0;
	h->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	EXPECT_EQ(-FI_ENODATA, ask());
}

TEST_F(WholeOpen, DomainNeedsAnOwnersDomain)
{
	/* fi_peer(3) 2.1, PEER DOMAIN 3: With FI_PEER, the context of fi_domain2
	 * is a fi_peer_domain_context. */
	struct fi_ops_domain ops = {};
	struct fi_ops_mr mr_ops = {};
	struct fid_domain own = {};
	struct fi_peer_domain_context ctx = { sizeof(ctx), &own };
	struct fid_domain *d = nullptr;

	open_domain();
	EXPECT_EQ(-FI_EINVAL, fi_domain2(fabric, info, &d, FI_PEER, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_domain2(fabric, info, &d, FI_PEER, &ctx))
		<< "a domain without calls";
	own.ops = &ops;
	own.mr = &mr_ops;
	ctx.size--;
	EXPECT_EQ(-FI_EINVAL, fi_domain2(fabric, info, &d, FI_PEER, &ctx));
	ctx.size++;
	EXPECT_EQ(-FI_EINVAL,
		  fi_domain2(fabric, info, &d, FI_PEER | FI_READ, &ctx));
	ASSERT_EQ(0, fi_domain2(fabric, info, &d, FI_PEER, &ctx));
	EXPECT_EQ(0, fi_close(&d->fid));
	info->caps &= ~FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_domain2(fabric, info, &d, FI_PEER, &ctx))
		<< "the info is not that of a peer";
}

TEST_F(WholeOpen, QueueNeedsAContext)
{
	/* fi_peer(3) 2.1, PEER CQ 3 and 6. */
	struct fi_peer_cq_context ctx = { sizeof(ctx), &pcq };
	struct fi_cq_attr attr = {};
	struct fi_cq_tagged_entry e = {};
	struct fi_cq_err_entry err = {};
	struct fid_cq *cq = nullptr;
	fi_addr_t src;

	open_domain();
	attr.flags = FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_cq_open(domain, &attr, &cq, nullptr));
	ctx.size--;
	EXPECT_EQ(-FI_EINVAL, fi_cq_open(domain, &attr, &cq, &ctx));
	ctx.size++;
	ctx.cq = nullptr;
	EXPECT_EQ(-FI_EINVAL, fi_cq_open(domain, &attr, &cq, &ctx));
	ctx.cq = &pcq;
	attr.wait_obj = FI_WAIT_MUTEX_COND;
	EXPECT_EQ(-FI_ENOSYS, fi_cq_open(domain, &attr, &cq, &ctx));
	attr.wait_obj = FI_WAIT_NONE;
	ctx.size += 100; /* a later version's */
	ASSERT_EQ(0, fi_cq_open(domain, &attr, &cq, &ctx));
	memset(&ctx, 0xff, sizeof(ctx));
	EXPECT_EQ(0, fi_cq_read(cq, nullptr, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_readfrom(cq, &e, 1, &src));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_readerr(cq, &err, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_sread(cq, &e, 1, nullptr, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_signal(cq));
	EXPECT_EQ(0, fi_close(&cq->fid));
}

TEST_F(WholeOpen, CounterNeedsAContext)
{
	/* fi_peer(3) 2.1, PEER COUNTER 1 and 3. */
	struct fi_peer_cntr_context ctx = { sizeof(ctx), &pcntr };
	struct fi_cntr_attr attr = {};
	struct fid_cntr *cntr = nullptr;

	open_domain();
	attr.flags = FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_cntr_open(domain, &attr, &cntr, nullptr));
	ctx.size--;
	EXPECT_EQ(-FI_EINVAL, fi_cntr_open(domain, &attr, &cntr, &ctx));
	ctx.size++;
	attr.flags |= FI_READ;
	EXPECT_EQ(-FI_EINVAL, fi_cntr_open(domain, &attr, &cntr, &ctx));
	attr.flags = FI_PEER;
	attr.wait_obj = FI_WAIT_MUTEX_COND;
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_open(domain, &attr, &cntr, &ctx));
	attr.wait_obj = FI_WAIT_NONE;
	ASSERT_EQ(0, fi_cntr_open(domain, &attr, &cntr, &ctx));
	EXPECT_EQ(0u, fi_cntr_read(cntr));
	EXPECT_EQ(uint64_t(-FI_ENOSYS), fi_cntr_readerr(cntr));
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_set(cntr, 1));
	EXPECT_EQ(-FI_ENOSYS, fi_cntr_wait(cntr, 1, 0));
	EXPECT_EQ(0, fi_close(&cntr->fid));
}

TEST_F(WholeOpen, QueuesWaitOnADescriptor)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER: FI_WAIT_FD gives a descriptor on
	 * which an owner can sleep, fi_trywait(3). */
	struct fi_peer_cq_context ctx = { sizeof(ctx), &pcq };
	struct fi_cq_attr attr = {};
	struct fid_cq *cq = nullptr;
	struct fid *fid;
	int fd = -1;

	open_domain();
	attr.flags = FI_PEER;
	attr.wait_obj = FI_WAIT_FD;
	ASSERT_EQ(0, fi_cq_open(domain, &attr, &cq, &ctx));
	EXPECT_EQ(0, fi_control(&cq->fid, FI_GETWAIT, &fd));
	EXPECT_GE(fd, 0);
	fid = &cq->fid;
	EXPECT_EQ(0, fi_trywait(fabric, &fid, 1));
	EXPECT_EQ(0, fi_close(&cq->fid));
}

TEST_F(WholeOpen, EventQueueNeedsAContext)
{
	/* fi_peer(3) 2.1, PEER EQ 3. */
	struct fi_ops_eq ops = {};
	struct fid_eq own = {};
	struct fi_peer_eq_context ctx = { sizeof(ctx), &own };
	struct fi_eq_attr attr = {};
	struct fi_eq_entry e;
	struct fid_eq *eq = nullptr;
	struct fid *fid;
	uint32_t event;

	open_domain();
	attr.flags = FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_eq_open(fabric, &attr, &eq, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_eq_open(fabric, &attr, &eq, &ctx))
		<< "a queue without calls";
	own.ops = &ops;
	ctx.size--;
	EXPECT_EQ(-FI_EINVAL, fi_eq_open(fabric, &attr, &eq, &ctx));
	ctx.size++;
	ASSERT_EQ(0, fi_eq_open(fabric, &attr, &eq, &ctx));
	EXPECT_EQ(-FI_ENOSYS, fi_eq_read(eq, &event, &e, sizeof(e), 0));
	EXPECT_EQ(-FI_ENOSYS, fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0));
	fid = &eq->fid;
	EXPECT_EQ(-FI_EINVAL, fi_trywait(fabric, &fid, 1));
	EXPECT_EQ(-FI_EINVAL, fi_domain_bind(domain, &eq->fid, 0));
	EXPECT_EQ(0, fi_close(&eq->fid));
}

TEST_F(WholeOpen, AddressVectorReportsToNoLentQueue)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER: no peer AV; and the errors of
	 * FI_EVENT cannot be written to the queue of another owner. */
	struct fi_ops_eq ops = {};
	struct fid_eq own = {};
	struct fi_peer_eq_context ctx = { sizeof(ctx), &own };
	struct fi_eq_attr eq_attr = {};
	struct fi_av_attr attr = {};
	struct fid_av *av = nullptr;
	struct fid_eq *eq = nullptr;

	own.ops = &ops;
	open_domain();
	attr.flags = FI_PEER;
	EXPECT_NE(0, fi_av_open(domain, &attr, &av, nullptr));
	eq_attr.flags = FI_PEER;
	ASSERT_EQ(0, fi_eq_open(fabric, &eq_attr, &eq, &ctx));
	attr.flags = FI_EVENT;
	ASSERT_EQ(0, fi_av_open(domain, &attr, &av, nullptr));
	EXPECT_EQ(-FI_EINVAL, av->fid.ops->bind(&av->fid, &eq->fid, 0));
	EXPECT_EQ(0, fi_close(&av->fid));
	EXPECT_EQ(0, fi_close(&eq->fid));
}

TEST_F(WholeOpen, ReceiveContextNeedsAContext)
{
	/* fi_peer(3) 2.1, PEER SRX 2: the peer sets peer_ops before the call
	 * returns, and receives are the owner's. */
	struct fi_peer_srx_context ctx = { sizeof(ctx), &psrx };
	struct fi_rx_attr attr = {};
	struct fid_ep *srx = nullptr;
	char buf;

	open_domain();
	attr.op_flags = FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_srx_context(domain, &attr, &srx, nullptr));
	ctx.size--;
	EXPECT_EQ(-FI_EINVAL, fi_srx_context(domain, &attr, &srx, &ctx));
	ctx.size++;
	psrx.owner_ops = nullptr;
	EXPECT_EQ(-FI_EINVAL, fi_srx_context(domain, &attr, &srx, &ctx));
	psrx.owner_ops = &srx_ops;
	srx = import_srx();
	ASSERT_NE(nullptr, srx);
	ASSERT_NE(nullptr, psrx.peer_ops);
	EXPECT_EQ(sizeof(*psrx.peer_ops), psrx.peer_ops->size);
	EXPECT_EQ(-FI_ENOSYS, fi_recv(srx, &buf, 1, nullptr, 0, nullptr));
	EXPECT_EQ(-FI_ENOSYS,
		  fi_trecv(srx, &buf, 1, nullptr, 0, 0, 0, nullptr));
	EXPECT_EQ(-FI_EBUSY, fi_close(&domain->fid));
	EXPECT_EQ(0, fi_close(&srx->fid));
}

TEST_F(WholeOpen, ReceiveContextHasOneEndpoint)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER: one endpoint for each context, and
	 * one context for each endpoint; receives are posted to the owner. */
	struct fid_ep *ep = nullptr, *other = nullptr, *srx, *second;
	char buf;

	open_domain();
	srx = import_srx();
	second = import_srx();
	ASSERT_EQ(0, fi_endpoint(domain, info, &ep, nullptr));
	ASSERT_EQ(0, fi_endpoint(domain, info, &other, nullptr));
	ASSERT_EQ(0, fi_ep_bind(ep, &srx->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_ep_bind(ep, &second->fid, 0));
	EXPECT_EQ(-FI_EBUSY, fi_ep_bind(other, &srx->fid, 0));
	EXPECT_NE(0, fi_recv(ep, &buf, 1, nullptr, 0, nullptr));
	EXPECT_EQ(0, fi_close(&ep->fid));
	EXPECT_EQ(-FI_EBUSY, fi_ep_bind(other, &srx->fid, 0))
		<< "its owner may still have messages of the first";
	EXPECT_EQ(0, fi_close(&other->fid));
	EXPECT_EQ(0, fi_close(&srx->fid));
	EXPECT_EQ(0, fi_close(&second->fid));
}

TEST_F(WholeOpen, ApplicationsImportNothing)
{
	/* fi_tandem(7), BELOW ANOTHER OWNER 1: without FI_PEER in fi_getinfo(3),
	 * nothing is imported. */
	struct fi_peer_cq_context cq_ctx = { sizeof(cq_ctx), &pcq };
	struct fi_peer_cntr_context cntr_ctx = { sizeof(cntr_ctx), &pcntr };
	struct fi_peer_srx_context srx_ctx = { sizeof(srx_ctx), &psrx };
	struct fi_cntr_attr cntr_attr = {};
	struct fi_cq_attr cq_attr = {};
	struct fi_rx_attr rx_attr = {};
	struct fid_cntr *cntr = nullptr;
	struct fid_ep *srx = nullptr;
	struct fid_cq *cq = nullptr;

	h->caps = 0;
	open_domain();
	cq_attr.flags = cntr_attr.flags = rx_attr.op_flags = FI_PEER;
	EXPECT_EQ(-FI_EINVAL, fi_cq_open(domain, &cq_attr, &cq, &cq_ctx));
	EXPECT_EQ(-FI_EINVAL,
		  fi_cntr_open(domain, &cntr_attr, &cntr, &cntr_ctx));
	EXPECT_EQ(-FI_EINVAL, fi_srx_context(domain, &rx_attr, &srx, &srx_ctx));
}

} // namespace

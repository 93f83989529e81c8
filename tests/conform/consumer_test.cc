/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hints of programs that use libfabric, one by one, and the objects they
 * open with the answer, in their order. Each row of the table is one program,
 * or one of its ways to ask; requests that cannot be granted are in the table,
 * too.
 *
 * fi_getinfo(3) 2.1, DESCRIPTION 6: hints that are not zero are met or nothing
 * is returned. fi_tandem(7), LIMITATIONS: device memory is not offered.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/raw.h"

namespace
{

constexpr int BASIC = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
constexpr uint64_t ATOMIC_ORDER = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
				  FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
constexpr uint64_t BOTH_WAYS = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr auto VERSION_1_0 = FI_VERSION(1, 0);

class Consumers;

struct Consumer {
	const char *name;
	uint32_t version;
	void (*ask)(struct fi_info *h);
	void (*open)(Consumers *t); /* NULL: must be refused */
};

class Consumers : public Raw, public testing::WithParamInterface<Consumer>
{
public:
	/* Endpoint and queue before the address vector, or after it. */
	void plain(uint64_t flags, enum fi_cq_format format)
	{
		struct fid_ep *ep = endpoint();

		ASSERT_NE(nullptr, ep);
		EXPECT_EQ(0, fi_ep_bind(ep, &cq(format)->fid, flags));
		finish(ep);
	}

	/* A queue for each direction. */
	void two_queues(uint64_t tx_flags, enum fi_cq_format format)
	{
		struct fid_ep *ep = endpoint();

		ASSERT_NE(nullptr, ep);
		EXPECT_EQ(0, fi_ep_bind(ep, &cq(format)->fid, tx_flags));
		EXPECT_EQ(0, fi_ep_bind(ep, &cq(format)->fid, FI_RECV));
		finish(ep);
	}

	/* Its AV, enabled, and in its own AV. */
	void finish(struct fid_ep *ep, int rx_ctx_bits = 0)
	{
		struct fid_av *vector = av(rx_ctx_bits);

		EXPECT_EQ(0, fi_ep_bind(ep, &vector->fid, 0));
		EXPECT_EQ(0, fi_enable(ep));
		insert(ep, vector);
	}

	void insert(struct fid_ep *ep, struct fid_av *vector)
	{
		fi_addr_t self = FI_ADDR_NOTAVAIL;
		char name[64];
		size_t len = 0;

		EXPECT_EQ(-FI_ETOOSMALL, fi_getname(&ep->fid, nullptr, &len));
		ASSERT_GE(sizeof(name), len);
		EXPECT_EQ(0, fi_getname(&ep->fid, name, &len));
		EXPECT_EQ(1, fi_av_insert(vector, name, 1, &self, 0, nullptr));
		EXPECT_NE(FI_ADDR_NOTAVAIL, self);
	}

	/* @mem registered for all that is said to be done to it. */
	void reg(uint64_t access)
	{
		struct fi_mr_attr attr;
		struct iovec iov = { mem, sizeof(mem) };
		struct fid_mr *mr = nullptr;

		memset(&attr, 0, sizeof(attr));
		attr.mr_iov = &iov;
		attr.iov_count = 1;
		attr.access = access;
		attr.iface = FI_HMEM_SYSTEM;
		EXPECT_EQ(0, fi_mr_regattr(domain, &attr, 0, &mr));
		if (mr)
			keep(mr);
	}

	/* Scalable, @n contexts each way with a queue for both. */
	void scalable(size_t n, int bits, uint64_t caps, bool whole_first)
	{
		struct fid_ep *sep = nullptr, *tx = nullptr, *rx = nullptr;
		struct fid_av *vector = av(bits);
		std::vector<struct fid_ep *> parts;

		info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = n;
		ASSERT_EQ(0, fi_scalable_ep(domain, info, &sep, nullptr));
		keep(sep);
		EXPECT_EQ(0, fi_scalable_ep_bind(sep, &vector->fid, 0));
		for (size_t i = 0; i < n; i++) {
			struct fi_tx_attr ta = *info->tx_attr;
			struct fi_rx_attr ra = *info->rx_attr;
			struct fid_cq *queue = cq();
			int at = static_cast<int>(i);

			ta.caps |= caps;
			ra.caps |= caps;
			ASSERT_EQ(0, fi_tx_context(sep, at, &ta, &tx, nullptr));
			parts.push_back(keep(tx));
			ASSERT_EQ(0, fi_rx_context(sep, at, &ra, &rx, nullptr));
			parts.push_back(keep(rx));
			EXPECT_EQ(0, fi_ep_bind(tx, &queue->fid, FI_SEND));
			EXPECT_EQ(0, fi_ep_bind(rx, &queue->fid, FI_RECV));
		}
		if (whole_first) {
			EXPECT_EQ(0, fi_enable(sep));
		}
		for (struct fid_ep *part : parts)
			EXPECT_EQ(0, fi_enable(part));
		if (!whole_first) {
			EXPECT_EQ(0, fi_enable(sep));
		}
		insert(sep, vector);
	}

	/* One-sided only: contexts of other attributes, none for receives. */
	void one_sided_contexts()
	{
		struct fid_ep *sep = nullptr, *tx = nullptr, *rx = nullptr;
		struct fid_av *vector = av();
		struct fi_tx_attr ta;
		struct fi_rx_attr ra;

		memset(&ta, 0, sizeof(ta));
		memset(&ra, 0, sizeof(ra));
		ta.op_flags = FI_DELIVERY_COMPLETE;
		info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
		ASSERT_EQ(0, fi_scalable_ep(domain, info, &sep, nullptr));
		keep(sep);
		EXPECT_EQ(0, fi_scalable_ep_bind(sep, &vector->fid, 0));
		ASSERT_EQ(0, fi_tx_context(sep, 0, &ta, &tx, nullptr));
		keep(tx);
		ASSERT_EQ(0, fi_rx_context(sep, 0, &ra, &rx, nullptr));
		keep(rx);
		EXPECT_EQ(0, fi_ep_bind(tx, &cq(FI_CQ_FORMAT_CONTEXT)->fid,
					FI_TRANSMIT));
		EXPECT_EQ(0, fi_enable(tx));
		EXPECT_EQ(0, fi_enable(rx));
		EXPECT_EQ(0, fi_enable(sep));
		insert(sep, vector);
		reg(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
	}

	/* A target, and an endpoint that sends through a shared context. */
	void target_and_context()
	{
		constexpr uint64_t target = FI_RMA | FI_ATOMIC |
					    FI_REMOTE_READ | FI_REMOTE_WRITE;
		constexpr uint64_t own = FI_RMA | FI_WRITE | FI_READ |
					 FI_ATOMIC | FI_RECV;
		uint64_t op_flags = info->tx_attr->op_flags;
		struct fid_av *vector = av();
		struct fid_stx *stx = nullptr;
		struct fid_ep *ep;

		info->caps = target | FI_WRITE | FI_READ | FI_RECV;
		info->tx_attr->caps = FI_RMA | FI_ATOMIC;
		info->rx_attr->caps = info->caps;
		info->tx_attr->op_flags = 0;
		info->mode = 0;
		ep = endpoint();
		ASSERT_NE(nullptr, ep);
		EXPECT_EQ(0, fi_ep_bind(ep, &vector->fid, 0));
		EXPECT_EQ(0, fi_ep_bind(ep, &cq(FI_CQ_FORMAT_CONTEXT)->fid,
					FI_TRANSMIT | FI_RECV));
		EXPECT_EQ(0, fi_enable(ep));
		reg(FI_REMOTE_READ | FI_REMOTE_WRITE);

		info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
		info->caps = own;
		info->tx_attr->caps = own;
		info->rx_attr->caps = FI_RECV;
		info->tx_attr->op_flags = op_flags;
		ASSERT_EQ(0,
			  fi_stx_context(domain, info->tx_attr, &stx, nullptr));
		keep(stx);
		ep = endpoint();
		ASSERT_NE(nullptr, ep);
		EXPECT_EQ(0, fi_ep_bind(ep, &stx->fid, 0));
		EXPECT_EQ(0, fi_ep_bind(ep, &cntr()->fid, FI_WRITE));
		EXPECT_EQ(0, fi_ep_bind(ep, &cntr()->fid, FI_READ));
		EXPECT_EQ(0, fi_ep_bind(ep, &cq(FI_CQ_FORMAT_CONTEXT)->fid,
					FI_SELECTIVE_COMPLETION | FI_TRANSMIT |
						FI_RECV));
		EXPECT_EQ(0, fi_ep_bind(ep, &vector->fid, 0));
		EXPECT_EQ(0, fi_enable(ep));
		insert(ep, vector);
	}

	void run()
	{
		const Consumer &c = GetParam();

		ONLY_TANDEM();
		c.ask(hints);
		if (!c.open) {
			EXPECT_EQ(-FI_ENODATA, get(c.version));
			return;
		}
		ASSERT_EQ(0, get(c.version));
		if (c.version == VERSION_1_0) {
			EXPECT_NE(0, info->domain_attr->mr_mode);
		}
		open_domain();
		ASSERT_NE(nullptr, domain);
		c.open(this);
	}

private:
	char mem[8192];
};

/* ---- what they ask --------------------------------------------------------- */

void mpich(struct fi_info *h)
{
	h->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA | FI_CONTEXT2;
	h->caps = FI_RMA | FI_WRITE | FI_READ | FI_REMOTE_WRITE |
		  FI_REMOTE_READ | FI_ATOMIC | FI_DIRECTED_RECV | FI_TAGGED |
		  FI_MSG | FI_MULTI_RECV | FI_NAMED_RX_CTX;
	h->domain_attr->cq_data_size = 4;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = FI_AV_TABLE;
	h->domain_attr->mr_mode = FI_MR_ENDPOINT;
	h->domain_attr->mode = FI_RESTRICTED_COMP;
	h->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	h->tx_attr->msg_order = FI_ORDER_SAS | ATOMIC_ORDER;
	h->rx_attr->msg_order = FI_ORDER_SAS;
	h->rx_attr->op_flags = FI_COMPLETION;
	h->ep_attr->mem_tag_format = 0x7fffffff;
}

void ompi_mtl(struct fi_info *h)
{
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->caps = FI_MSG | FI_TAGGED | BOTH_WAYS | FI_DIRECTED_RECV;
	h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
	h->tx_attr->op_flags = h->rx_attr->op_flags = FI_COMPLETION;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->cq_data_size = 4;
	h->domain_attr->av_type = FI_AV_MAP;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->mr_mode = FI_MR_ALLOCATED;
}

void ompi_btl(struct fi_info *h)
{
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->caps = FI_RMA | FI_ATOMIC;
	h->domain_attr->mr_mode = BASIC | FI_MR_ENDPOINT;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->tx_attr->iov_limit = h->rx_attr->iov_limit = 1;
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
	h->rx_attr->op_flags = FI_COMPLETION;
}

void sos(struct fi_info *h)
{
	h->caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->mr_key_size = 1;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	h->tx_attr->inject_size = sizeof(long double);
}

void gasnet(struct fi_info *h)
{
	h->caps = FI_RMA | FI_MSG | FI_MULTI_RECV;
	h->mode = FI_CONTEXT;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->mr_mode = FI_MR_ENDPOINT | BASIC;
}

void chapel(struct fi_info *h)
{
	h->caps = FI_MSG | FI_MULTI_RECV | FI_RMA | BOTH_WAYS;
	h->tx_attr->op_flags = FI_COMPLETION;
	h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = FI_AV_TABLE;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				  FI_MR_PROV_KEY | FI_MR_ENDPOINT;
}

void nccl(struct fi_info *h)
{
	h->caps = BOTH_WAYS | FI_TAGGED | FI_MSG;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | BASIC;
	h->domain_attr->mr_key_size = 2;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
}

void mercury(struct fi_info *h)
{
	h->mode = FI_ASYNC_IOV | FI_CONTEXT;
	h->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV |
		  FI_MULTI_RECV;
	h->tx_attr->op_flags = FI_INJECT_COMPLETE;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->mr_mode = BASIC | FI_MR_LOCAL | FI_MR_ENDPOINT;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->tx_attr->size = 4096;
	h->rx_attr->size = 512;
	h->addr_format = FI_SOCKADDR_IN;
}

void ccl(struct fi_info *h)
{
	h->mode = FI_CONTEXT;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->caps = FI_TAGGED;
}

void lci(struct fi_info *h)
{
	h->domain_attr->mr_mode = BASIC | FI_MR_LOCAL | FI_MR_ENDPOINT;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->tx_attr->inject_size = 64;
	h->caps = FI_RMA | FI_MSG;
}

void charm(struct fi_info *h)
{
	h->mode = FI_CONTEXT;
	h->domain_attr->mode = ~0ull;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->caps = FI_TAGGED | FI_RMA | FI_REMOTE_READ;
}

void nixl(struct fi_info *h)
{
	h->caps = FI_MSG | FI_RMA | BOTH_WAYS;
	h->mode = FI_CONTEXT;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_HMEM | BASIC;
	h->domain_attr->mr_key_size = 2;
	h->domain_attr->threading = FI_THREAD_COMPLETION;
}

void adios2(struct fi_info *h)
{
	h->caps = FI_MSG | FI_SEND | FI_RECV | FI_REMOTE_READ |
		  FI_REMOTE_WRITE | FI_RMA | FI_READ | FI_WRITE;
	/* 1 << 55: FI_LOCAL_MR, of the API before 1.5. */
	h->mode = FI_CONTEXT | 1ull << 55 | FI_CONTEXT2 | FI_MSG_PREFIX |
		  FI_ASYNC_IOV | FI_RX_CQ_DATA;
	h->domain_attr->mr_mode = 1; /* FI_MR_BASIC */
	h->domain_attr->control_progress = FI_PROGRESS_AUTO;
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
}

void device_memory(struct fi_info *h)
{
	h->caps |= FI_HMEM;
	h->domain_attr->mr_mode |= FI_MR_HMEM;
}

constexpr auto ALL = FI_TRANSMIT | FI_RECV;

/* clang-format off */
const Consumer consumers[] = {
	{ "Sos", FI_VERSION(1, 5), sos,
	  [](Consumers *t) { t->target_and_context(); } },
	{ "SosBasicRegions", FI_VERSION(1, 5),
	  [](struct fi_info *h) {
		  sos(h);
		  h->caps &= ~FI_RMA_EVENT;
		  h->domain_attr->mr_mode = BASIC;
	  },
	  [](Consumers *t) { t->target_and_context(); } },
	{ "SosFence", FI_VERSION(1, 5),
	  [](struct fi_info *h) {
		  sos(h);
		  h->caps |= FI_FENCE;
		  h->domain_attr->mr_mode = FI_MR_RMA_EVENT;
		  h->domain_attr->threading = FI_THREAD_COMPLETION;
	  },
	  [](Consumers *t) { t->target_and_context(); } },
	{ "Mpich", FI_VERSION(1, 14), mpich,
	  [](Consumers *t) {
		  t->plain(ALL | FI_SELECTIVE_COMPLETION,
			   FI_CQ_FORMAT_TAGGED);
	  } },
	{ "MpichScalable", FI_VERSION(1, 14),
	  [](struct fi_info *h) {
		  mpich(h);
		  h->domain_attr->threading = FI_THREAD_COMPLETION;
	  },
	  [](Consumers *t) { t->scalable(2, 4, 0, true); } },
	{ "MpichTriggered", FI_VERSION(1, 14),
	  [](struct fi_info *h) {
		  mpich(h);
		  h->caps |= FI_TRIGGER | FI_RMA_EVENT | FI_RECV | FI_SEND;
		  h->domain_attr->mr_mode |= FI_MR_RMA_EVENT;
		  h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	  },
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_TAGGED); } },
	{ "OpenMpiMtl", FI_VERSION(1, 18), ompi_mtl,
	  [](Consumers *t) {
		  t->plain(ALL | FI_SELECTIVE_COMPLETION,
			   FI_CQ_FORMAT_TAGGED);
	  } },
	{ "OpenMpiBtl", FI_VERSION(1, 18), ompi_btl,
	  [](Consumers *t) { t->one_sided_contexts(); } },
	{ "OpenMpiBtlWithMessages", FI_VERSION(1, 18),
	  [](struct fi_info *h) {
		  ompi_btl(h);
		  h->caps |= FI_MSG;
	  },
	  [](Consumers *t) { t->scalable(1, 0, 0, false); } },
	{ "Mercury", FI_VERSION(1, 20), mercury,
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_TAGGED); } },
	{ "MercurySources", FI_VERSION(1, 20),
	  [](struct fi_info *h) {
		  mercury(h);
		  h->caps |= FI_SOURCE | FI_SOURCE_ERR;
	  },
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_TAGGED); } },
	{ "MercuryScalable", FI_VERSION(1, 20),
	  [](struct fi_info *h) {
		  mercury(h);
		  h->caps |= FI_NAMED_RX_CTX;
	  },
	  [](Consumers *t) { t->scalable(4, 8, 0, true); } },
	{ "Gasnet", FI_VERSION(1, 5), gasnet,
	  [](Consumers *t) { t->two_queues(FI_TRANSMIT, FI_CQ_FORMAT_DATA); } },
	{ "GasnetOneSided", FI_VERSION(1, 5),
	  [](struct fi_info *h) {
		  gasnet(h);
		  h->caps = FI_RMA;
		  h->mode = 0;
		  h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	  },
	  [](Consumers *t) { t->plain(FI_TRANSMIT, FI_CQ_FORMAT_DATA); } },
	{ "ChapelFence", FI_VERSION(1, 9),
	  [](struct fi_info *h) {
		  chapel(h);
		  h->caps |= FI_ATOMIC | FI_FENCE;
		  h->tx_attr->msg_order |= FI_ORDER_ATOMIC_WAW;
		  h->rx_attr->msg_order |= FI_ORDER_ATOMIC_WAW;
	  },
	  [](Consumers *t) { t->two_queues(FI_TRANSMIT, FI_CQ_FORMAT_DATA); } },
	{ "ChapelOrder", FI_VERSION(1, 9),
	  [](struct fi_info *h) {
		  chapel(h);
		  h->tx_attr->msg_order |= FI_ORDER_RAW | FI_ORDER_WAW |
					   FI_ORDER_SAW;
		  h->rx_attr->msg_order = h->tx_attr->msg_order;
	  },
	  [](Consumers *t) { t->two_queues(FI_TRANSMIT, FI_CQ_FORMAT_DATA); } },
	{ "ChapelDelivery", FI_VERSION(1, 9),
	  [](struct fi_info *h) {
		  chapel(h);
		  h->tx_attr->op_flags |= FI_DELIVERY_COMPLETE;
	  },
	  [](Consumers *t) { t->two_queues(FI_TRANSMIT, FI_CQ_FORMAT_DATA); } },
	{ "NcclSendRecv", FI_VERSION(1, 6), nccl,
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_TAGGED); } },
	{ "OneCcl", FI_VERSION(1, 10), ccl,
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_TAGGED); } },
	{ "OneCclWorkers", FI_VERSION(1, 10),
	  [](struct fi_info *h) {
		  ccl(h);
		  h->ep_attr->tx_ctx_cnt = h->ep_attr->rx_ctx_cnt = 4;
	  },
	  [](Consumers *t) { t->scalable(4, 2, FI_TAGGED, false); } },
	{ "Lci", FI_VERSION(1, 6), lci,
	  [](Consumers *t) {
		  t->reg(FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
			 FI_REMOTE_WRITE | FI_REMOTE_READ);
		  t->plain(ALL, FI_CQ_FORMAT_DATA);
	  } },
	{ "Charm", VERSION_1_0, charm,
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_TAGGED); } },
	{ "Nixl", FI_VERSION(1, 18), nixl,
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_DATA); } },
	{ "NixlScan", FI_VERSION(1, 18),
	  [](struct fi_info *h) {
		  nixl(h);
		  h->domain_attr->mr_mode = ~3;
		  h->domain_attr->mr_key_size = 0;
		  h->domain_attr->threading = FI_THREAD_UNSPEC;
	  },
	  [](Consumers *t) { t->plain(ALL, FI_CQ_FORMAT_DATA); } },
	{ "Adios2", FI_VERSION(1, 5), adios2,
	  [](Consumers *t) {
		  t->reg(FI_REMOTE_READ);
		  t->plain(ALL, FI_CQ_FORMAT_DATA);
	  } },
	{ "LibfabricGo", FI_VERSION(1, 14),
	  [](struct fi_info *h) { h->caps = FI_MSG | FI_TAGGED; },
	  [](Consumers *t) {
		  t->two_queues(FI_TRANSMIT, FI_CQ_FORMAT_CONTEXT);
	  } },
	{ "MpichDeviceMemory", FI_VERSION(1, 14),
	  [](struct fi_info *h) { mpich(h); device_memory(h); }, nullptr },
	{ "OpenMpiMtlDeviceMemory", FI_VERSION(1, 18),
	  [](struct fi_info *h) { ompi_mtl(h); device_memory(h); }, nullptr },
	{ "OpenMpiBtlDeviceMemory", FI_VERSION(1, 18),
	  [](struct fi_info *h) { ompi_btl(h); device_memory(h); }, nullptr },
	{ "GasnetDeviceMemory", FI_VERSION(1, 9),
	  [](struct fi_info *h) { gasnet(h); device_memory(h); }, nullptr },
	{ "NcclDeviceMemory", FI_VERSION(1, 18),
	  [](struct fi_info *h) {
		  nccl(h);
		  device_memory(h);
		  h->caps |= FI_RMA | FI_READ;
	  }, nullptr },
	{ "OneCclDeviceMemory", FI_VERSION(1, 10),
	  [](struct fi_info *h) { ccl(h); device_memory(h); }, nullptr },
	/* fi_endpoint(3) 2.1, OPERATION FLAGS 2 to 9: no fence among the flags
	 * that may be an endpoint's default. */
	{ "SosFenceByDefault", FI_VERSION(1, 5),
	  [](struct fi_info *h) {
		  sos(h);
		  h->caps |= FI_FENCE;
		  h->tx_attr->op_flags |= FI_FENCE;
	  }, nullptr },
	/* The endpoints of its tests that are connected. */
	{ "LibfabricGoConnected", FI_VERSION(1, 14),
	  [](struct fi_info *h) { h->ep_attr->type = FI_EP_MSG; }, nullptr },
};
/* clang-format on */

TEST_P(Consumers, OpensWhatItUses)
{
	run();
}

INSTANTIATE_TEST_SUITE_P(Programs, Consumers, testing::ValuesIn(consumers),
			 [](const testing::TestParamInfo<Consumer> &p) {
				 return std::string(p.param.name);
			 });

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer provider that moves nothing and writes down what is asked of it. It
 * keeps the addresses of the imported objects, never the contexts, and can be
 * told to refuse one thing or to fail at the n-th call.
 */
#ifndef TDT_MOCK_PEER_H
#define TDT_MOCK_PEER_H

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include "tdm_nosys.h"
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_peer.h>
#include <rdma/providers/fi_prov.h>
}

namespace tdt
{

class MockPeer
{
public:
	/* An open object; `fid` is what the owner of the link holds. */
	struct Object {
		union {
			struct fid fid;
			struct fid_fabric fabric;
			struct fid_domain domain;
			struct fid_eq eq;
			struct fid_cq cq;
			struct fid_cntr cntr;
			struct fid_av av;
			struct fid_ep ep;
		};
		std::string kind;
		int reads = 0;
		int wait_fd = -1; /* what FI_GETWAIT gives */
	};

	struct fi_provider prov = {};
	std::vector<std::string> calls;
	std::vector<Object *> open; /* in the order they were opened */
	int fail_at = 0;	    /* the n-th call fails; 0: none */
	int fd = -1;		    /* wait descriptor of all queues */
	int trywait_result = 0;
	size_t trywait_count = 0;
	bool no_domain2 = false, no_eq = false, no_wait_fd = false;

	/* The imported objects. */
	struct fid_domain *owner = nullptr;
	struct fid_eq *events = nullptr;
	std::vector<struct fid_peer_cq *> cqs;
	std::vector<struct fid_peer_cntr *> cntrs;
	std::vector<struct fid_peer_srx *> srxs;

	/* The calls received. */
	struct fi_info *hints = nullptr;
	uint32_t fabric_version = 0;
	enum fi_ep_type ep_type = FI_EP_UNSPEC;
	uint64_t tx_op_flags = 0;
	size_t tx_size = 0;
	std::map<fi_addr_t, fi_addr_t> user_ids; /* by the peer's address */

	MockPeer()
	{
		self() = this;
		prov.version = FI_VERSION(1, 0);
		prov.fi_version = fi_version();
		prov.name = "mock";
		prov.getinfo = getinfo;
		prov.fabric = fabric_open;
	}

	~MockPeer()
	{
		if (hints)
			fi_freeinfo(hints);
	}

	MockPeer(const MockPeer &) = delete;

	Object *find(const std::string &kind, size_t nth = 0)
	{
		for (Object *o : open)
			if (o->kind == kind && !nth--)
				return o;
		return nullptr;
	}

	bool called(const std::string &what) const
	{
		return position(what) < calls.size();
	}

	size_t position(const std::string &what) const
	{
		size_t i = 0;

		while (i < calls.size() && calls[i] != what)
			i++;
		return i;
	}

private:
	static MockPeer *&self()
	{
		static MockPeer *one;

		return one;
	}

	/* Note the call; not 0 when it shall fail. */
	int note(const std::string &what)
	{
		calls.push_back(what);
		return fail_at && !--fail_at ? -FI_ENOMEM : 0;
	}

	static Object *of(struct fid *fid)
	{
		return reinterpret_cast<Object *>(fid);
	}

	Object *make(const char *kind, size_t fclass, void *context)
	{
		static struct fi_ops ops = { sizeof(ops),
					     close,
					     bind,
					     control,
					     tdm_no_fi_ops_open,
					     tdm_no_fi_tostr,
					     tdm_no_fi_ops_set };
		Object *o = new Object;

		memset(static_cast<void *>(&o->ep), 0, sizeof(o->ep));
		o->kind = kind;
		o->fid.fclass = fclass;
		o->fid.context = context;
		o->fid.ops = &ops;
		open.push_back(o);
		return o;
	}

	static int close(struct fid *fid)
	{
		Object *o = of(fid);
		MockPeer *m = self();

		m->calls.push_back("close " + o->kind);
		for (size_t i = 0; i < m->open.size(); i++)
			if (m->open[i] == o)
				m->open.erase(m->open.begin() +
					      static_cast<ptrdiff_t>(i));
		delete o;
		return 0;
	}

	static int bind(struct fid *fid, struct fid *other, uint64_t flags)
	{
		char text[64];

		snprintf(text, sizeof(text), "bind %s %#llx",
			 of(other)->kind.c_str(),
			 static_cast<unsigned long long>(flags));
		return self()->note(text);
	}

	static int control(struct fid *fid, int command, void *arg)
	{
		if (command == FI_ENABLE)
			return self()->note("enable");
		if (command == FI_GETWAIT && of(fid)->wait_fd >= 0) {
			*static_cast<int *>(arg) = of(fid)->wait_fd;
			return 0;
		}
		return -FI_ENOSYS;
	}

	static int getinfo(uint32_t, const char *, const char *, uint64_t,
			   const struct fi_info *h, struct fi_info **out)
	{
		int ret = self()->note("getinfo");

		if (ret)
			return ret;
		self()->hints = fi_dupinfo(h);
		*out = fi_dupinfo(h);
		(*out)->fabric_attr->name = strdup("mock");
		return 0;
	}

	static int fabric_open(struct fi_fabric_attr *attr,
			       struct fid_fabric **out, void *context)
	{
		static struct fi_ops_fabric ops;
		int ret = self()->note("fabric");
		Object *o;

		if (ret)
			return ret;
		ops.size = sizeof(ops);
		ops.domain = domain_open;
		ops.domain2 = domain2_open;
		ops.eq_open = eq_open;
		ops.trywait = trywait;
		self()->fabric_version = attr->api_version;
		o = self()->make("fabric", FI_CLASS_FABRIC, context);
		o->fabric.ops = &ops;
		*out = &o->fabric;
		return 0;
	}

	static int domain_open(struct fid_fabric *, struct fi_info *,
			       struct fid_domain **out, void *context)
	{
		static struct fi_ops_domain ops;
		int ret = self()->note("domain");
		Object *o;

		if (ret)
			return ret;
		ops.size = sizeof(ops);
		ops.av_open = av_open;
		ops.cq_open = cq_open;
		ops.cntr_open = cntr_open;
		ops.endpoint = ep_open;
		ops.srx_ctx = srx_open;
		o = self()->make("domain", FI_CLASS_DOMAIN, context);
		o->domain.ops = &ops;
		*out = &o->domain;
		return 0;
	}

	static int domain2_open(struct fid_fabric *fabric, struct fi_info *info,
				struct fid_domain **out, uint64_t flags,
				void *context)
	{
		auto *ctx =
			static_cast<struct fi_peer_domain_context *>(context);

		if (self()->no_domain2)
			return -FI_ENOSYS;
		if (!(flags & FI_PEER) || ctx->size < sizeof(*ctx))
			return -FI_EINVAL;
		self()->owner = ctx->domain;
		return domain_open(fabric, info, out, nullptr);
	}

	static int eq_open(struct fid_fabric *, struct fi_eq_attr *attr,
			   struct fid_eq **out, void *context)
	{
		auto *ctx = static_cast<struct fi_peer_eq_context *>(context);
		Object *o;

		if (self()->no_eq || !(attr->flags & FI_PEER))
			return -FI_EINVAL;
		self()->events = ctx->eq;
		o = self()->make("eq", FI_CLASS_EQ, nullptr);
		*out = &o->eq;
		return 0;
	}

	static int trywait(struct fid_fabric *, struct fid **fids, int count)
	{
		self()->trywait_count = static_cast<size_t>(count);
		for (int i = 0; i < count; i++)
			if (!fids[i])
				return -FI_EINVAL;
		return self()->trywait_result;
	}

	static int av_open(struct fid_domain *, struct fi_av_attr *attr,
			   struct fid_av **out, void *context)
	{
		static struct fi_ops_av ops;
		int ret = self()->note("av");
		Object *o;

		if (ret)
			return ret;
		ops.size = sizeof(ops);
		ops.insert = av_insert;
		ops.remove = av_remove;
		o = self()->make("av", FI_CLASS_AV, context);
		o->av.ops = &ops;
		*out = &o->av;
		return 0;
	}

	static int av_insert(struct fid_av *, const void *addr, size_t count,
			     fi_addr_t *fi_addr, uint64_t flags, void *)
	{
		fi_addr_t at = 100 + self()->user_ids.size();

		if (count != 1 || !(flags & FI_AV_USER_ID))
			return -FI_EINVAL;
		if (!addr)
			return 0;
		self()->user_ids[at] = *fi_addr;
		*fi_addr = at;
		return 1;
	}

	static int av_remove(struct fid_av *, fi_addr_t *fi_addr, size_t count,
			     uint64_t)
	{
		if (count != 1)
			return -FI_EINVAL;
		self()->user_ids.erase(*fi_addr);
		return 0;
	}

	static ssize_t cq_read(struct fid_cq *cq, void *, size_t count)
	{
		of(&cq->fid)->reads++;
		return count ? -FI_ENOSYS : 0;
	}

	static int cq_open(struct fid_domain *, struct fi_cq_attr *attr,
			   struct fid_cq **out, void *context)
	{
		static struct fi_ops_cq ops;
		auto *ctx = static_cast<struct fi_peer_cq_context *>(context);
		int ret = self()->note("cq");
		Object *o;

		if (ret)
			return ret;
		if (attr->wait_obj != FI_WAIT_NONE && self()->no_wait_fd)
			return -FI_ENOSYS;
		ops.size = sizeof(ops);
		ops.read = cq_read;
		self()->cqs.push_back(ctx->cq);
		o = self()->make("cq", FI_CLASS_CQ, nullptr);
		o->cq.ops = &ops;
		if (attr->wait_obj == FI_WAIT_FD)
			o->wait_fd = self()->fd;
		*out = &o->cq;
		return 0;
	}

	static uint64_t cntr_read(struct fid_cntr *cntr)
	{
		of(&cntr->fid)->reads++;
		return 0;
	}

	static int cntr_open(struct fid_domain *, struct fi_cntr_attr *attr,
			     struct fid_cntr **out, void *context)
	{
		static struct fi_ops_cntr ops;
		auto *ctx = static_cast<struct fi_peer_cntr_context *>(context);
		int ret = self()->note("cntr");
		Object *o;

		if (ret)
			return ret;
		if (attr->flags != FI_PEER)
			return -FI_EINVAL;
		if (attr->wait_obj != FI_WAIT_NONE && self()->no_wait_fd)
			return -FI_ENOSYS;
		ops.size = sizeof(ops);
		ops.read = cntr_read;
		self()->cntrs.push_back(ctx->cntr);
		o = self()->make("cntr", FI_CLASS_CNTR, nullptr);
		o->cntr.ops = &ops;
		if (attr->wait_obj == FI_WAIT_FD)
			o->wait_fd = self()->fd;
		*out = &o->cntr;
		return 0;
	}

	static int srx_open(struct fid_domain *, struct fi_rx_attr *attr,
			    struct fid_ep **out, void *context)
	{
		auto *ctx = static_cast<struct fi_peer_srx_context *>(context);
		int ret = self()->note("srx");

		if (ret)
			return ret;
		if (attr->op_flags != FI_PEER)
			return -FI_EINVAL;
		self()->srxs.push_back(ctx->srx);
		*out = &self()->make("srx", FI_CLASS_SRX_CTX, nullptr)->ep;
		return 0;
	}

	static int setname(fid_t, void *, size_t len)
	{
		return self()->note("setname " + std::to_string(len));
	}

	static int ep_open(struct fid_domain *, struct fi_info *info,
			   struct fid_ep **out, void *context)
	{
		static struct fi_ops_cm cm;
		int ret = self()->note("ep");
		Object *o;

		if (ret)
			return ret;
		cm.size = sizeof(cm);
		cm.setname = setname;
		self()->ep_type = info->ep_attr->type;
		self()->tx_op_flags = info->tx_attr->op_flags;
		self()->tx_size = info->tx_attr->size;
		o = self()->make("ep", FI_CLASS_EP, context);
		o->ep.cm = &cm;
		*out = &o->ep;
		return 0;
	}
};

} // namespace tdt

#endif /* TDT_MOCK_PEER_H */

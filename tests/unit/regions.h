/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory regions of an owner, include/tdm_rma.h: a key, a buffer, rights.
 * Entries are counted; those of a closed region are revoked.
 */
#ifndef TDT_REGIONS_H
#define TDT_REGIONS_H

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

extern "C" {
#include "peer/amo.h"
#include "base/base.h"
#include "tdm_rma.h"
#include "tdm_xfer.h"
#include <rdma/fi_errno.h>
}

namespace tdt
{

class Regions
{
	struct Region {
		struct iovec iov[2];
		size_t len;
		uint64_t access, serial;
	};

	struct Entry {
		struct fi_peer_rx_entry rx; /* first */
		Regions *owner;
		uint64_t key, serial;
		void (*closing)(struct fi_peer_rx_entry *); /* or NULL */
		struct iovec iov[2];
		void *desc[2];
	};

	/* The domain with the way back to its owner. */
	struct Holder {
		struct fid_domain domain;
		Regions *self;
	} holder = {};

	std::map<uint64_t, Region> regions;
	std::set<Entry *> watched;
	uint64_t serial = 0;

public:
	struct fid_domain &domain = holder.domain;
	unsigned in_flight = 0; /* entries not given back */
	unsigned given = 0;	/* entries ever */
	bool no_memory = false;
	/* Those made from now on offer tdm_rma_ops.watch. */
	static inline bool tells = true;

	Regions()
	{
		static struct fi_ops ops = {};

		ops.size = sizeof(ops);
		ops.ops_open = ops_open;
		holder.self = this;
		domain.fid.ops = &ops;
	}

	Regions(const Regions &) = delete;

	/* In two pieces, so that no transport gets away with one. */
	void add(uint64_t key, void *buf, size_t len, uint64_t access)
	{
		size_t half = len / 3;

		close(key);
		Region r = { { { buf, half },
			       { (char *)buf + half, len - half } },
			     len,
			     access,
			     ++serial };

		regions[key] = r;
	}

	void close(uint64_t key)
	{
		auto it = regions.find(key);

		if (it == regions.end())
			return;
		/* Each call may give back others, too. */
		while (Entry *e = watched_of(it->second.serial))
			e->closing(&e->rx);
		regions.erase(it);
	}

	static void free_entry(struct fi_peer_rx_entry *rx)
	{
		Entry *e = reinterpret_cast<Entry *>(rx);

		e->owner->in_flight--;
		e->owner->watched.erase(e);
		delete e;
	}

private:
	/* An entry of region @s that is watched, or NULL. */
	Entry *watched_of(uint64_t s) const
	{
		auto it = std::find_if(watched.begin(), watched.end(),
				       [s](const Entry *e) {
					       return e->serial == s;
				       });

		return it == watched.end() ? nullptr : *it;
	}

	static int ops_open(struct fid *, const char *name, uint64_t flags,
			    void **out, void *)
	{
		static struct tdm_rma_ops ops = { sizeof(ops), get, revoked,
						  atomic, watch };
		static struct tdm_rma_ops silent = { sizeof(silent), get,
						     revoked, atomic, NULL };

		if (strcmp(name, TDM_RMA_OPS) || flags)
			return -FI_ENOSYS;
		*out = tells ? &ops : &silent;
		return 0;
	}

	static int get(struct fid_domain *fid, struct fid_peer_srx *srx,
		       const struct tdm_rma_request *req,
		       struct fi_peer_rx_entry **out)
	{
		Regions *o = reinterpret_cast<Holder *>(fid)->self;
		auto it = o->regions.find(req->key);

		if (o->no_memory)
			return -FI_ENOMEM;
		if (it == o->regions.end() ||
		    (it->second.access & req->access) != req->access ||
		    req->addr > it->second.len ||
		    req->len > it->second.len - req->addr)
			return -FI_EACCES;

		Entry *e = new Entry();

		e->owner = o;
		e->key = req->key;
		e->serial = it->second.serial;
		e->rx.srx = srx;
		e->rx.addr = req->src;
		e->rx.msg_size = req->len;
		e->rx.cq_data = req->data;
		e->rx.flags = FI_RMA | req->access | req->flags;
		e->rx.iov = e->iov;
		e->rx.desc = e->desc;
		e->rx.count = tdm_iov_slice(e->iov, 2, it->second.iov, 2,
					    req->addr, req->len);
		o->in_flight++;
		o->given++;
		*out = &e->rx;
		return 0;
	}

	static int atomic(struct fid_domain *fid, struct fid_peer_srx *srx,
			  const struct tdm_rma_atomic *a,
			  struct fi_peer_rx_entry *out)
	{
		struct tdm_rma_request req = a->rma;
		struct fi_peer_rx_entry *rx;
		int ret = tdm_amo_admit(&a->amo, req.len);

		req.access = tdm_amo_access(&a->amo);
		if (!ret)
			ret = get(fid, srx, &req, &rx);
		if (ret)
			return ret;
		tdm_amo_run_on(&a->amo, rx->iov, rx->count, a->operands,
			       a->result);
		*out = *rx;
		free_entry(rx);
		return 0;
	}

	static void watch(struct fi_peer_rx_entry *rx,
			  void (*closing)(struct fi_peer_rx_entry *))
	{
		Entry *e = reinterpret_cast<Entry *>(rx);

		e->closing = closing;
		e->owner->watched.insert(e);
	}

	static int revoked(const struct fi_peer_rx_entry *rx)
	{
		const Entry *e = reinterpret_cast<const Entry *>(rx);
		auto it = e->owner->regions.find(e->key);

		return it == e->owner->regions.end() ||
		       it->second.serial != e->serial;
	}
};

} // namespace tdt

#endif /* TDT_REGIONS_H */

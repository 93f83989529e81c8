/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of what an endpoint can be made of: objects opened one by one in
 * the domains of a world, and closed at the end in the right order.
 */
#ifndef TDT_PARTS_H
#define TDT_PARTS_H

#include <functional>

#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

/* An entry as read from a queue of such an object. */
struct Entry {
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	fi_addr_t src;
	ssize_t ret; /* 1, -FI_EAVAIL, or what went wrong */
};

class Parts : public Case
{
protected:
	std::vector<struct fid *> made; /* closed last to first */

	void TearDown() override
	{
		close_parts();
		Case::TearDown();
	}

	void close_parts()
	{
		while (!made.empty()) {
			struct fid *fid = made.back();

			made.pop_back();
			EXPECT_EQ(0, fi_close(fid)) << fid->fclass;
		}
	}

	/* Close @fid now. */
	int drop(struct fid *fid)
	{
		int ret = fi_close(fid);

		for (size_t i = 0; !ret && i < made.size(); i++) {
			if (made[i] == fid)
				made.erase(made.begin() + (long)i);
		}
		return ret;
	}

	struct fid_cq *cq(struct fid_domain *d)
	{
		struct fi_cq_attr a;
		struct fid_cq *q = nullptr;

		memset(&a, 0, sizeof(a));
		a.format = FI_CQ_FORMAT_TAGGED;
		EXPECT_EQ(0, fi_cq_open(d, &a, &q, nullptr));
		made.push_back(&q->fid);
		return q;
	}

	struct fid_cntr *cntr(struct fid_domain *d)
	{
		struct fid_cntr *c = nullptr;

		EXPECT_EQ(0, fi_cntr_open(d, nullptr, &c, nullptr));
		/* It may be bound to what was made before it. */
		made.insert(made.begin(), &c->fid);
		return c;
	}

	struct fid_av *av(struct fid_domain *d, int bits = 0)
	{
		struct fi_av_attr a;
		struct fid_av *v = nullptr;

		memset(&a, 0, sizeof(a));
		a.rx_ctx_bits = bits;
		EXPECT_EQ(0, fi_av_open(d, &a, &v, nullptr));
		made.push_back(&v->fid);
		return v;
	}

	/* The world's info, changed by @change; freed by the caller. */
	struct fi_info *
	info(const std::function<void(struct fi_info *)> &change = nullptr)
	{
		struct fi_info *i = fi_dupinfo(w->info);

		if (change)
			change(i);
		return i;
	}

	/* Insert the address of @from into @v. */
	static fi_addr_t insert(struct fid_av *v, struct fid_ep *from)
	{
		uint8_t name[TDT_NAME_BYTES];
		size_t len = sizeof(name);
		fi_addr_t addr = FI_ADDR_NOTAVAIL;

		EXPECT_EQ(0, fi_getname(&from->fid, name, &len));
		EXPECT_EQ(1, fi_av_insert(v, name, 1, &addr, 0, nullptr));
		return addr;
	}

	/* Wait for the next entry of @q. */
	Entry next(struct fid_cq *q)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		Entry x;

		memset(&x, 0, sizeof(x));
		do {
			x.ret = fi_cq_readfrom(q, &x.e, 1, &x.src);
			if (x.ret == -FI_EAGAIN)
				tdt_progress(w);
		} while (x.ret == -FI_EAGAIN && tdt_now_ms() < end);
		if (x.ret == -FI_EAVAIL) {
			EXPECT_EQ(1, fi_cq_readerr(q, &x.err, 0));
		}
		return x;
	}

	/* There is nothing in @q. */
	static void empty(struct fid_cq *q)
	{
		struct fi_cq_tagged_entry e;

		EXPECT_EQ(-FI_EAGAIN, fi_cq_read(q, &e, 1));
	}

	/* The keep-to-TCP option of the world's endpoint @like for @ep. */
	void tier_of(const struct tdt_ep *like, struct fid_ep *ep)
	{
		bool off = false;

		if (tdt_path() == TDT_MIXED && like->index + 1 == w->count) {
			EXPECT_EQ(0, fi_setopt(&ep->fid, FI_OPT_ENDPOINT,
					       FI_OPT_SHARED_MEMORY_PERMITTED,
					       &off, sizeof(off)));
		}
	}
};

#endif /* TDT_PARTS_H */

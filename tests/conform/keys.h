/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of authorization keys: endpoints, each of its own domain, that have
 * a key of their own or those of their address vector.
 */
#ifndef TDT_KEYS_H
#define TDT_KEYS_H

#include "fi_ext_tandem.h"
#include "parts.h"

static const char ONE[] = "one secret of more than sixteen bytes";
static const char TWO[] = "two secrets are not the same secret!";

class Keys : public Parts
{
protected:
	/* An endpoint as the world's, of its own domain, with AV and queue. */
	struct Own {
		struct fi_info *info = nullptr;
		struct fid_domain *domain = nullptr;
		struct fid_av *av = nullptr;
		struct fid_cq *cq = nullptr;
		struct fid_ep *ep = nullptr;
	};

	std::vector<struct fi_info *> infos;

	void TearDown() override
	{
		Parts::TearDown();
		for (auto *i : infos)
			fi_freeinfo(i);
	}

	/* @key: of the endpoint, or NULL: its domain has FI_AV_AUTH_KEY. */
	void open_own(Own &o, const char *key, uint64_t caps = 0,
		      uint64_t av_flags = 0)
	{
		struct fi_info *hints = tdt_hints(&attr);
		struct fi_av_attr a;

		hints->caps |= caps;

		if (!key) {
			hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
		} else {
			hints->ep_attr->auth_key = (uint8_t *)strdup(key);
			hints->ep_attr->auth_key_size = strlen(key);
		}
		ASSERT_EQ(0, fi_getinfo(TDT_API, "127.0.0.1", nullptr,
					FI_SOURCE, hints, &o.info));
		fi_freeinfo(hints);
		infos.push_back(o.info);
		ASSERT_EQ(0, fi_domain(w->fabric, o.info, &o.domain, nullptr));
		made.push_back(&o.domain->fid);
		memset(&a, 0, sizeof(a));
		a.flags = av_flags;
		ASSERT_EQ(0, fi_av_open(o.domain, &a, &o.av, nullptr));
		made.push_back(&o.av->fid);
		o.cq = cq(o.domain);
	}

	void enable(Own &o)
	{
		ASSERT_EQ(0, fi_endpoint(o.domain, o.info, &o.ep, nullptr));
		made.push_back(&o.ep->fid);
		ASSERT_EQ(0, fi_ep_bind(o.ep, &o.av->fid, 0));
		ASSERT_EQ(0,
			  fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
		ASSERT_EQ(0, fi_enable(o.ep));
	}

	static fi_addr_t handle(const Own &o, const char *key)
	{
		fi_addr_t h = FI_ADDR_NOTAVAIL;

		EXPECT_EQ(0,
			  fi_av_insert_auth_key(o.av, key, strlen(key), &h, 0));
		return h;
	}

	/* The address of @to for @key in the AV of @o. */
	static fi_addr_t by_key(const Own &o, const Own &to, fi_addr_t key)
	{
		uint8_t name[TDT_NAME_BYTES];
		size_t len = sizeof(name);
		fi_addr_t a = key;

		EXPECT_EQ(0, fi_getname(&to.ep->fid, name, &len));
		EXPECT_EQ(1, fi_av_insert(o.av, name, 1, &a, FI_AUTH_KEY,
					  nullptr));
		return a;
	}

	/* Give @o both keys, and enable it. Out: their handles. */
	void both_keys(Own &o, fi_addr_t h[2])
	{
		h[0] = handle(o, ONE);
		h[1] = handle(o, TWO);
		OK(enable(o));
	}

	void poll_all(const std::vector<Own *> &all)
	{
		for (auto *o : all)
			fi_cq_read(o->cq, nullptr, 0);
	}

	/* The next entry of @o, while all of @all make progress. */
	Entry next_of(Own &o, const std::vector<Own *> &all)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		Entry x;

		memset(&x, 0, sizeof(x));
		do {
			x.ret = fi_cq_readfrom(o.cq, &x.e, 1, &x.src);
			if (x.ret == -FI_EAGAIN)
				poll_all(all);
		} while (x.ret == -FI_EAGAIN && tdt_now_ms() < end);
		if (x.ret == -FI_EAVAIL) {
			EXPECT_EQ(1, fi_cq_readerr(o.cq, &x.err, 0));
		}
		return x;
	}

	/* How @o reaches @to: enum tdm_report_path. */
	static struct tdm_report_path path(const Own &o, fi_addr_t to)
	{
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path p;

		memset(&p, 0, sizeof(p));
		p.size = sizeof(p);
		EXPECT_EQ(0, fi_open_ops(&o.ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		if (ops) {
			EXPECT_EQ(0, ops->path(o.ep, to, &p));
		}
		return p;
	}

	ssize_t push(Own &o, fi_addr_t to, void *buf, size_t len, uint64_t tag,
		     const std::vector<Own *> &all)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		do {
			ret = fi_tsend(o.ep, buf, len, nullptr, to, tag, buf);
			poll_all(all);
		} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
		return ret;
	}
};

#endif /* TDT_KEYS_H */

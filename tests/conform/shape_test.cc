/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shape of use: many endpoints, domains and fabrics in one process, queues
 * and counters shared in every way, counters that come late, and hints that
 * name open objects.
 */
#include "parts.h"

namespace
{

class Shape : public Parts
{
protected:
	/* An endpoint on @home's domain and AV. */
	struct fid_ep *more(struct tdt_ep *home, struct fid_cq *tx,
			    struct fid_cq *rxq)
	{
		struct fi_info *n = info();
		struct fid_ep *e = nullptr;

		EXPECT_EQ(0, fi_endpoint(home->domain, n, &e, nullptr));
		fi_freeinfo(n);
		made.push_back(&e->fid);
		tier_of(home, e);
		EXPECT_EQ(0, fi_ep_bind(e, &home->av->fid, 0));
		EXPECT_EQ(0, fi_ep_bind(e, &tx->fid, FI_TRANSMIT));
		EXPECT_EQ(0, fi_ep_bind(e, &rxq->fid, FI_RECV));
		return e;
	}
};

TEST_F(Shape, ManyEndpointsShareQueues)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 4: Kinds of operations may report to
	 * different queues. */
	const int MANY = 24;
	std::vector<struct fid_ep *> a, b;
	std::vector<int> in(MANY, -1), out(MANY);
	struct fid_cq *all, *tx, *rxq;
	struct tdt_ep *from;

	OPEN();
	from = senders().back();
	all = cq(rx()->domain);
	tx = cq(from->domain);
	rxq = cq(from->domain);
	for (int i = 0; i < MANY; i++) {
		a.push_back(more(rx(), all, all));
		b.push_back(more(from, i % 2 ? tx : rxq, rxq));
		ASSERT_EQ(0, fi_enable(a.back()));
		ASSERT_EQ(0, fi_enable(b.back()));
	}
	for (int i = 0; i < MANY; i++) {
		fi_addr_t to = insert(from->av, a[(size_t)i]);

		out[(size_t)i] = i;
		ASSERT_EQ(0, fi_recv(a[(size_t)i], &in[(size_t)i], 4, nullptr,
				     FI_ADDR_UNSPEC, &in[(size_t)i]));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_send(b[(size_t)i], &out[(size_t)i],
						 4, nullptr, to, nullptr);
			  }));
	}
	for (int i = 0; i < MANY; i++) {
		EXPECT_EQ(1, next(all).ret);
		EXPECT_EQ(1, next(i % 2 ? tx : rxq).ret);
	}
	EXPECT_EQ(in, out);
	empty(all);
}

TEST_F(Shape, CountersAreSharedAndComeLate)
{
	/* A counter bound to an enabled endpoint counts from then on. */
	struct fid_cntr *sent, *got;
	struct fid_cq *q, *r;
	struct fid_ep *a[2], *b[2];
	char out = 1, in[4] = {};
	struct tdt_ep *from;

	OPEN();
	from = senders().back();
	q = cq(from->domain);
	r = cq(rx()->domain);
	sent = cntr(from->domain);
	got = cntr(rx()->domain);
	for (int i = 0; i < 2; i++) {
		a[i] = more(rx(), r, r);
		b[i] = more(from, q, q);
		if (!i) {
			EXPECT_EQ(0, fi_ep_bind(a[i], &got->fid, FI_RECV));
		}
		ASSERT_EQ(0, fi_enable(a[i]));
		ASSERT_EQ(0, fi_enable(b[i]));
	}
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			fi_addr_t to = insert(from->av, a[i]);

			ASSERT_EQ(0, fi_recv(a[i], &in[i], 1, nullptr,
					     FI_ADDR_UNSPEC, nullptr));
			ASSERT_EQ(0, keep_on([&] {
					  return fi_send(b[i], &out, 1, nullptr,
							 to, nullptr);
				  }));
			EXPECT_EQ(1, next(q).ret);
			EXPECT_EQ(1, next(r).ret);
		}
		if (round)
			break;
		EXPECT_EQ(0u, fi_cntr_read(sent));
		EXPECT_EQ(1u, fi_cntr_read(got));
		for (int i = 0; i < 2; i++)
			ASSERT_EQ(0, fi_ep_bind(b[i], &sent->fid, FI_SEND));
		ASSERT_EQ(0, fi_ep_bind(a[1], &got->fid, FI_RECV));
		EXPECT_EQ(-FI_EINVAL, fi_ep_bind(a[1], &got->fid, FI_RECV));
		EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(a[1], &r->fid, FI_RECV));
	}
	EXPECT_EQ(2u, fi_cntr_read(sent));
	EXPECT_EQ(3u, fi_cntr_read(got));
}

TEST_F(Shape, SeveralFabricsAndDomains)
{
	/* Each fabric and domain stands alone and closes alone. */
	struct fid_fabric *f[2];
	struct fid_domain *d[2];

	OPEN();
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, fi_fabric(w->info->fabric_attr, &f[i], nullptr));
		made.push_back(&f[i]->fid);
		ASSERT_EQ(0, fi_domain(f[i], w->info, &d[i], nullptr));
		made.push_back(&d[i]->fid);
		EXPECT_EQ(-FI_EBUSY, fi_close(&f[i]->fid));
	}
	for (int i = 0; i < 2; i++) {
		struct fid_av *v = av(d[i]);
		struct fid_cq *q = cq(d[i]);
		struct fi_info *n = info();
		struct fid_ep *e;
		char out = 1, in = 0;
		fi_addr_t to;

		ASSERT_EQ(0, fi_endpoint(d[i], n, &e, nullptr));
		fi_freeinfo(n);
		made.push_back(&e->fid);
		ASSERT_EQ(0, fi_ep_bind(e, &v->fid, 0));
		ASSERT_EQ(0, fi_ep_bind(e, &q->fid, FI_TRANSMIT | FI_RECV));
		ASSERT_EQ(0, fi_enable(e));
		to = insert(v, rx()->ep);
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, keep_on([&] {
				  fi_cq_read(q, nullptr, 0);
				  return fi_send(e, &out, 1, nullptr, to,
						 nullptr);
			  }));
		/* Reading this queue is what connects. */
		EXPECT_EQ(1, next(q).ret);
		OK(done(rx(), &in, FI_RECV | FI_MSG));
	}
}

class OpenObjects : public Parts
{
protected:
	struct fi_info *hints = nullptr, *got = nullptr;

	void TearDown() override
	{
		if (hints) {
			hints->fabric_attr->fabric = nullptr;
			hints->domain_attr->domain = nullptr;
			fi_freeinfo(hints);
		}
		if (got)
			fi_freeinfo(got);
		Parts::TearDown();
	}

	/* Without @node every interface of the host is a candidate. */
	int get(const char *node = nullptr)
	{
		if (got)
			fi_freeinfo(got);
		got = nullptr;
		return fi_getinfo(TDT_API, node, nullptr, node ? FI_SOURCE : 0,
				  hints, &got);
	}
};

TEST_F(OpenObjects, RestrictTheResult)
{
	/* fi_fabric(3) 2.1, fabric 1, and fi_domain(3) 2.1, domain 1: A fabric
	 * or domain in the hints narrows the answer to it; one that is open
	 * already is named in the answer. */
	struct fid_fabric *other;
	struct fid_domain fake;

	ONLY_TANDEM();
	OPEN();
	hints = tdt_hints(&attr);
	ASSERT_EQ(0, get(attr.node));
	EXPECT_EQ(w->fabric, got->fabric_attr->fabric);
	hints->fabric_attr->fabric = w->fabric;
	hints->domain_attr->domain = rx()->domain;
	ASSERT_EQ(0, get());
	EXPECT_EQ(w->fabric, got->fabric_attr->fabric);
	EXPECT_EQ(rx()->domain, got->domain_attr->domain);
	EXPECT_STREQ(rx()->info->domain_attr->name, got->domain_attr->name)
		<< "the domain's interface, not the best one";
	hints->domain_attr->domain = senders()[0]->domain;
	ASSERT_EQ(0, get());
	EXPECT_EQ(senders()[0]->domain, got->domain_attr->domain);
	/* A name that is not the domain's; a domain that is not open. */
	hints->domain_attr->name = strdup("no-such-name");
	EXPECT_EQ(-FI_ENODATA, get());
	free(hints->domain_attr->name);
	hints->domain_attr->name = nullptr;
	memset(&fake, 0, sizeof(fake));
	hints->domain_attr->domain = &fake;
	EXPECT_EQ(-FI_ENODATA, get());
	/* A domain of another fabric. */
	ASSERT_EQ(0, fi_fabric(w->info->fabric_attr, &other, nullptr));
	made.push_back(&other->fid);
	hints->fabric_attr->fabric = other;
	hints->domain_attr->domain = nullptr;
	ASSERT_EQ(0, get());
	EXPECT_EQ(other, got->fabric_attr->fabric);
	hints->domain_attr->domain = rx()->domain;
	EXPECT_EQ(-FI_ENODATA, get());
	/* An info of an open domain opens endpoints there. */
	hints->fabric_attr->fabric = w->fabric;
	ASSERT_EQ(0, get());
	struct fid_ep *e;
	ASSERT_EQ(0, fi_endpoint(got->domain_attr->domain, got, &e, nullptr));
	EXPECT_EQ(0, fi_close(&e->fid));
}

TEST_F(OpenObjects, NothingIsReferredToOnceItIsClosed)
{
	ONLY_TANDEM();
	OPEN();
	hints = tdt_hints(&attr);
	close();
	ASSERT_EQ(0, get(attr.node));
	EXPECT_EQ(nullptr, got->fabric_attr->fabric);
	EXPECT_EQ(nullptr, got->domain_attr->domain);
}

} // namespace

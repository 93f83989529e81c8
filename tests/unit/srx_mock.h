/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other side of the receive side: transports that queue messages and are
 * told to start or discard them, a CQ and a counter that remember.
 */
#ifndef TDT_SRX_MOCK_H
#define TDT_SRX_MOCK_H

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "peer/srx.h"
#include "peer/srx_priv.h"
}

namespace srx_test
{

const fi_addr_t ANY = FI_ADDR_UNSPEC;

/* An entry of the CQ; err is 0 for a success. */
struct Comp {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data, tag;
	fi_addr_t src;
	int err;
	size_t olen;
	int prov_errno = 0;
};

struct MockCq {
	struct fid_peer_cq fid = {};
	std::vector<Comp> got;

	MockCq()
	{
		static struct fi_ops_cq_owner ops = { sizeof(ops), write,
						      writeerr };

		fid.owner_ops = &ops;
		fid.fid.context = this;
	}

	static MockCq *of(struct fid_peer_cq *cq)
	{
		return static_cast<MockCq *>(cq->fid.context);
	}

	static ssize_t write(struct fid_peer_cq *cq, void *context,
			     uint64_t flags, size_t len, void *buf,
			     uint64_t data, uint64_t tag, fi_addr_t src)
	{
		of(cq)->got.push_back(
			{ context, flags, len, buf, data, tag, src, 0, 0 });
		return 0;
	}

	/* err_data is the socket address of the peer, if that is known. */
	static bool is_peer(const void *data, size_t len)
	{
		const auto *sa = static_cast<const struct sockaddr *>(data);

		return data ? len == (sa->sa_family == AF_INET ?
					      sizeof(struct sockaddr_in) :
					      sizeof(struct sockaddr_in6)) :
			      !len;
	}

	static ssize_t writeerr(struct fid_peer_cq *cq,
				const struct fi_cq_err_entry *e)
	{
		EXPECT_NE(e->err, 0);
		EXPECT_TRUE(is_peer(e->err_data, e->err_data_size));
		of(cq)->got.push_back({ e->op_context, e->flags, e->len, e->buf,
					e->data, e->tag, e->src_addr, e->err,
					e->olen, e->prov_errno });
		return 0;
	}
};

struct MockCntr {
	struct fid_peer_cntr fid = {};
	unsigned value = 0, errors = 0;

	MockCntr()
	{
		static struct fi_ops_cntr_owner ops = { sizeof(ops), inc,
							incerr };

		fid.owner_ops = &ops;
		fid.fid.context = this;
	}

	static void inc(struct fid_peer_cntr *c)
	{
		static_cast<MockCntr *>(c->fid.context)->value++;
	}

	static void incerr(struct fid_peer_cntr *c)
	{
		static_cast<MockCntr *>(c->fid.context)->errors++;
	}
};

/* A message on its way; lives until the transport is done with it. */
struct Msg {
	bool tagged;
	fi_addr_t src;
	uint64_t tag;
	std::string text;
	bool has_data;
	uint64_t data;
	fi_addr_t late = ANY; /* what get_addr() will say */
};

/* A transport. */
class Mock
{
public:
	Mock(struct fid_peer_srx *export_, const struct tdm_done *d)
		: fid(export_), done(d)
	{
		static struct fi_ops_srx_peer ops = {
			sizeof(ops), start_msg,	  start_tag,
			discard_msg, discard_tag,
		};

		fid->peer_ops = &ops;
		by_fid()[fid] = this;
	}

	~Mock()
	{
		by_fid().erase(fid);
	}

	/* A message arrives. Returns its entry, NULL when it has ended. */
	struct fi_peer_rx_entry *arrive(const Msg &m)
	{
		struct fi_peer_match_attr attr = { m.src, m.text.size(),
						   m.tag };
		struct fi_peer_rx_entry *e = nullptr;
		auto *ops = fid->owner_ops;
		int ret = m.tagged ? ops->get_tag(fid, &attr, &e) :
				     ops->get_msg(fid, &attr, &e);

		last_get = ret;
		if (ret != 0 && ret != -FI_ENOENT)
			return nullptr;
		EXPECT_EQ(e->srx, fid);
		EXPECT_EQ(e->addr, m.src);
		EXPECT_EQ(e->iov != nullptr && e->desc != nullptr, true);
		e->peer_context = new Msg(m);
		if (m.has_data) {
			e->flags |= FI_REMOTE_CQ_DATA;
			e->cq_data = m.data;
		}
		if (!ret) {
			fill(e);
			return hold ? e : nullptr;
		}
		EXPECT_EQ(e->msg_size, m.text.size());
		ret = m.tagged ? ops->queue_tag(e) : ops->queue_msg(e);
		EXPECT_EQ(ret, 0);
		queued++;
		return e;
	}

	struct fi_peer_rx_entry *tag(fi_addr_t src, uint64_t tag,
				     const std::string &text)
	{
		return arrive({ true, src, tag, text, false, 0 });
	}

	struct fi_peer_rx_entry *msg(fi_addr_t src, const std::string &text)
	{
		return arrive({ false, src, 0, text, false, 0 });
	}

	/* Finish an entry that was held: copy, complete, give back. */
	void finish(struct fi_peer_rx_entry *e)
	{
		std::unique_ptr<Msg> m(static_cast<Msg *>(e->peer_context));
		size_t room = tdm_iov_len(e->iov, e->count), n;

		EXPECT_EQ(e->msg_size, std::min(room, m->text.size()));
		EXPECT_EQ(e->flags & (FI_MSG | FI_TAGGED),
			  m->tagged ? FI_TAGGED : FI_MSG);
		n = tdm_iov_copy_to(e->iov, e->count, 0, m->text.data(),
				    m->text.size());
		if (n < m->text.size())
			tdm_done_recv_err(done, e,
					  tdm_truncated(n, m->text.size() - n));
		else
			tdm_done_recv(done, e, n);
		forget(e);
		fid->owner_ops->free_entry(e);
	}

	/* The transport gives up a message nobody has received. */
	void give_back(struct fi_peer_rx_entry *e)
	{
		delete static_cast<Msg *>(e->peer_context);
		forget(e);
		fid->owner_ops->free_entry(e);
	}

	/* Its AV changed. */
	void resolve()
	{
		fid->owner_ops->foreach_unspec_addr(fid, get_addr);
	}

	struct fid_peer_srx *fid;
	const struct tdm_done *done;
	bool hold = false; /* keep entries until finish() */
	int last_get = 0;
	unsigned queued = 0, started = 0, discarded = 0, asked = 0;
	std::vector<struct fi_peer_rx_entry *> held;
	std::function<void(struct fi_peer_rx_entry *)> on_start;

private:
	static std::map<struct fid_peer_srx *, Mock *> &by_fid()
	{
		static std::map<struct fid_peer_srx *, Mock *> map;

		return map;
	}

	void fill(struct fi_peer_rx_entry *e)
	{
		if (hold)
			held.push_back(e);
		else
			finish(e);
	}

	void forget(struct fi_peer_rx_entry *e)
	{
		for (size_t i = 0; i < held.size(); i++) {
			if (held[i] == e) {
				held.erase(held.begin() + long(i));
				return;
			}
		}
	}

	static int start(struct fi_peer_rx_entry *e, bool tagged)
	{
		Mock *self = by_fid()[e->srx];

		EXPECT_EQ(static_cast<Msg *>(e->peer_context)->tagged, tagged);
		self->started++;
		if (self->on_start)
			self->on_start(e);
		self->fill(e);
		return 0;
	}

	static int discard(struct fi_peer_rx_entry *e, bool tagged)
	{
		Msg *m = static_cast<Msg *>(e->peer_context);

		EXPECT_EQ(m->tagged, tagged);
		delete m;
		by_fid()[e->srx]->discarded++;
		return 0;
	}

	static int start_msg(struct fi_peer_rx_entry *e)
	{
		return start(e, false);
	}

	static int start_tag(struct fi_peer_rx_entry *e)
	{
		return start(e, true);
	}

	static int discard_msg(struct fi_peer_rx_entry *e)
	{
		return discard(e, false);
	}

	static int discard_tag(struct fi_peer_rx_entry *e)
	{
		return discard(e, true);
	}

	static fi_addr_t get_addr(struct fi_peer_rx_entry *e)
	{
		by_fid()[e->srx]->asked++;
		return static_cast<Msg *>(e->peer_context)->late;
	}
};

/* Receives and messages of @srx. */
inline size_t entries(const struct tdm_srx *srx)
{
	return srx->pool.in_use + srx->msgs.in_use;
}

/* An srx with two transports. */
class Srx : public ::testing::Test
{
protected:
	void SetUp() override
	{
		open(TDM_SRX_DIRECTED_MSG | TDM_SRX_DIRECTED_TAG, 8, 4);
	}

	void open(int directed, size_t size, size_t min_multi)
	{
		struct tdm_srx_attr attr = {};

		close();
		tdm_lock_init(&lock, 1);
		tdm_lock_acquire(&lock);
		engine.lock = &lock;
		attr.engine = &engine;
		attr.size = size;
		attr.min_multi_recv = min_multi;
		attr.directed = directed;
		ASSERT_EQ(tdm_srx_open(&attr, &srx), 0);
		done.rx_cq = &cq.fid;
		done.recv_cntr = &cntr.fid;
		tdm_srx_set_done(srx, &done);
		a.reset(new Mock(tdm_srx_export(srx, TDM_TRANSPORT_TCP),
				 &done));
		b.reset(new Mock(tdm_srx_export(srx, TDM_TRANSPORT_LOCAL),
				 &done));
	}

	/* Flushes, and checks that every entry has come back. */
	void close()
	{
		if (!srx)
			return;
		while (!a->held.empty())
			a->give_back(a->held.front());
		while (!b->held.empty())
			b->give_back(b->held.front());
		tdm_srx_flush(srx);
		EXPECT_EQ(entries(srx), 0u);
		EXPECT_EQ(srx->sides.in_use, 0u);
		a.reset();
		b.reset();
		tdm_srx_close(srx);
		tdm_lock_release(&lock);
		tdm_lock_fini(&lock);
		srx = nullptr;
	}

	void TearDown() override
	{
		close();
	}

	struct tdm_xfer xfer(uint64_t flags, fi_addr_t src, uint64_t tag,
			     void *context)
	{
		struct tdm_xfer x = {};

		x.flags = FI_RECV | flags;
		x.addr = src;
		x.tag = tag;
		x.context = context;
		return x;
	}

	ssize_t post(uint64_t flags, fi_addr_t src, uint64_t tag, void *buf,
		     size_t len, void *context, uint64_t ignore = 0)
	{
		struct tdm_xfer x = xfer(flags, src, tag, context);

		x.ignore = ignore;
		tdm_xfer_buf(&x, buf, len);
		return tdm_srx_recv(srx, &x);
	}

	/* A receive with a completion, into @text. */
	ssize_t trecv(fi_addr_t src, uint64_t tag, std::string &text,
		      uint64_t ignore = 0)
	{
		return post(FI_TAGGED | FI_COMPLETION, src, tag, &text[0],
			    text.size(), &text, ignore);
	}

	ssize_t recv(fi_addr_t src, std::string &text)
	{
		return post(FI_MSG | FI_COMPLETION, src, 0, &text[0],
			    text.size(), &text);
	}

	ssize_t multi(std::string &text, fi_addr_t src = ANY,
		      uint64_t flags = FI_MSG | FI_COMPLETION)
	{
		return post(flags | FI_MULTI_RECV, src, 0, &text[0],
			    text.size(), &text);
	}

	ssize_t peek(uint64_t flags, fi_addr_t src, uint64_t tag,
		     struct fi_context *context, uint64_t ignore = 0)
	{
		struct tdm_xfer x = xfer(FI_TAGGED | FI_COMPLETION | flags, src,
					 tag, context);

		x.ignore = ignore;
		return tdm_srx_recv(srx, &x);
	}

	/* The only entry since the last call. */
	Comp one()
	{
		Comp c = {};

		EXPECT_EQ(cq.got.size(), 1u);
		if (!cq.got.empty())
			c = cq.got[0];
		cq.got.clear();
		return c;
	}

	struct tdm_lock lock;
	struct tdm_engine engine = {};
	struct tdm_done done = {};
	struct tdm_srx *srx = nullptr;
	MockCq cq;
	MockCntr cntr;
	std::unique_ptr<Mock> a, b;
};

} // namespace srx_test

#endif /* TDT_SRX_MOCK_H */

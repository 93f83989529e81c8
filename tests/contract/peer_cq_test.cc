/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_peer(3), PEER CQ: one test per sentence that binds one side. OwnerCq is
 * our owner with a mock peer, PeerCq our peer with a mock owner.
 */
#include "owner_side.h"
#include "peer_side.h"

namespace
{

using shm_test::PairTest;
using shm_test::pattern;

class OwnerCq : public OwnerSide
{
protected:
	ssize_t write(void *context, uint64_t flags, size_t len = 0,
		      fi_addr_t src = FI_ADDR_NOTAVAIL)
	{
		ssize_t ret = -1;

		engine.locked([&] {
			ret = pcq->owner_ops->write(pcq, context, flags, len,
						    nullptr, 0x77, 0x88, src);
		});
		return ret;
	}

	ssize_t writeerr(void *context, int err)
	{
		struct fi_cq_err_entry e = {};
		ssize_t ret = -1;

		e.op_context = context;
		e.err = err;
		e.flags = FI_RECV | FI_MSG;
		e.len = 5;
		e.olen = 6;
		e.prov_errno = 7;
		engine.locked([&] { ret = pcq->owner_ops->writeerr(pcq, &e); });
		return ret;
	}
};

TEST_F(OwnerCq, FidAndOwnerOpsAreInitialised)
{
	/* fi_peer(3) 2.1, PEER CQ 5: The owner fills in fid and owner_ops of a
	 * fid_peer_cq. */
	EXPECT_EQ(size_t(FI_CLASS_PEER_CQ), pcq->fid.fclass);
	ASSERT_NE(nullptr, pcq->owner_ops);
	EXPECT_EQ(sizeof(struct fi_ops_cq_owner), pcq->owner_ops->size);
	EXPECT_NE(nullptr, pcq->owner_ops->write);
	EXPECT_NE(nullptr, pcq->owner_ops->writeerr);
}

TEST_F(OwnerCq, EachTransportHasAnExportOfItsOwn)
{
	/* fi_peer(3) 2.1, PEER CQ 2: An owner may have several peers. */
	struct fid_peer_cq *tcp = tdm_cq_export(cq, TDM_TRANSPORT_TCP);
	struct fi_cq_tagged_entry e = {};
	int context;

	EXPECT_NE(pcq, tcp);
	engine.locked([&] {
		EXPECT_EQ(0, tcp->owner_ops->write(tcp, &context,
						   FI_SEND | FI_MSG, 0, nullptr,
						   0, 0, FI_ADDR_NOTAVAIL));
	});
	EXPECT_EQ(1, fi_cq_read(tdm_cq_fid(cq), &e, 1));
	EXPECT_EQ(&context, e.op_context);
}

TEST_F(OwnerCq, WriteInsertsACompletion)
{
	/* fi_peer(3) 2.1, fi_ops_cq_owner::write() 1: write(): the owner
	 * inserts a completion. */
	struct fi_cq_tagged_entry e = {};
	fi_addr_t src = 0;
	int context;

	ASSERT_EQ(0, write(&context, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA,
			   42, 3));
	ASSERT_EQ(1, fi_cq_readfrom(tdm_cq_fid(cq), &e, 1, &src));
	EXPECT_EQ(&context, e.op_context);
	EXPECT_EQ(uint64_t(FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA), e.flags);
	EXPECT_EQ(42u, e.len);
	EXPECT_EQ(0x77u, e.data);
	EXPECT_EQ(0x88u, e.tag);
	EXPECT_EQ(3u, src);
}

TEST_F(OwnerCq, ParametersThatAreNotReportedAreIgnored)
{
	/* fi_peer(3) 2.1, fi_ops_cq_owner::write() 1: write(): the owner
	 * ignores parameters that its format has no place for. */
	struct fi_cq_attr attr = {};
	struct fi_cq_entry e[2] = {};
	struct tdm_cq *other = nullptr;
	int context;

	attr.format = FI_CQ_FORMAT_CONTEXT;
	ASSERT_EQ(0, tdm_cq_open(&engine.engine, &attr, 0, nullptr, &other));
	struct fid_peer_cq *p = tdm_cq_export(other, TDM_TRANSPORT_LOCAL);
	engine.locked([&] {
		EXPECT_EQ(0, p->owner_ops->write(p, &context, ~0ull, ~size_t(0),
						 &context, ~0ull, ~0ull, 5));
	});
	ASSERT_EQ(1, fi_cq_read(tdm_cq_fid(other), e, 2));
	EXPECT_EQ(&context, e[0].op_context);
	EXPECT_EQ(nullptr, e[1].op_context);
	EXPECT_EQ(0, fi_close(&tdm_cq_fid(other)->fid));
}

TEST_F(OwnerCq, WriteSignalsTheEvent)
{
	/* fi_peer(3) 2.1, fi_ops_cq_owner::write() 2: write(): locking, signals
	 * and overflow are the owner's. */
	struct fi_cq_tagged_entry e;
	int context, fd = -1;

	ASSERT_EQ(0, fi_control(&tdm_cq_fid(cq)->fid, FI_GETWAIT, &fd));
	ASSERT_EQ(0, tdm_cq_trywait(cq));
	EXPECT_FALSE(tdt::readable(fd));
	ASSERT_EQ(0, write(&context, FI_SEND | FI_MSG));
	EXPECT_TRUE(tdt::readable(fd));
	EXPECT_EQ(1, fi_cq_read(tdm_cq_fid(cq), &e, 1));
}

TEST_F(OwnerCq, OverflowIsTheOwnersToHandle)
{
	/* As above: more completions than the CQ has entries, all kept. */
	const uintptr_t n = 20000;
	struct fi_cq_tagged_entry e;

	for (uintptr_t i = 1; i <= n; i++)
		ASSERT_EQ(0,
			  write(reinterpret_cast<void *>(i), FI_SEND | FI_MSG));
	for (uintptr_t i = 1; i <= n; i++) {
		ASSERT_EQ(1, fi_cq_read(tdm_cq_fid(cq), &e, 1));
		ASSERT_EQ(reinterpret_cast<void *>(i), e.op_context);
	}
	EXPECT_EQ(-FI_EAGAIN, fi_cq_read(tdm_cq_fid(cq), &e, 1));
}

TEST_F(OwnerCq, WriteerrInsertsAFailure)
{
	/* fi_peer(3) 2.1, fi_ops_cq_owner::writeerr() 1: writeerr(): the owner
	 * inserts the completion of a transfer that failed. */
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {};
	int context;

	ASSERT_EQ(0, writeerr(&context, FI_ETRUNC));
	EXPECT_EQ(-FI_EAVAIL, fi_cq_read(tdm_cq_fid(cq), &e, 1));
	ASSERT_EQ(1, fi_cq_readerr(tdm_cq_fid(cq), &err, 0));
	EXPECT_EQ(&context, err.op_context);
	EXPECT_EQ(FI_ETRUNC, err.err);
	EXPECT_EQ(5u, err.len);
	EXPECT_EQ(6u, err.olen);
	EXPECT_EQ(7, err.prov_errno);
}

TEST_F(OwnerCq, OwnerDrivesProgressByReadingNothing)
{
	/* fi_peer(3) 2.1, PEER CQ 6: The owner drives a peer that needs manual
	 * progress by fi_cq_read of no entries. (The mock answers anything else
	 * by -FI_ENOSYS.) */
	int before = peer.find("cq")->reads;

	engine.locked([&] { tdm_link_progress(link); });
	EXPECT_EQ(before + 1, peer.find("cq")->reads);
}

TEST_F(OwnerCq, ExportOutlivesThePeersCq)
{
	/* fi_peer(3) 2.1, PEER CQ 3: The fid_peer_cq stays valid until the
	 * peer's queue is closed. */
	engine.locked([&] { tdm_link_ep_close(link, ep); });
	ep = nullptr;
	EXPECT_NE(nullptr, peer.find("cq"));
	EXPECT_EQ(0, fi_close(&tdm_cq_fid(cq)->fid));
	cq = nullptr;
	EXPECT_EQ(nullptr, peer.find("cq")) << "closed with its owner";
}

class PeerCqOpen : public RawPeer
{
protected:
	static ssize_t note(struct fid_peer_cq *, void *, uint64_t, size_t,
			    void *, uint64_t, uint64_t, fi_addr_t)
	{
		return 0;
	}

	struct fi_ops_cq_owner owner_ops = { sizeof(owner_ops), note, nullptr };
	struct fid_peer_cq exported_cq = {};

	int open(uint64_t flags, void *context, struct fid_cq **cq)
	{
		struct fi_cq_attr attr = {};

		exported_cq.fid.fclass = FI_CLASS_PEER_CQ;
		exported_cq.owner_ops = &owner_ops;
		attr.flags = flags;
		attr.wait_obj = FI_WAIT_NONE;
		return fi_cq_open(domain, &attr, cq, context);
	}
};

TEST_F(PeerCqOpen, NeedsFlagAndContext)
{
	/* fi_peer(3) 2.1, PEER CQ 3: With FI_PEER, the context of fi_cq_open is
	 * a fi_peer_cq_context. */
	struct fi_peer_cq_context ctx = { sizeof(ctx), &exported_cq };
	struct fid_cq *cq = nullptr;

	EXPECT_EQ(-FI_EINVAL, open(0, &ctx, &cq)) << "no stand-alone CQ";
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, nullptr, &cq));
	ctx.size = sizeof(ctx) - 1;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &cq));
	ctx.size = sizeof(ctx);
	ctx.cq = nullptr;
	EXPECT_EQ(-FI_EINVAL, open(FI_PEER, &ctx, &cq));
	EXPECT_EQ(nullptr, cq);
	ctx.cq = &exported_cq;
	ctx.size = sizeof(ctx) + 100; /* a later version's */
	ASSERT_EQ(0, open(FI_PEER, &ctx, &cq));
	memset(&ctx, 0xff, sizeof(ctx)); /* it is the caller's again */
	EXPECT_EQ(0, fi_cq_read(cq, nullptr, 0));
	EXPECT_EQ(0, fi_close(&cq->fid));
}

TEST_F(PeerCqOpen, OnlyProgressCanBeAskedFor)
{
	/* fi_peer(3) 2.1, PEER CQ 6: All calls that would read the peer's queue
	 * are -FI_ENOSYS. */
	struct fi_peer_cq_context ctx = { sizeof(ctx), &exported_cq };
	struct fi_cq_tagged_entry e = {};
	struct fi_cq_err_entry err = {};
	struct fid_cq *cq = nullptr;
	fi_addr_t src;

	ASSERT_EQ(0, open(FI_PEER, &ctx, &cq));
	EXPECT_EQ(0, fi_cq_read(cq, nullptr, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_readfrom(cq, &e, 1, &src));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_readerr(cq, &err, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_sread(cq, &e, 1, nullptr, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_sreadfrom(cq, &e, 1, &src, nullptr, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_signal(cq));
	EXPECT_EQ(0, fi_close(&cq->fid));
}

class PeerCq : public PairTest
{
};

TEST_F(PeerCq, CompletionsAreWrittenToTheOwner)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER CQ SETUP 1, step 5: The peer writes all
	 * completions to the imported queue. */
	auto out = pattern(300, 1);
	std::vector<unsigned char> in(300);
	char ca, cb;

	meet();
	tdt_owner_trecv(b, in.data(), in.size(), 5, &cb);
	ASSERT_EQ(0, send(a, to_b, out.data(), out.size(), 5, &ca));
	ASSERT_TRUE(until([&] {
		return tdt_owner_find(a, &ca) && tdt_owner_find(b, &cb);
	}));
	EXPECT_EQ(1u, a->dones);
	EXPECT_EQ(1u, b->dones);
	const struct tdt_done *s = tdt_owner_find(a, &ca);
	const struct tdt_done *r = tdt_owner_find(b, &cb);
	EXPECT_EQ(uint64_t(FI_SEND | FI_TAGGED), s->flags);
	EXPECT_EQ(uint64_t(FI_RECV | FI_TAGGED), r->flags);
	EXPECT_EQ(300u, r->len);
	EXPECT_EQ(5u, r->tag);
}

TEST_F(PeerCq, SourceIsInTheOwnersAddressSpace)
{
	/* fi_peer(3) 2.1, fi_ops_cq_owner::write() 2: write(): the data is
	 * what the user is to see. With FI_AV_USER_ID that is the owner's
	 * address. */
	meet();
	exchange(10, 3); /* checks src == id_a */
}

TEST_F(PeerCq, FailuresAreWrittenByWriteerr)
{
	/* fi_peer(3) 2.1, fi_ops_cq_owner::writeerr() 1: writeerr(): a transfer
	 * that failed has a completion. */
	auto out = pattern(100, 1);
	unsigned char in[10];
	char ca, cb;

	meet();
	tdt_owner_trecv(b, in, sizeof(in), 5, &cb);
	ASSERT_EQ(0, send(a, to_b, out.data(), out.size(), 5, &ca));
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &cb); }));
	const struct tdt_done *r = tdt_owner_find(b, &cb);
	EXPECT_EQ(FI_ETRUNC, r->err);
	EXPECT_EQ(10u, r->len);
	EXPECT_EQ(90u, r->olen);
	ASSERT_TRUE(until([&] { return tdt_owner_find(a, &ca); }));
	EXPECT_EQ(0, tdt_owner_find(a, &ca)->err);
}

TEST_F(PeerCq, NothingMovesWithoutTheOwnersRead)
{
	/* fi_peer(3) 2.1, PEER CQ 6: The owner drives a peer that needs manual
	 * progress by fi_cq_read. */
	char c = 1, d = 0, ca;

	meet();
	tdt_owner_trecv(b, &d, 1, 5, &d);
	ASSERT_EQ(0, send(a, to_b, &c, 1, 5, &ca));
	for (int i = 0; i < 1000; i++)
		tdt_owner_progress(a);
	EXPECT_EQ(nullptr, tdt_owner_find(b, &d));
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &d); }));
}

} // namespace

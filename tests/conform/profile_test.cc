/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of endpoints, fi_profile(3) 2.1; fi_tandem(7), PROFILES. */
#include <cstddef>

/* The header uses the macro and leaves its definition to the program. */
#define container_of(p, type, member)                                          \
	((type *)((char *)(p) - offsetof(type, member)))
#include <rdma/fi_profile.h>

#include "fi_ext_tandem.h"
#include "parts.h"

namespace
{

class Profile : public Parts
{
protected:
	enum { ALL = 13 }; /* variables of an endpoint that receives */

	struct fid_profile *p = nullptr;

	/* A call of a callback: its event, and the count at that time. */
	struct Seen {
		uint32_t id;
		uint64_t tag;
		size_t len, size;
		uint64_t count;
	};
	std::vector<Seen> seen;

	static int note(struct fid_profile *fid, struct fi_profile_desc *event,
			void *param, size_t size, void *context)
	{
		auto *list = (std::vector<Seen> *)context;
		auto *msg = (struct fi_cq_err_entry *)param;
		uint64_t n = 999;

		EXPECT_EQ(0,
			  fi_profile_read_u64(fid, FI_VAR_UNEXP_MSG_CNT, &n));
		EXPECT_EQ(-FI_EBUSY, fi_profile_register_callback(
					     fid, event->id, nullptr, nullptr));
		list->push_back({ event->id, msg->tag, msg->len, size, n });
		return 0;
	}

	/* A profile of @ep, rx() for instance; closed at the end. */
	void profile(struct fid_ep *ep)
	{
		ASSERT_EQ(0, fi_profile_open(&ep->fid, 0, &p, this));
		made.push_back(&p->fid);
		EXPECT_EQ((void *)this, p->fid.context);
	}

	uint64_t value(uint32_t id)
	{
		uint64_t v = 999;

		EXPECT_EQ(0, fi_profile_read_u64(p, id, &v));
		return v;
	}

	std::vector<struct fi_cq_err_entry> queue(size_t most)
	{
		std::vector<struct fi_cq_err_entry> list(most);
		size_t size = most * sizeof(list[0]);
		ssize_t got = p->ops->read_var(p, FI_VAR_UNEXP_MSG_QUEUE,
					       list.data(), &size);

		EXPECT_EQ(value(FI_VAR_UNEXP_MSG_CNT) * sizeof(list[0]), size);
		EXPECT_GE(got, 0);
		list.resize(size_t(got) / sizeof(list[0]));
		return list;
	}

	/* @n tagged messages of 10, 11, .. bytes with tags 0, 1, .. */
	void send(struct tdt_ep *from, std::vector<Bytes> &out, size_t n)
	{
		for (size_t i = 0; i < n; i++)
			out.push_back(filled(10 + i, 7));
		for (size_t i = 0; i < n; i++) {
			struct iovec v = iov_of(out[i].data(), out[i].size());

			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, i, &out[i]));
			OK(done(from, &out[i], FI_SEND | FI_TAGGED));
		}
		OK(fence(from));
	}

	void receive(size_t tag)
	{
		Bytes in(100);
		struct iovec v = iov_of(in.data(), in.size());

		ASSERT_EQ(0, tdt_trecv(rx(), &v, tag, 0, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
	}
};

TEST_F(Profile, SaysWhatItHas)
{
	/* fi_profile(3) 2.1, fi_profile_query_vars / fi_profile_query_events 1:
	 * Without an array the call sets the count alone; with one it returns
	 * how many it wrote. fi_profile_read_u64 1 and fi_profile_reg_callback
	 * 1: all but what is listed is -FI_EINVAL. */
	struct fi_profile_desc d[ALL + 2] = {};
	size_t n = 77;
	uint64_t v;

	OPEN();
	OK(profile(rx()->ep));
	EXPECT_EQ(0, fi_profile_query_vars(p, nullptr, &n));
	EXPECT_EQ(size_t(ALL), n);
	n = 2;
	EXPECT_EQ(2, fi_profile_query_vars(p, d, &n));
	EXPECT_EQ(size_t(ALL), n);
	n = ALL + 2;
	EXPECT_EQ(ALL, fi_profile_query_vars(p, d, &n));
	EXPECT_EQ(size_t(ALL), n);
	for (size_t i = 0; i < n; i++) {
		EXPECT_GT(strlen(d[i].name), 0u);
		EXPECT_GT(strlen(d[i].desc), 0u);
		EXPECT_EQ(d[i].datatype_sel == fi_primitive_type,
			  d[i].size == 8);
		for (size_t k = 0; k < i; k++) {
			EXPECT_NE(d[k].id, d[i].id);
			EXPECT_STRNE(d[k].name, d[i].name);
		}
	}
	n = 0;
	EXPECT_EQ(0, fi_profile_query_events(p, nullptr, &n));
	EXPECT_EQ(2u, n);
	EXPECT_EQ(2, fi_profile_query_events(p, d, &n));
	EXPECT_EQ(uint32_t(FI_EVENT_UNEXP_MSG_RECVD), d[0].id);
	EXPECT_EQ(uint32_t(FI_EVENT_UNEXP_MSG_MATCHED), d[1].id);
	EXPECT_EQ(-FI_EINVAL, fi_profile_query_vars(p, d, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_profile_read_u64(p, FI_VAR_OFI_MEM, &v));
	EXPECT_EQ(-FI_EINVAL,
		  fi_profile_register_callback(p, 4711, note, nullptr));
	n = 7;
	EXPECT_EQ(-FI_ETOOSMALL,
		  p->ops->read_var(p, FI_VAR_UNEXP_MSG_CNT, &v, &n));
	EXPECT_EQ(8u, n);
}

TEST_F(Profile, IsRefusedOrHoldsItsEndpoint)
{
	struct fid_ep *ep = nullptr;
	struct fi_profile_ops *ops;
	struct fid_profile *q;
	void *any;

	/* "RETURN VALUES": -FI_ENOSYS where there is no profile. */
	OPEN();
	EXPECT_EQ(-FI_ENOSYS,
		  fi_profile_open(&rx()->domain->fid, 0, &q, nullptr));
	EXPECT_EQ(-FI_ENOSYS,
		  fi_open_ops(&rx()->ep->fid, "else", 0, &any, nullptr));
	EXPECT_EQ(-FI_EBADFLAGS, fi_open_ops(&rx()->ep->fid, "fi_profile_ops",
					     1, (void **)&ops, nullptr));
	ASSERT_EQ(0, fi_endpoint(rx()->domain, rx()->info, &ep, nullptr));
	made.push_back(&ep->fid);
	EXPECT_EQ(-FI_EOPBADSTATE, fi_profile_open(&ep->fid, 0, &q, nullptr));
	OK(profile(rx()->ep));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->ep->fid));
}

TEST_F(Profile, UnexpectedMessagesAreCountedAndListed)
{
	/* "VARIABLES", FI_VAR_UNEXP_MSG_CNT and FI_VAR_UNEXP_MSG_QUEUE: those
	 * that wait for a receive now, one entry each. */
	attr.caps |= FI_SOURCE;
	OPEN();
	OK(profile(rx()->ep));
	for (auto *from : senders()) {
		std::vector<Bytes> out;
		char c = 'u', in = 0;

		EXPECT_EQ(0u, value(FI_VAR_UNEXP_MSG_CNT));
		ASSERT_EQ(0, tdt_send(from, rx(), &c, 1, &c));
		OK(done(from, &c, FI_SEND | FI_MSG));
		OK(send(from, out, 5));
		EXPECT_EQ(6u, value(FI_VAR_UNEXP_MSG_CNT));
		EXPECT_EQ(2u, queue(2).size());
		auto list = queue(10);
		ASSERT_EQ(6u, list.size());
		EXPECT_EQ(uint64_t(FI_RECV | FI_MSG), list[0].flags);
		EXPECT_EQ(1u, list[0].len);
		for (size_t i = 1; i < 6; i++) {
			EXPECT_EQ(uint64_t(FI_RECV | FI_TAGGED), list[i].flags);
			EXPECT_EQ(9 + i, list[i].len);
			EXPECT_EQ(i - 1, list[i].tag);
			EXPECT_EQ(addr(rx(), from), list[i].src_addr);
		}
		OK(receive(3));
		list = queue(10);
		ASSERT_EQ(5u, list.size());
		EXPECT_EQ(4u, list[4].tag);
		for (size_t i : { 0, 1, 2, 4 })
			OK(receive(i));
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
	}
	EXPECT_EQ(0u, queue(10).size());
}

TEST_F(Profile, ClaimedMessagesWaitStill)
{
	struct fi_context2 ctx = {};
	struct fi_msg_tagged msg = {};
	Bytes in(100);
	struct iovec v = iov_of(in.data(), in.size());

	OPEN();
	OK(profile(rx()->ep));
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		OK(send(from, out, 2));
		msg.context = &ctx;
		msg.tag = 1;
		msg.addr = FI_ADDR_UNSPEC;
		ASSERT_EQ(0, keep_on([&] {
				  return fi_trecvmsg(rx()->ep, &msg,
						     FI_PEEK | FI_CLAIM);
			  }));
		OK(done(rx(), &ctx, FI_RECV | FI_TAGGED));
		EXPECT_EQ(2u, value(FI_VAR_UNEXP_MSG_CNT));
		auto list = queue(2);
		EXPECT_EQ(0u, list[0].tag);
		EXPECT_EQ(1u, list[1].tag);
		msg.msg_iov = &v;
		msg.iov_count = 1;
		ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &msg,
					 FI_CLAIM | FI_COMPLETION));
		OK(done(rx(), &ctx, FI_RECV | FI_TAGGED));
		EXPECT_EQ(1u, value(FI_VAR_UNEXP_MSG_CNT));
		OK(receive(0));
	}
}

TEST_F(Profile, ReadsBetweenStartAndEndAreOfOneMoment)
{
	/* "fi_profile_start_reads / fi_profile_end_reads" 1: a single
	 * snapshot. */
	OPEN();
	OK(profile(rx()->ep));
	for (auto *from : senders()) {
		std::vector<Bytes> out, more;

		OK(send(from, out, 3));
		fi_profile_start_reads(p, 0);
		OK(send(from, more, 4));
		EXPECT_EQ(3u, value(FI_VAR_UNEXP_MSG_CNT));
		EXPECT_EQ(3u, queue(10).size());
		fi_profile_end_reads(p, 0);
		EXPECT_EQ(7u, value(FI_VAR_UNEXP_MSG_CNT));
		EXPECT_EQ(7u, queue(10).size());
		for (size_t i : { 0, 0, 1, 1, 2, 2, 3 })
			OK(receive(i));
	}
	/* Closed with a snapshot. */
	fi_profile_start_reads(p, 0);
}

TEST_F(Profile, EventsAreToldAsTheyHappen)
{
	/* "EVENTS": FI_EVENT_UNEXP_MSG_RECVD, FI_EVENT_UNEXP_MSG_MATCHED; a
	 * callback may read variables, and register nothing. */
	const size_t entry = sizeof(struct fi_cq_err_entry);

	OPEN();
	OK(profile(rx()->ep));
	for (uint32_t e :
	     { FI_EVENT_UNEXP_MSG_RECVD, FI_EVENT_UNEXP_MSG_MATCHED })
		ASSERT_EQ(0, fi_profile_register_callback(p, e, note, &seen));
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		seen.clear();
		OK(send(from, out, 2));
		OK(receive(1));
		OK(receive(0));
		/* A posted receive takes the third at once. */
		const std::vector<Seen> want = {
			{ FI_EVENT_UNEXP_MSG_RECVD, 0, 10, entry, 1 },
			{ FI_EVENT_UNEXP_MSG_RECVD, 1, 11, entry, 2 },
			{ FI_EVENT_UNEXP_MSG_MATCHED, 1, 11, entry, 1 },
			{ FI_EVENT_UNEXP_MSG_MATCHED, 0, 10, entry, 0 },
		};
		ASSERT_EQ(want.size(), seen.size());
		for (size_t i = 0; i < want.size(); i++) {
			EXPECT_EQ(want[i].id, seen[i].id) << i;
			EXPECT_EQ(want[i].tag, seen[i].tag) << i;
			EXPECT_EQ(want[i].len, seen[i].len) << i;
			EXPECT_EQ(want[i].size, seen[i].size) << i;
			EXPECT_EQ(want[i].count, seen[i].count) << i;
		}
	}
	seen.clear();
	for (uint32_t e :
	     { FI_EVENT_UNEXP_MSG_RECVD, FI_EVENT_UNEXP_MSG_MATCHED })
		ASSERT_EQ(0, fi_profile_register_callback(p, e, nullptr, p));
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		OK(send(from, out, 1));
		OK(receive(0));
	}
	EXPECT_EQ(0u, seen.size());
}

TEST_F(Profile, PeersWithAPathAreCounted)
{
	/* fi_tandem(7), PROFILES: all indices of a peer count once. */
	OPEN();
	OK(profile(rx()->ep));
	EXPECT_EQ(0u, value(FI_VAR_CONNECTION_CNT));
	for (auto *from : senders()) {
		char name[TDT_NAME_BYTES];
		size_t len = sizeof(name);

		ASSERT_EQ(0, fi_getname(&from->ep->fid, name, &len));
		ASSERT_EQ(1,
			  fi_av_insert(rx()->av, name, 1, nullptr, 0, nullptr));
		OK(fence(from));
	}
	EXPECT_EQ(senders().size(), value(FI_VAR_CONNECTION_CNT));
}

TEST_F(Profile, DataVolumeIsThatOfTheReport)
{
	/* fi_tandem(7), PROFILES: the sums of all peers in the report; paths
	 * by their kind. */
	struct tdm_report_path path = {};
	struct tdm_report_ops *ops;
	uint64_t msgs = 0, bytes = 0, shm = 0;

	OPEN();
	OK(profile(rx()->ep));
	ASSERT_EQ(0, fi_open_ops(&rx()->ep->fid, TDM_REPORT_OPS, 0,
				 (void **)&ops, nullptr));
	EXPECT_EQ(0u, value(TDM_VAR_RECEIVED_BYTES));
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		OK(send(from, out, 3));
		for (size_t i = 0; i < 3; i++)
			OK(receive(i));
		path.size = sizeof(path);
		ASSERT_EQ(0, ops->path(rx()->ep, addr(rx(), from), &path));
		msgs += path.rx_msgs;
		bytes += path.rx_bytes;
		shm += path.path == TDM_REPORT_SHM;
	}
	EXPECT_GE(bytes, senders().size() * (10 + 11 + 12));
	EXPECT_EQ(msgs, value(TDM_VAR_RECEIVED_MSGS));
	EXPECT_EQ(bytes, value(TDM_VAR_RECEIVED_BYTES));
	EXPECT_EQ(shm, value(TDM_VAR_SHM_PEERS));
	EXPECT_EQ(senders().size() - shm, value(TDM_VAR_TCP_PEERS));
	EXPECT_EQ(0u, value(TDM_VAR_FAILED_CONNECTS));
	OK(profile(senders()[0]->ep));
	EXPECT_GE(value(TDM_VAR_SENT_MSGS), 3u);
	EXPECT_GE(value(TDM_VAR_SENT_BYTES), 10u + 11u + 12u);
}

TEST_F(Profile, ReceivesAndMemoryOfTheReceiveSide)
{
	/* fi_tandem(7), PROFILES: TDM_VAR_POSTED_RECVS, TDM_VAR_UNEXP_BYTES. */
	Bytes in(100);
	struct iovec v = iov_of(in.data(), in.size());

	OPEN();
	OK(profile(rx()->ep));
	EXPECT_EQ(0u, value(TDM_VAR_POSTED_RECVS));
	for (uint64_t k = 1; k < 4; k++) {
		ASSERT_EQ(0, tdt_trecv(rx(), &v, 1000 + k, 0, &in));
		EXPECT_EQ(k, value(TDM_VAR_POSTED_RECVS));
	}
	for (auto *from : senders()) {
		std::vector<Bytes> out;
		uint64_t before = value(FI_VAR_UNEXP_MSG_CNT);

		OK(send(from, out, 2));
		EXPECT_EQ(before + 2, value(FI_VAR_UNEXP_MSG_CNT));
		EXPECT_GT(value(TDM_VAR_UNEXP_BYTES), 0u);
		EXPECT_EQ(3u, value(TDM_VAR_POSTED_RECVS));
		OK(receive(0));
		OK(receive(1));
	}
}

TEST_F(Profile, OperationsThatWaitAreCounted)
{
	/* fi_tandem(7), PROFILES: TDM_VAR_QUEUED_OPS, those that wait for a
	 * path included. The address is of an endpoint that was closed. */
	char c = 'x';

	OPEN();
	struct tdt_ep *from = senders()[0];
	fi_addr_t to = from->peers[rx()->index];
	OK(profile(from->ep));
	ASSERT_EQ(0, tdt_ep_close(rx()));
	EXPECT_EQ(0u, value(TDM_VAR_QUEUED_OPS));
	ASSERT_EQ(0, fi_send(from->ep, &c, 1, nullptr, to, &c));
	EXPECT_EQ(1u, value(TDM_VAR_QUEUED_OPS));
}

TEST_F(Profile, OfASharedReceiveContext)
{
	struct fid_ep *srx = nullptr, *ep = nullptr;
	struct fid_cq *tx, *rxq;
	size_t n = 0;

	OPEN();
	struct fi_info *i = info([](struct fi_info *in) {
		in->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	});
	ASSERT_EQ(0, fi_srx_context(rx()->domain, nullptr, &srx, nullptr));
	made.push_back(&srx->fid);
	tx = cq(rx()->domain);
	rxq = cq(rx()->domain);
	ASSERT_EQ(0, fi_endpoint(rx()->domain, i, &ep, nullptr));
	fi_freeinfo(i);
	made.push_back(&ep->fid);
	ASSERT_EQ(0, fi_ep_bind(ep, &rx()->av->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(ep, &tx->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_ep_bind(ep, &rxq->fid, FI_RECV));
	ASSERT_EQ(0, fi_ep_bind(ep, &srx->fid, 0));
	ASSERT_EQ(0, fi_enable(ep));
	OK(profile(srx));
	fi_profile_query_vars(p, nullptr, &n);
	EXPECT_EQ(3u, n);
	OK(profile(ep));
	fi_profile_query_vars(p, nullptr, &n);
	EXPECT_EQ(size_t(ALL), n);
	for (auto *from : senders()) {
		uint64_t before = value(FI_VAR_UNEXP_MSG_CNT);
		fi_addr_t to = insert(from->av, ep);
		char c = 'x';

		ASSERT_EQ(0, keep_on([&] {
				  return fi_inject(from->ep, &c, 1, to);
			  }));
		EXPECT_EQ(0, keep_on([&]() -> ssize_t {
				  return value(FI_VAR_UNEXP_MSG_CNT) == before ?
						 -FI_EAGAIN :
						 0;
			  }));
	}
	EXPECT_EQ(-FI_EBUSY, fi_close(&srx->fid));
}

} // namespace

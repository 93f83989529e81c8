/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a pair agrees on its path, tcp/pair.h, over two transports that do what
 * the test says.
 */
#include <vector>

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tests/harness/test_ep.h"

extern "C" {
#include "tcp/backlog.h"
#include "tcp/root.h"
#include "tcp/wire/tcp.h"
}

namespace
{

const fi_addr_t INDEX = 3, AT_PEER = 7;

/* Answers of the transports, each until the next one is set. */
struct Transports {
	fi_addr_t local = AT_PEER;
	ssize_t attach = 0;
	int probe = 0;
	ssize_t send = 0;
	bool memory = true;

	std::vector<const char *> asked;
	struct tdm_conn conn = {};
} *now;

const struct tdm_tiers mock = {
	[](const struct tdm_root *, fi_addr_t addr) {
		EXPECT_EQ(INDEX, addr);
		return now->local;
	},
	[](struct tdm_root *, struct tdm_pair *p, const struct tdm_xfer *) {
		EXPECT_EQ(AT_PEER, p->local);
		now->asked.push_back("attach");
		return now->attach;
	},
	[](struct tdm_root *, fi_addr_t addr) {
		EXPECT_EQ(INDEX, addr);
		return now->memory ? &now->conn : nullptr;
	},
	[](struct tdm_conn *conn) {
		EXPECT_EQ(&now->conn, conn);
		now->asked.push_back("probe");
		return now->probe;
	},
	[](struct tdm_conn *conn, const struct tdm_xfer *) {
		EXPECT_EQ(&now->conn, conn);
		now->asked.push_back("tcp");
		return now->send;
	},
	[](struct tdm_conn *conn) {
		EXPECT_EQ(&now->conn, conn);
		now->asked.push_back("drop");
	},
	nullptr,
	nullptr,
	nullptr,
};

using Asked = std::vector<const char *>;

class Agreement : public ::testing::Test
{
protected:
	Transports transports;
	struct tdm_env saved = tdm_env;
	struct tdm_root *root = nullptr;
	struct tdm_xfer x = {};
	struct fid_ep peer = {};
	struct tdm_pair *p = nullptr;

	void SetUp() override
	{
		now = &transports;
		root = tdt_ep_new();
		ASSERT_NE(nullptr, root);
		root->tiers = &mock;
		root->local = &peer;
		x.addr = INDEX;
		p = tdm_pair_new();
		ASSERT_NE(nullptr, p);
	}

	void TearDown() override
	{
		tdm_env = saved;
		free(p);
		tdt_ep_free(root);
	}

	ssize_t agree()
	{
		now->asked.clear();
		return tdm_pair_agree(root, p, &x);
	}

	void expect(enum tdm_path path, enum tdm_reason reason)
	{
		EXPECT_EQ(path, p->path);
		EXPECT_EQ(path, p->agreed);
		EXPECT_EQ(reason, p->reason);
		EXPECT_EQ(TDM_SEARCH_ATTACH, p->search);
		EXPECT_EQ(path == TDM_PATH_REMOTE ? &now->conn : nullptr,
			  p->conn);
	}
};

TEST_F(Agreement, AnAttachedPeerIsLocal)
{
	now->attach = -FI_EAGAIN;
	EXPECT_EQ(-FI_EAGAIN, agree());
	expect(TDM_PATH_UNKNOWN, TDM_REASON_NONE);
	now->attach = 0;
	EXPECT_EQ(0, agree());
	EXPECT_EQ(Asked({ "attach" }), now->asked);
	expect(TDM_PATH_LOCAL, TDM_REASON_NONE);
}

TEST_F(Agreement, AnAddressOfAnotherHostIsRemoteAtOnce)
{
	now->local = FI_ADDR_NOTAVAIL;
	now->send = -FI_EAGAIN;
	EXPECT_EQ(-FI_EAGAIN, agree());
	EXPECT_EQ(Asked({ "tcp" }), now->asked);
	expect(TDM_PATH_REMOTE, TDM_REASON_HOST);
}

TEST_F(Agreement, WithoutSharedMemoryItIsRemoteForTheEndpointsReason)
{
	root->local = nullptr;
	root->local_why = TDM_REASON_DISABLED;
	EXPECT_EQ(0, agree());
	EXPECT_EQ(Asked({ "tcp" }), now->asked);
	expect(TDM_PATH_REMOTE, TDM_REASON_DISABLED);
}

TEST_F(Agreement, APeerThatRefusesIsRemote)
{
	now->attach = -FI_EHOSTUNREACH;
	p->reason = TDM_REASON_UID; /* told before by an event */
	EXPECT_EQ(0, agree());
	EXPECT_EQ(Asked({ "attach", "tcp" }), now->asked);
	expect(TDM_PATH_REMOTE, TDM_REASON_UID);
}

/* The process was between its attach socket and its port, or has no memory. */
TEST_F(Agreement, NobodyListensIsFinalOnlyAfterAProbe)
{
	now->attach = -FI_ECONNREFUSED;
	EXPECT_EQ(-FI_EAGAIN, agree());
	EXPECT_EQ(Asked({ "attach" }), now->asked);
	now->probe = -FI_EAGAIN;
	EXPECT_EQ(-FI_EAGAIN, agree());
	EXPECT_EQ(Asked({ "probe" }), now->asked);
	EXPECT_EQ(TDM_PATH_UNKNOWN, p->agreed);
	now->probe = 0;
	EXPECT_EQ(0, agree());
	EXPECT_EQ(Asked({ "probe", "attach", "tcp" }), now->asked);
	expect(TDM_PATH_REMOTE, TDM_REASON_NO_LISTENER);
}

TEST_F(Agreement, AttachingAfterTheProbeMakesItLocalAndDropsTheConnection)
{
	now->attach = -FI_ECONNREFUSED;
	EXPECT_EQ(-FI_EAGAIN, agree());
	now->attach = 0;
	EXPECT_EQ(0, agree());
	EXPECT_EQ(Asked({ "probe", "attach", "drop" }), now->asked);
	expect(TDM_PATH_LOCAL, TDM_REASON_NONE);
}

TEST_F(Agreement, ARefusedProbeStartsOver)
{
	now->attach = -FI_ECONNREFUSED;
	now->probe = -FI_ECONNREFUSED;
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-FI_EAGAIN, agree());
		EXPECT_EQ(Asked({ "attach" }), now->asked);
		EXPECT_EQ(-FI_EAGAIN, agree());
		EXPECT_EQ(Asked({ "probe" }), now->asked);
	}
	/* A host that refuses until the time-out has nobody there. */
	EXPECT_EQ(-FI_EAGAIN, agree());
	now->probe = -FI_ETIMEDOUT;
	EXPECT_EQ(-FI_ECONNREFUSED, agree());
	EXPECT_EQ(TDM_PATH_UNKNOWN, p->agreed);
	EXPECT_EQ(TDM_SEARCH_ATTACH, p->search);
}

TEST_F(Agreement, SharedMemoryOnlyAsksNoTcp)
{
	tdm_env.shm = TDM_SHM_ONLY;
	now->attach = -FI_ECONNREFUSED;
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-FI_EAGAIN, agree());
		EXPECT_EQ(Asked({ "attach" }), now->asked);
	}
	now->attach = -FI_EHOSTUNREACH;
	EXPECT_EQ(-FI_EHOSTUNREACH, agree());
	EXPECT_EQ(Asked({ "attach" }), now->asked);
	expect(TDM_PATH_UNKNOWN, TDM_REASON_NO_LISTENER);
}

TEST_F(Agreement, WithoutMemoryNothingIsAgreed)
{
	now->memory = false;
	now->local = FI_ADDR_NOTAVAIL;
	EXPECT_EQ(-FI_ENOMEM, agree());
	expect(TDM_PATH_UNKNOWN, TDM_REASON_HOST);
	now->local = AT_PEER;
	now->attach = -FI_ECONNREFUSED;
	EXPECT_EQ(-FI_EAGAIN, agree());
	EXPECT_EQ(-FI_ENOMEM, agree());
	now->memory = true;
	EXPECT_EQ(0, agree());
	expect(TDM_PATH_REMOTE, TDM_REASON_NO_LISTENER);
}

TEST_F(Agreement, TheErrorOfAnOperationAgreesOnNothing)
{
	now->attach = -FI_EMSGSIZE;
	EXPECT_EQ(-FI_EMSGSIZE, agree());
	expect(TDM_PATH_UNKNOWN, TDM_REASON_NONE);
}

/* A session that ended without a word: the next send finds out. */
TEST_F(Agreement, ADetachedPairProbesWhenNobodyListens)
{
	EXPECT_EQ(0, agree());
	tdm_pair_detached(p, -FI_ECONNREFUSED);
	EXPECT_EQ(TDM_PATH_UNKNOWN, p->path);
	EXPECT_EQ(TDM_SEARCH_PROBE, p->search);
	EXPECT_EQ(0, agree());
	EXPECT_EQ(Asked({ "probe", "attach", "drop" }), now->asked);
	tdm_pair_detached(p, -FI_EHOSTUNREACH);
	EXPECT_EQ(0, agree());
	EXPECT_EQ(Asked({ "attach" }), now->asked);
}

/* Operations that wait hide the path from those that come after them. */
TEST_F(Agreement, AHeldPairKeepsWhatIsAgreedMeanwhile)
{
	tdm_pair_hold(p);
	tdm_pair_attached(root, p);
	EXPECT_EQ(TDM_PATH_QUEUED, p->path);
	EXPECT_EQ(TDM_PATH_LOCAL, p->agreed);
	tdm_pair_lost(p);
	EXPECT_EQ(TDM_PATH_QUEUED, p->path);
	p->conn = &now->conn;
	tdm_pair_connected(p);
	tdm_pair_release(p);
	expect(TDM_PATH_REMOTE, TDM_REASON_NONE);
	tdm_pair_lost(p);
	expect(TDM_PATH_UNKNOWN, TDM_REASON_NONE);
}

#ifndef NDEBUG
TEST_F(Agreement, AnIllegalStepStops)
{
	p->conn = &now->conn;
	tdm_pair_connected(p);
	EXPECT_DEATH(tdm_pair_attached(root, p), "");
}
#endif

} // namespace

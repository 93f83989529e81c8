/* SPDX-License-Identifier: BSD-2-Clause */
/* Static probes: fi_tandem(7), TRACING. */
#include <sys/resource.h>

#include "tests/harness/fixture.h"
#include "tests/harness/probes.h"
#include "tests/soak/sever.h"

namespace
{

class Trace : public Case
{
protected:
	void arm()
	{
		int n = tdt_probes_arm("libtandem-fi", "tandem");

		if (n == 0)
			GTEST_SKIP() << "built without sys/sdt.h";
		if (n < 0)
			GTEST_SKIP() << "no breakpoints here";
		EXPECT_GE(n, 9);
	}

	void SetUp() override
	{
		ONLY_TANDEM();
		OPEN();
		arm();
	}

	void TearDown() override
	{
		tdt_probes_disarm();
		Case::TearDown();
	}

	/* The hits of @name so far whose argument @i is @value. */
	static std::vector<struct tdt_probe_hit> hits(const std::string &name,
						      int i, uint64_t value)
	{
		std::vector<struct tdt_probe_hit> list;
		size_t n;
		const struct tdt_probe_hit *h = tdt_probes_hits(&n);

		for (; n--; h++) {
			if (name == h->name && h->args > i &&
			    h->arg[i] == value)
				list.push_back(*h);
		}
		return list;
	}

	static size_t count(const std::string &name)
	{
		size_t n, found = 0;
		const struct tdt_probe_hit *h = tdt_probes_hits(&n);

		for (; n--; h++)
			found += name == h->name;
		return found;
	}

	/* Send @len bytes with @tag to rx(), which receives them. */
	void pass(struct tdt_ep *from, uint64_t tag, size_t len)
	{
		Bytes out = filled(len, 5), in(len);
		struct iovec ov = iov_of(out.data(), len);
		struct iovec iv = iov_of(in.data(), len);

		ASSERT_EQ(0, tdt_trecv(rx(), &iv, tag, 0, &in));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, tag, &out));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
};

TEST_F(Trace, AMessageIsFollowed)
{
	char context = 0;
	uint64_t tag = 1000;

	for (struct tdt_ep *from : senders()) {
		Bytes out = filled(77, 5), in(77);
		struct iovec ov = iov_of(out.data(), 77);
		struct iovec iv = iov_of(in.data(), 77);

		tag++;
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, tag, 0, &context));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, tag, &out));
		OK(done(rx(), &context, FI_RECV | FI_TAGGED));
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
	tdt_probes_disarm();
	tag = 1000;
	for (struct tdt_ep *from : senders()) {
		tag++;
		auto posted = hits("post_recv", 3, tag);
		ASSERT_EQ(1u, posted.size());
		EXPECT_EQ(77u, posted[0].arg[1]);
		EXPECT_EQ((uintptr_t)&context, posted[0].arg[4]);
		EXPECT_EQ(0u, posted[0].arg[5]);
		auto sent = hits("post_send", 3, tag);
		ASSERT_EQ(1u, sent.size());
		EXPECT_EQ(addr(from, rx()), sent[0].arg[0]);
		EXPECT_EQ(77u, sent[0].arg[1]);
		EXPECT_EQ(uint64_t(FI_TAGGED), sent[0].arg[2] & FI_TAGGED);
		EXPECT_EQ(0u, sent[0].arg[5]);
		auto met = hits("match", 1, tag);
		ASSERT_EQ(1u, met.size());
		EXPECT_EQ(addr(rx(), from), met[0].arg[0]);
		EXPECT_EQ(77u, met[0].arg[2]);
		EXPECT_EQ((uintptr_t)&context, met[0].arg[3]);
		auto ended = hits("complete", 3, tag);
		ASSERT_EQ(1u, ended.size());
		EXPECT_EQ((uintptr_t)&context, ended[0].arg[0]);
		EXPECT_EQ(uint64_t(FI_RECV | FI_TAGGED),
			  ended[0].arg[1] & (FI_RECV | FI_TAGGED));
		EXPECT_EQ(77u, ended[0].arg[2]);
	}
	/* A path was agreed, and each has its name. */
	size_t n;
	const struct tdt_probe_hit *h = tdt_probes_hits(&n);
	std::vector<std::string> to;

	for (; n--; h++) {
		if (std::string("route") == h->name)
			to.push_back((const char *)(uintptr_t)h->arg[2]);
	}
	bool local = false, remote = false;

	for (const std::string &name : to) {
		local |= name == "local";
		remote |= name == "remote";
	}
	EXPECT_EQ(tdt_path() != TDT_REMOTE, local);
	EXPECT_EQ(tdt_path() != TDT_LOCAL, remote);
}

TEST_F(Trace, AnUnexpectedMessageAndAnErrorAreTold)
{
	for (struct tdt_ep *from : senders()) {
		Bytes out = filled(200, 5), in(200);
		struct iovec ov = iov_of(out.data(), 200);
		struct iovec iv = iov_of(in.data(), 100);
		uint64_t tag = 2000 + from->index;

		ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, tag, &out));
		OK(fence(from));
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, tag, 0, &in));
		OK(failed(rx(), &in, FI_ETRUNC));
		OK(done(from, &out, FI_SEND | FI_TAGGED));
		tdt_probes_disarm();
		auto came = hits("unexpected", 1, tag);
		ASSERT_EQ(1u, came.size());
		EXPECT_EQ(addr(rx(), from), came[0].arg[0]);
		EXPECT_EQ(200u, came[0].arg[2]);
		EXPECT_EQ(1u, hits("match", 1, tag).size());
		auto failed = hits("complete_error", 0, (uintptr_t)&in);
		ASSERT_EQ(1u, failed.size());
		EXPECT_EQ(uint64_t(FI_ETRUNC), failed[0].arg[3]);
		arm();
	}
}

TEST_F(Trace, AConnectionThatIsMadeAgainIsTold)
{
	struct tdt_ep *from = senders().back();
	uint64_t random = 1;

	if (tdt_path() == TDT_LOCAL)
		GTEST_SKIP() << "has no connection";
	OK(pass(from, 1, 8));
	ASSERT_EQ(0, tdt_soak_sever(getpid(), &random));
	OK(pass(from, 2, 8));
	OK(pass(from, 3, 8));
	tdt_probes_disarm();
	EXPECT_GE(count("reconnect"), 1u);
	EXPECT_GE(count("resumed"), 1u);
	for (const auto &h : hits("reconnect", 1, FI_ECONNRESET))
		EXPECT_EQ(2, h.args);
}

} // namespace

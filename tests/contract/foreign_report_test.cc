/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report of paths by a foreign provider: fi_tandem(7), REPORT.
 */
#include "tests/contract/foreign_fixture.h"

namespace
{

class ForeignReport : public Foreign
{
protected:
	char out[3000], in[4000];

	void SetUp() override
	{
		if (!has_liar())
			GTEST_SKIP() << "another layout of receive entries";
	}

	/* One tagged message of @len bytes. */
	void message(size_t from, size_t to, size_t len)
	{
		struct iovec ov = iov_of(out, len), iv = iov_of(in, sizeof(in));

		ASSERT_EQ(0, tdt_trecv(ep(to), &iv, 5, 0, in));
		ASSERT_EQ(0, tdt_tsend(ep(from), ep(to), &ov, 5, out));
		ASSERT_EQ(0, tdt_wait(ep(from), out, nullptr));
		ASSERT_EQ(0, tdt_wait(ep(to), in, nullptr));
	}

	void messages()
	{
		OPEN();
		OK(message(1, 0, 100));
		OK(message(1, 0, 2000));
		OK(message(0, 1, 7));
	}

	/* The report of endpoint @at on endpoint @to. */
	struct tdm_report_path path(size_t at, size_t to)
	{
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path p = {};

		p.size = sizeof(p);
		EXPECT_EQ(0, fi_open_ops(&ep(at)->ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		EXPECT_EQ(0, ops->path(ep(at)->ep, addr(ep(at), ep(to)), &p));
		return p;
	}

	static int ended(void *arg)
	{
		auto *t = static_cast<ForeignReport *>(arg);

		return t->path(1, 0).state != TDM_REPORT_IN_USE;
	}
};

} // namespace

TEST_F(ForeignReport, HasItsMessagesAndBytes)
{
	/* fi_tandem(7), REPORT: path.foreign has the counts of the provider. */
	OK(messages());
	for (size_t at = 0; at < 2; at++) {
		struct tdm_report_path p = path(at, 1 - at);

		EXPECT_EQ(uint32_t(TDM_REPORT_FOREIGN), p.path);
		EXPECT_EQ(uint32_t(TDM_REPORT_IN_USE), p.state);
		EXPECT_STREQ("liar", p.provider);
		EXPECT_EQ(at ? 2u : 1u, p.foreign.tx_msgs);
		EXPECT_EQ(at ? 2100u : 7u, p.foreign.tx_bytes);
		EXPECT_EQ(at ? 1u : 2u, p.foreign.rx_msgs);
		EXPECT_EQ(at ? 7u : 2100u, p.foreign.rx_bytes);
		EXPECT_EQ(0u, p.tcp.tx_msgs + p.tcp.rx_msgs);
		EXPECT_EQ(p.foreign.tx_bytes, p.tx_bytes);
		EXPECT_EQ(p.foreign.rx_msgs, p.rx_msgs);
	}
}

TEST_F(ForeignReport, TellsWhatTheProviderLacks)
{
	/* fi_tandem(7), REPORT: path.lacks, of a provider without user ids. */
	const uint64_t always =
		TDM_REPORT_LACKS_REGIONS | TDM_REPORT_LACKS_DEATH |
		TDM_REPORT_LACKS_WAKING | TDM_REPORT_LACKS_CANCEL;

	OK(messages());
	EXPECT_EQ(always, path(1, 0).lacks);
	close();
	lie("no user ids");
	OK(messages());
	EXPECT_EQ(always | TDM_REPORT_LACKS_USER_IDS, path(1, 0).lacks);
	EXPECT_EQ(2100u, path(1, 0).foreign.tx_bytes);
}

TEST_F(ForeignReport, CountsStayWhenThePeerIsGone)
{
	/* fi_tandem(7), REPORT: the counts are those of all lives. */
	OK(messages());
	ASSERT_EQ(0, tdt_ep_close(ep(0)));
	ASSERT_EQ(0, tdt_wait_until(w, ended, this));
	struct tdm_report_path p = path(1, 0);

	EXPECT_EQ(uint32_t(TDM_REPORT_FOREIGN), p.path);
	EXPECT_EQ(uint32_t(TDM_REPORT_CLOSED), p.state);
	EXPECT_EQ(1u, p.lives);
	EXPECT_EQ(2100u, p.foreign.tx_bytes);
	EXPECT_EQ(7u, p.foreign.rx_bytes);
}

TEST_F(ForeignReport, IsPrinted)
{
	/* fi_tandem(7), REPORT: the lines of FI_TANDEM_REPORT. */
	std::string text;

	tdm_env.report = TDM_FORM_PLAIN;
	OK(messages());
	testing::internal::CaptureStderr();
	ASSERT_EQ(0, tdt_ep_close(ep(1)));
	text = testing::internal::GetCapturedStderr();
	EXPECT_NE(std::string::npos,
		  text.find("messages by provider liar: no memory regions "
			    "(one-sided and atomic operations by tcp)"));
	EXPECT_NE(std::string::npos, text.find("path foreign sent 2 (2100 B) "
					       "received 1 (7 B)"))
		<< text;
	EXPECT_NE(std::string::npos,
		  text.find("1 peers, 0 shm, 0 tcp, 1 foreign"))
		<< text;
}

TEST_F(ForeignReport, ForgetsARemovedAddress)
{
	/* fi_tandem(7), REPORT: the counts since the address was inserted. */
	OK(messages());
	fi_addr_t old = addr(ep(1), rx()), again;

	ASSERT_EQ(0, fi_av_remove(ep(1)->av, &old, 1, 0));
	ASSERT_EQ(1,
		  fi_av_insert(ep(1)->av, rx()->name, 1, &again, 0, nullptr));
	ep(1)->peers[0] = again;
	EXPECT_EQ(0u, path(1, 0).foreign.tx_msgs);
}

TEST_F(ForeignReport, ErrorsHaveTheAddressOfThePeer)
{
	/* fi_tandem(7), FAULTS: err_data is the address of the peer. */
	struct iovec ov = iov_of(out, 100), iv = iov_of(in, 10);
	struct tdt_comp c = {};

	OK(messages());
	ASSERT_EQ(0, tdt_trecv(ep(0), &iv, 5, 0, in));
	ASSERT_EQ(0, tdt_tsend(ep(1), ep(0), &ov, 5, out));
	ASSERT_EQ(0, tdt_wait(ep(1), out, nullptr));
	ASSERT_EQ(0, tdt_wait(ep(0), in, &c));
	EXPECT_EQ(FI_ETRUNC, c.err);
	ASSERT_EQ(ep(1)->namelen, c.err_data_size);
	EXPECT_EQ(0, memcmp(c.err_data, ep(1)->name, c.err_data_size));

	lie("send fails with 0");
	ASSERT_EQ(0, tdt_tsend(ep(1), ep(0), &ov, 6, out));
	ASSERT_EQ(0, tdt_wait(ep(1), out, &c));
	EXPECT_EQ(FI_EIO, c.err);
	ASSERT_EQ(ep(0)->namelen, c.err_data_size);
	EXPECT_EQ(0, memcmp(c.err_data, ep(0)->name, c.err_data_size));
	lie("");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path the other tests think they are on is the one their messages take:
 * fi_tandem(7), LOCALITY and REPORT.
 */
#include <rdma/fi_ext.h>

#include <arpa/inet.h>
#include <cstddef>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fi_ext_tandem.h"
#include "tests/harness/fixture.h"

namespace
{

class Path : public Case
{
protected:
	struct tdm_report_path path(struct tdt_ep *at, fi_addr_t a)
	{
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path p;

		memset(&p, 0, sizeof(p));
		p.size = sizeof(p);
		p.path = 99;
		EXPECT_EQ(0, fi_open_ops(&at->ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		if (ops) {
			EXPECT_LE(sizeof(*ops), ops->size);
			EXPECT_EQ(0, ops->path(at->ep, a, &p));
		}
		return p;
	}

	bool tcp_only(size_t i) const
	{
		return tdt_path() == TDT_REMOTE ||
		       (tdt_path() == TDT_MIXED && i + 1 == w->count);
	}

	void expect_asked_for();
	void expect_reasons(uint32_t own, uint32_t peers);

	/*
	 * Exchange addresses, as tdt_ep_enable() does, for enabled endpoints.
	 */
	void know_each_other()
	{
		for (size_t i = 0; i < w->count; i++) {
			ep(i)->namelen = sizeof(ep(i)->name);
			ASSERT_EQ(0, fi_getname(&ep(i)->ep->fid, ep(i)->name,
						&ep(i)->namelen));
		}
		for (size_t i = 0; i < w->count; i++) {
			for (size_t k = 0; k < w->count; k++)
				ASSERT_EQ(1,
					  fi_av_insert(ep(i)->av, ep(k)->name,
						       1, &ep(i)->peers[k], 0,
						       NULL));
		}
	}
};

void Path::expect_asked_for()
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (size_t i = 0; i < w->count; i++) {
		for (size_t k = 0; k < w->count; k++) {
			if (i == k)
				continue;
			struct tdm_report_path p = path(ep(i), ep(i)->peers[k]);
			uint32_t want = tcp_only(i) || tcp_only(k) ?
						TDM_REPORT_TCP :
						TDM_REPORT_SHM;

			EXPECT_EQ(want, p.path)
				<< i << " to " << k << ": " << p.reason_text;
			EXPECT_EQ(1u, p.tx_msgs);
			EXPECT_EQ(1u, p.rx_msgs);
			EXPECT_EQ(1u, p.tx_bytes);
			EXPECT_EQ(1u, p.rx_bytes);
			EXPECT_EQ(want == TDM_REPORT_SHM, p.reason == 0);
		}
	}
}

TEST_F(Path, IsTheOneAskedFor)
{
	/* fi_tandem(7), LOCALITY: "Two endpoints use shared memory when all of
	 * this holds ... All other peers are reached by TCP." */
	ONLY_TANDEM();
	OK(expect_asked_for());
}

TEST_F(Path, OfDatagramEndpointsIsTheSame)
{
	/* As above: which type they have is not among the conditions. */
	ONLY_TANDEM();
	attr.type = FI_EP_DGRAM;
	OK(expect_asked_for());
}

TEST_F(Path, IsNoneBeforeTheFirstMessage)
{
	/* fi_tandem(7), REPORT: "path.path is 0 (no path was ever agreed)". */
	ONLY_TANDEM();
	OPEN();
	EXPECT_EQ(uint32_t(TDM_REPORT_NONE), path(rx(), 1).path);
}

/* The two ends of a pair say, after a message, why it is not local. */
void Path::expect_reasons(uint32_t own, uint32_t peers)
{
	struct tdm_report_path p;

	ASSERT_EQ(0, tdt_warm_up(w));
	p = path(ep(0), ep(0)->peers[1]);
	EXPECT_EQ(uint32_t(TDM_REPORT_TCP), p.path);
	EXPECT_EQ(own, p.reason) << p.reason_text;
	EXPECT_STRNE("", p.reason_text);
	p = path(ep(1), ep(1)->peers[0]);
	EXPECT_EQ(uint32_t(TDM_REPORT_TCP), p.path);
	EXPECT_EQ(peers, p.reason) << p.reason_text;
}

TEST_F(Path, WithoutFilesIsTcpAndSaysWhy)
{
	/* fi_tandem(7), REPORT: reason 6, also for a file size that
	 * RLIMIT_FSIZE forbids; setrlimit(2): a process that exceeds it gets
	 * SIGXFSZ, which ends it. */
	struct rlimit old, none;

	ONLY_TANDEM();
	if (tdt_path() != TDT_LOCAL)
		GTEST_SKIP() << "shared memory is not asked for";
	tdt_log_expect("endpoint without shared memory");
	ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
	none = old;
	none.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &none));
	int ret = tdt_world_open(&attr, &w);
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &old));
	ASSERT_EQ(0, ret) << tdt_error();
	OK(expect_reasons(6, 6));
}

TEST_F(Path, L2_WithItsNameTakenIsTcpAndSaysSo)
{
	/* fi_tandem(7), SECURITY: another can take the name of an attach
	 * socket; "then the endpoint uses TCP, and the report says so". */
	struct sockaddr_in sin = {};
	struct sockaddr_un un = {};
	socklen_t len = sizeof(sin);
	int port, name;

	ONLY_TANDEM();
	if (tdt_path() != TDT_LOCAL)
		GTEST_SKIP() << "shared memory is not asked for";
	tdt_log_expect("endpoint without shared memory");
	attr.no_enable = 1;
	OPEN();
	/* A port for the endpoint; PROTOCOL-shm.md has the name. */
	sin.sin_family = AF_INET;
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(0, bind(port, (struct sockaddr *)&sin, len));
	ASSERT_EQ(0, getsockname(port, (struct sockaddr *)&sin, &len));
	::close(port);
	un.sun_family = AF_UNIX;
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1,
			 "tandem/4:%04x7f000001%016x", ntohs(sin.sin_port), 0);
	name = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ASSERT_EQ(0, bind(name, (struct sockaddr *)&un,
			  static_cast<socklen_t>(
				  offsetof(struct sockaddr_un, sun_path) + 1) +
				  static_cast<socklen_t>(n)));
	ASSERT_EQ(0, fi_setname(&ep(0)->ep->fid, &sin, sizeof(sin)));
	for (size_t i = 0; i < w->count; i++)
		ASSERT_EQ(0, fi_enable(ep(i)->ep));
	OK(know_each_other());
	OK(expect_reasons(9, 5));
	::close(name);
}

TEST_F(Path, BadIndexIsEinval)
{
	/* fi_ext_tandem.h: "-FI_EINVAL when addr is not in the address
	 * vector". */
	struct tdm_report_ops *ops = nullptr;
	struct tdm_report_path p;

	p.size = sizeof(p);
	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, fi_open_ops(&rx()->ep->fid, TDM_REPORT_OPS, 0,
				 reinterpret_cast<void **>(&ops), nullptr));
	EXPECT_EQ(-FI_EINVAL, ops->path(rx()->ep, w->count, &p));
	EXPECT_EQ(-FI_EINVAL, ops->path(rx()->ep, FI_ADDR_UNSPEC, &p));
}

} // namespace

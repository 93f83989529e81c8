/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log names each refusal: which hint, which interface
 * or which missing object it was, and says it to those who asked.
 *
 * Spec: fi_tandem(7), USING IT ("If tandem is not chosen"), ENVIRONMENT.
 */
#include <functional>
#include <netinet/in.h>
#include <string>

#include <rdma/providers/fi_log.h>

#include "tests/harness/fixture.h"
#include "tests/harness/raw.h"

extern "C" {
#include "tests/harness/child.h"
#include "tests/harness/log.h"
}

namespace
{

/* The flag by which the core passes on what a layered provider asks. */
constexpr uint64_t LAYERED = 1ull << 59;

class Refusal : public Raw
{
protected:
	void SetUp() override
	{
		Raw::SetUp();
		tdt_log_listen(FI_LOG_INFO);
	}

	void TearDown() override
	{
		tdt_log_listen(FI_LOG_WARN);
		Raw::TearDown();
	}

	/* An endpoint of the default info, its domain opened. */
	struct fid_ep *fresh()
	{
		if (get()) {
			ADD_FAILURE() << "fi_getinfo";
			return nullptr;
		}
		open_domain();
		return domain ? endpoint() : nullptr;
	}
};

struct Refused {
	const char *line;
	std::function<void(struct fi_info *)> ask;
};

const Refused refused[] = {
	{ "hint caps: not offered: FI_HMEM, 0x800000000000\n",
	  [](struct fi_info *h) {
		  h->caps = FI_MSG | FI_HMEM;
	  } },
	{ "hint domain_attr.max_group_id: 8388608 asked for, at most "
	  "8388607",
	  [](struct fi_info *h) {
		  h->caps = FI_MSG | FI_COLLECTIVE;
		  h->domain_attr->max_group_id = 0x800000;
	  } },
	{ "hint caps: FI_SOURCE_ERR without FI_SOURCE",
	  [](struct fi_info *h) {
		  h->caps = FI_MSG | FI_SOURCE_ERR;
	  } },
	{ "hint tx_attr.op_flags: not offered: FI_REMOTE_CQ_DATA, ",
	  [](struct fi_info *h) {
		  h->tx_attr->op_flags = FI_COMPLETION | FI_REMOTE_CQ_DATA;
	  } },
	{ "hint tx_attr.inject_size: 1048577 asked for, at most ",
	  [](struct fi_info *h) {
		  h->tx_attr->inject_size = 1048577;
	  } },
	{ "hint ep_attr.type: not offered: FI_EP_MSG (1)",
	  [](struct fi_info *h) {
		  h->ep_attr->type = FI_EP_MSG;
	  } },
	{ "hint ep_attr.protocol: not offered: FI_PROTO_UDP (",
	  [](struct fi_info *h) {
		  h->ep_attr->protocol = FI_PROTO_UDP;
	  } },
	{ "hint ep_attr.auth_key: no key",
	  [](struct fi_info *h) {
		  h->ep_attr->auth_key_size = 8;
	  } },
	{ "hint addr_format: not offered: FI_ADDR_EFA (",
	  [](struct fi_info *h) {
		  h->addr_format = FI_ADDR_EFA;
	  } },
	{ "no interface nosuch0; there are ",
	  [](struct fi_info *h) {
		  h->domain_attr->name = strdup("nosuch0");
	  } },
};

TEST_F(Refusal, NamesTheHint)
{
	/* fi_tandem(7), USING IT: every answer without an entry has a line that
	 * says why, with the attribute and what of it is not offered. */
	ONLY_TANDEM();
	for (const Refused &r : refused) {
		renew();
		r.ask(hints);
		tdt_log_listen(FI_LOG_INFO);
		EXPECT_EQ(-FI_ENODATA, get()) << r.line;
		EXPECT_EQ(1u, tdt_log_heard(r.line)) << r.line;
		EXPECT_EQ(1u, tdt_log_heard("not offered") +
				      tdt_log_heard("asked for") +
				      tdt_log_heard("hint ep_attr.auth_key") +
				      tdt_log_heard("without FI_SOURCE") +
				      tdt_log_heard("no interface"))
			<< r.line;
		hints->ep_attr->auth_key_size = 0;
	}
}

TEST_F(Refusal, NamesTheNode)
{
	/* fi_tandem(7), USING IT: others name the interface or the address
	 * that is not there. 192.0.2.0/24 is nobody's. */
	ONLY_TANDEM();
	EXPECT_EQ(-FI_ENODATA, get(TDT_API, "192.0.2.77", "4711", FI_SOURCE));
	EXPECT_EQ(1u, tdt_log_heard("no interface has the address "
				    "192.0.2.77:4711; there are "));
	EXPECT_EQ(1u, tdt_log_heard("lo ("));
	EXPECT_EQ(-FI_ENODATA, get(TDT_API, nullptr, "70000", FI_SOURCE));
	EXPECT_EQ(1u, tdt_log_heard("service \"70000\": no port"));
}

TEST_F(Refusal, LayersAskInSilence)
{
	/* fi_tandem(7), USING IT: refusals to layered providers are logged at
	 * level debug. */
	ONLY_TANDEM();
	hints->ep_attr->type = FI_EP_MSG;
	EXPECT_EQ(-FI_ENODATA, get(TDT_API, nullptr, nullptr, LAYERED));
	EXPECT_EQ(0u, tdt_log_heard("hint "));
	tdt_log_listen(FI_LOG_DEBUG);
	EXPECT_EQ(-FI_ENODATA, get(TDT_API, nullptr, nullptr, LAYERED));
	EXPECT_LE(1u, tdt_log_heard("hint ep_attr.type: not offered"));
	/* And nobody else does. */
	tdt_log_listen(FI_LOG_INFO);
	EXPECT_EQ(-FI_ENODATA, get());
	EXPECT_EQ(1u, tdt_log_heard("hint ep_attr.type: not offered"));
}

TEST_F(Refusal, NamesWhatIsNotBound)
{
	/* fi_tandem(7), USING IT: lines that begin with the call's name say why
	 * fi_ep_bind and fi_enable were refused. */
	ONLY_TANDEM();
	struct fid_ep *ep = fresh();

	ASSERT_NE(nullptr, ep);
	struct fid_cq *one = cq(), *two = cq();

	EXPECT_EQ(-FI_ENOAV, fi_enable(ep));
	EXPECT_EQ(1u, tdt_log_heard("fi_enable: no address vector is bound"));
	EXPECT_EQ(0, fi_ep_bind(ep, &av()->fid, 0));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(ep));
	EXPECT_EQ(1u, tdt_log_heard("fi_enable: no queue or counter of sends"));
	EXPECT_EQ(0, fi_ep_bind(ep, &one->fid, FI_TRANSMIT));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(ep));
	EXPECT_EQ(1u, tdt_log_heard("fi_enable: no queue or counter of rec"));
	EXPECT_EQ(-FI_EINVAL, fi_ep_bind(ep, &two->fid, FI_TRANSMIT));
	EXPECT_EQ(1u, tdt_log_heard("fi_ep_bind: a second queue"));
	EXPECT_EQ(-FI_EBADFLAGS, fi_ep_bind(ep, &two->fid, FI_READ));
	EXPECT_EQ(1u, tdt_log_heard("fi_ep_bind: flags that are not"));
	EXPECT_EQ(0, fi_ep_bind(ep, &two->fid, FI_RECV));
	EXPECT_EQ(0, fi_enable(ep));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(ep, &two->fid, FI_RECV));
	EXPECT_EQ(1u, tdt_log_heard("fi_ep_bind: the endpoint is enabled"));
}

TEST_F(Refusal, NamesWhatAnEndpointCannotBe)
{
	/* fi_tandem(7), USING IT: and fi_endpoint. */
	struct fid_ep *ep = nullptr;

	ONLY_TANDEM();
	ASSERT_NE(nullptr, fresh());
	info->caps |= FI_HMEM;
	EXPECT_EQ(-FI_EINVAL, fi_endpoint(domain, info, &ep, nullptr));
	EXPECT_EQ(1u, tdt_log_heard("hint caps: not offered: FI_HMEM"));
	info->caps &= ~FI_HMEM;
	info->ep_attr->tx_ctx_cnt = 2;
	EXPECT_EQ(-FI_EINVAL, fi_endpoint(domain, info, &ep, nullptr));
	EXPECT_EQ(1u, tdt_log_heard("fi_endpoint: several contexts"));
}

TEST_F(Refusal, NamesTheAddressThatIsTaken)
{
	/* fi_tandem(7), USING IT: lines that begin with fi_enable say why. */
	struct tdt_world *first = nullptr, *other = nullptr;
	struct tdt_attr attr;
	struct sockaddr_in sin;
	std::string port;

	ONLY_TANDEM();
	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	ASSERT_EQ(0, tdt_world_open(&attr, &first)) << tdt_error();
	memcpy(&sin, first->eps[0].name, sizeof(sin));
	port = std::to_string(ntohs(sin.sin_port));
	attr.service = port.c_str();
	EXPECT_EQ(-FI_EADDRINUSE, tdt_world_open(&attr, &other));
	EXPECT_EQ(1u, tdt_log_heard(("fi_enable: 127.0.0.1:" + port +
				     " cannot be bound")
					    .c_str()));
	EXPECT_EQ(0, tdt_world_close(first));
}

/* Ask twice and tell both answers, and how many warnings name @arg. */
TDT_ROLE(lost_interface)
{
	struct fi_info *hints = fi_allocinfo(), *info = nullptr;
	int said[3];

	tdt_log_start();
	hints->fabric_attr->prov_name = strdup(tdt_prov_name());
	for (int i = 0; i < 2; i++)
		said[i] =
			fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info);
	said[2] = static_cast<int>(tdt_log_count(arg));
	fi_freeinfo(hints);
	return tdt_tell(fd, said, sizeof(said));
}

TEST_F(Refusal, WarnsOfAnInterfaceThatIsNotThere)
{
	/* fi_tandem(7), FI_TANDEM_IFACE: an interface that does not exist
	 * leaves nothing to offer, and one warning names those that exist. */
	struct tdt_child child = { 0, -1 };
	int said[3] = { 0, 0, 0 };

	ONLY_TANDEM();
	setenv("FI_TANDEM_IFACE", "nosuch0", 1);
	int ret = tdt_child_start(
		&child, "lost_interface",
		"FI_TANDEM_IFACE=nosuch0: no such interface; there are ");
	unsetenv("FI_TANDEM_IFACE");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(ssize_t(sizeof(said)),
		  tdt_hear(child.fd, said, sizeof(said)));
	EXPECT_EQ(-FI_ENODATA, said[0]);
	EXPECT_EQ(-FI_ENODATA, said[1]);
	EXPECT_EQ(1, said[2]);
	EXPECT_EQ(0, tdt_child_wait(&child));
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of endpoints in every form in which applications give them: as text,
 * with a port or without, and with a receive context or a group in the
 * fi_addr_t.
 */
#include <string>

#include <rdma/fi_tagged.h>

#include "tests/harness/drive.h"
#include "tests/harness/fixture.h"
#include "tests/harness/raw.h"

namespace
{

class Name : public Raw
{
protected:
	struct fid_av *a = nullptr;
	struct fid_cq *q = nullptr;

	/* An endpoint of info, enabled, and its name as text. */
	struct fid_ep *enabled(std::string *name)
	{
		struct fid_ep *ep = endpoint();
		char text[96];
		size_t len = sizeof(text);

		if (!ep)
			return nullptr;
		EXPECT_EQ(0, fi_ep_bind(ep, &a->fid, 0));
		EXPECT_EQ(0, fi_ep_bind(ep, &q->fid, FI_TRANSMIT | FI_RECV));
		EXPECT_EQ(0, fi_enable(ep));
		EXPECT_EQ(0, fi_getname(&ep->fid, text, &len));
		*name = text;
		return ep;
	}

	/* Move a byte from @from to @addr, whose endpoint is @to. */
	void talk(struct fid_ep *from, struct fid_ep *to, fi_addr_t addr,
		  fi_addr_t src = FI_ADDR_UNSPEC)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct fi_cq_tagged_entry e;
		char out = 7, in = 0;
		int left = 2;
		ssize_t ret;

		ASSERT_EQ(0, fi_trecv(to, &in, 1, nullptr, src, 1, 0, nullptr));
		do {
			ret = fi_tsend(from, &out, 1, nullptr, addr, 1,
				       nullptr);
		} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
		ASSERT_EQ(0, ret);
		while (left && tdt_now_ms() < end) {
			ret = fi_cq_read(q, &e, 1);
			ASSERT_TRUE(ret == 1 || ret == -FI_EAGAIN) << ret;
			left -= ret == 1;
		}
		EXPECT_EQ(7, in);
	}

	fi_addr_t insert(const std::string &text)
	{
		const char *one = text.c_str();
		fi_addr_t addr = FI_ADDR_NOTAVAIL;

		EXPECT_EQ(1, fi_av_insert(a, &one, 1, &addr, 0, nullptr));
		return addr;
	}

	void ask_text()
	{
		hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
		hints->addr_format = FI_ADDR_STR;
	}

	void open_all(int bits = 0)
	{
		open_domain();
		a = av(bits);
		q = cq();
	}

	static std::string source(const struct fi_info *i)
	{
		return std::string(static_cast<const char *>(i->src_addr));
	}
};

TEST_F(Name, TextEndpointsTakeAFreePort)
{
	/* fi_endpoint(3) 2.1, ARGUMENTS 2: An info that fi_getinfo returned
	 * opens an endpoint. fi_tandem(7), ADDRESSES: the port is 0 unless
	 * asked for. */
	std::string name[2];
	struct fid_ep *ep[2];

	ONLY_TANDEM();
	ask_text();
	ASSERT_EQ(0, get());
	EXPECT_EQ(":0", source(info).substr(source(info).size() - 2));
	open_all();
	for (int i = 0; i < 2; i++) {
		ep[i] = enabled(&name[i]);
		ASSERT_NE(nullptr, ep[i]);
		EXPECT_NE(":0", name[i].substr(name[i].size() - 2));
	}
	EXPECT_NE(name[0], name[1]);
	talk(ep[0], ep[1], insert(name[1]));
}

TEST_F(Name, TextSourcesAreTakenBack)
{
	/* fi_getinfo(3) 2.1, FI_INFO 7 and FLAGS 4: src_addr and FI_SOURCE: in
	 * the hints and as a node, with and without a port. */
	const std::string open_port = "fi_sockaddr_in://127.0.0.1:0";
	std::string name;

	ONLY_TANDEM();
	ask_text();
	hints->src_addr = strdup(open_port.c_str());
	hints->src_addrlen = open_port.size() + 1;
	ASSERT_EQ(0, get());
	EXPECT_EQ(open_port, source(info));
	renew();
	ask_text();
	ASSERT_EQ(0, get(TDT_API, open_port.c_str(), nullptr, FI_SOURCE));
	EXPECT_EQ(open_port, source(info));
	EXPECT_EQ(-FI_ENODATA, get(TDT_API, open_port.c_str(), nullptr, 0))
		<< "no peer is at port 0";
	ASSERT_EQ(0, get(TDT_API, open_port.c_str(), nullptr, FI_SOURCE));
	open_all();
	struct fid_ep *ep = endpoint();
	ASSERT_NE(nullptr, ep);
	/* fi_cm(3) 2.1, fi_setname 1: the same text again. */
	std::string text = open_port;
	EXPECT_EQ(0, fi_setname(&ep->fid, &text[0], text.size() + 1));
	ASSERT_NE(nullptr, enabled(&name));
	EXPECT_EQ(0u, name.find("fi_sockaddr_in://127.0.0.1:"));
}

TEST_F(Name, TextMayStandInTheArrayItself)
{
	/* fi_av(3) 2.1, fi_av_insert 1: FI_ADDR_STR is an array of pointers.
	 * Upstream's tests pass the text itself, several one behind the
	 * other. */
	const char raw[] = "fi_sockaddr_in://192.0.2.3:1\0nothing\0"
			   "fi_sockaddr_in://192.0.2.3:2";
	const char *const pointers[] = { raw, nullptr, raw };
	fi_addr_t got[3];
	char text[96];
	size_t len = sizeof(text);

	ONLY_TANDEM();
	ask_text();
	ASSERT_EQ(0, get());
	open_all();
	EXPECT_EQ(2, fi_av_insert(a, raw, 3, got, 0, nullptr));
	EXPECT_EQ(0u, got[0]);
	EXPECT_EQ(uint64_t(FI_ADDR_NOTAVAIL), got[1]);
	EXPECT_EQ(1u, got[2]);
	ASSERT_EQ(0, fi_av_lookup(a, 1, text, &len));
	EXPECT_STREQ("fi_sockaddr_in://192.0.2.3:2", text);
	EXPECT_EQ(2, fi_av_insert(a, pointers, 3, got, 0, nullptr));
}

TEST_F(Name, SourcesMayNameAContext)
{
	/* fi_av(3) 2.1, fi_rx_addr 1: An address may have a receive context. As
	 * the source of a receive the endpoint counts, fi_tandem(7): programs
	 * use one fi_addr_t for both directions. */
	std::string name[2];
	struct fid_ep *ep[2];

	ONLY_TANDEM();
	ask_text();
	for (uint32_t groups : { 0u, 9u }) {
		hints->domain_attr->max_group_id = groups;
		ASSERT_EQ(0, get());
		open_all(8);
		for (int i = 0; i < 2; i++) {
			ep[i] = enabled(&name[i]);
			ASSERT_NE(nullptr, ep[i]);
		}
		fi_addr_t src = insert(name[0]), to = insert(name[1]);
		talk(ep[0], ep[1], to, fi_rx_addr(src, 3, 8));
		char in;
		EXPECT_EQ(-FI_EINVAL,
			  fi_trecv(ep[1], &in, 1, nullptr, fi_rx_addr(9, 1, 8),
				   1, 0, nullptr))
			<< "no such peer";
		close_all();
	}
}

TEST_F(Name, LookupOfContextsAndGroups)
{
	/* fi_av(3) 2.1, fi_av_lookup 1: The result is the address of the
	 * fi_addr_t. The context of fi_rx_addr and the group of fi_group_addr
	 * are no part of it. */
	const std::string peer = "fi_sockaddr_in://192.0.2.4:99";
	char text[96];
	size_t len;

	ONLY_TANDEM();
	ask_text();
	hints->domain_attr->max_group_id = 9;
	ASSERT_EQ(0, get());
	open_all(4);
	ASSERT_EQ(0u, insert("fi_sockaddr_in://192.0.2.3:99"));
	fi_addr_t at = insert(peer);
	for (fi_addr_t f : { at, fi_rx_addr(at, 3, 4), fi_group_addr(at, 9),
			     fi_rx_addr(fi_group_addr(at, 2), 15, 4) }) {
		len = sizeof(text);
		ASSERT_EQ(0, fi_av_lookup(a, f, text, &len)) << f;
		EXPECT_EQ(peer, text);
	}
	for (fi_addr_t f : { fi_addr_t(2), fi_group_addr(at, 10),
			     fi_rx_addr(2, 3, 4), fi_addr_t(FI_ADDR_UNSPEC) }) {
		len = sizeof(text);
		EXPECT_EQ(-FI_EINVAL, fi_av_lookup(a, f, text, &len)) << f;
	}
}

} // namespace

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getopt and fi_setopt of fi_endpoint(3): each option is set, answered or
 * refused, before the endpoint is enabled and after.
 */
#include <netinet/in.h>
#include <rdma/fi_ext.h>

#include "fi_ext_tandem.h"
#include "parts.h"

namespace
{

struct Option {
	const char *name;
	int opt;
	size_t size;   /* of its value, bytes */
	ssize_t get;   /* result of fi_getopt */
	ssize_t lower; /* of setting half of what it is, before enable */
	ssize_t more;  /* of setting more than it is, before enable */
	ssize_t after; /* of setting half, after enable */
};

#define OPT(name, ...) { #name, name, __VA_ARGS__ }
const ssize_t NO = -FI_ENOPROTOOPT, LATE = -FI_EOPBADSTATE;

const Option options[] = {
	OPT(FI_OPT_MIN_MULTI_RECV, 8, 0, 0, 0, 0),
	OPT(FI_OPT_CM_DATA_SIZE, 8, 0, NO, NO, NO),
	OPT(FI_OPT_BUFFERED_MIN, 8, NO, NO, NO, NO),
	OPT(FI_OPT_BUFFERED_LIMIT, 8, NO, NO, NO, NO),
	OPT(FI_OPT_SEND_BUF_SIZE, 8, NO, NO, NO, NO),
	OPT(FI_OPT_RECV_BUF_SIZE, 8, NO, NO, NO, NO),
	OPT(FI_OPT_TX_SIZE, 8, 0, NO, NO, NO),
	OPT(FI_OPT_RX_SIZE, 8, 0, NO, NO, NO),
	OPT(FI_OPT_XPU_TRIGGER, 8, NO, NO, NO, NO),
	OPT(FI_OPT_MAX_MSG_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_MAX_TAGGED_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_MAX_RMA_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_MAX_ATOMIC_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_INJECT_MSG_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_INJECT_TAGGED_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_INJECT_RMA_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_INJECT_ATOMIC_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
};

class Options : public Case
{
protected:
	Options()
	{
		attr.caps |= FI_RMA | FI_ATOMIC;
		attr.no_enable = 1;
	}

	int get(const Option &o, size_t *value)
	{
		size_t len = sizeof(*value);
		int ret = fi_getopt(&rx()->ep->fid, FI_OPT_ENDPOINT, o.opt,
				    value, &len);

		if (!ret) {
			EXPECT_EQ(o.size, len);
		}
		return ret;
	}

	int set(int opt, size_t value)
	{
		return fi_setopt(&rx()->ep->fid, FI_OPT_ENDPOINT, opt, &value,
				 sizeof(value));
	}
};

TEST_F(Options, EachIsSetAnsweredOrRefused)
{
	/* fi_endpoint(3) 2.1, fi_getopt / fi_setopt 1 and RETURN VALUES 1: Each
	 * option has the code that is documented for it. */
	ONLY_TANDEM();
	OPEN();
	for (const Option &o : options) {
		size_t was = 0, is = 0, len = 1;

		SCOPED_TRACE(o.name);
		EXPECT_EQ(o.get, get(o, &was));
		EXPECT_EQ(o.more, set(o.opt, was + 1));
		EXPECT_EQ(o.lower, set(o.opt, was / 2));
		if (!o.get) {
			EXPECT_EQ(0, get(o, &is));
			EXPECT_EQ(o.lower ? was : was / 2, is);
			EXPECT_EQ(-FI_ETOOSMALL,
				  fi_getopt(&rx()->ep->fid, FI_OPT_ENDPOINT,
					    o.opt, &is, &len));
			EXPECT_EQ(o.size, len);
		}
	}
	ASSERT_EQ(0, tdt_ep_enable(rx()));
	for (const Option &o : options) {
		size_t is = 8;

		SCOPED_TRACE(o.name);
		EXPECT_EQ(o.get, get(o, &is));
		EXPECT_EQ(o.after, set(o.opt, is / 2));
	}
}

TEST_F(Options, ThoseThatAreNoSizes)
{
	struct fid *fid;
	size_t len;
	bool yes = true;
	int p2p;

	ONLY_TANDEM();
	OPEN();
	fid = &rx()->ep->fid;
	EXPECT_EQ(-FI_EINVAL,
		  fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED,
			    &yes, sizeof(yes)))
		<< "there is no CUDA";
	for (int v : { FI_HMEM_P2P_ENABLED, FI_HMEM_P2P_REQUIRED,
		       FI_HMEM_P2P_PREFERRED }) {
		EXPECT_EQ(-FI_EOPNOTSUPP,
			  fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P,
				    &v, sizeof(v)));
	}
	p2p = FI_HMEM_P2P_DISABLED;
	EXPECT_EQ(0, fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p,
			       sizeof(p2p)));
	len = sizeof(p2p);
	p2p = -1;
	EXPECT_EQ(0, fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p,
			       &len));
	EXPECT_EQ(FI_HMEM_P2P_DISABLED, p2p);
	EXPECT_EQ(-FI_EINVAL,
		  fi_setopt(fid, FI_OPT_ENDPOINT,
			    FI_OPT_SHARED_MEMORY_PERMITTED, &yes, 4));
	yes = false;
	EXPECT_EQ(0,
		  fi_setopt(fid, FI_OPT_ENDPOINT,
			    FI_OPT_SHARED_MEMORY_PERMITTED, &yes, sizeof(yes)));
	len = sizeof(yes);
	yes = true;
	EXPECT_EQ(0, fi_getopt(fid, FI_OPT_ENDPOINT,
			       FI_OPT_SHARED_MEMORY_PERMITTED, &yes, &len));
	EXPECT_FALSE(yes);
	EXPECT_EQ(-FI_ENOPROTOOPT,
		  fi_getopt(fid, FI_OPT_ENDPOINT, 12345, &yes, &len));
	EXPECT_EQ(-FI_ENOPROTOOPT,
		  fi_getopt(fid, 99, FI_OPT_RX_SIZE, &yes, &len));
	EXPECT_EQ(-FI_EINVAL, fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_RX_SIZE,
					nullptr, &len));
	ASSERT_EQ(0, tdt_ep_enable(rx()));
	EXPECT_EQ(-FI_EOPBADSTATE,
		  fi_setopt(fid, FI_OPT_ENDPOINT,
			    FI_OPT_SHARED_MEMORY_PERMITTED, &yes, sizeof(yes)));
}

/* The line of /proc/net/unix that an attach socket of @port would have. */
static bool has_attach_socket(uint16_t port)
{
	char want[32], line[512];
	bool found = false;
	FILE *f = fopen("/proc/net/unix", "r");

	snprintf(want, sizeof(want), "@tandem/4:%02x%02x", port & 0xff,
		 port >> 8);
	while (f && fgets(line, sizeof(line), f))
		found = found || strstr(line, want);
	if (f)
		fclose(f);
	return found;
}

TEST_F(Options, SharedMemoryIsForbiddenForOneEndpoint)
{
	/* fi_endpoint(3) 2.1, fi_getopt / fi_setopt 9:
	 * FI_OPT_SHARED_MEMORY_PERMITTED of false: no shared memory, neither by
	 * that endpoint nor by its peers towards it, while others of the same
	 * process use it. */
	bool no = false;
	char buf[64] = "";

	ONLY_TANDEM();
	if (tdt_path() == TDT_REMOTE)
		GTEST_SKIP() << "there is no shared memory to forbid";
	attr.eps = 3;
	attr.no_tcp_only = 1;
	OPEN();
	ASSERT_EQ(0,
		  fi_setopt(&ep(1)->ep->fid, FI_OPT_ENDPOINT,
			    FI_OPT_SHARED_MEMORY_PERMITTED, &no, sizeof(no)));
	for (size_t i = 0; i < 3; i++)
		ASSERT_EQ(0, tdt_ep_enable(ep(i)));
	for (size_t i = 0; i < 3; i++) {
		for (size_t k = 0; k < 3; k++)
			ASSERT_EQ(1,
				  fi_av_insert(ep(i)->av, ep(k)->name, 1,
					       &ep(i)->peers[k], 0, nullptr));
	}
	for (size_t i = 0; i < 3; i++) {
		struct sockaddr_in sin;

		memcpy(&sin, ep(i)->name, sizeof(sin));
		EXPECT_EQ(i != 1, has_attach_socket(sin.sin_port)) << i;
	}
	/* Others speak to it first, and it to others. */
	const size_t pairs[][2] = { { 0, 1 }, { 1, 2 }, { 0, 2 }, { 2, 1 } };

	for (auto &p : pairs) {
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path path;
		char in = 0;

		ASSERT_EQ(0, tdt_recv(ep(p[1]), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(ep(p[0]), ep(p[1]), buf, 1, buf));
		ASSERT_EQ(0, tdt_wait(ep(p[1]), &in, nullptr));
		ASSERT_EQ(0, tdt_wait(ep(p[0]), buf, nullptr));
		memset(&path, 0, sizeof(path));
		path.size = sizeof(path);
		ASSERT_EQ(0, fi_open_ops(&ep(p[0])->ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		ASSERT_EQ(0, ops->path(ep(p[0])->ep, ep(p[0])->peers[p[1]],
				       &path));
		EXPECT_EQ(p[0] == 1 || p[1] == 1 ? (uint32_t)TDM_REPORT_TCP :
						   (uint32_t)TDM_REPORT_SHM,
			  path.path)
			<< p[0] << " to " << p[1];
	}
}

TEST_F(Options, LowerSizesAreKept)
{
	/* fi_endpoint(3) 2.1, fi_getopt / fi_setopt 10: FI_OPT_MAX_MSG_SIZE:
	 * the longest untagged message of the endpoint. */
	char buf[101] = "";

	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, set(FI_OPT_MAX_MSG_SIZE, 100));
	ASSERT_EQ(0, set(FI_OPT_INJECT_TAGGED_SIZE, 8));
	ASSERT_EQ(0, tdt_ep_enable(rx()));
	ASSERT_EQ(1, fi_av_insert(rx()->av, rx()->name, 1, &rx()->peers[0], 0,
				  nullptr));
	EXPECT_EQ(-FI_EMSGSIZE, fi_send(rx()->ep, buf, 101, nullptr,
					rx()->peers[0], nullptr));
	EXPECT_EQ(-FI_EMSGSIZE,
		  fi_tinject(rx()->ep, buf, 9, rx()->peers[0], 0));
	EXPECT_NE(-FI_EMSGSIZE, fi_inject(rx()->ep, buf, 9, rx()->peers[0]));
	/* Operations that were accepted are discarded with the endpoint. */
}

TEST_F(Options, SizesLeft)
{
	/* fi_endpoint(3) 2.1, fi_rx_size_left (DEPRECATED) 2: At least so many
	 * receives can be posted. */
	char in;

	attr.rx_size = 4;
	attr.no_enable = 0;
	OPEN();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	EXPECT_EQ(4, fi_rx_size_left(rx()->ep));
	EXPECT_GT(fi_tx_size_left(rx()->ep), 0);
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	EXPECT_EQ(3, fi_rx_size_left(rx()->ep));
#pragma GCC diagnostic pop
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	OK(failed(rx(), &in, FI_ECANCELED));
}

} // namespace

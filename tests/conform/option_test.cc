/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getopt and fi_setopt of fi_endpoint(3): each option is set, answered or
 * refused, before the endpoint is enabled and after.
 */
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
	OPT(FI_OPT_MAX_ATOMIC_SIZE, 8, NO, NO, NO, NO),
	OPT(FI_OPT_INJECT_MSG_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_INJECT_TAGGED_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_INJECT_RMA_SIZE, 8, 0, 0, -FI_EINVAL, LATE),
	OPT(FI_OPT_INJECT_ATOMIC_SIZE, 8, NO, NO, NO, NO),
};

class Options : public Case
{
protected:
	Options()
	{
		attr.caps |= FI_RMA;
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
	/* fi_getopt(3): the documented code for each. */
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

TEST_F(Options, LowerSizesAreKept)
{
	/* FI_OPT_MAX_MSG_SIZE: "the maximum message size that can be
	 * transferred by the endpoint in a single untagged message". */
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
	/* What was taken vanishes with the endpoint. */
}

TEST_F(Options, SizesLeft)
{
	/* fi_rx_size_left: "a lower bound on the number of receive operations
	 * that may be posted". */
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint that sends to itself, and two endpoints of one domain. */
#include "tests/harness/fixture.h"

namespace
{

class Self : public Case
{
protected:
	void round(struct tdt_ep *from, struct tdt_ep *to, size_t len,
		   bool early)
	{
		Bytes out = filled(len, 3);
		Guarded in(len);
		struct iovec ov = iov_of(out.data(), len);
		struct iovec iv = iov_of(in.data(), len);
		struct tdt_comp c;

		SCOPED_TRACE(len);
		if (early) {
			ASSERT_EQ(0, tdt_trecv(to, &iv, 1, 0, &in));
		}
		ASSERT_EQ(0, tdt_tsend(from, to, &ov, 1, &out));
		if (!early) {
			ASSERT_EQ(0, tdt_trecv(to, &iv, 1, 0, &in));
		}
		OK(done(to, &in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(len, c.len);
		EXPECT_EQ(addr(to, from), c.src);
		EXPECT_EQ(-1, tdt_differs(in.data(), len, 3));
		EXPECT_TRUE(in.intact());
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
};

TEST_F(Self, SendsToItself)
{
	/* fi_domain(3) 2.1, Capabilities (caps) 6: FI_LOCAL_COMM: endpoints of
	 * a domain reach each other. An endpoint's own address may be
	 * inserted. */
	OPEN();
	for (size_t i = 0; i < w->count; i++) {
		for (size_t len : all_sizes()) {
			OK(round(ep(i), ep(i), len, true));
			OK(round(ep(i), ep(i), len, false));
		}
	}
}

TEST_F(Self, EndpointsOfOneDomainTalk)
{
	/* fi_domain(3) 2.1, Endpoint Count (ep_cnt) 1: More than one endpoint
	 * may be open, on one AV. */
	attr.one_domain = 1;
	OPEN();
	for (size_t i = 0; i < w->count; i++) {
		for (size_t k = 0; k < w->count; k++) {
			for (size_t len : { 0u, 48u, 5000u, 100000u }) {
				OK(round(ep(i), ep(k), len, true));
				OK(round(ep(i), ep(k), len, false));
			}
		}
	}
}

} // namespace

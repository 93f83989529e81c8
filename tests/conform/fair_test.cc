/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One peer sends as much as it can: row R5. Meanwhile the flooded endpoint hears
 * the others, and sends to them and to the peer that floods it.
 *
 * Bounds are numbers of messages of the flood, not times: doc/adr/0046.
 */
#include "parts.h"

namespace
{

class Fair : public Parts
{
protected:
	enum { WINDOW = 512, MOST = 8192, ROUNDS = 60, TAG = 77 };

	char in[WINDOW][1024], out[200] = "", ping = 'p', pong = 0;
	/* Messages that were met after more than MOST of the flood. */
	size_t held_up = 0;

	Fair()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_SOURCE;
		attr.eps = 4;
	}

	void begin()
	{
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
		for (char *buf : in)
			ASSERT_EQ(0, tdt_recv(rx(), buf, sizeof(in[0]), buf));
	}

	/* The rest of the flood comes, and the receives that are left end. */
	void end()
	{
		EXPECT_LE(held_up, static_cast<size_t>(ROUNDS / 6));
		tdt_run_dry(w, 50);
		for (char *buf : in)
			(void)!fi_cancel(&rx()->ep->fid, buf);
		tdt_run_dry(w, 50);
	}

	/*
	 * Endpoint 1 sends until a call gives -FI_EAGAIN, and rx() receives some
	 * of it. Returns how many messages; *@met: the pong was among them.
	 */
	size_t flood(bool *met)
	{
		struct fi_cq_tagged_entry e[16];
		size_t count = 0;
		ssize_t n;

		while (!fi_inject(ep(1)->ep, out, sizeof(out),
				  addr(ep(1), rx())))
			;
		n = fi_cq_read(rx()->rx_cq, e, 16);
		for (ssize_t i = 0; i < n; i++) {
			void *buf = e[i].op_context;

			if (buf == &pong) {
				*met = true;
				continue;
			}
			count++;
			EXPECT_EQ(0, fi_recv(rx()->ep, buf, sizeof(in[0]),
					     nullptr, FI_ADDR_UNSPEC, buf));
		}
		return count;
	}

	/* A message from @from to @at, of which one is rx(), under the flood. */
	void meet(struct tdt_ep *from, struct tdt_ep *at)
	{
		struct fi_cq_tagged_entry e;
		bool met = false;
		size_t count = 0;
		ssize_t ret;

		ASSERT_EQ(0, fi_trecv(at->ep, &pong, 1, nullptr, FI_ADDR_UNSPEC,
				      TAG, 0, &pong));
		while ((ret = fi_tinject(from->ep, &ping, 1, addr(from, at),
					 TAG)) == -FI_EAGAIN &&
		       count < 64 * MOST)
			count += flood(&met);
		ASSERT_EQ(0, ret);
		while (!met && count < 64 * MOST) {
			count += flood(&met);
			EXPECT_LE(fi_cq_read(from->tx_cq, nullptr, 0), 0);
			if (at != rx())
				met = fi_cq_read(at->rx_cq, &e, 1) == 1;
		}
		ASSERT_TRUE(met) << count << " messages of the flood";
		held_up += count > MOST;
	}
};

TEST_F(Fair, R05_FloodingPeerDoesNotStarveOthers)
{
	/* The messages of others are met after a bounded number of the flood's,
	 * but for a few that the kernel holds up while others use the
	 * processor. */
	OK(begin());
	for (size_t round = 0; round < ROUNDS; round++)
		OK(meet(ep(2 + round % 2), rx()));
	end();
}

TEST_F(Fair, R05_FloodedEndpointSendsToAll)
{
	/* The other direction: what the flooded endpoint sends is met after as
	 * few, be it sent to others or to the peer that floods it. */
	OK(begin());
	for (size_t round = 0; round < ROUNDS; round++) {
		OK(meet(rx(), ep(1 + round % 3)));
		/* Not from the one that floods: its message is behind that. */
		OK(meet(ep(2 + round % 2), rx()));
	}
	end();
}

} // namespace

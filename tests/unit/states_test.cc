/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The legal steps of the objects whose state changes on the path of a message:
 * sends and received messages of the TCP transport, entries of the receive side.
 * Each test has the arrows of the diagram beside the states; all other steps
 * are illegal.
 */
#include <set>
#include <utility>

#include <gtest/gtest.h>

extern "C" {
#include "peer/srx_state.h"
#include "tcp/wire/operation.h"
}

namespace
{

template <typename State> using Arrows = std::set<std::pair<State, State>>;

/* Are @arrows all the steps between states 0 to @last that are legal? */
template <typename State>
void expect_only(const Arrows<State> &arrows, State last,
		 int (*may)(State from, State to))
{
	for (int i = 0; i <= last; i++) {
		for (int j = 0; j <= last; j++) {
			auto from = State(i), to = State(j);

			EXPECT_EQ(int(arrows.count({ from, to })),
				  may(from, to))
				<< i << " -> " << j;
		}
	}
}

TEST(States, AReceivedMessageHasAPlaceAtMostOnce)
{
	expect_only<enum tdm_rx_state>({ { TDM_RX_NEW, TDM_RX_WAITING },
					 { TDM_RX_NEW, TDM_RX_PLACING },
					 { TDM_RX_NEW, TDM_RX_READING },
					 { TDM_RX_NEW, TDM_RX_OPERANDS },
					 { TDM_RX_NEW, TDM_RX_DROPPING },
					 { TDM_RX_WAITING, TDM_RX_PLACING },
					 { TDM_RX_WAITING, TDM_RX_DROPPING },
					 { TDM_RX_PLACING, TDM_RX_DROPPING },
					 { TDM_RX_READING, TDM_RX_DROPPING },
					 { TDM_RX_OPERANDS, TDM_RX_DROPPING } },
				       TDM_RX_DROPPING, tdm_rx_may_step);
}

TEST(States, ASendIsQueuedOnceAndIsSettledByThePeer)
{
	expect_only<enum tdm_tx_state>({ { TDM_TX_QUEUED, TDM_TX_CTS },
					 { TDM_TX_QUEUED, TDM_TX_DONE },
					 { TDM_TX_QUEUED, TDM_TX_ACK },
					 { TDM_TX_QUEUED, TDM_TX_LEAVING },
					 { TDM_TX_CTS, TDM_TX_DATA },
					 { TDM_TX_CTS, TDM_TX_LEFT },
					 { TDM_TX_DATA, TDM_TX_DONE },
					 { TDM_TX_DATA, TDM_TX_ACK },
					 { TDM_TX_DATA, TDM_TX_LEAVING },
					 { TDM_TX_LEFT, TDM_TX_DONE },
					 { TDM_TX_ACK, TDM_TX_LEAVING } },
				       TDM_TX_LEAVING, tdm_tx_may_step);
}

TEST(States, AnEntryIsFreeBetweenTwoUses)
{
	Arrows<enum tdm_srx_state> arrows = {
		{ TDM_SRX_FREE, TDM_SRX_POSTED },
		{ TDM_SRX_FREE, TDM_SRX_NEW },
		{ TDM_SRX_FREE, TDM_SRX_FILLING },
		{ TDM_SRX_POSTED, TDM_SRX_SPENT },
		{ TDM_SRX_POSTED, TDM_SRX_FILLING },
		{ TDM_SRX_NEW, TDM_SRX_WAITING },
		{ TDM_SRX_WAITING, TDM_SRX_CLAIMED },
		{ TDM_SRX_WAITING, TDM_SRX_FILLING },
		{ TDM_SRX_CLAIMED, TDM_SRX_LOST },
		{ TDM_SRX_CLAIMED, TDM_SRX_FILLING },
	};

	for (int i = 0; i <= TDM_SRX_FILLING; i++)
		arrows.insert({ tdm_srx_state(i), TDM_SRX_FREE });
	expect_only<enum tdm_srx_state>(arrows, TDM_SRX_FILLING,
					tdm_srx_may_step);
}

/* A message may be given up twice, as a send of ours and by its connection. */
TEST(States, AMessageThatIsStoppedGivesItsEntryOnce)
{
	struct fi_peer_rx_entry entry = {};
	struct tdm_rx rx = {};

	tdm_rx_step(&rx.state, TDM_RX_PLACING);
	rx.entry = &entry;
	EXPECT_EQ(&entry, tdm_rx_stop(&rx));
	EXPECT_EQ(TDM_RX_DROPPING, rx.state);
	EXPECT_EQ(nullptr, tdm_rx_stop(&rx));
	EXPECT_EQ(TDM_RX_DROPPING, rx.state);
}

#ifndef NDEBUG
TEST(States, AnIllegalStepStops)
{
	uint8_t state = TDM_RX_DROPPING;

	EXPECT_DEATH(tdm_rx_step(&state, TDM_RX_PLACING), "");
}
#endif

} // namespace

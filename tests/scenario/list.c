/* SPDX-License-Identifier: BSD-2-Clause */
/* The scenarios: see play.h. No lock. */
#include "cast.h"

enum {
	ALL = TDT_BOTH_TIERS | TDT_TWO,
	HERE = TDT_BOTH_TIERS,
};

const struct tdt_scenario tdt_scenarios[] = {
	/* first contact */
	{ "contact", tdt_act_contact, NULL, ALL },
	{ "contact6", tdt_act_contact, tdt_set_six, ALL },
	{ "contact_key", tdt_act_contact, tdt_set_key, ALL },
	{ "contact_tls", tdt_act_contact, tdt_set_tls, TDT_OVER_TCP | TDT_TWO },
	{ "wrong_key", tdt_act_wrong_key, tdt_set_key, HERE },
	{ "simultaneous", tdt_act_simultaneous, NULL, ALL },
	{ "refused_then_up", tdt_act_refused_then_up, NULL, HERE },
	{ "shm_refused", tdt_act_contact, tdt_set_refuses, 0 },
	/* transfer */
	{ "inject", tdt_act_inject, NULL, ALL },
	{ "eager", tdt_act_eager, NULL, ALL },
	{ "rendezvous", tdt_act_rendezvous, NULL, ALL },
	{ "ring_copy", tdt_act_ring_copy, NULL, TDT_TWO },
	{ "vectors", tdt_act_vectors, NULL, ALL },
	{ "multi_recv", tdt_act_multi_recv, NULL, HERE },
	{ "truncation", tdt_act_truncation, NULL, ALL },
	{ "unexpected", tdt_act_unexpected, NULL, ALL },
	{ "peek", tdt_act_peek, NULL, HERE },
	{ "cq_data", tdt_act_cq_data, NULL, ALL },
	{ "rma", tdt_act_rma, NULL, ALL },
	{ "atomic", tdt_act_atomic, NULL, ALL },
	{ "self", tdt_act_self, NULL, ALL },
	{ "saturation", tdt_act_saturation, NULL, ALL },
	{ "any_source", tdt_act_any_source, tdt_set_three, 0 },
	/* control */
	{ "cancel", tdt_act_cancel, NULL, HERE },
	{ "regions", tdt_act_regions, NULL, HERE },
	{ "av", tdt_act_av, NULL, HERE },
	{ "ep_close", tdt_act_ep_close, NULL, HERE },
	{ "wait_fd", tdt_act_wait_fd, tdt_set_wait_fd, HERE },
	{ "cntrs", tdt_act_cntrs, tdt_set_cntrs, HERE },
	{ "full_cq", tdt_act_full_cq, tdt_set_small_cq, HERE },
	{ "threads", tdt_act_threads, NULL, HERE },
	/* trouble */
	{ "peer_exits", tdt_act_peer_exits, NULL, HERE },
	{ "peer_killed", tdt_act_peer_killed, NULL, HERE },
	{ "peer_leaves", tdt_act_peer_leaves, tdt_set_no_credit,
	  TDT_BOTH_TIERS | TDT_TWO_ALONE },
	{ "peer_stops", tdt_act_peer_stops, NULL, HERE },
	{ "reset", tdt_act_reset, NULL, TDT_OVER_TCP },
	{ "reset_tls", tdt_act_reset, tdt_set_tls, TDT_OVER_TCP },
	{ "partition", tdt_act_partition, NULL, TDT_OVER_TCP },
	{ "silence", tdt_act_silence, NULL, TDT_OVER_TCP },
	{ "restart", tdt_act_restart, NULL, HERE },
	{ "fork", tdt_act_fork, NULL, HERE },
	{ "descriptors", tdt_act_descriptors, NULL, HERE },
	{ "memory", tdt_act_memory, NULL, HERE },
	{ NULL, NULL, NULL, 0 },
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The scenarios, for the list of them in list.c. Contracts: their names. */
#ifndef TDT_CAST_H
#define TDT_CAST_H

#include "stage.h"

/* The port of endpoint @ep as text; static. */
const char *tdt_port_of(struct tdt_play *play, size_t ep);

/* Attributes. */
void tdt_set_six(struct tdt_attr *attr);
void tdt_set_key(struct tdt_attr *attr);
void tdt_set_tls(struct tdt_attr *attr);
void tdt_set_refuses(struct tdt_attr *attr);
void tdt_set_three(struct tdt_attr *attr);
void tdt_set_wait_fd(struct tdt_attr *attr);
void tdt_set_cntrs(struct tdt_attr *attr);
void tdt_set_small_cq(struct tdt_attr *attr);
void tdt_set_no_credit(struct tdt_attr *attr);

/* contact.c */
void tdt_act_contact(struct tdt_play *play);
void tdt_act_simultaneous(struct tdt_play *play);
void tdt_act_wrong_key(struct tdt_play *play);
void tdt_act_refused_then_up(struct tdt_play *play);

/* transfer.c */
void tdt_act_inject(struct tdt_play *play);
void tdt_act_eager(struct tdt_play *play);
void tdt_act_rendezvous(struct tdt_play *play);
void tdt_act_ring_copy(struct tdt_play *play);
void tdt_act_vectors(struct tdt_play *play);
void tdt_act_multi_recv(struct tdt_play *play);
void tdt_act_truncation(struct tdt_play *play);
void tdt_act_unexpected(struct tdt_play *play);
void tdt_act_peek(struct tdt_play *play);
void tdt_act_cq_data(struct tdt_play *play);
void tdt_act_self(struct tdt_play *play);
void tdt_act_saturation(struct tdt_play *play);
void tdt_act_any_source(struct tdt_play *play);

/* memory.c */
void tdt_act_rma(struct tdt_play *play);
void tdt_act_atomic(struct tdt_play *play);
void tdt_act_regions(struct tdt_play *play);

/* control.c */
void tdt_act_cancel(struct tdt_play *play);
void tdt_act_av(struct tdt_play *play);
void tdt_act_ep_close(struct tdt_play *play);
void tdt_act_wait_fd(struct tdt_play *play);
void tdt_act_cntrs(struct tdt_play *play);
void tdt_act_full_cq(struct tdt_play *play);
void tdt_act_threads(struct tdt_play *play);

/* trouble.c */
void tdt_act_peer_exits(struct tdt_play *play);
void tdt_act_peer_killed(struct tdt_play *play);
void tdt_act_peer_leaves(struct tdt_play *play);
void tdt_act_peer_stops(struct tdt_play *play);
void tdt_act_reset(struct tdt_play *play);
void tdt_act_partition(struct tdt_play *play);
void tdt_act_silence(struct tdt_play *play);
void tdt_act_restart(struct tdt_play *play);
void tdt_act_fork(struct tdt_play *play);
void tdt_act_descriptors(struct tdt_play *play);
void tdt_act_memory(struct tdt_play *play);

#endif /* TDT_CAST_H */

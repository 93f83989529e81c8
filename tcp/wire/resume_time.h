/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer time-out of a session that is RESUMING: which time counts for it. Time does
 * not count while the kernel of the peer's host answers, nor while this process makes
 * no pass for long: it was stopped.
 *
 * @c has c->setup in all calls. Lock: held. Spec: doc/PROTOCOL-tcp.md, "Resume".
 */
#ifndef TDM_RESUME_TIME_H
#define TDM_RESUME_TIME_H

#include "base/base.h"

struct tdm_conn;

/*
 * The connection of @c, which has c->keep, is lost: set the times of the attempts, and
 * the back-off of the first one (setup->backoff_ms; 0: at once). Where something was to
 * be sent at the last loss, and no byte has been received or acknowledged since, the
 * network lets connections through but no data: then the time of the first loss counts.
 */
void tdm_resume_count_loss(struct tdm_conn *c);

/* An attempt begins, whose connect takes @ms milliseconds at most. */
void tdm_resume_count_attempt(struct tdm_conn *c, unsigned ms);

/*
 * From now on time counts, for @ms milliseconds, in which what @c waits for ought to come;
 * or for a part of the time-out, if that is longer: an application may make few passes.
 */
void tdm_resume_count(struct tdm_conn *c, unsigned ms);

/* From now on no time counts. */
void tdm_resume_count_nothing(struct tdm_conn *c);

/* Leave the time that does not count, up to now, out of the time-out. */
void tdm_resume_leave_out(struct tdm_conn *c);

/*
 * Not 0 when the last attempt of @c began after FI_TANDEM_PEER_TIMEOUT was over; or 5 s,
 * when the kernel had already waited for the peer in vain (setup->why).
 */
int tdm_resume_is_late(const struct tdm_conn *c) tdm_must_check;

#endif /* TDM_RESUME_TIME_H */

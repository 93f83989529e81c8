/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that waits for a pass of progress. */
#ifndef TDM_TCP_RETRY_H
#define TDM_TCP_RETRY_H

#include "base/list.h"

struct tdm_domain;

/* Work that waits for a pass of progress; embedded in its owner. */
struct tdm_retry {
	struct tdm_list node;		       /* domain->retry */
	void (*pass)(struct tdm_retry *retry); /* try again */
};

/*
 * pass: call all work that waits for a pass; arm: prepare for sleep. Lock:
 * held.
 */
void tdm_retry_init(struct tdm_domain *domain);
void tdm_retry_pass(struct tdm_domain *domain);
void tdm_retry_arm(struct tdm_domain *domain);

#endif /* TDM_TCP_RETRY_H */

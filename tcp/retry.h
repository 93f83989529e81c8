/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that waits for a pass of progress. */
#ifndef TDM_TCP_RETRY_H
#define TDM_TCP_RETRY_H

#include "base/list.h"

struct tdm_domain;

/* Work that waits for a progress pass: retry.c. */
struct tdm_retry {
	struct tdm_list node;		       /* domain->retry */
	void (*pass)(struct tdm_retry *retry); /* try again */
};

/*
 * Call the work that waits for a pass; prepare for sleep: retry.c. Lock: held.
 */
void tdm_retry_init(struct tdm_domain *domain);
void tdm_retry_pass(struct tdm_domain *domain);
void tdm_retry_arm(struct tdm_domain *domain);

#endif /* TDM_TCP_RETRY_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/* Children of fork(2) must leave their parent's objects alone. */
#ifndef TDM_TCP_FORK_H
#define TDM_TCP_FORK_H

/*
 * Arrange that children of fork(2) leave the parent's objects alone. Called
 * once per process.
 */
void tdm_fork_init(void);

#endif /* TDM_TCP_FORK_H */

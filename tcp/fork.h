/* SPDX-License-Identifier: BSD-2-Clause */
/* Children of fork(2) leave alone what is their parent's. */
#ifndef TDM_TCP_FORK_H
#define TDM_TCP_FORK_H

/*
 * fork.c: make children of fork(2) leave the parent's objects alone. Once per
 * process.
 */
void tdm_fork_init(void);

#endif /* TDM_TCP_FORK_H */

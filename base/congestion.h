/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The congestion control of TCP connections, TCP_CONGESTION of tcp(7): the user's
 * choice, FI_TANDEM_CONGESTION, or ours. congestion.c. Lock: none.
 */
#ifndef TDM_BASE_CONGESTION_H
#define TDM_BASE_CONGESTION_H

/*
 * Not 0 when @name is "system", or the kernel has a congestion control of that name and
 * lets this process choose it. Opens a socket for the question; where that fails, the
 * answer is yes.
 */
int tdm_congestion_ok(const char *name);

/*
 * Give the socket @fd the congestion control of a connection within this host
 * (@is_here), or to another one. A refusal leaves the kernel's own.
 */
void tdm_congestion_set(int fd, int is_here);

#endif /* TDM_BASE_CONGESTION_H */

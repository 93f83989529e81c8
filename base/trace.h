/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes (USDT) for bpftrace(8), perf(1), systemtap and gdb: fi_tandem(7),
 * TRACING, has the names and arguments. A probe is one nop and a note of the ELF
 * file that says where its arguments are; a tracer puts a breakpoint in place of
 * the nop. Where <sys/sdt.h> was missing at configure, or with --disable-usdt,
 * there is neither. The arguments are values that the code has at hand: nothing is
 * computed for a probe.
 *
 * Lock: the domain's is held at each probe.
 */
#ifndef TDM_BASE_TRACE_H
#define TDM_BASE_TRACE_H

#ifdef TDM_USDT
#include <sys/sdt.h>

#define TDM_TRACE2(name, a, b) STAP_PROBE2(tandem, name, a, b)
#define TDM_TRACE3(name, a, b, c) STAP_PROBE3(tandem, name, a, b, c)
#define TDM_TRACE4(name, a, b, c, d) STAP_PROBE4(tandem, name, a, b, c, d)
#define TDM_TRACE5(name, a, b, c, d, e) STAP_PROBE5(tandem, name, a, b, c, d, e)
#define TDM_TRACE6(name, a, b, c, d, e, f)                                     \
	STAP_PROBE6(tandem, name, a, b, c, d, e, f)
#else
#define TDM_TRACE2(name, a, b) ((void)(a), (void)(b))
#define TDM_TRACE3(name, a, b, c) ((void)(a), TDM_TRACE2(name, b, c))
#define TDM_TRACE4(name, a, b, c, d) ((void)(a), TDM_TRACE3(name, b, c, d))
#define TDM_TRACE5(name, a, b, c, d, e)                                        \
	((void)(a), TDM_TRACE4(name, b, c, d, e))
#define TDM_TRACE6(name, a, b, c, d, e, f)                                     \
	((void)(a), TDM_TRACE5(name, b, c, d, e, f))
#endif

#endif /* TDM_BASE_TRACE_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tracer of static probes (USDT) in its own process: finds the probes of a
 * loaded module by the notes of its file, puts breakpoints in their places, and
 * keeps what they say. For x86-64.
 * Spec: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
 */
#ifndef TDT_PROBES_H
#define TDT_PROBES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TDT_PROBE_ARGS = 6 };

/* A probe that was hit, with its arguments, sign-extended to 64 bits. */
struct tdt_probe_hit {
	const char *name;
	int args;
	uint64_t arg[TDT_PROBE_ARGS];
};

/*
 * Find the probes of provider @provider in the loaded object whose path contains
 * @module, and break at each. Returns the number of places; 0: it has none; -1:
 * its file or its notes cannot be read, or this processor is another one. One
 * tracer at a time; hits are kept from then on.
 */
int tdt_probes_arm(const char *module, const char *provider);

/* Remove the breakpoints. Hits stay readable until the next tdt_probes_arm(). */
void tdt_probes_disarm(void);

/*
 * The hits, oldest first; those behind the first 4096 are dropped. Out: *@n. Call
 * it while disarmed.
 */
const struct tdt_probe_hit *tdt_probes_hits(size_t *n);

#ifdef __cplusplus
}
#endif

#endif /* TDT_PROBES_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the evil twin breaks the protocol: see twin.h. Locking: none; the hooks run
 * in the thread of the endpoint, tdt_scribble_begin() starts another.
 */
#ifndef TDT_TWIN_BREAK_H
#define TDT_TWIN_BREAK_H

#include <stddef.h>
#include <stdint.h>

#include "play.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number below @below, and the next state of @random. */
uint64_t tdt_chance(uint64_t *random, uint64_t below);

/* Give one aligned field, of 1 to 8 bytes, of @p[len] another value. */
void tdt_change(uint64_t *random, uint8_t *p, size_t len);

/*
 * Put the hooks for the calls that send into tdm_os. They pass on what they get
 * until tdt_wire_break(); then, in the course of a run, some records over TCP and
 * some packets over the attach socket are broken.
 */
void tdt_wire_begin(uint64_t seed, enum tdt_tier tier);
void tdt_wire_break(int on);
void tdt_wire_end(void);

/* A thread that writes this process's own segments, until tdt_scribble_end(). */
void tdt_scribble_begin(uint64_t seed);
void tdt_scribble_end(void);

#ifdef __cplusplus
}
#endif

#endif /* TDT_TWIN_BREAK_H */

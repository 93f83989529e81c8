/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One mapping of each shared segment per process. Where both endpoints of a
 * pair live in one process, its two mappings of one memfd hide every race
 * from the thread sanitizer: it goes by address. Installed, the reader gets
 * the writer's mapping instead of one of its own.
 *
 * Works through the table tdm_os (mmap and munmap); thread-safe.
 */
#ifndef TDT_ONE_MAP_H
#define TDT_ONE_MAP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void tdt_one_map_install(void);

/* Only when nothing is mapped any more. */
void tdt_one_map_remove(void);

/* Mappings that were shared since the installation. */
size_t tdt_one_map_shared(void);

#ifdef __cplusplus
}
#endif

#endif /* TDT_ONE_MAP_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint for the tests of single files of tcp/: made by tdm_root_alloc(), as
 * every endpoint with transports is, on a domain that has attributes and nothing else. It is
 * not enabled, and has no transport and no receive side.
 */
#ifndef TDT_TEST_EP_H
#define TDT_TEST_EP_H

#ifdef __cplusplus
extern "C" {
#endif

struct tdm_root;

/* NULL: out of memory. */
struct tdm_root *tdt_ep_new(void);

/* Free @root, its pairs and its domain. */
void tdt_ep_free(struct tdm_root *root);

#ifdef __cplusplus
}
#endif

#endif /* TDT_TEST_EP_H */

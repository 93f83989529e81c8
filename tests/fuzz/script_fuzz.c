/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts of calls (script.h), over both tiers: each promise of libfabric that a
 * script can see is kept, and what it comes to does not depend on the tier.
 */
#include <stdio.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/script.h"

/* Linked in, so that its branches guide the fuzzer. */
struct fi_provider *fi_prov_ini(void);

int tdt_fuzz_script(const uint8_t *data, size_t size)
{
	static struct fi_provider *prov;
	const char *broken;

	if (!prov)
		prov = fi_prov_ini();
	broken = tdt_script_compare(data, size, prov);
	if (broken)
		fprintf(stderr, "%s\n", broken);
	tdt_must(!broken);
	return 0;
}

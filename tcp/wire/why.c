/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words for refused greetings.
 *
 * Invariant: a text is valid until the next call of the thread. No lock.
 */
#include "tcp/wire/why.h"

#include <stdio.h>

#include "tcp/wire/greeting.h"

const char *tdm_wire_why(const struct tdm_wire_greeting *g, int reason)
{
	static _Thread_local char versions[160];

	if (!reason)
		reason = tdm_wire_version_ok(g) ? TDM_WIRE_R_FEATURE :
						  TDM_WIRE_R_VERSION;
	switch (reason) {
	case TDM_WIRE_R_VERSION:
		snprintf(
			versions, sizeof(versions),
			"the peer speaks version %u of the protocol, this side "
			"version %u: install one release of tandem on both",
			g->newest, TDM_WIRE_VERSION);
		return versions;
	case TDM_WIRE_R_FEATURE:
		return "one side lacks what the other one needs: the keys "
		       "or the releases of tandem differ";
	case TDM_WIRE_R_BUSY:
		return "the address has a connection";
	case TDM_WIRE_R_DUPLICATE:
		return "connected already";
	case TDM_WIRE_R_LOST:
		return "there is no such session";
	default:
		return "not its address, or no proof of a key";
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations as a peer may forge them, and what the target says of each. */
#ifndef TDT_FORGED_AMO_H
#define TDT_FORGED_AMO_H

#include <cstdint>

#include <rdma/fi_domain.h>

extern "C" {
#include "tdm_amo.h"
}

/* The answers; each transport has numbers of its own for them. */
enum forged_end { FORGED_DONE, FORGED_NO_OPERATION, FORGED_OUTSIDE };

/* For a region of eight bytes. */
const struct forged_amo {
	uint8_t type, op, kind, form;
	uint64_t bytes;
	enum forged_end end;
} forged_amos[] = {
	{ FI_UINT64, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM, 8, FORGED_DONE },
	{ 255, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM, 8, FORGED_NO_OPERATION },
	{ FI_FLOAT16, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM, 8,
	  FORGED_NO_OPERATION },
	{ FI_UINT64, 255, TDM_AMO_BASE, TDM_AMO_FORM, 8, FORGED_NO_OPERATION },
	{ FI_UINT64, FI_CSWAP, TDM_AMO_BASE, TDM_AMO_FORM, 8,
	  FORGED_NO_OPERATION },
	{ FI_UINT64, FI_SUM, TDM_AMO_COMPARE, TDM_AMO_FORM, 8,
	  FORGED_NO_OPERATION },
	{ FI_UINT64, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM ^ 128, 8,
	  FORGED_NO_OPERATION },
	{ FI_UINT64, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM, 4,
	  FORGED_NO_OPERATION },
	{ FI_DOUBLE, FI_BXOR, TDM_AMO_BASE, TDM_AMO_FORM, 8,
	  FORGED_NO_OPERATION },
	{ FI_UINT64, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM, 16, FORGED_OUTSIDE },
};

#endif /* TDT_FORGED_AMO_H */

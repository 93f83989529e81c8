/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the payload of a message is in its record, doc/PROTOCOL-shm.md "Records". */
#ifndef TDM_SHM_MSG_H
#define TDM_SHM_MSG_H

#include "shm/record.h"

/*
 * Returns how many bytes of the body come before a payload of @len in a MSG or TAG
 * record with @flags. If the record takes several slots, the payload begins with the
 * second cache line: a copy moves whole lines, and the line that the receiver polls
 * is none of them.
 */
static inline uint32_t tdm_shm_msg_extra(uint8_t flags, size_t len)
{
	uint32_t extra = tdm_shm_rec_extra(flags);

	return extra + len <= TDM_SHM_BODY_BYTES ?
		       extra :
		       TDM_CACHE_LINE_BYTES - TDM_SHM_HEAD_BYTES;
}

#endif /* TDM_SHM_MSG_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/* All wait objects of fi_cq(3) that can be asked for, as test parameters. */
#ifndef TDT_WAIT_OBJECTS_H
#define TDT_WAIT_OBJECTS_H

#include <string>

#include <gtest/gtest.h>
#include <rdma/fi_eq.h>

inline auto wait_objects()
{
	return testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
			       FI_WAIT_MUTEX_COND, FI_WAIT_YIELD);
}

inline std::string
wait_object_name(const testing::TestParamInfo<enum fi_wait_obj> &info)
{
	switch (info.param) {
	case FI_WAIT_UNSPEC:
		return "Unspec";
	case FI_WAIT_FD:
		return "Fd";
	case FI_WAIT_POLLFD:
		return "Pollfd";
	case FI_WAIT_MUTEX_COND:
		return "MutexCond";
	default:
		return "Yield";
	}
}

#endif /* TDT_WAIT_OBJECTS_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers of the tests: patterns, canaries, sizes, descriptions of calls. */
#ifndef TDT_BUFFERS_H
#define TDT_BUFFERS_H

#include <cstdint>
#include <cstring>
#include <vector>

#include "drive.h"

using Bytes = std::vector<unsigned char>;

/* A buffer with canaries around it. */
class Guarded
{
public:
	explicit Guarded(size_t len) : len_(len), store_(len + 2 * GUARD, 0xa5)
	{
	}

	unsigned char *data()
	{
		return store_.data() + GUARD;
	}
	size_t size() const
	{
		return len_;
	}

	/* Nothing outside was touched, nor anything from @used on. */
	bool intact(size_t used) const
	{
		size_t i;

		for (i = 0; i < GUARD; i++) {
			if (store_[i] != 0xa5)
				return false;
		}
		for (i = GUARD + used; i < store_.size(); i++) {
			if (store_[i] != 0xa5)
				return false;
		}
		return true;
	}

	bool intact() const
	{
		for (size_t i = 0; i < GUARD; i++) {
			if (store_[i] != 0xa5 ||
			    store_[store_.size() - 1 - i] != 0xa5)
				return false;
		}
		return true;
	}

private:
	static const size_t GUARD = 64;
	size_t len_;
	std::vector<unsigned char> store_;
};

inline struct iovec iov_of(void *base, size_t len)
{
	struct iovec iov;

	iov.iov_base = base;
	iov.iov_len = len;
	return iov;
}

inline Bytes filled(size_t len, uint32_t seed)
{
	Bytes b(len);

	tdt_fill(b.data(), len, seed);
	return b;
}

inline struct tdt_op op_of(enum tdt_call call, int tagged, void *buf,
			   size_t len)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = call;
	op.tagged = tagged;
	op.buf = buf;
	op.len = len;
	op.addr = FI_ADDR_UNSPEC;
	return op;
}

/* Sizes around every threshold a transport may have. */
inline const std::vector<size_t> &all_sizes()
{
	static const std::vector<size_t> sizes = {
		0,   1,	   8,	 47,   48,   49,    112,   113,	    256,
		257, 1000, 4096, 8192, 8193, 65536, 65537, 1 << 20, 4 << 20,
	};

	return sizes;
}

#endif /* TDT_BUFFERS_H */

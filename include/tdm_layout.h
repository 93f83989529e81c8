/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of struct fi_peer_rx_entry. Until libfabric 2.2 it begins with two
 * pointers of the owner, from 2.3 on with srx, which they preceded; all members
 * behind are the same. The side that uses an entry must know how the side that
 * made it was compiled. No size and no version in fi_peer(3) tells, so the libfabric
 * that runs is the first guess: its own providers have its layout. An owner of
 * another file may have been compiled with another one; its entries show that, if
 * they name their receive context.
 *
 * *raw* is the address of an entry as the other side has it; the entry that our
 * members are read by is at tdm_layout_own() of it.
 *
 * Lock: that of the object which has the layout.
 */
#ifndef TDM_LAYOUT_H
#define TDM_LAYOUT_H

#include <stddef.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/providers/fi_peer.h>

enum tdm_layout {
	TDM_LAYOUT_OLDER, /* until 2.2 */
	TDM_LAYOUT_NEWER, /* from 2.3 on */
	TDM_LAYOUTS
};

/* Returns the layout of the providers of libfabric @version. */
static inline enum tdm_layout tdm_layout_of(uint32_t version)
{
	return FI_VERSION_LT(version, FI_VERSION(2, 3)) ? TDM_LAYOUT_OLDER :
							  TDM_LAYOUT_NEWER;
}

/* Returns how far in an entry of @layout srx is, in bytes. */
static inline size_t tdm_layout_srx_at(enum tdm_layout layout)
{
	return layout == TDM_LAYOUT_OLDER ? 2 * sizeof(void *) : 0;
}

/* Returns the entry @raw such that all members from srx on are there. */
static inline struct fi_peer_rx_entry *
tdm_layout_own(enum tdm_layout layout, struct fi_peer_rx_entry *raw)
{
	return (struct fi_peer_rx_entry
			*)(void *)((char *)raw + tdm_layout_srx_at(layout) -
				   offsetof(struct fi_peer_rx_entry, srx));
}

static inline struct fi_peer_rx_entry *
tdm_layout_raw(enum tdm_layout layout, struct fi_peer_rx_entry *own)
{
	return (struct fi_peer_rx_entry
			*)(void *)((char *)own +
				   offsetof(struct fi_peer_rx_entry, srx) -
				   tdm_layout_srx_at(layout));
}

/* Does @raw have @srx where @layout has it? */
static inline int tdm_layout_shows(enum tdm_layout layout, const void *raw,
				   const struct fid_peer_srx *srx)
{
	const void *there;

	memcpy(&there, (const char *)raw + tdm_layout_srx_at(layout),
	       sizeof(there));
	return there == srx;
}

/*
 * Returns the layout of @raw, which the owner of @srx has just returned from a get
 * call; @guess if the entry does not tell.
 */
static inline enum tdm_layout tdm_layout_seen(enum tdm_layout guess,
					      const void *raw,
					      const struct fid_peer_srx *srx)
{
	int older = tdm_layout_shows(TDM_LAYOUT_OLDER, raw, srx);
	int newer = tdm_layout_shows(TDM_LAYOUT_NEWER, raw, srx);

	if (older == newer)
		return guess;
	return older ? TDM_LAYOUT_OLDER : TDM_LAYOUT_NEWER;
}

/*
 * The calls of fi_peer(3) by which an owner starts or discards a message, for an
 * owner of either layout. @start_ and @discard_ do it: int f(enum tdm_layout,
 * struct fi_peer_rx_entry *raw).
 */
#define TDM_LAYOUT_CALLS(start_, discard_)                                     \
	static int start_older(struct fi_peer_rx_entry *raw)                   \
	{                                                                      \
		return start_(TDM_LAYOUT_OLDER, raw);                          \
	}                                                                      \
	static int start_newer(struct fi_peer_rx_entry *raw)                   \
	{                                                                      \
		return start_(TDM_LAYOUT_NEWER, raw);                          \
	}                                                                      \
	static int discard_older(struct fi_peer_rx_entry *raw)                 \
	{                                                                      \
		return discard_(TDM_LAYOUT_OLDER, raw);                        \
	}                                                                      \
	static int discard_newer(struct fi_peer_rx_entry *raw)                 \
	{                                                                      \
		return discard_(TDM_LAYOUT_NEWER, raw);                        \
	}

/* The table of these calls for @layout_, older or newer. */
#define TDM_LAYOUT_OPS(layout_)                                                \
	{                                                                      \
		.size = sizeof(struct fi_ops_srx_peer),                        \
		.start_msg = start_##layout_,                                  \
		.start_tag = start_##layout_,                                  \
		.discard_msg = discard_##layout_,                              \
		.discard_tag = discard_##layout_,                              \
	}

#endif /* TDM_LAYOUT_H */

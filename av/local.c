/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer provider's AV. See local.h.
 *
 * Invariants:
 *  1. Only the lowest index of an address is ever in the peer's AV, since the
 *     peer reports one user id per endpoint.
 *  2. An entry's `local` is its address in the peer's AV, or TDM_TABLE_NONE.
 *
 * Lock: the domain lock, held in all of this file but tdm_av_local_open().
 */
#include "av/local.h"

#include "av/key.h"
#include "av/locality.h"
#include "base/folder.h"
#include "base/log.h"
#include "peer/link.h"

void tdm_av_local_open(struct tdm_av *av, struct tdm_link *link,
		       const struct fi_av_attr *attr)
{
	tdm_lock_acquire(av->engine->lock);
	if (link && tdm_link_av_open(link, attr, &av->local)) {
		TDM_WARN(AV, "peer has no address vector: all pairs use tcp");
		av->local = NULL;
	}
	tdm_lock_release(av->engine->lock);
}

/*
 * With a shared folder a peer may be local although its IP is not of this network
 * namespace; the folder tells when a message is sent, since the peer may put its
 * socket there later.
 */
static int may_be_local(const struct tdm_addr *a)
{
	return tdm_folder_serves(&a->u.sa) || tdm_locality_is_here(a);
}

int tdm_av_local_lowest(struct tdm_av *av, uint32_t index,
			const struct tdm_addr *a)
{
	struct tdm_table_entry *e = &av->table.entry[index];
	fi_addr_t peer_addr;
	int ret;

	if (!av->local || e->local != TDM_TABLE_NONE || !may_be_local(a))
		return 0;
	ret = tdm_link_av_insert(av->local, a, a->key, index, &peer_addr);
	if (!ret && peer_addr < TDM_TABLE_NONE)
		e->local = (uint32_t)peer_addr;
	return ret == -FI_ENOMEM ? ret : 0;
}

/*
 * Insert @index, the lowest index of its address, into the peer provider's AV
 * if the address may be local.
 */
static void local_insert(struct tdm_av *av, uint32_t index)
{
	struct tdm_addr a;

	tdm_table_get(&av->table, index, &a);
	(void)tdm_av_local_lowest(av, index, &a);
}

void tdm_av_local_remove(struct tdm_av *av, uint32_t index)
{
	struct tdm_table_entry *e = &av->table.entry[index];

	if (e->local == TDM_TABLE_NONE)
		return;
	tdm_link_av_remove(av->local, e->local);
	e->local = TDM_TABLE_NONE;
}

int tdm_av_placed(struct tdm_av *av, const struct tdm_addr *a, uint32_t index,
		  uint32_t low, uint64_t here)
{
	const int lowered = low != TDM_TABLE_NONE && low > index;
	int ret;

	av->moved |= lowered;
	if (av->keys)
		tdm_keyring_count(av->keys, a->key, 1);
	if (!av->local ||
	    (!tdm_locality_may_be(here, a) && !tdm_folder_serves(&a->u.sa)))
		return 0;
	/* A lower index of @a exists, which the peer has: nothing changes. */
	if (low < index)
		return 0;
	if (lowered)
		tdm_av_local_remove(av, low);
	ret = tdm_av_local_lowest(av, index, a);
	if (ret && lowered)
		local_insert(av, low);
	return ret;
}

void tdm_av_local_moved(struct tdm_av *av)
{
	if (av->local)
		tdm_link_av_resolve(av->local);
}

fi_addr_t tdm_av_local_known(const struct tdm_av *av, fi_addr_t fi_addr)
{
	uint32_t low = (uint32_t)tdm_av_lowest(av, fi_addr);

	return av->table.entry[low].local == TDM_TABLE_NONE ?
		       FI_ADDR_NOTAVAIL :
		       av->table.entry[low].local;
}

fi_addr_t tdm_av_local(struct tdm_av *av, fi_addr_t fi_addr)
{
	uint32_t low = (uint32_t)tdm_av_lowest(av, fi_addr);

	/*
	 * An insert into the peer's AV that failed earlier is tried once more.
	 */
	local_insert(av, low);
	return tdm_av_local_known(av, fi_addr);
}

void tdm_av_local_renew(struct tdm_av *av, fi_addr_t fi_addr)
{
	uint32_t low = (uint32_t)tdm_av_lowest(av, fi_addr);

	tdm_av_local_remove(av, low);
	local_insert(av, low);
}

struct fid_av *tdm_av_local_fid(struct tdm_av *av)
{
	return av->local;
}

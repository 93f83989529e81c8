/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side of endpoints with FI_SOURCE_ERR: the address of a source
 * that is not in the AV is kept with the message, see tdm_source.h. Other
 * endpoints do not use this file.
 *
 * Invariant: an entry is marked if its source is unknown when it is about to be
 * filled; a later insert does not change the mark.
 *
 * Lock: domain held. Spec: fi_cq(3) FI_EADDRNOTAVAIL, fi_getinfo(3)
 * FI_SOURCE_ERR, fi_av(3) fi_av_insert_auth_key.
 */
#include "peer/srx_priv.h"
#include "tdm_space.h"

static struct tdm_srx_port *port_of(const struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct tdm_srx_port, fid);
}

/*
 * Returns the source to report for a message whose sender has key number @key
 * (0: none): the handle of the key, or its user id.
 */
static fi_addr_t stands_for(const struct tdm_done *done, uint32_t key)
{
	if (!key)
		return FI_ADDR_NOTAVAIL;
	if (done->user_ids && done->user_ids->key_id)
		return done->user_ids->key_id[key - 1];
	return TDM_SPACE_WILD | key;
}

void tdm_srx_miss_source(struct tdm_srx_entry *e)
{
	const struct tdm_srx_port *port = port_of(e->rx.srx);
	uint32_t key = port->srx->spaces ? tdm_space_key(e->from) : 0;

	if (!e->rx.owner_context)
		return;
	e->rx.flags |= FI_SOURCE_ERR;
	e->rx.addr = stands_for(port->done, key);
}

/*
 * Called after get_*() returned @ret: if the source of *@entry is unknown,
 * stores the address from @attr, part of a struct tdm_offer, in the entry.
 */
static int told(const struct fi_peer_match_attr *attr,
		struct fi_peer_rx_entry **entry, int ret)
{
	struct fi_peer_rx_entry *rx;
	struct tdm_srx_entry *e;

	if (ret && ret != -FI_ENOENT)
		return ret;
	rx = *entry;
	e = tdm_srx_entry_of_rx(rx);
	if (port_of(rx->srx)->srx->spaces ? !tdm_space_is_wild(e->from) :
					    attr->addr != FI_ADDR_UNSPEC)
		return ret;
	rx->owner_context = (void *)(uintptr_t)tdm_container_of(
				    attr, struct tdm_offer, attr)
				    ->from;
	if (!ret)
		tdm_srx_miss_source(e);
	return ret;
}

static int get_msg_told(struct fid_peer_srx *fid,
			struct fi_peer_match_attr *attr,
			struct fi_peer_rx_entry **entry)
{
	int ret = port_of(fid)->plain_ops->get_msg(fid, attr, entry);

	return told(attr, entry, ret);
}

static int get_tag_told(struct fid_peer_srx *fid,
			struct fi_peer_match_attr *attr,
			struct fi_peer_rx_entry **entry)
{
	int ret = port_of(fid)->plain_ops->get_tag(fid, attr, entry);

	return told(attr, entry, ret);
}

static int queue_msg_told(struct fi_peer_rx_entry *entry)
{
	return port_of(entry->srx)->plain_ops->queue_msg(entry);
}

static int queue_tag_told(struct fi_peer_rx_entry *entry)
{
	return port_of(entry->srx)->plain_ops->queue_tag(entry);
}

static void free_entry_told(struct fi_peer_rx_entry *entry)
{
	port_of(entry->srx)->plain_ops->free_entry(entry);
}

static void
foreach_unspec_addr_told(struct fid_peer_srx *fid,
			 fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	port_of(fid)->plain_ops->foreach_unspec_addr(fid, get_addr);
}

static void offers(struct fid_peer_srx *fid)
{
	port_of(fid)->offers = 1;
	tdm_srx_port_renew(port_of(fid));
}

struct tdm_source_ops tdm_srx_source_ops = {
	.size = sizeof(tdm_srx_source_ops),
	.offers = offers,
};

struct fi_ops_srx_owner tdm_srx_told_ops = {
	.size = sizeof(tdm_srx_told_ops),
	.get_msg = get_msg_told,
	.get_tag = get_tag_told,
	.queue_msg = queue_msg_told,
	.queue_tag = queue_tag_told,
	.foreach_unspec_addr = foreach_unspec_addr_told,
	.free_entry = free_entry_told,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of an endpoint, fi_cm(3): fi_setname, fi_getname, and the address of an
 * endpoint for which the application gave none: that of the interface which
 * better() of iface.c ranks first.
 *
 * Lock: the calls of the application take the domain's.
 */
#include "tcp/name.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "tcp/attr.h"
#include "tcp/coll.h"
#include "tcp/ep_priv.h"
#include "tcp/getinfo.h"
#include "tcp/root.h"
#include "tdm_info.h"
#include "tdm_nosys.h"

static int take_name(struct tdm_root *root, const void *addr, size_t len)
{
	struct tdm_addr a;
	const int ret = root->ep.info->addr_format == FI_ADDR_STR ?
				tdm_addr_from_bind_str(&a, addr, len) :
				tdm_addr_from_bind(&a, addr, len);

	if (!ret)
		root->name = a;
	return ret;
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct tdm_root *root = tdm_ep_of(fid)->root;
	int ret = -FI_EOPBADSTATE;

	tdm_lock_acquire(&root->ep.domain->lock);
	if (!root->ep.enabled)
		ret = take_name(root, addr, addrlen);
	tdm_lock_release(&root->ep.domain->lock);
	return ret;
}

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct tdm_root *root = tdm_ep_of(fid)->root;
	const size_t room = addrlen ? *addrlen : 0;
	int enabled;

	if (!addrlen || (room && !addr))
		return -FI_EINVAL;
	tdm_lock_acquire(&root->ep.domain->lock);
	enabled = root->ep.enabled;
	*addrlen = tdm_addr_encode(&root->name, root->ep.info->addr_format,
				   addr, enabled ? room : 0);
	tdm_lock_release(&root->ep.domain->lock);
	if (room < *addrlen)
		return -FI_ETOOSMALL;
	return enabled ? 0 : -FI_EOPBADSTATE;
}

struct fi_ops_cm tdm_ep_cm_ops = {
	.size = sizeof(tdm_ep_cm_ops),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = tdm_no_cm_getpeer,
	.connect = tdm_no_cm_connect,
	.listen = tdm_no_cm_listen,
	.accept = tdm_no_cm_accept,
	.reject = tdm_no_cm_reject,
	.shutdown = tdm_no_cm_shutdown,
	.join = tdm_coll_join,
};

struct fi_ops_cm tdm_ep_no_cm_ops = {
	.size = sizeof(tdm_ep_no_cm_ops),
	.setname = tdm_no_cm_setname,
	.getname = tdm_no_cm_getname,
	.getpeer = tdm_no_cm_getpeer,
	.connect = tdm_no_cm_connect,
	.listen = tdm_no_cm_listen,
	.accept = tdm_no_cm_accept,
	.reject = tdm_no_cm_reject,
	.shutdown = tdm_no_cm_shutdown,
	.join = tdm_no_cm_join,
};

int tdm_ep_own_name(struct tdm_root *root)
{
	struct fi_info *tmp;
	int ret;

	if (root->ep.info->src_addr)
		return take_name(root, root->ep.info->src_addr,
				 root->ep.info->src_addrlen);
	tmp = tdm_info_base();
	if (!tmp)
		return -FI_ENOMEM;
	ret = tdm_info_addresses(NULL, NULL, 0, NULL, tmp);
	if (!ret)
		ret = tdm_addr_from_bind(&root->name, tmp->src_addr,
					 tmp->src_addrlen);
	tdm_info_free(tmp);
	return ret;
}

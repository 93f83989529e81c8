/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The authorization keys of endpoints, and the addresses that each key may
 * reach.
 *
 * In a domain opened with FI_AV_AUTH_KEY an endpoint has the keys that were in
 * its AV when it was enabled; later ones are not its own. Elsewhere it has the
 * key of its attributes, or that of the domain, or that of the environment, or
 * none.
 *
 * Lock: held.
 * Spec: fi_endpoint(3) auth_key, fi_domain(3) auth_key, fi_av(3)
 * fi_av_insert_auth_key.
 */
#include "tcp/keys.h"

#include <rdma/fi_errno.h>

#include "av/key.h"
#include "base/env_key.h"
#include "base/log.h"
#include "tcp/root.h"

int tdm_ep_take_keys(struct tdm_root *root)
{
	const struct fi_domain_attr *d = root->ep.domain->info->domain_attr;
	const struct fi_ep_attr *e = root->ep.info->ep_attr;
	const uint8_t *key = e->auth_key_size ? e->auth_key : d->auth_key;
	size_t size = e->auth_key_size ? e->auth_key_size : d->auth_key_size;

	if (!size || !tdm_domain_has_keys(root->ep.domain))
		return tdm_env_key(&root->keys);
	if (tdm_domain_av_keys(root->ep.domain)) {
		root->keys = tdm_keyring_take(tdm_av_keys(root->ep.av));
		return root->keys ? 0 : -FI_ENOMEM;
	}
	root->keys = tdm_auth_one(key, size);
	return root->keys ? 0 : -FI_ENOMEM;
}

void tdm_ep_give_keys(struct tdm_root *root)
{
	if (!root->keys)
		return;
	if (tdm_domain_av_keys(root->ep.domain))
		tdm_keyring_give(tdm_av_keys(root->ep.av), root->keys);
	else
		tdm_auth_free(root->keys);
	root->keys = NULL;
}

uint32_t tdm_ep_key_of(void *ep, fi_addr_t addr)
{
	const struct tdm_ep *e = ep;

	return e->av ? tdm_av_key(e->av, addr) : 0;
}

int tdm_ep_key_ok(const struct tdm_root *root, fi_addr_t addr)
{
	return !root->keys ||
	       tdm_auth_find(root->keys, tdm_av_key(root->ep.av, addr));
}

void tdm_ep_tell_open(const struct tdm_root *root)
{
	const char *iface = root->ep.domain->info->domain_attr->name;
	int open = !root->keys && !tdm_addr_is_loopback(&root->name);
	char text[TDM_ADDR_STR_BYTES];

	TDM_INFO(EP_CTRL, "endpoint at %s (%s)%s%s",
		 tdm_addr_text(&root->name, text, sizeof(text)),
		 iface ? iface : "any interface",
		 root->local ? "" : ", without shared memory",
		 open ? ", without a key: whoever can connect to it can send "
			"to it and use the memory that is registered" :
			"");
}

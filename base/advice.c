/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Causes and remedies by error. tandem-doctor(1) finds out more; these are for those
 * who have the log or the report only.
 *
 * No state: no lock.
 */
#include "base/advice.h"

#include <errno.h>

#include "base/env.h"

const char *tdm_advice(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "nobody listens there: the peer has ended or has not "
		       "started, a firewall rejects, or each host has this "
		       "address, as that of docker0: set FI_TANDEM_IFACE "
		       "there; or the peer has a key or uses TLS, and this "
		       "side does not";
	case ETIMEDOUT:
		return "no answer: open the ports of both sides in the "
		       "firewall, which FI_TANDEM_PORT_RANGE chooses, or set "
		       "FI_TANDEM_IFACE to a network that both have";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "no way leads there from the address of this endpoint: "
		       "set FI_TANDEM_IFACE to another interface here, or "
		       "there";
	case ENOPROTOOPT:
		return "install one release of tandem on both sides";
	case EKEYREJECTED:
		return "give both sides the same key, and the same "
		       "FI_TANDEM_TLS or certificates of one authority";
	case EADDRINUSE:
		return "end what uses the ports, or choose more by "
		       "FI_TANDEM_PORT_RANGE or net.ipv4.ip_local_port_range";
	default:
		return "";
	}
}

const char *tdm_advice_local(int err)
{
	switch (err) {
	case EMFILE:
	case ENFILE:
		return "raise the limit of file descriptors: ulimit -n";
	case EPERM:
	case EACCES:
	case ENOSYS:
		return "allow memfd_create, eventfd, epoll and unix sockets in "
		       "the sandbox or container";
	case EFBIG:
		return "lift the limit of file sizes: ulimit -f unlimited";
	case ENOMEM:
	case ENOSPC:
		return "more memory: the limit of the container, or ulimit -v";
	case EADDRINUSE:
		return "another process has the name of its attach socket: "
		       "start the program again";
	default:
		return "tandem-doctor finds out more";
	}
}

const char *tdm_advice_cma(void)
{
	if (!tdm_env.cma)
		return "unset FI_TANDEM_CMA";
	return "allow processes to read each other's memory: no PID or user "
	       "namespaces of their own, CAP_SYS_PTRACE, or sysctl "
	       "kernel.yama.ptrace_scope=0; process_vm_readv in the sandbox";
}

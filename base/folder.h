/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder of FI_TANDEM_SHM_DIR, in which endpoints of several network
 * namespaces find each other: a socket for each endpoint, named after its
 * address. doc/PROTOCOL-shm.md, "Attach". Any thread, any locks.
 */
#ifndef TDM_BASE_FOLDER_H
#define TDM_BASE_FOLDER_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"

/* Longest name of the folder, so that the sockets' names fit sun_path. */
enum { TDM_FOLDER_NAME_MOST = 45 };

/* Not 0 when @name, which the user chose, can be the folder's. */
static inline int tdm_folder_name_ok(const char *name)
{
	return *name == '/' && strlen(name) <= TDM_FOLDER_NAME_MOST;
}

/*
 * Not 0 when endpoints at @sa, IPv4 or IPv6, have their sockets in the folder: it
 * is set, and the address is none that each network namespace has (loopback,
 * link-local).
 */
int tdm_folder_serves(const struct sockaddr *sa);

/*
 * Write the name of the socket of the endpoint at @sa, which the folder must
 * serve, to *@un. Returns the length for bind(2).
 */
socklen_t tdm_folder_name(struct sockaddr_un *un, const struct sockaddr *sa);

/* Not 0 when the folder serves @sa and has its socket. */
int tdm_folder_has(const struct sockaddr *sa);

/*
 * Check the folder: it exists, belongs to this user, and is closed to others.
 * Returns 0, or -ENOTDIR; the user is told why, once in a process.
 */
int tdm_folder_check(void) tdm_must_check;

/*
 * Remove the sockets in the folder whose processes have ended, but for those
 * that are younger than a second: they may be about to be bound.
 */
void tdm_folder_sweep(void);

/* Remove the socket *@un if no process has bound it. Returns 0 when removed. */
int tdm_folder_reclaim(const struct sockaddr_un *un);

#endif /* TDM_BASE_FOLDER_H */

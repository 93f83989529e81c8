/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of this process, for tests of their socket options. */
#ifndef TDT_CONFORM_CONNECTED_H
#define TDT_CONFORM_CONNECTED_H

#include <sys/socket.h>

#include <vector>

/* Returns the sockets of this process that have a peer of @family. */
inline std::vector<int> connected(int family)
{
	std::vector<int> out;

	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);

		if (!getpeername(fd, reinterpret_cast<sockaddr *>(&peer),
				 &len) &&
		    peer.ss_family == family)
			out.push_back(fd);
	}
	return out;
}

#endif /* TDT_CONFORM_CONNECTED_H */

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The toy owner of examples/ drives the toy peer, and libfabric's own shm.
. "$(dirname "$0")/lib.sh"

tree=$builds/gcc
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
make -s -C "$tree" examples/owner/owner examples/peer/libloop-fi.la

rules=()
for peer in loop shm; do
	echo "== $peer"
	FI_PROVIDER_PATH=$top/$tree/examples/peer/.libs \
		"$tree/examples/owner/owner" "$peer" | tee "$builds/log/owner-$peer.out"
	rules+=("$peer: $(grep -c '^ok' "$builds/log/owner-$peer.out")")
done
echo "rules held by ${rules[0]}, ${rules[1]}"

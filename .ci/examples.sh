#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The toy owner of examples/ drives the toy peer, libfabric's own shm, and the
# shared-memory peer of tandem.
. "$(dirname "$0")/lib.sh"

tree=$builds/gcc
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
make -s -C "$tree" examples/owner/owner examples/peer/libloop-fi.la

export FI_PROVIDER_PATH=$top/$tree/examples/peer/.libs:$top/$tree/.libs
held=
for peer in loop shm "tandem tandem-shm"; do
	echo "== $peer"
	out=$builds/log/owner-${peer// /-}.out
	# shellcheck disable=SC2086 # the domain is an argument of its own
	"$tree/examples/owner/owner" $peer | tee "$out"
	held+=", $peer $(grep -c '^ok' "$out")"
done
echo "rules held by${held#,}"

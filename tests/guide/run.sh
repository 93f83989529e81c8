#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run.sh BUILD PAGE...: run the commands of guides with the tandem in BUILD, on the
# two hosts of fabtests/hosts.sh. /etc can be written, and is as before afterwards.

set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)

say() {
	printf 'guide: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

. "$top/fabtests/hosts.sh"
[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"

build=$(cd "$1" && pwd)
shift
pages=()
for page; do
	pages+=("$(realpath "$page")")
done
make_hosts

scratch=$(mktemp -d)
trap 'cd /; umount /etc 2>/dev/null || :; rm -rf "$scratch"/* 2>/dev/null || :
	umount "$scratch" 2>/dev/null || :; rmdir "$scratch"' EXIT
# What the commands write ends with this script.
if [ "$TANDEM_HOSTS" = 2 ]; then
	mount -t tmpfs tmpfs "$scratch"
	mkdir "$scratch/upper" "$scratch/work" "$scratch/here"
	mount -t overlay overlay /etc -o \
		"lowerdir=/etc,upperdir=$scratch/upper,workdir=$scratch/work" ||
		say "/etc cannot be covered"
	cd "$scratch/here"
else
	cd "$scratch"
fi
# The build tree, as who has built it sees it.
ln -s "$build/.libs" .libs
ln -s "$build/tools" tools

export ADDRESS1=$address1 ADDRESS2=$address2 SECOND_PID=${second:-}
export PATH=$build/tools:$PATH
# As on a machine with enough processors.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
unset FI_PROVIDER_PATH
ret=0
for page in "${pages[@]}"; do
	[ "$TANDEM_HOSTS" = 1 ] || rm -f /etc/libfabric.conf
	PYTHONDONTWRITEBYTECODE=1 "$top/tests/guide/try.py" "$page" || ret=1
done
exit "$ret"

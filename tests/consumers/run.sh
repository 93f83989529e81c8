#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run.sh BUILD RESULTS DIR [OPTION...]
#
# Runs the programs of other projects that the user has built or installed
# below DIR over the provider in BUILD, on one host and on two, and prints a
# table. This script makes the hosts: two network namespaces that end with it.
# run.py does the rest; ./dev help names its options.

set -euo pipefail

say() {
	printf 'consumers: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../fabtests/hosts.sh"

[ $# -ge 3 ] || die "usage: run.sh BUILD RESULTS DIR [OPTION...]"
[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
[ "$TANDEM_HOSTS" = 2 ] ||
	die "this machine or container forbids namespaces, which are the hosts"

work=$(mktemp -d)
trap 'umount -q "$work/net" "$work/uts" || :; rm -rf "$work"
	kill "$second" 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM HUP
make_hosts

# Files keep the second host reachable from further process namespaces, and
# launchers know hosts by name.
touch "$work/net" "$work/uts"
mount --bind "/proc/$second/ns/net" "$work/net"
mount --bind "/proc/$second/ns/uts" "$work/uts"
printf '%s\n' '127.0.0.1 localhost' "$address1 host1" "$address2 host2" \
	>"$work/hosts"
[ ! -e /etc/hosts ] || mount --bind "$work/hosts" /etc/hosts

export TANDEM_HOST2_NET=$work/net TANDEM_HOST2_UTS=$work/uts
export TANDEM_HOST2_ADDRESS=$address2
mkdir "$work/bin"
ln -s "$here/agent.sh" "$work/bin/ssh"
PATH=$work/bin:$PATH python3 -B "$here/run.py" "$@"

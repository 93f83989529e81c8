#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run-demo.sh BUILD [DEMO-ARGUMENT...]
#
# Runs tandem_demo, then libfabric's own fi_info and fi_pingpong, on the two test
# hosts of hosts.sh. Each host has two of the four processes.

set -euo pipefail

say() {
	printf 'demo: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

. "$(dirname "$0")/hosts.sh"

# ---- what is shown ---------------------------------------------------------

# Four processes, two on each host; rank 0 does the talking. They take seconds,
# but poll and give way to others: minutes where a dozen others never sleep.
run_demo() {
	local rank host address label pid ret port=$((20000 + RANDOM % 10000))
	local seconds=600
	local -A running=()
	for rank in 0 1 2 3; do
		host=host$((rank / 2 + 1))
		address=address$((rank / 2 + 1))
		label=$host
		[ "$TANDEM_HOSTS" = 2 ] || label=host1
		"$host" timeout --kill-after=5 "$seconds" "$build/tandem_demo" \
			-r "$rank" -n 4 -a "${!address}" -H "$label" \
			-c "$address1:$port" "$@" </dev/null &
		running[$!]=$rank
	done
	while [ "${#running[@]}" != 0 ]; do
		ret=0
		wait -n -p pid "${!running[@]}" || ret=$?
		[ "$ret" != 124 ] ||
			die "process ${running[$pid]} was not done in $seconds s"
		[ "$ret" = 0 ] ||
			die "process ${running[$pid]} failed (exit status $ret)"
		unset "running[$pid]"
	done
}

# Does fi_pingpong's server listen (port 47592, state LISTEN)?
listening() {
	grep -q ':B9E8 [0-9A-F]*:0000 0A' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# pingpong HOST: a server on the first host, the client on HOST.
pingpong() {
	local options=(-p tandem -I 100 -S 4096) server
	host1 timeout 60 fi_pingpong "${options[@]}" >"$logs/server" 2>&1 &
	server=$!
	wait_for "fi_pingpong" listening
	if ! "$1" timeout 60 fi_pingpong "${options[@]}" "$address1" \
		>"$logs/client" 2>&1 || ! wait "$server"; then
		cat "$logs/server" "$logs/client"
		die "fi_pingpong failed"
	fi
	sed 's/^/  /' "$logs/client"
}

main() {
	build=$(cd "$1" && pwd)
	shift
	export FI_PROVIDER_PATH=$build/.libs
	logs=$(mktemp -d)
	# shellcheck disable=SC2046 # words are wanted
	trap 'rm -rf "$logs"; kill $(jobs -p) 2>/dev/null || true' EXIT
	trap 'exit 130' INT TERM HUP
	make_hosts
	run_demo "$@"
	say "fi_info -p tandem"
	host1 timeout 60 fi_info -p tandem | sed 's/^/  /'
	say "fi_pingpong -p tandem, both on host 1"
	pingpong host1
	if [ "$TANDEM_HOSTS" = 2 ]; then
		say "fi_pingpong -p tandem, from host 2 to host 1"
	else
		say "FI_TANDEM_SHM=off fi_pingpong -p tandem"
		export FI_TANDEM_SHM=off
	fi
	pingpong host2
	say "all of it worked"
}

[ $# -gt 0 ] || die "usage: run-demo.sh BUILD [DEMO-ARGUMENT...]"
[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
main "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run-demo.sh BUILD [DEMO-ARGUMENT...]
#
# Runs tandem_demo, then libfabric's own fi_info and fi_pingpong, on two test
# hosts: two network namespaces joined by a veth pair. Each host has two of
# the four processes. Where namespaces are not allowed, all is on loopback.
#
# The hosts and all processes live in namespaces that end with this script.

set -euo pipefail

say() {
	printf 'demo: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

# ---- two hosts, or one -----------------------------------------------------

# Run this script again as the first process of new namespaces.
new_namespaces() {
	local user=() own=(unshare --net --mount --pid --fork --kill-child
		--mount-proc --)
	[ "$(id -u)" = 0 ] || user=(unshare --user --map-root-user --)
	command -v ip >/dev/null || die "ip is missing (Debian: iproute2)"
	if "${user[@]}" "${own[@]}" ip link set lo up >/dev/null 2>&1; then
		hosts=2
	else
		hosts=1
		user=() own=()
	fi
	TANDEM_DEMO_HOSTS=$hosts exec "${user[@]}" "${own[@]}" "$0" "$@"
}

# wait_for WHAT CMD...: until CMD succeeds, at most 10 s.
wait_for() {
	local what=$1 n
	shift
	for ((n = 0; n < 200; n++)); do
		"$@" && return
		sleep 0.05
	done
	die "$what: nothing after 10 s"
}

is_elsewhere() {
	[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

make_hosts() {
	if [ "$TANDEM_DEMO_HOSTS" = 1 ]; then
		say "network namespaces are not allowed here: one host, on loopback"
		address1=127.0.0.1
		address2=127.0.0.1
		return
	fi
	address1=10.77.0.1
	address2=10.77.0.2
	unshare --net sleep infinity &
	second=$!
	wait_for "the second host" is_elsewhere "$second"
	ip link add tandem0 type veth peer name tandem0 netns "$second"
	set_up host1 "$address1"
	set_up host2 "$address2"
	say "two hosts, $address1 and $address2"
}

set_up() {
	"$1" ip link set lo up
	"$1" ip address add "$2/24" dev tandem0
	"$1" ip link set tandem0 up
}

# hostN CMD...: run CMD on that host; it does not outlive this script.
host1() {
	setpriv --pdeathsig KILL "$@"
}

host2() {
	if [ -n "${second:-}" ]; then
		nsenter --net="/proc/$second/ns/net" \
			setpriv --pdeathsig KILL "$@"
	else
		host1 "$@"
	fi
}

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
		[ "$TANDEM_DEMO_HOSTS" = 2 ] || label=host1
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
	if [ "$TANDEM_DEMO_HOSTS" = 2 ]; then
		say "fi_pingpong -p tandem, from host 2 to host 1"
	else
		say "FI_TANDEM_SHM=off fi_pingpong -p tandem"
		export FI_TANDEM_SHM=off
	fi
	pingpong host2
	say "all of it worked"
}

[ $# -gt 0 ] || die "usage: run-demo.sh BUILD [DEMO-ARGUMENT...]"
[ -n "${TANDEM_DEMO_HOSTS:-}" ] || new_namespaces "$@"
main "$@"

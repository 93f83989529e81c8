# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Copyright (c) 2026 The tandem authors
#
# Two test hosts: two network namespaces joined by a veth pair. Where namespaces
# are not allowed, all is on loopback. Sourced by scripts that run programs on
# them, after they defined die() and say(); such a script begins with
#
#	[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
#
# The hosts and all processes live in namespaces that end with the script.
# Afterwards $address1 and $address2 are the addresses of the hosts.

# Run this script again as the first process of new namespaces.
new_namespaces() {
	local hosts user=() own=(unshare --net --uts --mount --pid --fork
		--kill-child --mount-proc --)
	[ "$(id -u)" = 0 ] || user=(unshare --user --map-root-user --)
	command -v ip >/dev/null || die "ip is missing (Debian: iproute2)"
	if "${user[@]}" "${own[@]}" ip link set lo up >/dev/null 2>&1; then
		hosts=2
	else
		hosts=1
		user=() own=()
	fi
	TANDEM_HOSTS=$hosts exec "${user[@]}" "${own[@]}" "$0" "$@"
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
	[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ] &&
		[ "$(readlink "/proc/$1/ns/uts")" != \
			"$(readlink /proc/self/ns/uts)" ]
}

make_hosts() {
	if [ "$TANDEM_HOSTS" = 1 ]; then
		say "network namespaces are not allowed here: one host, on loopback"
		address1=127.0.0.1
		address2=127.0.0.1
		return
	fi
	address1=10.77.0.1
	address2=10.77.0.2
	unshare --net --uts sleep infinity &
	second=$!
	wait_for "the second host" is_elsewhere "$second"
	ip link add tandem0 type veth peer name tandem0 netns "$second"
	set_up host1 "$address1"
	set_up host2 "$address2"
	# Until the link runs, fi_getinfo does not offer its address.
	wait_for "the link of host1" runs host1
	wait_for "the link of host2" runs host2
	say "two hosts, $address1 and $address2"
}

# The name of each host is that of the function that runs a command on it.
set_up() {
	"$1" sh -c 'echo "$1" >/proc/sys/kernel/hostname' sh "$1"
	"$1" ip link set lo up
	"$1" ip address add "$2/24" dev tandem0
	"$1" ip link set tandem0 up
}

runs() {
	"$1" ip -o link show dev tandem0 2>/dev/null |
		grep -q 'state UP'
}

# hostN CMD...: run CMD on that host; it does not outlive this script.
host1() {
	setpriv --pdeathsig KILL "$@"
}

host2() {
	if [ -n "${second:-}" ]; then
		nsenter --net="/proc/$second/ns/net" \
			--uts="/proc/$second/ns/uts" \
			setpriv --pdeathsig KILL "$@"
	else
		host1 "$@"
	fi
}

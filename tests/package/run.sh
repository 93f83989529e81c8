#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run.sh ROOT USER PART...: use tandem as it is installed in ROOT, a Debian root, on
# the two hosts of fabtests/hosts.sh. USER is a user of ROOT. PARTs:
#
#	tools		tandem-doctor, tandem-stat and tandem-perf
#	examples	the programs of examples/hello, compiled there
#	DIR:PAGE	the commands of a guide, from the folder DIR of ROOT
#
# Nothing is set for tandem or libfabric, anywhere, but what TANDEM_PACKAGE_ENV has:
# words NAME=VALUE for the environment.

set -euo pipefail

say() {
	printf 'package: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/fabtests/hosts.sh"
[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
[ "$TANDEM_HOSTS" = 2 ] || die "namespaces are not allowed here"

root=$1
who=$2
shift 2
make_hosts

# What was started ends with the namespaces; mounts as well.
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
home=$(chroot "$root" getent passwd "$who" | cut -d: -f6)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

own=("$(command -v chroot)" "$root" setpriv "--reuid=$who" "--regid=$who" --init-groups)
fresh=(env -i PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 "HOME=$home"
	"USER=$who")
# shellcheck disable=SC2206 # words are wanted
fresh+=(${TANDEM_PACKAGE_ENV:-})

# on HOST CMD...: as the user, in ROOT.
on() {
	"$1" "${fresh[@]}" "${own[@]}" "${@:2}"
}

# shows FILE LINE...: each pattern is in the file.
shows() {
	local file=$1 line
	shift
	for line; do
		grep -qE -- "$line" "$file" || {
			cat "$file" >&2
			die "no line with '$line' above"
		}
	done
}

# serve CMD...: run it on the first host until stop; it has printed a whole line.
serve() {
	: >"$logs/server"
	on host1 "$@" >"$logs/server" 2>&1 &
	server=$!
	wait_for "$*" has_line "$logs/server"
}

has_line() {
	[ "$(wc -l <"$1")" != 0 ]
}

stop() {
	kill "$server"
	wait "$server" || :
}

part_tools() {
	on host1 tandem-doctor >"$logs/out" || {
		cat "$logs/out"
		die "tandem-doctor finds something to do"
	}
	shows "$logs/out" '^ok +libfabric' '^ok +module: tandem 0' '^ok +here: '
	serve tandem-doctor --listen
	address=$(head -n 1 "$logs/server")
	on host1 tandem-doctor "$address" >"$logs/out"
	shows "$logs/out" '^ok +pair: .*shared memory'
	on host2 tandem-doctor "$address" >"$logs/out"
	shows "$logs/out" '^ok +pair: TCP'
	on host1 tandem-stat >"$logs/out"
	shows "$logs/out" '^process [0-9]+ .*tandem 0' 'endpoint 10\.77\.0\.1:'
	stop
	for host in host1 host2; do
		serve tandem-perf
		on "$host" tandem-perf --size=8,1M --seconds=0.2 "$address1" \
			>"$logs/out"
		shows "$logs/out" '^ +8 +[0-9.]' '^ +1048576 +[0-9.]'
		wait "$server"
	done
	say "$who: tandem-doctor, tandem-stat and tandem-perf run"
}

part_examples() {
	local doc=/usr/share/doc/libfabric-tandem-dev program host
	for program in message memory; do
		on host1 env -C "$home" cc -I "$doc" -o "$program" \
			"$doc/examples/hello/$program.c" \
			"$doc/examples/hello/hello.c" -lfabric
		for host in host1 host2; do
			serve env FI_PROVIDER=tandem "$home/$program"
			on "$host" env FI_PROVIDER=tandem "$home/$program" \
				"$(head -n 1 "$logs/server")" >"$logs/out" || {
				cat "$logs/server"
				die "$program on $host failed with the server above"
			}
			wait "$server"
			shows "$logs/server" '^(received: hello, server|the client wrote: one-sided)'
			shows "$logs/out" '^(received: hello, client|read again: one-sided)'
		done
	done
	say "$who: examples/hello run, on one host and on two"
}

part_guide() {
	rm -f "$root/etc/libfabric.conf"
	"${fresh[@]}" ADDRESS1="$address1" \
		ADDRESS2="$address2" SECOND_PID="$second" GUIDE_DIR="$1" \
		GUIDE_INSIDE="${own[*]}" PYTHONDONTWRITEBYTECODE=1 \
		"$top/tests/guide/try.py" "$2"
}

for part; do
	case $part in
	*:*) part_guide "${part%%:*}" "${part#*:}" ;;
	*) "part_$part" ;;
	esac
done

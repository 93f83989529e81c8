#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run.sh BUILD: the programs of this folder, over several providers between two
# processes of one host, and over two on two hosts (network namespaces).
set -euo pipefail

say() {
	printf 'hello: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

. "$(dirname "$0")/../../fabtests/hosts.sh"

# try HOST PROVIDER PROGRAM WORDS...: the program on the first host, and on HOST with
# the address that it has printed. Each prints its line of the two.
try() {
	local host=$1 program=$build/examples/hello/$3 server
	export FI_PROVIDER=$2
	: >"$logs/server"
	host1 timeout 60 "$program" >"$logs/server" 2>&1 &
	server=$!
	wait_for "$3 over $2" grep -q . "$logs/server"
	"$host" timeout 60 "$program" "$(head -n 1 "$logs/server")" \
		>"$logs/client" 2>&1 || {
		cat "$logs/server" "$logs/client"
		die "$3 over $2 on $host failed"
	}
	wait "$server" || die "$3 over $2: $(cat "$logs/server")"
	[ "$(sed 1d "$logs/server")" = "$4" ] ||
		die "$3 over $2: the server printed $(cat "$logs/server")"
	[ "$(cat "$logs/client")" = "$5" ] ||
		die "$3 over $2: the client printed $(cat "$logs/client")"
	tried=$((tried + 1))
}

# both HOST PROVIDER
both() {
	say "$1, $2"
	try "$1" "$2" message "received: hello, server" "received: hello, client"
	try "$1" "$2" memory "the client wrote: one-sided, from far away" \
		"read again: one-sided, from far away"
}

[ $# = 1 ] || die "usage: run.sh BUILD"
[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
build=$(cd "$1" && pwd)
export FI_PROVIDER_PATH=$build/.libs
logs=$(mktemp -d)
tried=0
trap 'rm -rf "$logs"; kill $(jobs -p) 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM HUP
make_hosts
for provider in tandem tcp shm 'tcp;ofi_rxm' sockets; do
	both host1 "$provider"
done
if [ "$TANDEM_HOSTS" = 2 ]; then
	both host2 tandem
	both host2 tcp
fi
say "$tried runs gave what they should"

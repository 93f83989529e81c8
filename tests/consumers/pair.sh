#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# pair.sh READY SERVER CLIENT-HOST CLIENT: run two shell commands. The client
# starts on its host when the server has printed the text READY, or after a
# second where READY is empty. Both must succeed.

set -uo pipefail
ready=$1 server=$2 host=$3 client=$4
out=$(mktemp)
trap 'rm -f "$out"; kill $(jobs -p) 2>/dev/null' EXIT

bash -c "exec $server" >"$out" 2>&1 &
pid=$!
[ -n "$ready" ] || sleep 1
until [ -z "$ready" ] || grep -q -- "$ready" "$out"; do
	kill -0 "$pid" 2>/dev/null || break
	sleep 0.05
done
"$(dirname "$0")/agent.sh" "$host" "exec $client"
client=$?
wait "$pid"
server=$?
echo "== the server printed:"
cat "$out"
echo "== exit status: client $client, server $server"
[ "$client" = 0 ] && [ "$server" = 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh BUILD [ARGUMENT...]: every benchmark on every path. The arguments are
# those of tandem_latency, as "-s 4096" or "-p tcp" for another provider; "av"
# alone measures address vectors only.
set -euo pipefail

build=$(cd "$1" && pwd)
shift
export FI_PROVIDER_PATH=$build/.libs

if [ "${1-}" = av ]; then
	exec "$build/tandem_av"
fi
for path in shm tcp; do
	"$build/tandem_latency" "$@" "$path"
done
"$build/tandem_av"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh BUILD [quick|compare|av|coll] [OPTION...] [PART]: measure tandem beside the
# limits of the machine and beside other providers. The options are those of
# tandem_bench. Results: bench/out.
#   (nothing)  all rows, all entrants
#   quick      every third size, fewer entrants; under 3 minutes
#   compare    one page: tandem and the best of the others
#   av         address vectors only
#   coll       collective operations of eight processes on two hosts: coll.sh
set -euo pipefail

build=$(cd "${1:?usage: bench/run.sh BUILD [quick | compare | ...]}" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
export FI_PROVIDER_PATH=$build/.libs
out=$here/out
mkdir -p "$out"

# The entrants that are MPI libraries need a program of their own.
if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
	mpicc -O2 -D_GNU_SOURCE -I"$here/.." -o "$build/bench_mpi" "$here"/mpi.c \
		"$here"/{ctl,limit,side,work}.c
	export BENCH_MPI=$build/bench_mpi
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
else
	echo "bench: no mpicc, so without Open MPI and UCX" >&2
fi

case "${1-}" in
av)
	exec "$build/tandem_av"
	;;
coll)
	shift
	"$here/coll.sh" "$build" "$@" | tee "$out/coll.txt"
	exit
	;;
quick)
	shift
	"$build/tandem_bench" -q -r 3 -o "$out" "$@" | tee "$out/table.txt"
	;;
compare)
	shift
	"$build/tandem_bench" -q -r 2 -o "$out" "$@" >"$out/table.txt"
	"$here/compare.sh" "$out/rows.csv"
	exit
	;;
*)
	"$build/tandem_bench" -o "$out" "$@" | tee "$out/table.txt"
	"$build/tandem_av" | tee -a "$out/table.txt"
	;;
esac
"$here/plot.sh" "$out"

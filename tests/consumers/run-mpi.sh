#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run-mpi.sh BUILD: what an installed Open MPI runs over tandem, two-sided by
# its mtl ofi and one-sided by its btl ofi, with Open MPI's defaults otherwise:
# programs of this folder, mpi4py, HPCC. On one host, on one host by TCP, on the
# two hosts of fabtests/hosts.sh, and on one host with libfabric's own shm as the
# local peer. Exit status 77 where Open MPI is missing.
#
# agent.sh, which enters the second host, stands in for ssh.

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)

say() {
	printf 'mpi: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

. "$top/fabtests/hosts.sh"

# Give one rank of each host its turn: there are fewer processors than ranks.
mpirun_of() {
	case $1 in
	one | tcp | foreign) echo mpirun --oversubscribe ;;
	two)
		echo mpirun --prtemca plm_ssh_agent "$here/agent.sh" \
			--host "$address1:8,$address2:8" \
			--map-by node:OVERSUBSCRIBE
		;;
	esac
}

two_sided=(--mca pml "^ucx" --mca mtl ofi --mca mtl_ofi_provider_include tandem
	-x FI_PROVIDER_PATH)
one_sided=("${two_sided[@]}" --mca osc rdma --mca btl self,ofi
	--mca btl_ofi_provider_include tandem)

# run WHERE NAME MPIRUN-ARGUMENT...: one job, in a folder of its own. The report
# of tandem says which paths the ranks used; there has to be one.
run() {
	local where=$1 name=$2 ret=0 log start=$SECONDS line=()
	shift 2
	log=$scratch/log/$name-$where
	mkdir -p "$scratch/$name-$where"
	read -ra line < <(mpirun_of "$where")
	[ "$where" != tcp ] || line+=(-x FI_TANDEM_SHM=off)
	[ "$where" != foreign ] || line+=(-x FI_TANDEM_LOCAL=shm)
	(
		cd "$scratch/$name-$where"
		[ "$name" != hpcc ] || cp "$here/hpccinf.txt" .
		exec timeout --kill-after=10 300 "${line[@]}" \
			-x FI_TANDEM_REPORT=1 "$@"
	) </dev/null >"$log" 2>&1 || ret=$?
	if [ "$ret" = 0 ] && ! grep -q '^tandem\[.* peers' "$log"; then
		echo "the job did not use tandem" >>"$log"
		ret=1
	fi
	if [ "$ret" = 0 ]; then
		passed=$((passed + 1))
		say "$name, $where: ok, $((SECONDS - start)) s"
	else
		failed=$((failed + 1))
		say "$name, $where: FAILED (exit status $ret):" \
			"mpirun $*"
		tail -n 60 "$log"
	fi
}

hpcc_is_right() {
	local out=$scratch/hpcc-$1/hpccoutf.txt
	grep -q '^Success=1' "$out" && ! grep -q 'FAILED' "$out" || {
		failed=$((failed + 1))
		say "hpcc, $1: wrong results"
		grep -n 'FAILED\|^Success' "$out" || :
	}
}

programs() {
	local where=$1 np
	shift
	for np; do
		run "$where" "check$np" -n "$np" "${two_sided[@]}" \
			"$scratch/mpi_check" -n 3000
	done
	run "$where" receives2 -n 2 "${two_sided[@]}" \
		"$scratch/mpi_check" -n 100000 receives
	run "$where" windows4 -n 4 "${one_sided[@]}" \
		"$scratch/mpi_check" fence locks atomics
	run "$where" mpi4py -n 3 "${two_sided[@]}" \
		python3 "$here/mpi4py_check.py"
	run "$where" hpcc -n 4 "${two_sided[@]}" hpcc
	hpcc_is_right "$where"
}

main() {
	local build
	build=$(cd "$1" && pwd)
	command -v mpicc >/dev/null && ompi_info >/dev/null 2>&1 ||
		{ say "Open MPI is not installed"; exit 77; }
	export FI_PROVIDER_PATH=$build/.libs
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
	scratch=$(mktemp -d)
	# shellcheck disable=SC2046 # words are wanted
	trap 'rm -rf "$scratch"; kill $(jobs -p) 2>/dev/null || true' EXIT
	trap 'exit 130' INT TERM HUP
	mkdir "$scratch/log"
	mpicc -O1 -I"$top" "$here"/mpi_*.c -o "$scratch/mpi_check"
	make_hosts
	passed=0 failed=0
	programs one 2 4 8
	programs tcp 2 4
	programs foreign 2 4
	if [ "$TANDEM_HOSTS" = 2 ]; then
		export TANDEM_HOST2_NET=/proc/$second/ns/net
		export TANDEM_HOST2_UTS=/proc/$second/ns/uts
		export TANDEM_HOST2_ADDRESS=$address2
		programs two 2 4
	fi
	say "$passed jobs right, $failed wrong"
	[ "$failed" = 0 ]
}

[ $# = 1 ] || die "usage: run-mpi.sh BUILD"
[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
main "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# coll.sh BUILD [-r ROUNDS] [-e NAME,...] [PART]: collective operations of eight
# processes, four on each of two hosts (network namespaces): tandem, libfabric's
# off_coll alone (over tcp;ofi_rxm), and Open MPI's own over tandem.
#   PART  only rows with this text in their labels: 'allreduce'
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
members=8

say() {
	printf 'bench: %s\n' "$*" >&2
}

die() {
	say "$*"
	exit 1
}

. "$here/../fabtests/hosts.sh"

[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
[ "$TANDEM_HOSTS" = 2 ] ||
	die "this machine or container forbids namespaces, which are the hosts"

build=$1
shift
rounds=60 names=tandem,off_coll,ompi
while getopts r:e: option; do
	case $option in
	r) rounds=$OPTARG ;;
	e) names=$OPTARG ;;
	*) die "usage: coll.sh BUILD [-r ROUNDS] [-e NAME,...] [PART]" ;;
	esac
done
shift $((OPTIND - 1))

export FI_PROVIDER_PATH=$build/.libs
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
batches=$here/out/coll.csv
mkdir -p "$here/out"
: >"$batches"
work=$(mktemp -d)
# shellcheck disable=SC2046 # words are wanted
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
make_hosts >&2

# fab SEAT PROVIDER: the members of an entrant that is a provider.
fab() {
	local rank
	for ((rank = 0; rank < members; rank++)); do
		if ((rank < members / 2)); then
			host1 "$build/tandem_coll" "$work/page" member "$1" \
				"$rank" "$2" "$address1" &
			pids+=($!)
		else
			host2 "$build/tandem_coll" "$work/page" member "$1" \
				"$rank" "$2" "$address2" &
			pids+=($!)
		fi
	done
}

# mpi SEAT: the members of Open MPI over tandem. Its ranks give their processors
# away while they wait, as the other members do.
mpi() {
	export TANDEM_HOST2_NET=/proc/$second/ns/net
	export TANDEM_HOST2_UTS=/proc/$second/ns/uts
	export TANDEM_HOST2_ADDRESS=$address2
	[ -x "$work/coll_mpi" ] ||
		mpicc -O2 -D_GNU_SOURCE -I"$here/.." -o "$work/coll_mpi" \
			"$here/coll_mpi.c" "$here/coll_side.c"
	mpirun --prtemca plm_ssh_agent "$here/../tests/consumers/agent.sh" \
		--host "$address1:8,$address2:8" --map-by ppr:4:node:OVERSUBSCRIBE --bind-to none \
		-n "$members" --mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include tandem \
		--mca mpi_yield_when_idle 1 -x FI_PROVIDER_PATH \
		"$work/coll_mpi" "$work/page" "$1" &
	pids+=($!)
}

# start NAME: the members of the next entrant.
start() {
	local seat=${#entrants[@]}
	case $1 in
	tandem) fab "$seat" tandem ;;
	tandem-tcp) FI_TANDEM_SHM=off fab "$seat" tandem ;;
	off_coll) fab "$seat" 'tcp;ofi_rxm' ;;
	ompi)
		command -v mpicc >/dev/null && command -v mpirun >/dev/null || {
			say "no mpicc, so without Open MPI"
			return
		}
		mpi "$seat"
		;;
	*) die "no entrant has the name $1" ;;
	esac
	entrants+=("$1")
}

parts=(barrier broadcast allreduce allgather alltoall)
[ $# = 0 ] || parts=("$1")
# An entrant that fails in one operation is there again in the next one.
for part in "${parts[@]}"; do
	truncate -s 0 "$work/page"
	truncate -s 1M "$work/page"
	entrants=() pids=()
	for name in ${names//,/ }; do
		start "$name"
	done
	"$build/tandem_coll" "$work/page" "$rounds" "$part" "$batches" \
		"${entrants[@]}"
	kill "${pids[@]}" 2>/dev/null || :
	wait "${pids[@]}" 2>/dev/null || :
done

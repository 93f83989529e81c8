#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# run.sh BUILD [full | PROFILE...]: two processes exchange checked operations with
# the tandem in BUILD, over bad networks between two hosts (network namespaces): the
# profiles of the table below. Without arguments, those that are marked with *.
# TANDEM_SEED is the seed (1) of the networks and of the operations. TANDEM_NET_MORE
# has further words for badnet.c. Exit status 77 where namespaces or TUN are missing.

set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)

say() {
	printf 'networks: %s\n' "$*"
}

die() {
	say "$*" >&2
	exit 1
}

. "$top/fabtests/hosts.sh"

# NAME COUNT LARGEST ADDRESSES WORD...: each side has COUNT operations of at most
# LARGEST bytes. ADDRESSES: 4, 6, or link (IPv6, link-local). The words are for
# badnet.c, those in capital letters for the environment of both sides.
table='
clean           5000  1048576 4
loss-1          3000  1048576 4    loss=1
loss-10         *2000 1048576 4    loss=10 delay=2
loss-50         1000  262144  4    loss=50 delay=2
loss-100        400   65536   4    loss=100 delay=1
loss-10-6       2000  1048576 6    loss=10 delay=2
duplicate-10    2500  1048576 4    duplicate=10
duplicate-200   2000  1048576 4    duplicate=200 delay=1
reorder-10      2000  1048576 4    reorder=10 delay=2
reorder-200     *800  1048576 4    reorder=200 duplicate=50 delay=2
reorder-500     800   262144  4    reorder=500 delay=5
delay-10        1500  1048576 4    delay=10
delay-50        *200  1048576 4    delay=50 jitter=10
delay-200       60    1048576 4    delay=200 jitter=50
delay-200-6     60    1048576 6    delay=200 jitter=50
jitter-20       600   1048576 4    delay=5 jitter=20
rate-1000       60    65536   4    rate=1000
rate-10000      200   262144  4    rate=10000 delay=10
rate-100000     600   1048576 4    rate=100000 delay=1 buffer=20
rate-small      300   65536   4    rate=10000 delay=10 buffer=10
mtu-576         2500  262144  4    mtu=576
mtu-1280-6      *2500 1048576 6    mtu=1280 loss=5
mtu-9000        4000  1048576 4    mtu=9000 loss=1
mtu-65535       6000  1048576 4    mtu=65535 loss=1
hole-1280       *100  262144  4    blackhole=1280
hole-9000       100   262144  4    mtu=9000 blackhole=1500
hole-1280-6     100   262144  6    blackhole=1280
cut-1           *1000 1048576 4    cut=1 cut_at=100 cut_for=2000
cut-2           600   1048576 4    cut=2 cut_at=100 cut_for=5000
cut-both        600   1048576 6    cut=3 cut_at=0 cut_for=3000
link-local      2000  1048576 link loss=5
flip            *1500 1048576 4    flip=300 FI_TANDEM_CRC=yes
flip-6          1500  1048576 6    flip=100 FI_TANDEM_CRC=yes
flip-loss       600   262144  4    flip=100 loss=5 reorder=10 FI_TANDEM_CRC=yes
all             400   262144  4    loss=10 duplicate=10 reorder=50 delay=10 jitter=5 rate=50000 mtu=1400
all-6           400   262144  6    loss=10 duplicate=10 reorder=50 delay=10 jitter=5 rate=50000 mtu=1400
'

seconds=120 # the most that a profile may take

# The node of TUN, or one made for this run.
find_tun() {
	tun=/dev/net/tun
	[ ! -c "$tun" ] || ! (: <>"$tun") 2>/dev/null || return 0
	tun=$scratch/tun
	mknod "$tun" c 10 200 2>/dev/null && (: <>"$tun") 2>/dev/null
}

skip() {
	say "$*"
	exit 77
}

# address_of FAMILY HOST
address_of() {
	case $1 in
	4) echo "10.78.0.$2" ;;
	6) echo "fd00:78::$2" ;;
	link) echo "fe80::78:$2%badnet0" ;;
	esac
}

has_spoken() {
	[ -s "$scratch/net" ]
}

# side N COUNT LARGEST ADDRESSES: one process, its input from the other's output,
# and its environment from run(). Both open the same pipe first.
side() {
	local pair=("host$1" env "${env[@]}"
		timeout --kill-after=5 "$((seconds + 10))"
		"$build/tests/net/pair" "$1" "$(address_of "$4" "$1")" "$seed"
		"$2" "$3" "$seconds")
	if [ "$1" = 1 ]; then
		"${pair[@]}" >"$scratch/1to2" <"$scratch/2to1"
	else
		"${pair[@]}" <"$scratch/1to2" >"$scratch/2to1"
	fi 2>"$scratch/side$1"
}

# run NAME COUNT LARGEST ADDRESSES WORD...: one profile.
run() {
	local name=$1 count=${2#\*} what=("${@:3:2}") start=$SECONDS ret=0 net first
	local env=() words=() word
	shift 4
	for word; do
		case $word in
		[A-Z]*) env+=("$word") ;;
		*) words+=("$word") ;;
		esac
	done
	set -- "${words[@]}"
	: >"$scratch/net"
	# Not by host1, a function: the signal is for this process.
	setpriv --pdeathsig KILL "$build/tests/net/badnet" \
		"other=/proc/$second/ns/net" "tun=$tun" "seed=$seed" "$@" \
		"${more[@]}" >"$scratch/net" 2>&1 &
	net=$!
	wait_for "the network of $name" has_spoken
	grep -q '^ready$' "$scratch/net" || die "$name: $(cat "$scratch/net")"
	side 1 "$count" "${what[@]}" &
	first=$!
	side 2 "$count" "${what[@]}" || ret=$?
	wait "$first" || ret=$?
	kill "$net"
	wait "$net" || ret=$?
	[ "$ret" != 0 ] || has_done "$@" "${more[@]}" || ret=$?
	if [ "$ret" = 0 ]; then
		passed=$((passed + 1))
		say "$name: ok, $((SECONDS - start)) s, $(tail -n 1 "$scratch/net")"
	else
		failed=$((failed + 1))
		say "$name: FAILED ($ret), $((SECONDS - start)) s:" \
			"TANDEM_SEED=$seed${more:+ TANDEM_NET_MORE='${more[*]}'}" \
			"tests/net/run.sh BUILD $name"
	fi
	cat "$scratch/side1" "$scratch/side2"
	[ "$ret" = 0 ] || cat "$scratch/net"
	account
}

# has_done WORD...: the network did to some packet what the words ask for.
has_done() {
	local word count
	for word; do
		case $word in
		loss=*) count=lost ;;
		duplicate=*) count=duplicated ;;
		reorder=*) count=reordered ;;
		blackhole=*) count=vanished ;;
		cut=*) count="cut" ;;
		flip=*) count=flipped ;;
		*) continue ;;
		esac
		grep -q " $count [1-9]" "$scratch/net" || {
			say "$word: no packet was $count"
			return 1
		}
	done
}

# Add the messages of the sides and the packets of the network to the sums.
account() {
	local n
	for n in $(sed -n 's/.* received \([0-9]*\) of .*/\1/p' \
		"$scratch"/side[12]); do
		messages=$((messages + n))
	done
	n=$(sed -n 's/^packets \([0-9]*\) .*/\1/p' "$scratch/net")
	packets=$((packets + ${n:-0}))
}

# wanted NAME COUNT ARGUMENT...
wanted() {
	case " ${*:3} " in
	"  ") [[ $2 == \** ]] ;;
	*" full "* | *" $1 "*) return 0 ;;
	*) return 1 ;;
	esac
}

# Remove the direct link, so that all packets go through badnet. TCP keeps nothing
# of a connection for later ones, so that profiles do not influence each other, and
# looks for the largest packet that passes a black hole: by default Linux does not.
set_hosts() {
	local host
	for host in host1 host2; do
		"$host" ip link delete tandem0 2>/dev/null || :
		"$host" sh -c 'cd /proc/sys/net/ipv4 && echo 1 >tcp_mtu_probing &&
			echo 1 >tcp_no_metrics_save' 2>/dev/null ||
			skip "the hosts' settings of TCP cannot be changed here"
	done
}

main() {
	local words
	build=$(cd "$1" && pwd)
	shift
	make -s -C "$build" --no-print-directory tests/net/badnet tests/net/pair
	export FI_PROVIDER_PATH=$build/.libs FI_TANDEM_SHM=off
	seed=${TANDEM_SEED:-1}
	read -ra more <<<"${TANDEM_NET_MORE:-}"
	[ "$TANDEM_HOSTS" = 2 ] || skip "network namespaces are not allowed here"
	scratch=$(mktemp -d)
	# shellcheck disable=SC2046 # words are wanted
	trap 'rm -rf "$scratch"; kill $(jobs -p) 2>/dev/null || true' EXIT
	trap 'exit 130' INT TERM HUP
	find_tun || skip "there is no /dev/net/tun here, and none can be made"
	mkfifo "$scratch/1to2" "$scratch/2to1"
	make_hosts
	set_hosts
	passed=0 failed=0 messages=0 packets=0
	while read -ra words; do
		[ "${#words[@]}" != 0 ] || continue
		wanted "${words[@]:0:2}" "$@" || continue
		[ "${words[3]}" = 4 ] || [ -e /proc/net/if_inet6 ] || {
			say "${words[0]}: left out, there is no IPv6 here"
			continue
		}
		run "${words[@]}"
	done <<<"$table"
	[ "$((passed + failed))" != 0 ] || die "no such profile: $*"
	say "$passed networks right, $failed wrong," \
		"$messages messages in $packets packets"
	[ "$failed" = 0 ]
}

[ $# -gt 0 ] || die "usage: run.sh BUILD [full | PROFILE...]"
[ -n "${TANDEM_HOSTS:-}" ] || new_namespaces "$@"
main "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The models of models/ hold in all of their states, and each variant with a
# weakened line fails. models/README.md describes them.
. "$(dirname "$0")/lib.sh"

have spin || die "spin is missing (Debian: spin)"
have gcc || die "gcc is missing (Debian: gcc)"

dir=$top/$builds/models
rm -rf "$dir"
mkdir -p "$dir"

# Lines "VERDICT MODEL HOW MACRO...". VERDICT: the model holds, or fails. HOW:
# safety, assertions and deadlocks; ltl, the formula of the model too, with weak
# fairness.
runs=(
	"holds ring safety N=2"
	"holds ring safety N=3"
	"holds ring safety N=3 PSO"
	"holds ring safety N=4 LONG BUF=2"
	"fails ring safety N=4 LONG BUF=2 WEAK_DIRTY"
	"fails ring safety N=3 PSO WEAK_RELEASE"
	"fails ring safety N=4 LONG BUF=2 WEAK_SHOW"
	"holds bell safety"
	"holds bell safety FENCE"
	"holds bell ltl SENDS=2 POLLS=1"
	"holds bell ltl SENDS=2 POLLS=1 FENCE"
	"fails bell safety WEAK_BARRIER"
	"fails bell safety FENCE WEAK_LOOK"
	"fails bell safety WEAK_WAKE_SELF"
	"fails bell safety WEAK_SIGNAL"
	"fails bell safety WEAK_SPACE"
	"holds greeting safety"
	"holds greeting ltl"
	"fails greeting safety WEAK_CLAIM"
	"fails greeting ltl WEAK_TIE"
	"holds session safety"
	"holds session safety RESETS=0"
	"fails session safety WEAK_GO"
	"fails session safety WEAK_HOLD"
	"fails session safety WEAK_END"
	"holds resume safety"
	"fails resume safety WEAK_KEEP"
	"fails resume safety WEAK_FINAL"
	"fails resume safety WEAK_BESIDE"
	"holds path ltl"
	"fails path ltl WEAK_OPEN"
	"fails path ltl WEAK_ONCE"
	"fails path ltl WEAK_TIE"
	"fails path ltl WEAK_SHUT"
	"holds cma safety"
	"holds cma safety WRITE"
	"holds cma safety READ"
	"fails cma safety WEAK_GONE"
	"fails cma safety WEAK_CANCEL"
	"fails cma safety READ WEAK_CONFIRM"
	"fails cma safety WRITE WEAK_REVOKE"
	"holds cma safety FORGET"
	"fails cma safety FORGET WEAK_RECALL"
	"holds credit safety"
	"fails credit safety WEAK_LOW"
	"fails credit safety WEAK_FULL"
	"fails credit safety WEAK_COUNT"
	"fails credit safety WEAK_UNSAID"
	"holds cancel safety"
	"fails cancel safety WEAK_STATE"
	"fails cancel safety WEAK_WITHDRAW"
	"fails cancel safety WEAK_ALONE"
)

# explore HOW MODEL MACRO...: in an empty folder; pan's report goes to pan.out.
explore() {
	local how=$1 model=$2 flags=() search=()
	shift 2
	case $how in
	safety) flags=(-DSAFETY -DNOCLAIM) ;;
	ltl)
		flags=(-DNFAIR=3)
		search=(-a -f)
		;;
	esac
	spin -a "${@/#/-D}" "$top/models/$model.pml" >spin.out 2>&1 &&
		gcc -O1 -w -DMEMLIM=2048 "${flags[@]}" -o pan pan.c \
			>gcc.out 2>&1 &&
		./pan -m2000000 "${search[@]}" >pan.out 2>&1
}

# verdict: what pan.out says.
verdict() {
	if grep -qE '^pan:[0-9]+: (assertion violated|acceptance cycle)' pan.out
	then
		echo fails
	elif grep -q 'errors: 0$' pan.out &&
		! grep -qE 'not completed|too small|out of memory|MEMLIM' pan.out
	then
		echo holds
	else
		echo "neither holds nor fails"
	fi
}

# run EXPECTED MODEL HOW MACRO...: leave a line in result, and bad when it is
# not as expected.
run() {
	local expected=$1 model=$2 how=$3 found start=$SECONDS states=-
	shift 3
	mkdir "$dir/$model.$how$(printf '.%s' "$@")"
	cd "$dir/$model.$how$(printf '.%s' "$@")"
	: >pan.out
	explore "$how" "$model" "$@" || :
	found=$(verdict)
	[ "$found" = "$expected" ] || {
		touch bad
		cat spin.out gcc.out pan.out 2>/dev/null | tail -n 40
	}
	states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' pan.out)
	printf '%-5s %-8s %-6s %-24s %10.0f states %4d s\n' "$found" "$model" \
		"$how" "$*" "${states:-0}" "$((SECONDS - start))" >result
	cat result
}

for line in "${runs[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
		wait -n || :
	done
	read -ra words <<<"$line"
	(run "${words[@]}") &
done
wait

[ "$(find "$dir" -name result | wc -l)" = "${#runs[@]}" ] ||
	die "a run left no result"
wrong=$(find "$dir" -name bad -exec dirname {} \;)
[ -z "$wrong" ] || die "not as expected: ${wrong//$'\n'/ }"
cat "$dir"/*/result | awk '
	$1 == "holds" { held++; states += $(NF - 3) }
	$1 == "fails" { failed++ }
	END {
		printf "%d models hold in %.0f states, %d weakened ones fail\n",
			held, states, failed
	}'

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of examples/hello run on one host and on two.
# The toy owner of examples/ drives the toy peer, libfabric's own shm, and the
# shared-memory peer of tandem. tandem-peer-check breaks no rule over the toy peer
# and tandem's; over a peer that lies, it breaks the rule of each lie.
. "$(dirname "$0")/lib.sh"

tree=$builds/gcc
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
make -s -C "$tree" examples/hello/message examples/hello/memory
examples/hello/run.sh "$tree"
make -s -C "$tree" examples/owner/owner examples/peer/libloop-fi.la \
	kit/libkitpeer-fi.la tests/libliar-fi.la tests/libliarowner-fi.la

export FI_PROVIDER_PATH=$top/$tree/examples/peer/.libs:$top/$tree/.libs
held=
for peer in loop shm "tandem tandem-shm"; do
	echo "== $peer"
	out=$builds/log/owner-${peer// /-}.out
	# shellcheck disable=SC2086 # the domain is an argument of its own
	"$tree/examples/owner/owner" $peer | tee "$out"
	held+=", $peer $(grep -c '^ok' "$out")"
done

kit=$tree/tandem-peer-check
for peer in loop "--domain tandem-shm tandem"; do
	echo "== tandem-peer-check $peer"
	out=$builds/log/kit-${peer##* }
	# shellcheck disable=SC2086 # options
	"$kit" $peer | tee "$out.out"
	# shellcheck disable=SC2086
	"$kit" --json --rule 'cq.*' $peer >"$out.json"
	python3 -c 'import json, sys; json.load(sys.stdin)["rules"][0]' \
		<"$out.json"
	n=$(grep -c '^held' "$out.out")
	[ "$n" -gt 50 ] || die "$peer: only $n rules held"
	held+=", $n by ${peer##* }"
done

# As an owner, too.
out=$builds/log/kit-owner
"$kit" --owner tandem | tee "$out.out"
n=$(grep -c '^held' "$out.out")
[ "$n" -gt 50 ] || die "tandem as owner: only $n rules held"
held+=", $n by tandem as owner"

# status LIE RULE OPTION-OR-PROVIDER...: the exit status of the kit for one rule.
status() {
	TANDEM_LIE=$1 "$kit" --rule "$2" "${@:3}" >"$builds/log/liar.out" ||
		return $?
}

# lies FILE OPTION-OR-PROVIDER...: each lie of FILE breaks its rule, which holds
# without one.
lies() {
	local rule lie ret honest=' '
	while read -r rule lie; do
		case $rule in '' | '#'*) continue ;; esac
		[[ $honest == *" $rule "* ]] || status '' "$rule" "${@:2}" || {
			cat "$builds/log/liar.out"
			die "$rule is broken without a lie"
		}
		honest+="$rule "
		ret=0
		status "$lie" "$rule" "${@:2}" || ret=$?
		[ "$ret" = 1 ] || {
			cat "$builds/log/liar.out"
			die "$rule: '$lie' was not found (exit status $ret)"
		}
		count=$((count + 1))
	done <"$1"
}

for rule in $("$kit" --owner --list | awk '/^[a-z]/ { print $1 }'); do
	grep -q "^$rule " tests/kit.owner-lies ||
		die "tests/kit.owner-lies has no lie for $rule"
done
export FI_PROVIDER_PATH=$top/$tree/tests/.libs
count=0
lies tests/kit.lies liar
lies tests/kit.owner-lies --timeout 4 --owner liarowner
echo "rules held by${held#,}; $count lies found"

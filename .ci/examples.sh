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
	tests/libliar-fi.la

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

# status LIE RULE: the exit status of the kit for one rule over the liar.
status() {
	TANDEM_LIE=$1 "$kit" --rule "$2" liar >"$builds/log/liar.out" ||
		return $?
}

export FI_PROVIDER_PATH=$top/$tree/tests/.libs
lies=0
honest=' '
while read -r rule lie; do
	case $rule in '' | '#'*) continue ;; esac
	[[ $honest == *" $rule "* ]] || status '' "$rule" || {
		cat "$builds/log/liar.out"
		die "$rule is broken without a lie"
	}
	honest+="$rule "
	ret=0
	status "$lie" "$rule" || ret=$?
	[ "$ret" = 1 ] || {
		cat "$builds/log/liar.out"
		die "$rule: the lie '$lie' was not found (exit status $ret)"
	}
	lies=$((lies + 1))
done <tests/kit.lies
echo "rules held by${held#,}; $lies lies found"

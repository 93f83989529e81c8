#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The manual page and the provider name the same parameters; each capability,
# mode, option and address format that the provider offers is in the manual; the
# tests that doc/ names exist; ./dev tells the options of its commands; no tracked file names a path of
# somebody's machine, and each source names its license.
. "$(dirname "$0")/lib.sh"

bad=0
manual=man/fi_tandem.7.md

complain() {
	echo "$*"
	bad=1
}

.ci/tree.sh "${gcc_tree[@]}" >/dev/null
export FI_PROVIDER_PATH=$top/$builds/gcc/.libs

# A secret is not listed.
offered=$({ fi_info -e && echo FI_TANDEM_AUTH_KEY; } |
	grep -aoE '\bFI_TANDEM_[A-Z0-9_]+' | sort -u)
described=$(grep -ohE '\bFI_TANDEM_[A-Z0-9_]*[A-Z0-9]' "$manual" | sort -u)
[ -n "$offered" ] || complain "fi_info -e lists no parameter of tandem"
for p in $(comm -23 <(echo "$offered") <(echo "$described")); do
	complain "$p is not in $manual"
done
for p in $(comm -13 <(echo "$offered") <(echo "$described")); do
	complain "$p is in $manual, but the provider does not know it"
done

capabilities=$(fi_info -p tandem -v |
	sed -nE 's/^ *(caps|mode|mr_mode): *\[(.*)\]/\2/p' |
	tr -s ', ' '\n' | grep '^FI_' | sort -u)
[ -n "$capabilities" ] || complain "fi_info -v shows no capability of tandem"
for c in $capabilities; do
	grep -qE "(^|[^A-Z0-9_])$c([^A-Z0-9_]|\$)" "$manual" ||
		complain "$c is offered but not in $manual"
done

# fi_info shows some capabilities, options and formats only to those who ask, or
# not at all: the manual has those that the sources name. The tests that a page
# of doc/ names exist.
wrapped() {
	tr -d '\\' <"$1" | tr '\n\t' '  '
}
for set in TDM_PRIMARY_CAPS TDM_SECONDARY_CAPS TDM_TX_OP_FLAGS \
	TDM_RX_OP_FLAGS; do
	bits=$(wrapped tcp/getinfo.h |
		sed -nE "s/.*#define $set *\(?([^()#]*)[)#].*/\1/p" |
		grep -oE '\bFI_[A-Z_]+' || :)
	[ -n "$bits" ] || complain "tcp/getinfo.h defines no $set"
	capabilities+=" $bits"
done
named=$(grep -ohE '\bFI_(SOCKADDR(_IN6?)?|ADDR_STR|WAIT_[A-Z_]+|ORDER_[A-Z_]+|PROGRESS_[A-Z_]+|EP_(RDM|DGRAM))\b' \
	tcp/getinfo.[ch] tcp/attr.c peer/wait.c |
	grep -vE '_UNSPEC$' | sort -u)
options=$(grep -ohE '\bFI_OPT_[A-Z0-9_]+' tcp/option.c |
	grep -vE '^FI_OPT_ENDPOINT$' | sort -u)
for c in $capabilities $named; do
	grep -qE "(^|[^A-Z0-9_])$c([^A-Z0-9_]|\$)" "$manual" ||
		complain "$c is offered but not in $manual"
done
for o in $options; do
	grep -qE "\b(FI_OPT_)?${o#FI_OPT_}\b" "$manual" ||
		complain "$o is an option but not in $manual"
done
exist=$(cat tests/*/*_test.cc | tr -d '\n' | sed 's/TEST/\n&/g' |
	sed -nE 's/^TEST(_F|_P)?\(([A-Za-z0-9]+),[[:space:]]*([A-Za-z0-9_]+)\).*/\2.\3/p' |
	sort -u)
rows=doc/assurance-rows.md
for page in doc/regressions.md doc/*-sentences.md doc/findings.md "$rows"; do
	cited=$(grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9_]*`' "$page" |
		tr -d '\`' | sort -u)
	[ -n "$cited" ] || complain "$page names no test"
	for t in $(comm -23 <(echo "$cited") <(echo "$exist")); do
		complain "$t is in $page, but there is no such test"
	done
done

# Each row of the catalogue of faults is there once, with a test or a reason, and has
# the tests that are named by its number.
for row in D1-15 O1-13 R1-10 A1-18 N1-9 L1-10 F1-15 W1-3; do
	for i in $(seq 1 "${row#*-}"); do
		line=$(grep -E "^\| ${row:0:1}$i \|" "$rows" || :)
		[ "$(grep -c . <<<"$line")" = 1 ] && [ -n "$(cut -d"|" -f5- <<<"$line" | tr -d " |")" ] ||
			complain "$rows has not one row ${row:0:1}$i"
		for t in $(grep -E "\.${row:0:1}0?${i}_" <<<"$exist"); do
			[[ $line == *"\`$t\`"* ]] ||
				complain "$t is not in row ${row:0:1}$i of $rows"
		done
	done
done

.ci/mutants.py --apply || complain "^ planted bugs (tests/mutants/)"

# What doc/findings.md names besides tests.
news=$(tr -d '`*' <NEWS.md | tr -s ' \n' ' ')
while IFS= read -r entry; do
	what=${entry#*: }
	case $entry in
	doctor:*) grep -qF "(\"$what\"" tests/doctor/setups.py ;;
	guide:*) grep -q '^```sh run' "doc/guide/$what.md" ;;
	check:*) [ -x ".ci/$what.sh" ] ;;
	page:*) [ -s "$what" ] ;;
	NEWS:*) [[ $news == *"$what"* ]] ;;
	esac || complain "doc/findings.md names $entry, which is not there"
done < <(grep -oE '`(doctor|guide|check|page|NEWS): [^`]+`' doc/findings.md |
	grep -vE 'NAME|PAGE|STEP|FILE|WORDS' | tr -d '`' | sort -u)

for c in demo bench; do
	./dev "$c" --help | grep -q "^usage: ./dev $c" ||
		complain "./dev $c --help does not say how to use it"
done

mapfile -t all < <(files '*')
if grep -nIE '(^|[^A-Za-z0-9_.~}])/(home|root|work|Users|mnt|media|opt)/[A-Za-z0-9_]' \
	"${all[@]}"; then
	complain "^ paths of somebody's machine"
fi
mapfile -t sources < <(files '*.c' '*.h' '*.cc' '*.sh' '*.am' '*.ac' dev)
for f in "${sources[@]}"; do
	head -n 3 "$f" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' ||
		complain "$f: the first lines do not name the license"
done

[ "$bad" = 0 ] || exit 1
echo "$(wc -w <<<"$offered") parameters," \
	"$(tr ' ' '\n' <<<"$capabilities" | sort -u | wc -w) capabilities," \
	"$(wc -w <<<"$options") options"

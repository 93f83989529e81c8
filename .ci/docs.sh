#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The manual page and the provider name the same parameters; each capability
# that the provider offers is in the manual; no tracked file names a path of
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

offered=$(fi_info -e | grep -aoE '\bFI_TANDEM_[A-Z0-9_]+' | sort -u)
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
echo "$(wc -w <<<"$offered") parameters, $(wc -w <<<"$capabilities") capabilities"

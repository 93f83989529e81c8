#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What the provider offers is in its manual page; every file names its license
# and none a path of somebody's machine.
. "$(dirname "$0")/lib.sh"

bad=0
manual=man/fi_tandem.7.md

complain() {
	echo "$*"
	bad=1
}

# fi_param_define(&tdm_prov, "name", ...) makes FI_TANDEM_NAME.
mapfile -t sources < <(files 'tcp/*.c' 'shm/*.c' 'peer/*.c' 'av/*.c')
parameters=$(grep -ohE 'fi_param_define\([^,]*,[[:space:]]*"[a-z0-9_]+"' \
	"${sources[@]}" | sed 's/.*"\(.*\)"/\1/' | tr '[:lower:]' '[:upper:]' | sort -u)
for p in $parameters; do
	grep -q "FI_TANDEM_$p\b" "$manual" ||
		complain "FI_TANDEM_$p is not in $manual"
done
for p in $(grep -ohE '\bFI_TANDEM_[A-Z0-9_]+' "$manual" | sort -u); do
	grep -qx "${p#FI_TANDEM_}" <<<"$parameters" ||
		complain "$p is in $manual but not in the provider"
done

echo "$(wc -w <<<"$parameters") parameters"
[ "$bad" = 0 ]

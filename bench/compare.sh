#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# compare.sh ROWS.CSV: one line for each row, tandem beside its best rival.
set -euo pipefail

awk -F, '
NR == 1 || $9 == "" { next }
!($1 in limit) { order[++n] = $1; limit[$1] = $7 }
$8 ~ /^tandem/ && !($1 in ours) { ours[$1] = $9; verdict[$1] = $14; next }
$8 ~ /^tandem/ { next }
!($1 in best) || $9 < best[$1] { best[$1] = $9; who[$1] = $8 }
END {
	printf "%-24s %12s %12s  %-10s %s\n", "", "tandem, ns", "best, ns", \
		"which", "tandem is"
	for (i = 1; i <= n; i++) {
		row = order[i]
		if (!(row in ours) || !(row in best))
			continue
		f = best[row] / ours[row]
		printf "%-24s %12.0f %12.0f  %-10s %.2f times as fast (%s)\n",
			row, ours[row], best[row], who[row], f, verdict[row]
	}
}' "$1"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# results.sh ROWS.CSV: the table of RESULTS.md, one for each tier.
set -euo pipefail

awk -F, '
NR == 1 { next }
{
	tier = $2
	if (!((tier, $1) in seen)) {
		seen[tier, $1] = 1
		order[tier, ++rows[tier]] = $1
	}
	if ($7 != "" && !($1 in limit)) {
		regime[$1] = $6
		limit[$1] = $7
	}
	if (!((tier, $8) in known)) {
		known[tier, $8] = 1
		names[tier, ++entrants[tier]] = $8
	}
	cell[tier, $1, $8] = $10 == "" ? "-" : sprintf("%.2f", $10)
	if ($14 != "")
		verdict[$1] = $14
}
END {
	for (t = 1; t <= 2; t++) {
		tier = t == 1 ? "shm" : "tcp"
		if (!rows[tier])
			continue
		printf "\n| row | cores | limit, ns |"
		for (e = 1; e <= entrants[tier]; e++)
			printf " %s |", names[tier, e]
		printf " tandem is |\n|:---|:---|---:|"
		for (e = 1; e <= entrants[tier]; e++)
			printf "---:|"
		printf ":---|\n"
		for (r = 1; r <= rows[tier]; r++) {
			row = order[tier, r]
			printf "| %s | %s | %.0f |", substr(row, 5),
				regime[row], limit[row]
			for (e = 1; e <= entrants[tier]; e++)
				printf " %s |", cell[tier, row, names[tier, e]]
			printf " %s |\n", verdict[row]
		}
	}
}' "$1"

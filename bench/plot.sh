#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# plot.sh DIR: draw DIR/rows.csv with gnuplot, as SVG and PNG in DIR.
set -euo pipefail

dir=$1
command -v gnuplot >/dev/null || {
	echo "bench: no gnuplot, so no plots" >&2
	exit 0
}

# table TIER GROUP COLUMN WINDOW: "x ns" of each entrant, one block each, for
# gnuplot's index. WINDOW "*": any.
table() {
	awk -F, -v tier="$1" -v group="$2" -v x="$3" -v window="$4" '
	NR > 1 && $2 == tier && $3 == group && $9 != "" &&
		(window == "*" || $5 == window) {
		if (!($8 in seen))
			names[++n] = $8
		seen[$8] = seen[$8] $x " " $9 " " $4 "\n"
	}
	END {
		for (i = 1; i <= n; i++)
			printf "\"%s\"\n%s\n\n", names[i], seen[names[i]]
	}' "$dir/rows.csv"
}

# draw NAME TITLE XLABEL YLABEL EXPRESSION LOGSCALE
draw() {
	local data=$dir/$1.dat form
	[ -s "$data" ] || return 0
	for form in "svg size 900,560 font 'sans,12'" \
		"pngcairo size 900,560 font 'sans,11'"; do
		gnuplot <<-EOF
			set terminal $form
			set output "$dir/$1.${form:0:3}"
			set title "$2"
			set xlabel "$3"
			set ylabel "$4"
			set logscale $6
			set format x "%.0s%c"
			set key left top
			set grid
			stats "$data" using 1 nooutput
			plot for [i=0:STATS_blocks-2] "$data" index i \
				using 1:($5) with linespoints lw 2 \
				title columnheader(1)
		EOF
	done
}

for tier in shm tcp; do
	table $tier half-rtt 4 1 >"$dir/$tier-latency.dat"
	draw $tier-latency "Half round trip, $tier" "message, bytes" \
		"us" '$2/1000' xy
	table $tier stream 4 8 >"$dir/$tier-bandwidth.dat"
	draw $tier-bandwidth "Bandwidth, window of 8, $tier" \
		"message, bytes" "GB/s" '$3/$2' x
	table $tier rate 5 '*' >"$dir/$tier-rate.dat"
	draw $tier-rate "Message rate, 8 bytes, $tier" "window" \
		"messages, million per s" '1000/$2' x
	table $tier match 5 '*' >"$dir/$tier-match.dat"
	draw $tier-match "Matching in reverse order, $tier" \
		"posted receives" "ns per message" '$2' xy
	table $tier first 4 1 >"$dir/$tier-first.dat"
	draw $tier-first "First contact, $tier" "new endpoints at once" \
		"us for each" '$2/1000' xy
	table $tier idle 4 1 >"$dir/$tier-idle.dat"
	draw $tier-idle "fi_cq_read that finds nothing, $tier" "idle peers" \
		"ns" '$2' y
done
rm -f "$dir"/*.dat

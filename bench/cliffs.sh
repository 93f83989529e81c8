#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# cliffs.sh ROWS.CSV: points at which tandem's curve has a step. A point is one if it
# takes more than 1.2 times what a straight line between its two neighbours has there, both axes
# logarithmic, all three measured with the same distance of the cores. Curves are by size
# (one window), by window (one size), and by number of peers.
set -euo pipefail

awk -F, '
NR == 1 || ($8 != "tandem" && $8 != "tandem-tcp") || $9 == "" { next }
{
	n++
	tier[n] = $2; group[n] = $3; bytes[n] = $4; window[n] = $5
	regime[n] = $6; limit[n] = $7; ns[n] = $9; label[n] = $1
}
function line(x0, y0, x1, y1, x)
{
	x = log(x / x0) / log(x1 / x0)
	return exp(log(y0) + log(y1 / y0) * x)
}
function of_limit(x0, i, x1, l, x, at)
{
	if (!limit[i] || !limit[l] || !limit[at])
		return "-"
	return sprintf("%.2f", limit[at] / line(x0, limit[i], x1, limit[l], x))
}
# curve KEY X: the points of a curve in the order of the table, which is rising.
function curve(key, x, by, i, j, k, l, at)
{
	for (i = 1; i <= n; i++) {
		k = tier[i] " " group[i] " " key[i] " " regime[i]
		if (x[i] <= 0)
			continue
		if (!(k in count))
			count[k] = 0
		point[k, ++count[k]] = i
	}
	for (k in count) {
		for (j = 2; j < count[k]; j++) {
			i = point[k, j - 1]
			at = point[k, j]
			l = point[k, j + 1]
			if (x[i] >= x[at] || x[at] >= x[l])
				continue
			if (ns[at] > 1.2 * line(x[i], ns[i], x[l], ns[l], x[at]))
				printf "| %s | %s | %s | %.0f, %.0f, %.0f | %.2f | %s |\n",
					label[at], by, regime[at],
					ns[i], ns[at], ns[l],
					ns[at] / line(x[i], ns[i], x[l], ns[l], x[at]),
					of_limit(x[i], i, x[l], l, x[at], at)
		}
	}
	for (k in count)
		delete count[k]
}
END {
	print "| point | by | cores | before, point, after, ns | above the line | the limit |"
	print "|:---|:---|:---|:---|---:|---:|"
	curve(window, bytes, "size")
	curve(bytes, window, "window")
}' "$1"

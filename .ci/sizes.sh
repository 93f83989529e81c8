#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A .c file has at most 600 lines, a header 200, a function 60; the C++ files of
# the tests have at most 1000.
. "$(dirname "$0")/lib.sh"

have ctags || die "ctags is missing (Debian: universal-ctags)"
mkdir -p "$builds"

files '*.c' '*.h' '*.cc' | while IFS= read -r f; do
	limit=600
	case $f in
	*.cc) limit=1000 ;;
	*.h) is_cxx "$f" && limit=1000 || limit=200 ;;
	esac
	lines=$(wc -l <"$f")
	[ "$lines" -le "$limit" ] || echo "$f: $lines lines, at most $limit"
done >"$builds/sizes.bad"

files '*.c' '*.h' | ctags -L - -f - --languages=C --map-C=+.h --kinds-C=f \
	--fields=ne --output-format=xref \
	--_xformat='%{end} %n %F %N' >"$builds/sizes.functions"
awk -v bad="$builds/sizes.bad" '
	{
		lines = $1 - $2 + 1
		if (lines > 60)
			print $3 ":" $2 ": " $4 "() has " lines \
				" lines, at most 60" >>bad
	}' "$builds/sizes.functions"

if [ -s "$builds/sizes.bad" ]; then
	cat "$builds/sizes.bad"
	exit 1
fi
awk '{ print $1 - $2 + 1 }' "$builds/sizes.functions" | sort -n | awk '
	{ lines[NR] = $1 }
	END {
		printf "%d functions, median %d lines, longest %d\n", NR,
			lines[int((NR + 1) / 2)], lines[NR]
	}'

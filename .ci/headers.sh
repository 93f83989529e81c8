#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each header compiles alone, as C11 and as C++17; those of the tests that use
# C++ as C++17. A NAME.inc.h uses functions of the file that includes it.
. "$(dirname "$0")/lib.sh"

bad=0
count=0
flags="-D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only
	-I. -Iinclude $(pkg-config --cflags libfabric libevent_core)"

while IFS= read -r header; do
	[[ $header != *.inc.h ]] || continue
	count=$((count + 1))
	languages="c:c11 c++:c++17"
	! is_cxx "$header" || languages=c++:c++17
	for language in $languages; do
		# shellcheck disable=SC2086 # flags are words
		echo "#include \"$header\"" | "${CC:-gcc}" \
			-x "${language%:*}" -std="${language#*:}" $flags - || {
			echo "^ $header does not compile alone as ${language#*:}"
			bad=1
		}
	done
done < <(files '*.h')
python3 .ci/homes.py || bad=1
[ "$bad" = 0 ] || exit 1
echo "$count headers compile alone"

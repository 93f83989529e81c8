#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# format.sh [fix]: C and C++ are formatted as .clang-format says. "fix" does it.
. "$(dirname "$0")/lib.sh"

have clang-format || die "clang-format is missing (Debian: clang-format)"

mapfile -t list < <(files '*.c' '*.h' '*.cc')
if [ "${1:-}" = fix ]; then
	clang-format -i "${list[@]}"
else
	clang-format --dry-run -Werror "${list[@]}"
fi
echo "${#list[@]} files, clang-format $(clang-format --version |
	sed 's/.*version \([0-9]*\).*/\1/')"

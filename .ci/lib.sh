# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Variables and functions that dev and the scripts of .ci share; sourced, never
# run. Afterwards the working directory is the top of the checkout.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"

# The C++ of the tests needs no optimisation, which would take most of the time.
# shellcheck disable=SC2034
tests_flags="CXXFLAGS=-g1 -O0"

# The tree of the plain tests.
# shellcheck disable=SC2034
gcc_tree=(gcc CC=gcc CXX=g++ "$tests_flags" --enable-werror)

# Build trees, logs and results. TANDEM_ENV keeps the trees of the machine
# itself and those of a Debian root apart.
# shellcheck disable=SC2034 # used by those who source this
builds=build/${TANDEM_ENV:-host}

say() {
	printf '%s: %s\n' "${0##*/}" "$*"
}

die() {
	say "$*" >&2
	exit 1
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# files GLOB...: the project's own files that match, one a line.
files() {
	if have git && git -c safe.directory='*' rev-parse 2>/dev/null; then
		git -c safe.directory='*' ls-files -co --exclude-standard -- \
			"$@" | while IFS= read -r f; do
			[ ! -f "$f" ] || printf '%s\n' "$f"
		done
	else
		local g names=()
		for g; do
			names+=(-o -path "./$g")
		done
		find . \( -path ./build -o -path ./autom4te.cache -o \
			-path ./config \) -prune \
			-o -type f \( "${names[@]:1}" \) -print |
			sed 's|^\./||'
	fi | LC_ALL=C sort
}

# is_cxx HEADER: is it a header of the tests that only C++ can read?
is_cxx() {
	[[ $1 == tests/* ]] &&
		grep -qE "^(#include <(gtest/|[a-z_]+>)|(class|namespace|template|using)\\b)" "$1"
}

# gtest_total DIR: "PASSED FAILED SKIPPED" summed over GoogleTest's XML in DIR.
gtest_total() {
	find "$1" -name '*.xml' -exec cat {} + | awk '
		function number(name) {
			if (!match($0, " " name "=\"[0-9]+\""))
				return 0
			return substr($0, RSTART + length(name) + 3) + 0
		}
		/<testsuites / {
			tests += number("tests") - number("disabled")
			failed += number("failures") + number("errors")
		}
		{ skipped += gsub(/<skipped /, "") }
		END { print tests - failed - skipped, failed + 0, skipped + 0 }'
}

# gtest_one RESULTS PROGRAM: run a test program with a time limit. It leaves
# RESULTS/NAME.xml, NAME.out and, when it failed, crashed, hung or ran nothing,
# NAME.bad.
gtest_one() {
	local name ret=0 base
	name=$(basename "$2")
	base=$1/$name
	rm -f "$base.xml" "$base.bad"
	timeout --kill-after=10 "${TANDEM_TEST_SECONDS:-3600}" "$2" \
		--gtest_brief=1 --gtest_output="xml:$base.xml" \
		</dev/null >"$base.out" 2>&1 || ret=$?
	if [ ! -s "$base.xml" ]; then
		echo "$name left no result (exit status $ret)" >"$base.bad"
	elif [ "$ret" != 0 ]; then
		echo "$name failed (exit status $ret)" >"$base.bad"
	fi
}

# failure OUTPUT: print the failures in the OUTPUT of a test program: each failed
# expectation, the first 60 lines of each report of a sanitizer, and the end.
failure() {
	grep -vE ': Skipped$|^$' "$1" | awk '
		/: Failure$/ { more = 40 }
		/^\[  FAILED  \]/ { print; more = 0 }
		/(ERROR|WARNING): [A-Za-z]*Sanitizer|: runtime error:/ { more = 60 }
		more-- > 0' | awk 'NR <= 100'
	echo "-- the last lines"
	grep -vE ': Skipped$|^$' "$1" | tail -n 20 || :
}

# gtest_run RESULTS PROGRAM...: run test programs, one more at a time than there
# are processors, since most of them wait most of the time. Fails when one does;
# the output of such a program comes at the end, where it is seen.
gtest_run() {
	local results=$1 program name bad=()
	shift
	mkdir -p "$results"
	for program; do
		while [ "$(jobs -rp | wc -l)" -gt "$(nproc)" ]; do
			wait -n || :
		done
		echo "== $(basename "$program")"
		gtest_one "$results" "$program" &
	done
	wait
	for program; do
		name=$(basename "$program")
		[ ! -e "$results/$name.bad" ] || bad+=("$name")
		echo "== $name"
		cat "$results/$name.out"
	done
	for name in "${bad[@]}"; do
		echo "== failures of $name"
		failure "$results/$name.out"
		cat "$results/$name.bad"
	done
	[ "${#bad[@]}" = 0 ]
}

# test_tree RESULTS TREE CONFIGURE-ARGUMENT...: build a tree and run its test
# programs. The last line printed is the count.
test_tree() {
	local results=$builds/$1 tree=$builds/$2 ret=0 programs
	local passed failed skipped
	rm -rf "$results"
	# Explicit returns: set -e sleeps where the caller tests the result.
	.ci/tree.sh "${@:2}" || return 1
	make -C "$tree" -j"$(nproc)" test-programs || return 1
	read -ra programs < <(
		make -s -C "$tree" --no-print-directory print-tests)
	FI_PROVIDER_PATH=$top/$tree/.libs \
		gtest_run "$results" "${programs[@]/#/$tree/}" || ret=1
	read -r passed failed skipped < <(gtest_total "$results")
	echo "$passed cases passed, $failed failed, $skipped skipped"
	[ "$((passed + failed))" != 0 ] || {
		say "no test ran"
		ret=1
	}
	return $ret
}

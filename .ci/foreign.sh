#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The conform tests with libfabric's shm as peer of tandem (FI_TANDEM_LOCAL),
# except those of tests/foreign.skip.
. "$(dirname "$0")/lib.sh"

fi_info -p shm >/dev/null 2>&1 || {
	say "libfabric has no provider shm"
	exit 77
}
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
make -C "$builds/gcc" -j"$(nproc)" tests/conform_tests >/dev/null
skipped=$(sed -E '/^#/d; s/[[:space:]].*//' tests/foreign.skip | paste -sd :)
[ -n "$skipped" ] || die "tests/foreign.skip names no test"
export FI_PROVIDER_PATH=$top/$builds/gcc/.libs
export FI_TANDEM_LOCAL=shm TANDEM_TEST_PATH=local
exec timeout 600 "$builds/gcc/tests/conform_tests" --gtest_brief=1 \
	--gtest_filter="*-$skipped"

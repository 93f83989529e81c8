#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The conform tests with libfabric's shm, or the provider that TANDEM_FOREIGN
# names, as peer of tandem (FI_TANDEM_LOCAL), except those of tests/foreign.skip
# and tests/foreign-PROVIDER.skip.
. "$(dirname "$0")/lib.sh"

provider=${TANDEM_FOREIGN:-shm}
fi_info -p "$provider" >/dev/null 2>&1 || {
	say "libfabric has no provider $provider"
	exit 77
}
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
make -C "$builds/gcc" -j"$(nproc)" tests/conform_tests >/dev/null
lists=(tests/foreign.skip)
[ ! -e "tests/foreign-$provider.skip" ] ||
	lists+=("tests/foreign-$provider.skip")
skipped=$(sed -E '/^#/d; s/[[:space:]].*//' "${lists[@]}" | paste -sd :)
[ -n "$skipped" ] || die "tests/foreign.skip names no test"
export FI_PROVIDER_PATH=$top/$builds/gcc/.libs
export FI_TANDEM_LOCAL=$provider TANDEM_TEST_PATH=local
exec timeout 600 "$builds/gcc/tests/conform_tests" --gtest_brief=1 \
	--gtest_filter="*-$skipped"

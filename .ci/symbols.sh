#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The module exports fi_prov_ini only, stays loaded, and finds what it uses.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}" >/dev/null
module=$builds/gcc/.libs/libtandem-fi.so

exported=$(nm -D --defined-only "$module" | awk '{ print $3 }' | paste -sd ' ')
[ "$exported" = fi_prov_ini ] || die "exported: ${exported:-nothing}"

dynamic=$(readelf -d "$module")
for flag in NODELETE NOW; do
	grep -q "FLAGS_1.*$flag" <<<"$dynamic" || die "not linked with $flag"
done
missing=$(ldd -r "$module" 2>&1 | grep -E 'undefined symbol|not found' || true)
[ -z "$missing" ] || die "$missing"
grep -E '(RPATH|RUNPATH)' <<<"$dynamic" && die "a search path is built in"
echo "fi_prov_ini alone, $(stat -c %s "$module") bytes"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The release builds, passes its tests, installs and uninstalls by itself.
. "$(dirname "$0")/lib.sh"

if [[ $top == *[[:space:]]* ]]; then
	echo "libtool cannot install below a path with a space"
	exit 77
fi
.ci/tree.sh gcc CC=gcc CXX=g++ --enable-werror >/dev/null
make -C "$builds/gcc" distcheck
echo "$(basename "$(ls "$builds"/gcc/tandem-*.tar.xz)") builds, passes and installs"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# tree.sh NAME [CONFIGURE-ARGUMENT...]: make the build tree NAME.
# configure runs only when its arguments changed; make does the rest.
. "$(dirname "$0")/lib.sh"

name=$1
shift
tree=$builds/$name
mkdir -p "$tree"

# The generated files are in the source tree and belong to the autotools of
# one environment at a time.
generate() {
	if [ ! -f Makefile.in ] ||
		[ "$(cat build/generated 2>/dev/null)" != "$builds" ]; then
		rm -f build/generated
		./autogen.sh
		echo "$builds" >build/generated
	fi
}

exec 8>build/lock
flock 8
generate
cd "$tree"
if [ ! -f Makefile ] || [ "$(cat arguments 2>/dev/null)" != "$*" ]; then
	rm -f arguments
	../../../configure -q "$@"
	echo "$*" >arguments
fi
exec 7>lock
flock 7
exec 8>&-
make -j"$(nproc)" all 7>&-

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# older.sh TARBALL: on a new Debian 12, whose own libfabric is too old, the release
# is built beside the libfabric of Debian 13, compiled there from its source, as the
# guides say; root and an ordinary user follow them.
. "$(dirname "$0")/lib.sh"

tarball=$(realpath "$1")
out=$top/$builds/package/older
rm -rf "$out"
mkdir -p "$out"
. .ci/fresh.sh

new_debian bookworm
sed -n 's/^deb \(.*\) bookworm main.*/deb-src \1 trixie main/p' \
	"$root/etc/apt/sources.list" | head -n 1 \
	>"$root/etc/apt/sources.list.d/source.list"
in_root apt-get -q update

say "what first-steps.md installs, and a newer libfabric from its source"
follow first-steps.md install /
in_root apt-get -q install dpkg-dev autoconf automake libtool
in_root env -C /srv apt-get -q source --tar-only --download-only libfabric
in_root bash -ec 'mkdir /srv/libfabric
	tar xf /srv/libfabric_*.orig.tar.* -C /srv/libfabric --strip-components=1
	cd /srv/libfabric
	[ -x configure ] || ./autogen.sh
	./configure --prefix=/srv/newer --enable-only --enable-tcp --enable-shm
	make -j"$(nproc)" install'
unpack "$tarball"
in_root bash -c 'cd /srv/root/tandem && ! ./configure'
grep -q 'libfabric >= 2.1' "$out/fresh.log" ||
	die "configure does not say that libfabric is too old"
commands=$(tests/guide/try.py --print newer doc/guide/administrator.md)
in_root bash -ec "cd /srv/root/tandem; ${commands//DIR//srv/newer}"
in_root su guest -c "set -e; cd ~/tandem
	export PKG_CONFIG_PATH=/srv/newer/lib/pkgconfig
	export PATH=/srv/newer/bin:\$PATH LD_LIBRARY_PATH=/srv/newer/lib
	$(tests/guide/try.py --print build doc/guide/first-steps.md)"
export TANDEM_PACKAGE_ENV="LD_LIBRARY_PATH=/srv/newer/lib
	PATH=/srv/newer/bin:/usr/local/bin:/usr/bin:/bin"
follow mpi.md install /
pages=()
for page in first-steps tuning mpi openshmem troubleshooting; do
	pages+=("/srv/guest/tandem:doc/guide/$page.md")
done
tests/package/run.sh "$root" guest "${pages[@]}"
pages=("${pages[@]/guest/root}")
tests/package/run.sh "$root" root tools "${pages[@]}" \
	/srv/root/tandem:doc/guide/administrator.md
say "Debian 12: built, installed and used beside a newer libfabric"

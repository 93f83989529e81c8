#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Debian packages, from the release tarball: built, looked at by lintian, and
# installed and removed again where that changes nothing outside (an overlay of
# the file system that ends with this script).
. "$(dirname "$0")/lib.sh"

for need in dpkg-buildpackage dh lintian; do
	have "$need" || {
		say "$need is missing: ./dev package installs it"
		exit 77
	}
done

tree=$builds/main
out=$builds/package
say "making the release tarball"
.ci/tree.sh main >/dev/null
make -s -C "$tree" dist
rm -rf "$out"
mkdir -p "$out"
tar xf "$tree"/tandem-*.tar.xz -C "$out"
source=$(echo "$out"/tandem-*)

say "building the packages"
(cd "$source" && LC_ALL=C.UTF-8 dpkg-buildpackage -us -uc -b \
	-j"$(nproc)") >"$out/build.log" 2>&1 || {
	tail -n 40 "$out/build.log" >&2
	die "dpkg-buildpackage failed"
}
rm -rf "$source"

say "lintian"
lintian --allow-root --fail-on error,warning "$out"/*.changes

# Runs in a mount namespace, with the folder of the packages as its argument.
try() {
	set -e
	local base=/tmp/tandem-try root=/tmp/tandem-try/root before after
	mkdir -p "$base"
	mount -t tmpfs tmpfs "$base"
	mkdir "$base/upper" "$base/work" "$root"
	mount -t overlay overlay "$root" \
		-o "lowerdir=/,upperdir=$base/upper,workdir=$base/work"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mkdir "$root/tmp/packages"
	mount --bind "$1" "$root/tmp/packages"
	files_of() {
		(cd "$root/usr" && find . -not -path './share/doc/*' | LC_ALL=C sort)
	}
	# Nothing set: libfabric has to find the module by itself.
	in_root() {
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"
	}
	before=$(files_of)
	in_root fi_info -p tandem >/dev/null 2>&1 && {
		echo "tandem is installed on this machine already" >&2
		exit 77
	}
	in_root sh -c 'dpkg -i /tmp/packages/libfabric-tandem*_*.deb' >/dev/null
	in_root fi_info -p tandem
	in_root tandem-doctor
	in_root tandem-stat
	in_root dpkg -P libfabric-tandem-dbgsym libfabric-tandem-tools-dbgsym \
		libfabric-tandem-tools libfabric-tandem-dev \
		libfabric-tandem >/dev/null
	after=$(files_of)
	[ "$before" = "$after" ] || {
		diff <(echo "$before") <(echo "$after") >&2
		exit 1
	}
}

say "installing and removing them"
unshare --mount --propagation private -- \
	bash -c "$(declare -f try); try \"\$@\"" try "$top/$out"
echo "$(cd "$out" && echo libfabric-tandem*_*.deb) in $out"

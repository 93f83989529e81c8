#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Packages, from the release tarball: Debian's, looked at by lintian, and RPMs. Then,
# on a new Debian, Debian's are installed, used by root and by an ordinary user, and
# removed; and the guides are followed, on Debian 12 too (.ci/older.sh). Each new Debian
# ends with its script.
. "$(dirname "$0")/lib.sh"

for need in dpkg-buildpackage dh lintian rpmbuild mmdebstrap; do
	have "$need" || {
		say "$need is missing: ./dev package installs it"
		exit 77
	}
done

suite=trixie
tree=$builds/main
out=$top/$builds/package
say "making the release tarball"
.ci/tree.sh main >/dev/null
make -s -C "$tree" dist
rm -rf "$out"
mkdir -p "$out/deb" "$out/rpm/SOURCES"
tarball=$(echo "$tree"/tandem-*.tar.xz)

say "building Debian packages"
tar xf "$tarball" -C "$out"
source=$(echo "$out"/tandem-*)
(cd "$source" && LC_ALL=C.UTF-8 dpkg-buildpackage -us -uc -b \
	-j"$(nproc)") >"$out/build.log" 2>&1 || {
	tail -n 40 "$out/build.log" >&2
	die "dpkg-buildpackage failed"
}
rm -rf "$source"
mv "$out"/*_* "$out/deb"

say "lintian"
lintian --allow-root --fail-on error,warning "$out"/deb/*.changes

say "building RPMs"
cp "$tarball" "$out/rpm/SOURCES"
# What Debian calls the packages that the spec needs is not in a data base of RPM.
rpmbuild -ba --nodeps --define "_topdir $out/rpm" \
	packaging/libfabric-tandem.spec >"$out/rpm.log" 2>&1 || {
	tail -n 40 "$out/rpm.log" >&2
	die "rpmbuild failed"
}
rpms=("$out"/rpm/RPMS/*/*.rpm)

# ---- a new Debian ------------------------------------------------------------

. .ci/fresh.sh

# The files of the packages that are installed, or that have their name.
files_left() {
	while IFS= read -r f; do
		[ -d "$root$f" ] || [ ! -e "$root$f" ] || echo "$f"
	done <"$out/files"
	find "$root" -xdev -name '*tandem*' -not -path "$root/packages*" \
		-not -path "$root/etc/apt/*" -not -path "$root/var/lib/dpkg/*"
}

new_debian "$suite"
mkdir "$root/packages"
cp "$out"/deb/libfabric-tandem*_*.deb "$root/packages"
rm -f "$root"/packages/*dbgsym*

say "the provider and its tools, and what they need"
in_root sh -c 'apt-get -q install /packages/libfabric-tandem_*.deb \
	/packages/libfabric-tandem-tools_*.deb'
for user in root guest; do
	tests/package/run.sh "$root" "$user" tools
done

say "removing them"
chroot "$root" dpkg -L libfabric-tandem libfabric-tandem-tools >"$out/files"
in_root apt-get -q purge --autoremove libfabric-tandem libfabric-tandem-tools
[ -z "$(files_left)" ] || die "left of the packages: $(files_left)"

say "the guides"
follow administrator.md install /packages
follow mpi.md install /
in_root sh -c 'apt-get -q install gcc libc6-dev \
	/packages/libfabric-tandem-dev_*.deb'
pages=()
for page in tuning mpi openshmem troubleshooting; do
	pages+=("/srv/guest:doc/guide/$page.md")
done
tests/package/run.sh "$root" guest examples "${pages[@]}"
pages=("${pages[@]/guest/root}")
tests/package/run.sh "$root" root examples "${pages[@]}" \
	/srv/root:doc/guide/administrator.md

say "first steps, from the release tarball"
in_root sh -c 'apt-get -q purge --autoremove "libfabric-tandem*"'
unpack "$tarball"
follow first-steps.md install /
[ ! -e "$root/usr/bin/pandoc" ] || die "pandoc is installed"
follow first-steps.md build /srv/root/tandem
grep -q 'needs FI_PROVIDER_PATH=+/usr/local/lib/libfabric/libtandem-fi.so' "$out/fresh.log" ||
	die "the summary of configure does not say what to set"
in_root make -C /srv/root/tandem install DESTDIR=/srv/installed
grep -q 'export FI_PROVIDER_PATH=+/usr/local/lib/libfabric/libtandem-fi.so' "$out/fresh.log" ||
	die "make install does not say what to set"
in_root sh -c '! make -C /srv/root/tandem check'
[ -s "$root/srv/installed/usr/local/share/man/man7/fi_tandem.7" ] ||
	die "the release tarball has no manual page"
tests/package/run.sh "$root" root /srv/root/tandem:doc/guide/first-steps.md
in_root su guest -c "cd ~/tandem; $(
	tests/guide/try.py --print build doc/guide/first-steps.md)"
tests/package/run.sh "$root" guest /srv/guest/tandem:doc/guide/first-steps.md
rm -rf "$root"
.ci/older.sh "$tarball"
echo "${out#"$top"/}/deb: $(cd "$out/deb" && echo *.deb), ${#rpms[@]} RPMs, $suite"

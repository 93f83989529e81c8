# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# A new Debian, for .ci/package.sh and .ci/older.sh, which source this after lib.sh
# and set $out, the folder of the log. It ends with the script.

fresh=$(mktemp -d -p /var/tmp tandem-fresh.XXXXXX)
trap 'rm -rf "$fresh"' EXIT
trap 'exit 130' INT TERM HUP
root=$fresh/root

# in_root CMD...: as root of the new Debian, with a network.
in_root() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive chroot "$root" "$@" \
		>>"$out/fresh.log" 2>&1 || {
		tail -n 20 "$out/fresh.log" >&2
		die "$*: failed; the whole output is in $out/fresh.log"
	}
}

# follow PAGE WORD DIR: run the blocks "sh WORD" of a guide, from the folder DIR.
follow() {
	in_root bash -ec "cd $3; $(tests/guide/try.py --print "$2" "doc/guide/$1")"
}

# new_debian SUITE: make it, with an ordinary user guest whose home is /srv/guest.
new_debian() {
	say "a new Debian ($1)"
	mmdebstrap --mode=root --variant=minbase "$1" "$root" \
		>"$out/fresh.log" 2>&1 || {
		tail -n 20 "$out/fresh.log" >&2
		die "mmdebstrap failed: is there a network?"
	}
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	chroot "$root" useradd --create-home --home-dir /srv/guest guest
	mkdir "$root/srv/root"
	# As a user who answers "yes", and takes no more than what is needed.
	cat >"$root/etc/apt/apt.conf.d/tandem" <<-'END'
		APT::Get::Assume-Yes "true";
		APT::Install-Recommends "false";
	END
	in_root apt-get -q update
}

# unpack TARBALL: the release, in the homes of root and guest.
unpack() {
	for home in /srv/guest /srv/root; do
		tar xf "$1" -C "$root$home"
		mv "$root$home"/tandem-* "$root$home/tandem"
	done
	chroot "$root" chown -R guest:guest /srv/guest/tandem
}

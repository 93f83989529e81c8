#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Which folders may include and call which others, whether each symbol that a
# file exports is used elsewhere, and whether tests sleep. The picture is in
# ARCHITECTURE.md:
#
#   tcp/ --> tcp/wire/ --> av/ --> peer/ --> include/ --> base/
#                                  shm/ ---> include/
#   tcp/ --> coll/ -------------------------------------> base/
#
. "$(dirname "$0")/lib.sh"

rooms=(base include peer av coll tcp tcp/wire shm)
bad=0

# forbid WHY PATTERN FILE...: no line of the files matches the ERE, comments
# apart.
forbid() {
	local why=$1 pattern=$2
	shift 2
	[ $# -gt 0 ] || return 0
	if grep -nHE "$pattern" "$@" |
		grep -vE '^[^:]*:[0-9]+:([[:space:]]*(/?\*|//)|.*/\*.*('"$pattern"'))'; then
		echo "^ $why"
		bad=1
	fi
}

# sources FOLDER...: their C files without those of folders in them, less the
# names given as -NAME.
sources() {
	local f dirs=() except=()
	for f; do
		case $f in
		-*) except+=(-e "${f#-}") ;;
		*) dirs+=("$f/*.[ch]") ;;
		esac
	done
	files "${dirs[@]}" | grep -vxF "${except[@]:--e/}" | sort -u
}

# Lines "FROM TO": objects of FROM may use symbols of TO.
ways=

# room FOLDER WHAT...: the files that lie in FOLDER include headers of FOLDER
# and those that WHAT names, a folder or a file each, and no others of ours.
room() {
	local folder=$1 what list allowed="$1/[^/]*"
	shift
	[ "$folder" != include ] || allowed+="|tdm_[^/]*"
	for what in "$folder" "$@"; do
		[[ $what != *.h ]] || what=${what%/*}
		ways+="$folder $what"$'\n'
	done
	for what; do
		case $what in
		include) allowed+="|(include/)?(tdm_|fi_ext_)[^/]*" ;;
		*.h) allowed+="|$what" ;;
		*) allowed+="|$what/[^/]*" ;;
		esac
	done
	mapfile -t list < <(sources "$folder" | grep -xE "$folder/[^/]*")
	if grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' \
		"${list[@]}" |
		grep -vE "\"(config[.]h|$allowed)\""; then
		echo "^ $folder/ may include of the project: $folder $*"
		bad=1
	fi
}

room base
room include base
room peer include base
room av peer include base
room coll base
room tcp/wire av/addr.h av/av.h av/locality.h include base
room tcp tcp/wire/wire.h tcp/wire/loop.h tcp/wire/look.h tcp/wire/offer.h av coll \
	peer include base
room shm include base

mapfile -t list < <(sources "${rooms[@]}" -tcp/wire/loop.c)
forbid "libevent belongs to tcp/wire/loop.c" \
	'#[[:space:]]*include[[:space:]]*[<"]event|\bevent_(base|new|add|del)' \
	"${list[@]}"

mapfile -t list < <(sources "${rooms[@]}" -include/tdm_info.h)
forbid "a struct fi_info may have keys: tdm_info_free() of include/tdm_info.h" \
	'\bfi_freeinfo\(' "${list[@]}"

mapfile -t list < <(sources "${rooms[@]}" -peer/link.c -peer/foreign_ep.c \
	-peer/import.c -shm/import.c)
forbid "fi_peer's contexts belong to peer/link.c, foreign_ep.c, import.c, shm/import.c" \
	'\bstruct fi_peer_[a-z_]*_context\b' "${list[@]}"

# The members of struct tdm_os are the calls that must go through it.
mapfile -t list < <(sources "${rooms[@]}" -base/os.c -base/os.h)
calls=$(sed -nE '/^struct tdm_os \{/,/^\};/s/.*\(\*([a-z0-9_]+)\)\(.*/\1/p' \
	base/os.h | paste -sd '|')
[ -n "$calls" ] || die "no calls found in base/os.h"
calls="$calls|accept|readv|writev|recvfrom|sendto|shm_open|syscall|fcntl"
calls="$calls|clock_gettime|epoll_create|epoll_pwait|select|ppoll"
forbid "system calls go through tdm_os (base/os.h)" \
	"(^|[^A-Za-z0-9_.>*])($calls)\(" "${list[@]}"

# Tests wait for a condition. Lines "FILE REASON": files that may sleep.
sleepers="
tests/conform/pressure_test.cc   a receiver that stands still for an hour
"
mapfile -t list < <(files 'tests/*.[ch]' 'tests/*.cc' |
	grep -vxF "$(awk 'NF { print $1 }' <<<"$sleepers")")
forbid "a test waits for a condition (tests/harness/drive.h), not for a time" \
	'\b(u|nano|clock_nano)?sleep[[:space:]]*\(|this_thread::sleep_' \
	"${list[@]}"
while read -r file why; do
	[ -z "$file" ] || grep -qE '\busleep\(' "$file" || {
		echo "no exception is needed for $file: $why"
		bad=1
	}
done <<<"$sleepers"

# The comments before the first line of code are the head of a file.
head_of() {
	sed -E '/^([#a-z]|$)/,$d' "$1"
}

while IFS= read -r f; do
	{
		head_of "$f"
		[ ! -f "${f%.c}.h" ] || head_of "${f%.c}.h"
	} | grep -ciwE 'lock(s|ed|ing)?' >/dev/null || {
		echo "$f: its head, or that of its header, tells no lock"
		bad=1
	}
done < <(sources "${rooms[@]}" | grep '[.]c$')

# Symbols follow the same arrows as includes: an object may use those of the
# folders that its own may include.
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
symbols=$(sources "${rooms[@]}" | sed -n 's/[.]c$//p' |
	while IFS= read -r file; do
		nm -g "$builds/gcc/${file%/*}/.libs/${file##*/}.o" |
			sed -nE "s|^.* ([A-Z]) (.*)|${file%/*} $file \1 \2|p"
	done)
[ "$(grep -c ' T ' <<<"$symbols")" -gt 100 ] || die "no objects found"
awk -v links="$builds/links" '
FILENAME == ARGV[1] { way[$1, $2] = 1; next }
$3 != "U" { home[$4] = $1; next }
{ user[++n] = $1; object[n] = $2; symbol[n] = $4 }
END {
	for (i = 1; i <= n; i++) {
		to = home[symbol[i]]
		if (to == "" || to == user[i])
			continue
		kind = (user[i], to) in way ? "way" : "exception"
		print user[i], to, object[i], symbol[i], kind >links
		# The composition root hands the peer to the link.
		if (kind == "way" || (object[i] == "tcp/tier_local" &&
		    symbol[i] == "tdm_shm_provider"))
			continue
		print object[i] " uses " symbol[i] " of " to "/"
		bad = 1
	}
	exit bad
}' <(printf %s "$ways") <(printf '%s\n' "$symbols") || {
	echo "^ links against the direction of the arrows"
	bad=1
}

# Calls that send lead one way in the wire: the page of the folder has the files.
floors=$(sed -n '/^  `send[.]c` →/{s/`//g;s/[.]c//g;s/→/\n/g;p}' \
	tcp/wire/README.md)
[ "$(wc -l <<<"$floors")" = 3 ] || die "tcp/wire/README.md: no way of sends"
awk '
FILENAME == ARGV[1] {
	for (i = 1; i <= NF; i++)
		floor["tcp/wire/" $i] = FNR
	next
}
$3 != "U" { home[$4] = $2; next }
$2 in floor { object[++n] = $2; symbol[n] = $4 }
END {
	for (i = 1; i <= n; i++) {
		to = home[symbol[i]]
		if (!(to in floor) || floor[object[i]] <= floor[to])
			continue
		print object[i] " calls back: " symbol[i] " of " to
		bad = 1
	}
	exit bad
}' <(printf '%s\n' "$floors") <(printf '%s\n' "$symbols") || bad=1

# The pictures show these directions; an exception is a dashed arrow.
have python3 || die "python3 is missing (Debian: python3)"
python3 doc/diagrams/diagrams.py --check "$builds/links" || bad=1

# A function or variable that one file alone uses is static there.
lone="
fi_prov_ini      libfabric calls it
tdm_os_system    tests call the system behind a fault
tdm_eq_write     tests write events of all lengths
"
awk '
FILENAME == ARGV[1] { apart[$1] = 1; next }
$3 == "U" { used[$4] = 1; next }
{ home[$4] = $2 }
END {
	for (s in home) {
		if (s in used || s in apart)
			continue
		print home[s] " exports " s
		bad = 1
	}
	for (s in apart) {
		if (s in home && !(s in used))
			continue
		print "no exception is needed for " s
		bad = 1
	}
	exit bad
}' <(sed '/^$/d' <<<"$lone") <(printf '%s\n' "$symbols") || {
	echo "^ used in its own file only: static, or gone"
	bad=1
}

[ "$bad" = 0 ] || exit 1
echo "$(sources "${rooms[@]}" | wc -l) files, no forbidden include or call"

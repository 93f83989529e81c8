#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Who may include and call whom. The picture is in ARCHITECTURE.md:
#
#   tcp/ --> tcp/wire/ --> av/ --> peer/ --> include/ <-- shm/
#
. "$(dirname "$0")/lib.sh"

rooms=(include peer av tcp tcp/wire shm)
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

# room FOLDER WHAT...: the files that lie in FOLDER include headers of FOLDER
# and those that WHAT names, a folder or a file each, and no others of ours.
room() {
	local folder=$1 what list allowed="$1/[^/]*"
	shift
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

room include include
room peer include
room av peer include
room tcp/wire av/addr.h av/av.h av/locality.h include
room tcp tcp/wire/wire.h tcp/wire/loop.h av peer include
room shm include

mapfile -t list < <(sources "${rooms[@]}" -tcp/wire/loop.c)
forbid "libevent belongs to tcp/wire/loop.c" \
	'#[[:space:]]*include[[:space:]]*[<"]event|\bevent_(base|new|add|del)' \
	"${list[@]}"

mapfile -t list < <(sources "${rooms[@]}" -include/tdm_info.h)
forbid "a struct fi_info may have keys: tdm_info_free() of include/tdm_info.h" \
	'\bfi_freeinfo\(' "${list[@]}"

mapfile -t list < <(sources "${rooms[@]}" -peer/link.c -shm/import.c)
forbid "fi_peer's contexts belong to peer/link.c and shm/import.c" \
	'\bstruct fi_peer_[a-z_]*_context\b' "${list[@]}"

# The members of struct tdm_os are the calls that must go through it.
mapfile -t list < <(sources "${rooms[@]}" -tcp/os.c -include/tdm_os.h)
calls=$(sed -nE '/^struct tdm_os \{/,/^\};/s/.*\(\*([a-z0-9_]+)\)\(.*/\1/p' \
	include/tdm_os.h | paste -sd '|')
[ -n "$calls" ] || die "no calls found in include/tdm_os.h"
calls="$calls|accept|readv|writev|recvfrom|sendto|shm_open|syscall|fcntl"
calls="$calls|clock_gettime|epoll_create|epoll_pwait|select|ppoll"
forbid "system calls go through tdm_os (include/tdm_os.h)" \
	"(^|[^A-Za-z0-9_.>*])($calls)\(" "${list[@]}"

[ "$bad" = 0 ] || exit 1
echo "$(sources "${rooms[@]}" | wc -l) files, no forbidden include or call"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Who may include and call whom:
#
#   tcp/ --> av/ --> peer/ --> include/ <-- shm/     libevent: tcp/loop.c only
. "$(dirname "$0")/lib.sh"

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

# sources FOLDER...: their C files, less the names given as -NAME.
sources() {
	local f dirs=() except=()
	for f; do
		case $f in
		-*) except+=(-e "${f#-}") ;;
		*) dirs+=("$f/*.[ch]") ;;
		esac
	done
	files "${dirs[@]}" | grep -vxF "${except[@]:--e/}"
}

own='tcp|av|peer|shm|tests|fabtests|bench'

# layer FOLDER ALLOWED: FOLDER includes project files of ALLOWED only.
layer() {
	local others
	others=$(echo "$own" | tr '|' '\n' | grep -vxE "$1|$2" | paste -sd '|')
	mapfile -t list < <(sources "$1")
	forbid "$1/ may include ${2//|/, } and include/ only" \
		"^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]($others)/" \
		"${list[@]}"
	forbid "includes are relative to the top of the tree" \
		"^[[:space:]]*#[[:space:]]*include[[:space:]]*\"[.]" "${list[@]}"
}

layer include include
layer peer include
layer av peer
layer tcp 'av|peer'
layer shm include

mapfile -t list < <(sources include peer av tcp shm -tcp/loop.c)
forbid "libevent belongs to tcp/loop.c" \
	'#[[:space:]]*include[[:space:]]*[<"]event|\bevent_(base|new|add|del)' \
	"${list[@]}"

mapfile -t list < <(sources include peer av tcp shm -include/tdm_info.h)
forbid "a struct fi_info may have keys: tdm_info_free() of include/tdm_info.h" \
	'\bfi_freeinfo\(' "${list[@]}"

mapfile -t list < <(sources include peer av tcp shm -peer/link.c -shm/import.c)
forbid "fi_peer's contexts belong to peer/link.c and shm/import.c" \
	'\bstruct fi_peer_[a-z_]*_context\b' "${list[@]}"

# The members of struct tdm_os are the calls that must go through it.
mapfile -t list < <(sources include peer av tcp shm -tcp/os.c -include/tdm_os.h)
calls=$(sed -nE '/^struct tdm_os \{/,/^\};/s/.*\(\*([a-z0-9_]+)\)\(.*/\1/p' \
	include/tdm_os.h | paste -sd '|')
[ -n "$calls" ] || die "no calls found in include/tdm_os.h"
calls="$calls|accept|readv|writev|recvfrom|sendto|shm_open|syscall|fcntl"
calls="$calls|clock_gettime|epoll_create|epoll_pwait|select|ppoll"
forbid "system calls go through tdm_os (include/tdm_os.h)" \
	"(^|[^A-Za-z0-9_.>*])($calls)\(" "${list[@]}"

[ "$bad" = 0 ] || exit 1
echo "$(sources include peer av tcp shm | wc -l) files, no forbidden include or call"

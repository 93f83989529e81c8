#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of others run over tandem: an installed Open MPI and those above it.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}" >/dev/null
tests/consumers/run-mpi.sh "$builds/gcc"

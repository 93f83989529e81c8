#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# All test programs, as they are, with 10^5 seeds of the simulator.
. "$(dirname "$0")/lib.sh"

export TANDEM_SIMS=100000

test_tree results "${gcc_tree[@]}"

# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""mpi4py's own test suite, from its sources, over Open MPI.

One run for each number of processes is one case; it passes when every process
has run tests and none of them failed. Each test that fails is a case too.
"""

import re
import shutil
import sys
from pathlib import Path
import imb
from unit import FAILED, PASSED, Unit, find

NAME = "mpi4py"
LOOKED_FOR = "test/test_cco_obj.py of its sources, mpi4py for python3 and mpirun"
OTHER = imb.OTHER
PROCESSES = (1, 2, 3, 4)

# Tests that start processes, which no path of ours takes part in; and calls
# that Open MPI's pml cm does not have.
LEFT_OUT = ["-e", "test_spawn", "-e", "test_dynproc", "-x", "testRevoke"]


def locate(root: Path):
    test = next(iter(find(root, "test/test_cco_obj.py")), None)
    launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    return (test.parents[1], launcher) if test and launcher else None


def judge_of(name, processes):
    def judge(status, text):
        bad = sorted(set(re.findall(r"(?:FAIL|ERROR): (\w+ \([\w.]+\))", text)))
        ran = len(re.findall(r"Ran [1-9]\d* tests", text))
        right = status == 0 and ran == processes and not bad
        return [(FAILED, f"{b} {processes}") for b in bad] + [
            (PASSED if right else FAILED, name)]
    return judge


def units(found, mode, processes):
    folder, launcher = found
    if mode.hosts == 2 and processes % 2:
        return
    name = f"suite {processes}"
    yield Unit(name, imb.launch(launcher, mode, processes) +
               [sys.executable, "-B", "test/main.py", "-q"] + LEFT_OUT,
               seconds=1800, cwd=str(folder), judge=judge_of(name, processes))

# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""Sandia OpenSHMEM: the programs of tests-sos/test/unit."""

import os
import shutil
from pathlib import Path
from unit import AGENT, Unit, executables, find

NAME = "SOS"
LOOKED_FOR = "test/unit/hello with its neighbours, and mpiexec.hydra"
OTHER = "sockets"
PROCESSES = (2, 4)


def locate(root: Path):
    folder = next((p.parent for p in find(root, "test/unit/hello")
                   if os.access(p, os.X_OK)), None)
    # Never oshrun: Open MPI's has the same name and starts no SOS program.
    launcher = shutil.which("mpiexec.hydra") or next(
        (str(p) for p in find(root, "bin/mpiexec.hydra")
         if os.access(p, os.X_OK)), None)
    return (folder, launcher) if folder and launcher else None


def units(found, mode, processes):
    folder, launcher = found
    argv = [launcher]
    if mode.hosts == 2:
        argv += ["-launcher", "ssh", "-launcher-exec", AGENT,
                 "-iface", "tandem0", "-hosts", "host1,host2", "-ppn",
                 str(processes // 2)]
    argv += ["-n", str(processes)]
    env = {"SHMEM_OFI_PROVIDER": "tandem" if mode.tandem else OTHER}
    for program in executables(folder):
        yield Unit(f"{program} {processes}",
                   argv + [str(folder / program)], env)

# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""Sandia OpenSHMEM: the programs of tests-sos/test/unit."""

import shutil
from pathlib import Path
from unit import AGENT, Unit, executables, nearest

NAME = "SOS"
LOOKED_FOR = "test/unit/hello with its neighbours, and mpiexec.hydra"
OTHER = "sockets"
PROCESSES = (2, 4)


def locate(root: Path):
    test = nearest(root, "test/unit/hello")
    # Never oshrun: Open MPI's has the same name and starts no SOS program.
    launcher = shutil.which("mpiexec.hydra") or nearest(root,
                                                        "bin/mpiexec.hydra")
    return (test.parent, str(launcher)) if test and launcher else None


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

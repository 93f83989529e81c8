# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""MPICH built with --with-device=ch4:ofi: the programs of its test suite.

The programs come from the suite's own lists (testlist), as far as they have
been built. Where a list grants a program more than the usual time, it has that
time, whatever the user said.
"""

import os
import re
from pathlib import Path
from unit import AGENT, FAILED, PASSED, Unit, nearest

NAME = "MPICH"
LOOKED_FOR = "test/mpi/pt2pt/testlist with its programs, and bin/mpiexec"
OTHER = "sockets"
PROCESSES = (0,)
USUAL_SECONDS = 180     # of MPICH's own runner, runtests
FOLDERS = ("pt2pt", "rma", "coll", "comm", "init", "attr", "group", "datatype",
           "info", "topo", "threads/pt2pt", "threads/rma", "threads/comm",
           "threads/coll", "threads/init", "perf", "basic", "util", "part",
           "errhan", "errors/attr", "errors/coll", "errors/comm",
           "errors/datatype", "errors/group", "errors/pt2pt", "errors/rma",
           "errors/topo", "errors/faults", "errors/spawn", "spawn", "mpi_t",
           "impls/mpich/comm", "impls/mpich/mpi_t",
           "impls/mpich/threads/pt2pt", "threads/mpi_t", "threads/part",
           "threads/perf", "threads/spawn")


def locate(root: Path):
    test = nearest(root, "mpi/pt2pt/sendrecv1")
    launcher = nearest(root, "bin/mpiexec.hydra")
    return (test.parents[1], launcher) if test and launcher else None


def list_of(folder: Path):
    """The list of a folder: made by configure, or left among the sources."""
    path, makefile = folder / "testlist", folder / "Makefile"
    if not path.is_file() and makefile.is_file():
        found = re.search(r"^srcdir = (.+)$",
                          makefile.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            path = folder / found.group(1) / "testlist"
    return path


def entries(folder: Path):
    """name, processes, options of each line of a list."""
    path = list_of(folder)
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split("#", 1)[0].split()
            if len(words) < 2 or not words[1].isdigit():
                continue
            options = {}
            for word in words[2:]:
                key, _, value = word.partition("=")
                options.setdefault(key, []).append(value)
            yield words[0], int(words[1]), options


def limit_of(options):
    """The time that a list grants a program beyond the usual, or 0."""
    limit = options.get("timeLimit", ["0"])[0]
    if "resultTest" in options or not limit.isdigit():
        return 0
    return int(limit) if int(limit) > USUAL_SECONDS else 0


def judge_of(name, options):
    def judge(status, text):
        if "resultTest" in options:     # such programs are meant to fail
            right = status is not None
        else:
            right = status == 0 and "no errors" in text.lower()
        return [(PASSED if right else FAILED, name)]
    return judge


def units(found, mode, _processes):
    tests, launcher = found
    provider = "tandem" if mode.tandem else OTHER
    env = {"FI_PROVIDER": provider, "MPIR_CVAR_NOLOCAL": "1"}
    for folder in FOLDERS:
        for name, processes, options in entries(tests / folder):
            program = tests / folder / name
            if not os.access(program, os.X_OK) or "xfail" in options:
                continue
            argv = [str(launcher)]
            if mode.hosts == 2:
                argv += ["-launcher", "ssh", "-launcher-exec", AGENT, "-iface",
                         "tandem0", "-hosts", "host1,host2", "-ppn",
                         str(max(1, processes // 2))]
            own = dict(e.split("=", 1) for e in options.get("env", [])
                       if "=" in e)
            args = options.get("arg", [])
            argv += options.get("mpiexecarg", [])
            if "resultTest" in options and "timeLimit" in options:
                own["MPIEXEC_TIMEOUT"] = options["timeLimit"][0]
            case = " ".join([f"{folder}/{name}", str(processes)] + args
                            + [f"{k}={v}" for k, v in own.items()])
            yield Unit(case, argv + ["-n", str(processes), str(program)] + args,
                       {**env, **own}, limit_of(options), str(tests / folder),
                       judge=judge_of(case, options))

# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""Intel MPI Benchmarks built with -DCHECK by Open MPI's mpicc.

Each benchmark is a case: it passes when its table is complete and reports no
defect.
"""

import os
import re
import shutil
from pathlib import Path
from unit import AGENT, FAILED, PASSED, Unit, nearest

NAME = "IMB"
LOOKED_FOR = "IMB-MPI1, and Open MPI's mpirun"
OTHER = "sockets"
PROCESSES = (2, 4)
PROGRAMS = ("IMB-MPI1", "IMB-NBC", "IMB-RMA", "IMB-P2P", "IMB-MT")


def locate(root: Path):
    first = nearest(root, "IMB-MPI1")
    launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    return (first.parent, launcher) if first and launcher else None


def judge_of(program, processes):
    def judge(status, text):
        out = {}
        parts = re.split(r"^# Benchmarking:? +", text, flags=re.M)[1:]
        for i, part in enumerate(parts):
            name = f"{program} {part.split(None, 1)[0]} {processes}"
            rows = [r.split() for r in part.splitlines()
                    if re.match(r"\s*\d+\s+\d+[\s.]", r)]
            head = re.search(r"#bytes.*", part)
            right = bool(rows) and (status == 0 or i + 1 < len(parts))
            if head and "defects" in head.group(0):
                at = head.group(0).split().index("defects")
                right = right and all(len(r) > at and float(r[at]) == 0
                                      for r in rows)
            if re.search(r"^\d+: Error |got invalid buffer", part, re.M | re.I):
                right = False
            if out.get(name) != FAILED:
                out[name] = PASSED if right else FAILED
        if status != 0:
            out[f"{program} {processes} to its end"] = FAILED
        return [(outcome, case) for case, outcome in out.items()]
    return judge


def launch(launcher, mode, processes):
    provider = "tandem" if mode.tandem else OTHER
    argv = [launcher, "--allow-run-as-root", "-n", str(processes),
            "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none",
            "--mca", "pml", "^ucx", "--mca", "mtl", "ofi",
            "--mca", "mtl_ofi_provider_include", provider,
            "--mca", "osc", "rdma", "--mca", "btl", "self,ofi",
            "--mca", "btl_ofi_provider_include", provider,
            "--mca", "opal_common_ofi_provider_include", provider,
            "-x", "FI_PROVIDER_PATH"]
    if mode.env:
        argv += [a for k in mode.env for a in ("-x", k)]
    if mode.hosts == 2:
        argv += ["--prtemca", "plm_ssh_agent", AGENT, "--host",
                 f"host1:{processes // 2},host2:{processes // 2}"]
    return argv


def units(found, mode, processes):
    folder, launcher = found
    for program in PROGRAMS:
        if not (folder / program).is_file():
            continue
        args = ["-msglog", "0:16", "-iter", "10", "-time", "2",
                "-npmin", str(processes)]
        if program == "IMB-P2P":
            args = ["-msglog", "0:16", "-iter", "10"]
        if program == "IMB-MT":
            args = ["-thread_level", "multiple", "-repeat", "10", "-count",
                    "1,4096", "-check", "yes"]
        yield Unit(f"{program} {processes}",
                   launch(launcher, mode, processes)
                   + [str(folder / program)] + args,
                   seconds=900, judge=judge_of(program, processes))

# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""GASNet-EX: the tests of an ofi-conduit, started by its ssh spawner.

A build for any provider ("generic") takes those of a list only, so tandem
stands in for sockets. The build must leave the processes of one host to the
conduit (--disable-pshm).
"""

import os
import re
from pathlib import Path
from unit import AGENT, FAILED, PASSED, Unit, executables, nearest

NAME = "GASNet"
LOOKED_FOR = "ofi-conduit/testgasnet with its neighbours"
OTHER = "sockets"
PROCESSES = (2,)

# Programs that are no tests, need a graphics processor or another conduit, or
# measure.
LEFT_OUT = re.compile(r"testexit|testenv|perf$|late$|cuda|hip|ze$|logGP|contend|"
                      r"testrand|testtmpair|testreadonly|testacc|testcxx")

# Their own default numbers take hours on a few processors.
WITH = {
    "testam": ["100"], "testcore2": ["10", "2"], "testcore4": ["10"],
    "testcore5": ["5"], "testlarge": ["20"], "testsmall": ["100"],
    "testqueue": ["1", "16", "65536"], "testteam": ["20"], "testinternal": ["10"],
    "testbarrier": ["100"], "testvis": ["10"], "testnbr": ["10"],
    "testhsl": ["0"], "testalign": ["5"], "testmisc": ["100"], "testratomic": ["10"],
    "testval": ["500"],
}


def locate(root: Path):
    test = nearest(root, "ofi-conduit/testgasnet")
    return test and test.parent


def judge_of(case):
    def judge(status, text):
        wrong = re.search(r"\bERROR\b|^\*\*\* (Caught|FATAL)", text, re.M)
        return [(PASSED if status == 0 and not wrong else FAILED, case)]
    return judge


def units(folder, mode, processes):
    env = {
        "GASNET_SPAWNFN": "S", "GASNET_SSH_CMD": AGENT,
        "GASNET_SSH_SERVERS": "host1 host2" if mode.hosts == 2 else "host1",
        "GASNET_MASTERIP": "10.77.0.1", "GASNET_SPAWN_CONTROL": "ssh",
        "GASNET_DISABLE_ENVDECRYPTION": "0", "FI_PROVIDER": OTHER,
    }
    if mode.tandem:
        env["FI_TANDEM_STAND_IN"] = OTHER
    for program in executables(folder):
        if not program.startswith("test") or LEFT_OUT.search(program):
            continue
        name = f"{program} {processes}"
        yield Unit(name, [str(folder / "contrib" / "gasnetrun_ofi"), "-n",
                          str(processes), "-spawner=ssh",
                          str(folder / program)] + WITH.get(program, []),
                   env, judge=judge_of(name))

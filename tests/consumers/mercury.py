# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""Mercury: NA and HG tests, of a build tree with its tests and measurements.

Mercury takes providers of a list only, so tandem stands in for tcp.
"""

import os
from pathlib import Path
from unit import ADDRESS, PAIR, Unit, nearest

NAME = "Mercury"
LOOKED_FOR = "hg_test_server, a build tree with tests"
OTHER = "tcp"
PROCESSES = (2,)

READY = "Waiting for client"

SMALL = "--verify --buf_size_max 262144"

# name, server, client, arguments of both
PAIRS = [
    ("na lookup", "na_test_lookup_server", "na_test_lookup", ""),
    ("na lat", "na_perf_server", "na_lat", ""),
    ("na bw_get", "na_perf_server", "na_bw_get", SMALL),
    ("na bw_put", "na_perf_server", "na_bw_put", SMALL),
    ("hg rpc", "hg_test_server", "hg_test_rpc", ""),
    ("hg rpc no-multi-recv", "hg_test_server", "hg_test_rpc",
     "--no-multi-recv"),
    ("hg bulk", "hg_test_server", "hg_test_bulk", ""),
    ("hg kill", "hg_test_server", "hg_test_kill", ""),
    ("hg rate", "hg_perf_server", "hg_rate", ""),
    ("hg bw_read", "hg_perf_server", "hg_bw_read", SMALL),
    ("hg bw_write", "hg_perf_server", "hg_bw_write", SMALL),
]
ALONE = [("hg rpc self", "hg_test_rpc", "--self_send"),
         ("hg bulk self", "hg_test_bulk", "--self_send")]


def locate(root: Path):
    names = ("hg_test_server", "na_perf_server", "hg_perf_server")
    found = [nearest(root, n) for n in names]
    return found[0] and [str(f.parent) for f in found if f]


def path_of(folders, program):
    for folder in folders:
        if os.access(f"{folder}/{program}", os.X_OK):
            return f"{folder}/{program}"
    return None


def units(folders, mode, _processes):
    env = {"FI_TANDEM_STAND_IN": "tcp"} if mode.tandem else {}
    host = "host2" if mode.hosts == 2 else "host1"
    for busy in ("", "--busy"):
        args = f"--comm ofi --protocol tcp {busy}"
        label = " busy" if busy else ""
        for name, server, client, extra in PAIRS:
            server, client = path_of(folders, server), path_of(folders, client)
            if not server or not client:
                continue
            at = f"{server} {args} {extra} --hostname {ADDRESS}"
            if name == "hg kill":
                at = f"sh -c '{at} || :'"   # its end is the test
            ready = "" if name == "na lookup" else READY
            yield Unit(name + label,
                       [PAIR, ready, at, host, f"{client} {args} {extra}"],
                       env)
        for name, program, extra in ALONE:
            yield Unit(name + label, [path_of(folders, program)]
                       + f"{args} {extra}".split(), env)

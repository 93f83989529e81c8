# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""Upstream's fabtests: the default sets, and what lies beyond them.

runfabtests.sh runs the default sets: unit, regression, functional, standard,
multinode (and threaded, where there is one), and fi_ubertest with our own
configuration. The rest are programs and configurations that no set has.
"""

import os
import re
from pathlib import Path
from unit import (ADDRESS, FAILED, HERE, PAIR, PASSED, SKIPPED, Unit,
                  by_status, find)

NAME = "fabtests"
LOOKED_FOR = "bin/runfabtests.sh with share/fabtests beside it"
OTHER = "tcp;ofi_rxm"
PROCESSES = (0,)
CONFIGS = HERE.parent.parent / "fabtests" / "test_configs"
SETS = ("unit", "regression", "functional", "standard", "complex", "multinode",
        "threaded")


def locate(root: Path):
    return next((p.parents[1] for p in find(root, "bin/runfabtests.sh")
                 if (p.parents[1] / "share/fabtests").is_dir()), None)


def of_script(_status, text):
    """The outcomes of each test of a run of runfabtests.sh."""
    out = []
    for name, result in re.findall(r"^- name: +(.*)\n(?:  .*\n)*?"
                                   r"  result: +(\w+)", text, re.M):
        name = re.sub(r' -p ".*"', "", name).strip()
        name = re.sub(r"10\.77\.0\.\d", "ADDRESS", name)
        if result != "Excluded":
            out.append(({"Pass": PASSED, "Notrun": SKIPPED}.get(result, FAILED),
                        name))
    return out or [(FAILED, "runfabtests.sh")]


def path_of(prefix):
    return {"PATH": f"{prefix}/bin:{os.environ['PATH']}"}


def script(prefix, mode, name):
    provider = "tandem" if mode.tandem else OTHER
    second = "10.77.0.2" if mode.hosts == 2 else ADDRESS
    argv = [str(prefix / "bin/runfabtests.sh"), "-t", name, "-T", "300", "-v"]
    if mode.tandem:
        argv += ["-f", str(CONFIGS / "tandem.exclude"), "-u",
                 str(CONFIGS / "tandem.test")]
    return Unit(f"set {name}", argv + [provider, ADDRESS, second],
                path_of(prefix), seconds=7200, cwd=str(prefix / "share/fabtests"),
                judge=of_script)


def uber(case):
    def judge(status, text):
        wrong = sum(int(n) for n in
                    re.findall(r"(?:ENOSYS|ERROR): *(\d+)", text))
        right = sum(int(n) for n in re.findall(r"Success: *(\d+)", text))
        return [(PASSED if status == 0 and right and not wrong else FAILED,
                 case)]
    return judge


# How the sides find each other: arguments of the server, and of the client.
BY_NAME = ("-s {server}", "-s {client} {server}")
BY_SOCKET = ("-E", "-E {server}")       # of the programs' own
BY_TEXT = ("-s fi_sockaddr_in://{server}:7790", "fi_sockaddr_in://{server}:7790")

# program, its arguments. No set has them. fi_rdm_stress is left out: its server
# has no end.
BEYOND = [
    ("fi_rma_pingpong", "-e rdm -o write -v -I 20"),
    ("fi_rma_pingpong", "-e rdm -o writedata -v -I 20"),
    ("fi_rdm_pingpong", "-F fi_addr_str -I 20 -v", BY_TEXT),
    ("fi_rdm_tagged_pingpong", "-F fi_addr_str -I 20 -v", BY_SOCKET),
    ("fi_rdm_bw", "-e rdm -I 20"),
    ("fi_rdm_deferred_wq", ""),
    ("fi_rdm_multi_domain", ""),
    ("fi_rma_tx_completion", "-o write"),
    ("fi_unexpected_msg", "-e rdm -I 10"),
    ("fi_unexpected_msg", "-e rdm -I 5 -M 4096"),
    ("fi_resmgmt_test", ""),
    ("fi_resmgmt_test", "-t"),
    ("fi_flood", "-e rdm"),
    ("fi_rdm_atomic", "-o all -I 20 -v"),
    ("fi_rdm_pingpong", "-c sread -I 20 -v"),
    ("fi_rdm_pingpong", "-c fd -I 20 -v"),
    ("fi_rdm_pingpong", "-t counter -I 20 -v"),
    ("fi_rdm_cntr_pingpong", "-I 20"),
]


def pair_judge(case):
    """By status; fabtests 2.6 refuses to check what fi_write(3) wrote."""
    def judge(status, text):
        if status != 0 and re.search("polls the last byte", text):
            return [(SKIPPED, case)]
        return by_status(case)(status, text)
    return judge


def beyond(prefix, mode):
    provider = "tandem" if mode.tandem else OTHER
    host = "host2" if mode.hosts == 2 else "host1"
    client = "10.77.0.2" if mode.hosts == 2 else ADDRESS
    for program, args, *found in BEYOND:
        ends = [e.format(server=ADDRESS, client=client)
                for e in (found or [BY_NAME])[0]]
        path = prefix / "bin" / program
        if not os.access(path, os.X_OK):
            continue
        line = f"{path} -p '{provider}' {args}"
        case = f"{program} {args}".strip()
        yield Unit(case, [PAIR, "", f"{line} {ends[0]}", host,
                          f"{line} {ends[1]}"],
                   cwd=str(prefix / "share/fabtests"), judge=pair_judge(case))
    for config in ("tcp/all.test", "shm/all.test"):
        path = prefix / "share/fabtests/test_configs" / config
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"prov_name: *[^,]*,", f"prov_name: {provider},", text)
        text = text.replace("FI_EP_MSG", "FI_EP_RDM")
        case = f"fi_ubertest {config}"
        yield Unit(case, ["bash", "-c",
                          'f=$(mktemp); printf %s "$1" >"$f"; shift; '
                          'exec "${@//CONFIG/$f}"', "bash", text, PAIR, "",
                          f"{prefix}/bin/fi_ubertest -x", host,
                          f"{prefix}/bin/fi_ubertest -u CONFIG {ADDRESS}"],
                   seconds=3600, judge=uber(case))


def multinode(prefix, mode):
    provider = "tandem" if mode.tandem else OTHER
    hosts = "host1,host2" if mode.hosts == 2 else "host1"
    for method in ("msg", "rma"):
        case = f"runmultinode.sh -x {method}"
        yield Unit(case, [str(prefix / "bin/runmultinode.sh"), "-h", hosts,
                          "-n", "3", "-p", provider, "-x", method, "-I", "2"],
                   path_of(prefix))


def mixed(prefix):
    """Jobs of four processes, two on each host, in each pattern of traffic."""
    for method in ("msg", "rma"):
        for pattern in ("full_mesh", "ring", "gather", "broadcast"):
            case = f"runmultinode.sh -x {method} -z {pattern}, 2 a host"
            yield Unit(case, [str(prefix / "bin/runmultinode.sh"), "-h",
                              "host1,host2", "-n", "2", "-p", "tandem", "-x",
                              method, "-z", pattern, "-I", "2"],
                       path_of(prefix))


def units(prefix, mode, _processes):
    if mode.name == "mixed":
        yield from mixed(prefix)
        return
    text = (prefix / "bin/runfabtests.sh").read_text(encoding="utf-8")
    for name in SETS:
        if re.search(rf"\b{name}\b", text):
            yield script(prefix, mode, name)
    yield from beyond(prefix, mode)
    yield from multinode(prefix, mode)

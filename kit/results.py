#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""results.py PROGRAM [LIBRARIES...]: run tandem-peer-check over providers, with the
libfabric of the machine and with that of each folder LIBRARIES; print Markdown.

`./dev peers` calls it and keeps what it prints in doc/peer-results.md.
"""

import json
import os
import subprocess
import sys

# Name of the column: arguments of the program.
SUBJECTS = {
    "tandem-shm": ["--domain", "tandem-shm", "tandem"],
    "loop": ["loop"],
    "shm": ["shm"],
    "sm2": ["sm2"],
    "tcp": ["--node", "127.0.0.1", "tcp"],
    "tcp;ofi_rxm": ["--node", "127.0.0.1", "tcp;ofi_rxm"],
    "off_coll": ["off_coll"],
}

# The same for owners.
OWNERS = {
    "tandem": ["--owner", "tandem"],
    "lnx": ["--owner", "lnx"],
}

MARK = {"held": "held", "broken": "**broken**", "not offered": "–",
        "not tried": ""}

INTRO = """# Providers of libfabric as peers

`./dev peers` makes this page: tandem-peer-check(1) over tandem's own peer
(`tandem-shm`), the toy of [examples/](../examples/README.md) (`loop`) and providers of
libfabric {versions}; {count} rules. *broken* is explained below each table, `–` is not
offered, an empty field was not tried because no message arrives. A rule of the guide is
one that [fi_peer(3) leaves out](guide/peer-api.md), which owners and peers rely on.

`sm2` and `tcp` do not grant FI_PEER. They are here because their objects take it.
`loop` is compiled with the headers of the first libfabric, so that it is tried there only.
`lnx` is an owner and no peer. The [last chapters](#owners) have owners.
"""

OWNERS_INTRO = """# Owners

`tandem-peer-check --owner` over tandem, which is told to link the kit's peer by
FI_TANDEM_LOCAL, and libfabric's `lnx` (FI_LNX_PROV_LINKS); {count} rules. The `lnx` of
libfabric 2.1 links two providers or more, and so not the kit's.
"""


def result_of(program, arguments, libraries):
    """The JSON of one run."""
    env = dict(os.environ)
    if libraries:
        env["LD_LIBRARY_PATH"] = libraries
    run = subprocess.run([program, "--json", *arguments], check=False, env=env,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if run.returncode not in (0, 1, 3):
        sys.exit(f"{program} {' '.join(arguments)}: {run.returncode}")
    return json.loads(run.stdout)


def place(rule):
    """fi_peer(3), PEER CQ 3"""
    text = rule["page"]
    if rule["section"]:
        text += ", " + rule["section"]
    if rule["paragraph"]:
        text += f" {rule['paragraph']}"
    return text


def cell(text):
    return text.replace("|", "\\|")


def table(results):
    names = list(results)
    print("| rule | " + " | ".join(names) + " |")
    print("|:---|" + ":---|" * len(names))
    for rows in zip(*(r["rules"] for r in results.values())):
        marks = [MARK[row["result"]] for row in rows]
        print(f"| {rows[0]['rule']} | " + " | ".join(marks) + " |")
    for member in ("held", "broken", "not_offered", "not_tried"):
        counts = [str(r[member]) for r in results.values()]
        print(f"| *{member.replace('_', ' ')}* | " + " | ".join(counts) + " |")


def breaches(results):
    print("\n### What is broken\n")
    for name, result in results.items():
        broken = [r for r in result["rules"] if r["result"] == "broken"]
        if not broken:
            print(f"{name}: nothing.\n")
            continue
        print(f"{name}:\n")
        for rule in broken:
            print(f"- {rule['rule']}: {cell(rule['reason'])}")
        print()


def runs_of(subjects, folders):
    """The results with the libfabric of the machine, and with that of each folder."""
    return [{name: result_of(sys.argv[1], arguments, libraries)
             for name, arguments in subjects.items()
             if name != "loop" or not libraries}
            for libraries in (None, *folders)]


def versions_of(runs):
    return [next(iter(results.values()))["libfabric"] for results in runs]


def chapters(runs, what):
    for version, results in zip(versions_of(runs), runs):
        print(f"## {what} of libfabric {version}\n")
        table(results)
        breaches(results)


def list_rules(runs):
    print("| rule | demands | place |\n|:---|:---|:---|")
    for rule in next(iter(runs[0].values()))["rules"]:
        print(f"| {rule['rule']} | {cell(rule['sentence'])} | "
              f"{cell(place(rule))} |")


def count_of(runs):
    return len(next(iter(runs[0].values()))["rules"])


def main():
    peers = runs_of(SUBJECTS, sys.argv[2:])
    owners = runs_of(OWNERS, sys.argv[2:])
    print(INTRO.format(versions=" and ".join(versions_of(peers)),
                       count=count_of(peers)))
    chapters(peers, "Peers")
    print("## The rules for peers\n")
    list_rules(peers)
    print("\n" + OWNERS_INTRO.format(count=count_of(owners)))
    chapters(owners, "Owners")
    print("## The rules for owners\n")
    list_rules(owners)


main()

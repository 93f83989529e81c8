#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Count what an operation takes, and compare with the limits of a file.

usage: counts.py TREE LIMITS

Each work of bench/count.c runs twice under callgrind, with N and with 3 N
operations; the difference of the two, divided by 2 N, is free of what opening
takes. Instructions are those inside the module. Locked instructions are counted
wherever they are, by their addresses in the disassembly. System calls are those that strace
sees, but for sched_yield(2), whose number depends on who else runs; each work makes
ten times as many operations for them.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FEW, MANY = 640, 1920
MODULE = "libtandem-fi.so"
LOCKED = re.compile(r"^\s*([0-9a-f]+):\s+(?:lock |xchg\b.*\()")

locked_of = {}


def locked_in(path):
    """The addresses of locked instructions of an object file."""
    if path not in locked_of:
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path],
                              capture_output=True, text=True,
                              check=False).stdout
        locked_of[path] = {int(m[1], 16) for m in
                           map(LOCKED.match, text.splitlines()) if m}
    return locked_of[path]


class Work:
    """A work of bench/count.c, on one tier."""

    def __init__(self, tree, work, tier):
        self.tree = tree
        self.name, _, self.rest = work.partition(":")
        self.env = {**os.environ, "FI_PROVIDER_PATH": str(tree / ".libs"),
                    "FI_TANDEM_SHM": "auto" if tier == "shm" else "off"}

    def run(self, count, *tool, more=()):
        """Run it below TOOL; what it printed."""
        argv = [str(self.tree / "libtool"), "--mode=execute", *tool,
                str(self.tree / "tandem_count"), self.name, str(count), *more]
        done = subprocess.run(argv, capture_output=True, text=True,
                              env=self.env, check=False, timeout=600)
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)}: {done.stderr[-2000:]}")
        return done.stdout

    def measure(self, what):
        """The counts that one kind of measurement gives, WHAT among them."""
        if self.name.startswith("mem-"):
            values = map(float, self.run(self.rest).split())
            return dict(zip(("bytes", "mapped"), values))
        more = [self.rest] if self.rest else []
        if what == "calls":
            few, many = (system_calls(self, 10 * n, more) / 10
                         for n in (FEW, MANY))
            return {"calls": (many - few) / (MANY - FEW)}
        few, many = (Callgrind(self, n, more) for n in (FEW, MANY))
        return {"instructions": (many.module - few.module) / (MANY - FEW),
                "locked": (many.locked - few.locked) / (MANY - FEW)}


class Callgrind:
    """One run under callgrind: its totals."""

    def __init__(self, work, count, more):
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "callgrind"
            work.run(count, "valgrind", "--tool=callgrind", "--dump-instr=yes",
                     "--compress-pos=no", "--compress-strings=no",
                     f"--callgrind-out-file={out}", more=more)
            self.module, self.locked = 0, 0
            self.read(out)

    def read(self, out):
        inside, addresses, skip = False, frozenset(), False
        with open(out, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("ob="):
                    path = line[3:].strip()
                    inside = MODULE in path
                    addresses = locked_in(path)
                elif line.startswith("calls="):
                    skip = True  # the next line is the cost of the callee
                elif line.startswith("0x"):
                    if skip:
                        skip = False
                        continue
                    at, _line, *cost = line.split()
                    cost = int(cost[0]) if cost else 0
                    self.module += cost if inside else 0
                    if int(at, 16) in addresses:
                        self.locked += cost


def can_trace():
    return subprocess.run(["strace", "-o", "/dev/null", "true"],
                          capture_output=True, check=False).returncode == 0


def system_calls(work, count, more):
    """The system calls of a run, without those that give the core away."""
    with tempfile.NamedTemporaryFile() as out:
        work.run(count, "strace", "-f", "-qq", "-o", out.name, more=more)
        return sum(b"sched_yield" not in line and b"resumed" not in line
                   for line in out)


def main(tree, limits):
    tree = Path(tree).resolve()
    table = [line.split() for line in
             Path(limits).read_text(encoding="utf-8").splitlines()
             if line and not line.startswith("#")]
    results, over, traces = {}, [], can_trace()
    print(f"{'work':24} {'tier':5} {'what':13} {'counted':>10} {'limit':>10}")
    for work, tier, what, limit in table:
        if what == "calls" and not traces:
            print(f"{work:24} {tier:5} {what:13} not counted: no strace here")
            continue
        done = results.setdefault((work, tier), {})
        if what not in done:
            done.update(Work(tree, work, tier).measure(what))
        value = done[what]
        print(f"{work:24} {tier:5} {what:13} {value:10.2f} {limit:>10}",
              flush=True)
        if value > float(limit):
            over.append(f"{work} {tier}: {value:.2f} {what}, at most {limit}")
    for line in over:
        print(line)
    if over:
        sys.exit(1)
    print(f"{len(table)} counts, none above its limit")


main(*sys.argv[1:])

# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""run.py BUILD RESULTS DIR [OPTION...] [SUITE...]: see run.sh.

RESULTS/SUITE/MODE keeps the output and the outcomes of each unit, so that the
table can be put together from several runs.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import fabtests
import gasnet
import imb
import mercury
import mpi4py_suite
import mpich
import sos
from unit import FAILED, MODES, PASSED, SKIPPED, file_name, run

SAY_SECONDS = 60
SUITES = [fabtests, sos, mercury, mpich, gasnet, imb, mpi4py_suite]


def arguments():
    p = argparse.ArgumentParser(prog="run.sh")
    p.add_argument("build", type=Path)
    p.add_argument("results", type=Path)
    p.add_argument("dir", type=Path)
    p.add_argument("suite", nargs="*", help="default: all but fabtests")
    p.add_argument("--modes", default="shm,tcp,hosts,other")
    p.add_argument("--processes", default="")
    p.add_argument("--only", default="", help="regular expression of units")
    p.add_argument("--seconds", type=int, default=300, help="for each unit")
    p.add_argument("--table", action="store_true", help="only print it")
    return p.parse_args()


def environment(args, mode):
    env = dict(os.environ)
    for name in [n for n in env if n.startswith("FI_")]:
        del env[name]
    env["FI_PROVIDER_PATH"] = str(args.build.resolve() / ".libs")
    env.update(mode.env)
    return env


def run_mode(args, suite, found, mode):
    folder = args.results.resolve() / suite.NAME / mode.name
    folder.mkdir(parents=True, exist_ok=True)
    processes = [int(n) for n in args.processes.split(",") if n]
    with tempfile.TemporaryDirectory() as scratch:
        chosen = [unit for count in processes or suite.PROCESSES
                  for unit in suite.units(found, mode, count)
                  if re.search(args.only, unit.name)]
        if not chosen:
            print(f"{suite.NAME} {mode.name}: nothing matches --only "
                  f"{args.only}", flush=True)
        said = time.monotonic()
        for number, unit in enumerate(chosen):
            if time.monotonic() - said > SAY_SECONDS:
                said = time.monotonic()
                print(f"{suite.NAME} {mode.name}: {number} of {len(chosen)}",
                      flush=True)
            unit.cwd = unit.cwd or scratch
            for outcome, case in run(unit, environment(args, mode), folder,
                                     args.seconds):
                if outcome == FAILED:
                    print(f"{suite.NAME} {mode.name}: {case} failed: "
                          f"{folder / file_name(unit.name)}.log",
                          flush=True)
    return len(chosen)


def outcomes(args, suite, mode):
    cases = {}
    for f in sorted((args.results / suite.NAME / mode).glob("*.results")):
        for line in f.read_text(encoding="utf-8").splitlines():
            outcome, case = line.split("\t", 1)
            cases[case] = outcome
    return cases


def cell(cases):
    if not cases:
        return "-"
    count = {o: list(cases.values()).count(o)
             for o in (PASSED, FAILED, SKIPPED)}
    text = f"{count[PASSED]} / {count[PASSED] + count[FAILED]}"
    return text + (f" ({count[SKIPPED]} skipped)" if count[SKIPPED] else "")


def table(args, suites):
    every = {suite.NAME: {m.name: outcomes(args, suite, m.name)
                          for m in MODES} for suite in suites}
    names = [m.name for m in MODES
             if any(ran[m.name] for ran in every.values())]
    rows = [["suite"] + names + ["other is"]]
    bad = []
    for suite in suites:
        ran = every[suite.NAME]
        rows.append([suite.NAME] + [cell(ran[n]) for n in names] +
                    [suite.OTHER])
        others = {**ran["other-hosts"], **ran["other"]}
        for mode in MODES:
            for case, outcome in sorted(ran[mode.name].items()):
                if outcome == FAILED and mode.tandem:
                    beside = others.get(case, "not run")
                    bad.append((suite.NAME, mode.name, case, beside))
    width = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(c.ljust(w) for c, w in zip(row, width)).rstrip())
    for suite, mode, case, beside in bad:
        print(f"failed: {suite}, {mode}: {case} (the other provider: {beside})")
    return any(beside != FAILED for _, _, _, beside in bad)


def main():
    args = arguments()
    wanted = args.suite or [s.NAME for s in SUITES if s is not fabtests]
    known = {s.NAME.lower(): s for s in SUITES}
    for name in wanted:
        if name.lower() not in known:
            sys.exit(f"consumers: there is no suite {name}; there are "
                     + ", ".join(s.NAME for s in SUITES))
    suites = [known[n.lower()] for n in wanted]
    missing, ran = [], 0
    for suite in suites if not args.table else []:
        found = suite.locate(args.dir.resolve())
        if not found:
            missing.append(suite)
            continue
        for name in args.modes.split(","):
            mode = next((m for m in MODES if m.name == name), None)
            if mode is None:
                sys.exit(f"consumers: there is no mode {name}; there are "
                         + ", ".join(m.name for m in MODES))
            ran += run_mode(args, suite, found, mode)
    bad = table(args, suites)
    for suite in missing:
        print(f"not found below {args.dir}: {suite.NAME} "
              f"({suite.LOOKED_FOR})")
    return 1 if bad or not (ran or args.table) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plant bugs, one at a time, and see whether the tests find them.

usage: mutants.py --list | --apply | SOURCE TREE RESULTS [NAME...]

SOURCE is a copy of the sources, which this program changes and puts back, TREE
a build tree of it; see mutants.sh. RESULTS keeps what came out of each mutant, for as
long as the sources are the same, so that a run that was interrupted goes on.
--list prints the mutants; --apply says whether each text is in its file, once.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
TEST_SECONDS = 300


class Mutant:
    def __init__(self, name):
        self.name = name
        self.file = self.stage = self.why = ""
        self.text = {"from": [], "to": []}

    def key(self):
        return hashlib.sha256(repr(sorted(vars(self).items())).encode()).hexdigest()


def read(path):
    mutants, part = [], None
    for line in path.read_text().splitlines()[1:]:
        word, _, rest = line.partition(" ")
        if word == "mutant":
            mutants.append(Mutant(rest))
            part = None
        elif line in ("from", "to") and mutants:
            part = line
        elif part:
            mutants[-1].text[part].append(line)
        elif word in ("file", "stage", "why"):
            setattr(mutants[-1], word, rest)
        elif line:
            sys.exit(f"{path}: what is '{line}'?")
    for m in mutants:
        for lines in m.text.values():
            while lines and not lines[-1]:
                lines.pop()
        if not (m.file and m.why and m.text["from"] and len(m.stage.split()) == 2):
            sys.exit(f"{path}: {m.name} is not complete")
    return mutants


def changed(m, root):
    """The file with the bug, or None: its text is not there exactly once."""
    text = (root / m.file).read_text()
    old = "\n".join(m.text["from"]) + "\n"
    if text.count("\n" + old) != 1:
        return None
    return text.replace("\n" + old, "\n" + "".join(x + "\n" for x in m.text["to"]))


def run(m, tree, root, log):
    """'caught', 'NOT CAUGHT', or why it could not be tried."""
    program, tests = m.stage.split()
    path, good = root / m.file, (root / m.file).read_text()
    bad = changed(m, root)
    if bad is None:
        return "its text is not in the file"
    with open(log, "w") as out:
        try:
            path.write_text(bad)
            if subprocess.run(["make", "-C", tree, f"-j{os.cpu_count()}", f"tests/{program}"],
                              stdout=out, stderr=out).returncode:
                return "does not compile"
            try:
                env = dict(os.environ, TANDEM_TEST_DEADLINE="10", TANDEM_SEED="1")
                ret = subprocess.run([f"{tree}/tests/{program}", "--gtest_brief=1",
                                      "--gtest_fail_fast", f"--gtest_filter={tests}"],
                                     stdout=out, stderr=out, timeout=TEST_SECONDS,
                                     env=env).returncode
            except subprocess.TimeoutExpired:
                return "too slow"
        finally:
            path.write_text(good)
    text = pathlib.Path(log).read_text(errors="replace")
    if re.search(r"^\[==========\] 0 tests", text, re.M):
        return "its stage names no test"
    return "caught" if ret else "NOT CAUGHT"


def main():
    args = sys.argv[1:]
    mode = args.pop(0) if args and args[0].startswith("--") else ""
    mutants = [m for f in sorted((TOP / "tests/mutants").glob("*.txt")) for m in read(f)]
    if mode == "--list":
        for m in mutants:
            print(f"{m.name:28} {m.file:20} {m.why}")
        return 0
    if mode == "--apply":
        bad = [m for m in mutants if changed(m, TOP) is None]
        for m in bad:
            print(f"mutant {m.name}: its text is not in {m.file}, exactly once")
        print(f"{len(mutants)} mutants")
        return bool(bad) or len({m.name for m in mutants}) != len(mutants)
    root, tree, results = pathlib.Path(args[0]), args[1], pathlib.Path(args[2])
    results.mkdir(parents=True, exist_ok=True)
    caught = tried = 0
    for m in mutants:
        if args[3:] and m.name not in args[3:]:
            continue
        done = results / (m.name + "-" + m.key()[:8])
        if not done.exists():
            verdict = run(m, tree, root, results / (m.name + ".log"))
            done.write_text(verdict + "\n")
        verdict = done.read_text().strip()
        tried += 1
        caught += verdict == "caught"
        print(f"{m.name:28} {verdict}", flush=True)
        if verdict != "caught":
            done.unlink()
    print(f"{caught} of {tried} planted bugs caught")
    return caught != tried


if __name__ == "__main__":
    sys.exit(main())

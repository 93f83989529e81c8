# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""What every suite shares: modes, units, and how a unit is run.

A unit is one command. It yields the outcome of one case or of several. It runs
in a process namespace with a /dev/shm and a TMPDIR of its own, so that
nothing of it is left when it ends or when its time is over.
"""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

HERE = Path(__file__).resolve().parent
AGENT = str(HERE / "agent.sh")
PAIR = str(HERE / "pair.sh")
ADDRESS = "10.77.0.1"       # of the first host: fabtests/hosts.sh

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
Outcomes = List[Tuple[str, str]]        # (outcome, case)


@dataclass(frozen=True)
class Mode:
    """One column of the table."""
    name: str
    hosts: int = 1
    tandem: bool = True
    env: Dict[str, str] = field(default_factory=dict)


MODES = [
    Mode("shm"),
    Mode("tcp", env={"FI_TANDEM_SHM": "off"}),
    # TANDEM_FOREIGN: the provider that carries messages within the host
    Mode("foreign", env={
        "FI_TANDEM_LOCAL": os.environ.get("TANDEM_FOREIGN", "shm")}),
    # several processes on each host: pairs that share memory, and others
    Mode("mixed", hosts=2),
    Mode("hosts", hosts=2),
    Mode("other", tandem=False),
    Mode("other-hosts", hosts=2, tandem=False),
]


def by_status(case: str) -> Callable[[Optional[int], str], Outcomes]:
    """One case, which passes by its exit status; 77 and 61 skip it."""
    def judge(status: Optional[int], _text: str) -> Outcomes:
        if status == 0:
            return [(PASSED, case)]
        return [(SKIPPED if status in (61, 77) else FAILED, case)]
    return judge


@dataclass
class Unit:
    name: str
    argv: List[str]
    env: Dict[str, str] = field(default_factory=dict)
    seconds: int = 0            # 0: what the user said
    cwd: Optional[str] = None
    judge: Optional[Callable[[Optional[int], str], Outcomes]] = None


def file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", text).strip("_")[:200]


OWN = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
       "--", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]


def run(unit: Unit, env: Dict[str, str], folder: Path, seconds: int) -> Outcomes:
    """Run a unit; leave its output and its outcomes in FOLDER."""
    name = file_name(unit.name)
    log = folder / (name + ".log")
    status: Optional[int] = None
    with open(log, "w", encoding="utf-8") as out, \
            tempfile.TemporaryDirectory(
                ignore_cleanup_errors=True) as scratch:
        extra = " ".join(f"{k}={v}" for k, v in sorted(unit.env.items()))
        print(f"# {extra} {' '.join(unit.argv)}", file=out, flush=True)
        process = subprocess.Popen(
            OWN + unit.argv, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, cwd=unit.cwd,
            env={**env, "TMPDIR": scratch, **unit.env}, start_new_session=True)
        try:
            status = process.wait(unit.seconds or seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        except BaseException:
            process.kill()
            raise
        print("# " + ("no end within the time" if status is None
                      else f"exit status {status}"), file=out)
    text = log.read_text(encoding="utf-8", errors="replace")
    outcomes = (unit.judge or by_status(unit.name))(status, text)
    with open(folder / (name + ".results"), "w", encoding="utf-8") as out:
        for outcome, case in outcomes:
            print(f"{outcome}\t{case}", file=out)
    return outcomes


def executables(folder: Path) -> List[str]:
    """The programs of a build folder, without scripts' and objects' names."""
    return sorted(
        f.name for f in folder.iterdir()
        if f.is_file() and os.access(f, os.X_OK)
        and not re.search(r"\.(o|la|so|sh|py|pl|status|log|trs)$|^config",
                          f.name))


def find(root: Path, pattern: str) -> List[Path]:
    """Files below ROOT by a glob of their path's end, nearest first."""
    return sorted(root.rglob(pattern), key=lambda p: (len(p.parts), str(p)))


def nearest(root: Path, pattern: str) -> Optional[Path]:
    """The nearest program that find() finds, or None."""
    return next((p for p in find(root, pattern)
                 if p.is_file() and os.access(p, os.X_OK)), None)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""Run the commands of a guide: try.py PAGE...

A page of doc/guide/ is read for its fenced blocks. Those whose first line says
"sh run" are given, in order, to one shell for each page, which starts in the folder
where this program was started. More words of that line:

  on2            on the second test host
  background     go on while it runs; it is ended with the page
  until=TEXT     (with background) go on when its output has TEXT, or, if that is
                 :PORT, when a process listens there
  fails          the last command fails
  needs=COMMAND  the block is left out where COMMAND is missing

A block "output" shows what the block before it prints: each of its lines is there, in
any order since programs buffer what they print, and "..." stands for any text. In
commands, the words SERVER, FIRST and SECOND stand for the addresses of the test
hosts (ADDRESS1, ADDRESS2 of the environment), and PEER for the first line that the
last block in the background printed.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 180  # for one block


class Failed(Exception):
    pass


def blocks(path):
    """(line, words of the first line, text) of each fenced block."""
    found, words, start, text = [], None, 0, []
    with open(path, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            fence = re.match(r"```(.*)$", line)
            if fence and words is None:
                words, start, text = fence.group(1).split(), number, []
            elif fence:
                found.append((start, words, "".join(text)))
                words = None
            elif words is not None:
                text.append(line)
    if words is not None:
        raise Failed(f"{path}:{start}: the block has no end")
    return found


def matches(shown, printed):
    """None, or the first line of @shown that is not in @printed."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for line in shown.splitlines():
        if line.strip() in ("", "..."):
            continue
        pattern = ".*".join(re.escape(" ".join(part.split()))
                            for part in line.split("..."))
        if not any(re.search(pattern, have) for have in lines):
            return line
    return None


def listens(prefix, port):
    """Whether a process listens on ":PORT", on the host that @prefix enters."""
    return subprocess.run([*prefix, "ss", "-Hltn", f"sport = {port}"],
                          capture_output=True, check=False).stdout != b""


class Shell:
    """The shell of a page, and what it has started."""

    def __init__(self):
        self.output = tempfile.NamedTemporaryFile("w+")
        self.started = []
        self.peer = ""
        self.bash = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)

    def close(self):
        for child, _ in self.started:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait()
        self.bash.stdin.close()
        self.bash.wait()

    def fill_in(self, text):
        first = os.environ.get("ADDRESS1", "127.0.0.1")
        second = os.environ.get("ADDRESS2", "127.0.0.1")
        for word, value in (("SERVER", first), ("FIRST", first),
                            ("SECOND", second), ("PEER", self.peer)):
            text = re.sub(rf"\b{word}\b", value, text)
        return text

    def wait(self, ready, what):
        end = time.monotonic() + SECONDS
        while not ready():
            if time.monotonic() > end:
                raise Failed(f"{what}: nothing after {SECONDS} s")
            select.select([], [], [], 0.05)

    def environment(self):
        """The variables that the blocks before have exported."""
        self.run("env -0")
        with open(self.output.name, encoding="utf-8") as out:
            pairs = [item.partition("=") for item in out.read().split("\0")]
        return {name: value for name, _, value in pairs if name}

    def background(self, text, prefix, until):
        out = tempfile.NamedTemporaryFile("w+")
        child = subprocess.Popen(
            [*prefix, "bash", "-c", text], stdin=subprocess.DEVNULL,
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            env=self.environment())
        self.started.append((child, out))

        def printed():
            with open(out.name, encoding="utf-8") as have:
                return have.read()

        def ready():
            return (child.poll() is not None or until in printed()
                    or until.startswith(":") and listens(prefix, until))

        if until:
            self.wait(ready, text)
        if child.poll():
            raise Failed(f"{text}\n{printed()}")
        self.peer = (printed().splitlines() or [""])[0]

    def run(self, text):
        """(exit status of the first command that failed, output)."""
        self.bash.stdin.write(
            f"status=0; trap 'status=$?' ERR; {{\n{text}\n}} "
            f">{self.output.name} 2>&1 </dev/null; trap - ERR; "
            "echo $status\n")
        ready, _, _ = select.select([self.bash.stdout], [], [], SECONDS)
        if not ready:
            self.bash.kill()
            raise Failed(f"{text}: nothing after {SECONDS} s")
        status = self.bash.stdout.readline().strip()
        if not status:
            raise Failed(f"{text}: the shell has ended")
        with open(self.output.name, encoding="utf-8", errors="replace") as out:
            return int(status), out.read()


def prefix_of(words):
    pid = os.environ.get("SECOND_PID")
    if "on2" not in words or not pid:
        return []
    return ["nsenter", f"--net=/proc/{pid}/ns/net", f"--uts=/proc/{pid}/ns/uts",
            "setpriv", "--pdeathsig", "KILL"]


def settings(words):
    return dict(word.split("=", 1) for word in words if "=" in word)


def run_block(shell, words, text):
    """The output, or None if the block is left out."""
    needs = settings(words).get("needs")
    if needs and not shutil.which(needs):
        return None
    text = shell.fill_in(text)
    prefix = prefix_of(words)
    if "background" in words:
        shell.background(text, prefix, settings(words).get("until"))
        return ""
    if prefix:
        quoted = text.replace("'", "'\\''")
        text = " ".join([*prefix, "bash", "-ec", f"'{quoted}'"])
    status, printed = shell.run(text)
    if bool(status) != ("fails" in words):
        raise Failed(f"{text}exit status {status}\n{printed}")
    return printed


def try_page(path):
    """How many blocks ran, and how many were left out."""
    shell, ran, left = Shell(), 0, 0
    printed = None
    try:
        for line, words, text in blocks(path):
            try:
                if words[:2] == ["sh", "run"]:
                    printed = run_block(shell, words[2:], text)
                    ran += printed is not None
                    left += printed is None
                elif words[:1] == ["output"] and printed is not None:
                    missing = matches(text, printed)
                    if missing:
                        raise Failed(f"not printed: {missing}\n{printed}")
            except Failed as why:
                raise Failed(f"{path}:{line}: {why}") from why
    finally:
        shell.close()
    return ran, left


def main():
    failed = 0
    for path in sys.argv[1:]:
        try:
            ran, left = try_page(path)
        except Failed as why:
            failed += 1
            print(f"guide: FAILED {why}")
            continue
        print(f"guide: {os.path.basename(path)}: {ran} blocks run"
              + (f", {left} left out" if left else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

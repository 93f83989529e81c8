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

Blocks that begin with "sh install", "sh build" or "sh newer" are for who follows the
guide on a new machine, .ci/package.sh and .ci/older.sh; "try.py --print install PAGE" prints them.

Shells start in the folder GUIDE_DIR with the prefix GUIDE_INSIDE, such as a chroot
and another user, where these are set.

A block "output" shows what the block before it prints: each of its lines is there, in
any order since programs buffer what they print, and "..." stands for any text. In
commands, the words SERVER, FIRST and SECOND stand for the addresses of the test
hosts (ADDRESS1, ADDRESS2 of the environment), and PEER for the first line that the
last block in the background printed.
"""

import os
import re
import select
import shlex
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
        # The shell may see other files than this program: it inherits this one.
        self.output = tempfile.TemporaryFile("a+", errors="replace")
        self.started = []
        self.peer = ""
        self.inside = shlex.split(os.environ.get("GUIDE_INSIDE", ""))
        self.bash = subprocess.Popen(
            [*self.inside, "bash"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1,
            pass_fds=(self.output.fileno(),))
        self.go = f"cd {shlex.quote(os.environ.get('GUIDE_DIR', '.'))} && "
        self.run(self.go + "true")

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

    def background_output(self):
        """What the blocks in the background have printed, for who looks at a failure."""
        text = ""
        for child, out in self.started:
            with open(out.name, encoding="utf-8", errors="replace") as have:
                text += f"in the background, status {child.poll()}:\n{have.read()}"
        return text

    def wait(self, ready, what):
        end = time.monotonic() + SECONDS
        while not ready():
            if time.monotonic() > end:
                raise Failed(f"{what}: nothing after {SECONDS} s")
            select.select([], [], [], 0.05)

    def environment(self):
        """The variables that the blocks before have exported."""
        pairs = [item.partition("=")
                 for item in self.run("env -0")[1].split("\0")]
        return {name: value for name, _, value in pairs if name}

    def command(self, text, prefix):
        """What Popen() needs to run @text in a shell of its own."""
        return {"args": [*prefix, *self.inside, "bash", "-ec", self.go + text],
                "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT,
                "start_new_session": True, "env": self.environment()}

    def elsewhere(self, text, prefix):
        """Like run(), on the second host."""
        out = tempfile.TemporaryFile("w+", errors="replace")
        child = subprocess.Popen(stdout=out, **self.command(text, prefix))
        try:
            status = child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise Failed(f"{text}: nothing after {SECONDS} s") from None
        out.seek(0)
        return status, out.read()

    def background(self, text, prefix, until):
        out = tempfile.NamedTemporaryFile("w+")
        child = subprocess.Popen(stdout=out, **self.command(text, prefix))
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
        self.output.seek(0)
        self.output.truncate()
        self.bash.stdin.write(
            f"status=0; trap 'status=$?' ERR; {{\n{text}\n}} "
            f">&{self.output.fileno()} 2>&1 </dev/null; trap - ERR; "
            "echo $status\n")
        ready, _, _ = select.select([self.bash.stdout], [], [], SECONDS)
        if not ready:
            self.bash.kill()
            raise Failed(f"{text}: nothing after {SECONDS} s")
        status = self.bash.stdout.readline().strip()
        if not status:
            raise Failed(f"{text}: the shell has ended")
        self.output.seek(0)
        return int(status), self.output.read()


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
    if needs and shell.run(f"command -v {needs}")[0]:
        return None
    text = shell.fill_in(text)
    prefix = prefix_of(words)
    if "background" in words:
        shell.background(text, prefix, settings(words).get("until"))
        return ""
    status, printed = (shell.elsewhere(text, prefix) if prefix
                       else shell.run(text))
    if bool(status) != ("fails" in words):
        raise Failed(f"{text}exit status {status}\n{printed}"
                     + shell.background_output())
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
    if sys.argv[1:2] == ["--print"]:
        for path in sys.argv[3:]:
            print("".join(text for _, words, text in blocks(path)
                          if words[:2] == ["sh", sys.argv[2]]), end="")
        return 0
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

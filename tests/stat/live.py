#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""live.py BUILD: tandem-stat reads processes, and impostors.

A Talker is a process with an endpoint (talk.c). An impostor is a statistics
socket of this program, which answers as it likes. tandem-stat(1) says what is
shown; each check names what it is about.
"""

import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

import segments

DEADLINE_S = 60
F_ADD_SEALS, SEALS = 1033, 0x1 | 0x2 | 0x4 | 0x10


class Skip(Exception):
    """This machine cannot do that."""


class Talker:
    def __init__(self, build, **env):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("FI_")}
        self.child = subprocess.Popen(
            [os.path.join(build, "tests", "stat", "talk")], text=True,
            bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**clean, "FI_PROVIDER_PATH": os.path.join(build, ".libs"),
                 "FI_TANDEM_IFACE": "lo", **env})
        self.pid = self.child.pid
        kind, self.name, *_ = self.child.stdout.readline().split("\t")
        assert kind == "endpoint", (kind, self.name)
        self.address = self.name.split("//")[1]

    def say(self, line):
        self.child.stdin.write(line + "\n")

    def hear(self):
        answer = self.child.stdout.readline().strip()
        assert answer == "ok", answer

    def do(self, line):
        self.say(line)
        self.hear()

    def end(self):
        self.child.kill()
        self.child.communicate()


class Scene:
    """The talkers of a check."""

    def __init__(self, build):
        self.build = build
        self.talkers = []

    def talker(self, **env):
        self.talkers.append(Talker(self.build, **env))
        return self.talkers[-1]

    def pair(self, **env):
        """Two talkers; the first has the other as address 0, and so back."""
        one, two = self.talker(**env), self.talker(**env)
        one.do(f"insert {two.name}")
        two.do(f"insert {one.name}")
        return one, two

    def command(self, *words):
        return [sys.executable, os.path.join(self.build, "tools",
                                             "tandem-stat"), *words]

    def run(self, *words, status=0, **more):
        done = subprocess.run(self.command(*words), text=True, check=False,
                              capture_output=True, timeout=DEADLINE_S, **more)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == status, (done.returncode, done.stderr)
        return done.stdout, done.stderr

    def read(self, *pids, status=0):
        words = ["--json", *(str(pid) for pid in pids)]
        return json.loads(self.run(*words, status=status)[0])

    def endpoint(self, talker):
        """(domain, endpoint) of a talker."""
        domain, = self.read(talker.pid)["domains"]
        one, = domain["endpoints"]
        assert one["address"] == talker.address
        return domain, one

    def until(self, true):
        """Look until what is seen is true."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            seen = true()
            if seen:
                return seen
        raise AssertionError("the deadline is over")

    def close(self):
        for talker in self.talkers:
            talker.end()


# ---- what is shown -----------------------------------------------------------

def exchange(scene, **env):
    """3 messages of 100 bytes to a talker that has received one; its view."""
    one, two = scene.pair(**env)
    two.do("receive")
    two.do("spin")
    one.do("send 0 100")
    two.say("wait")
    two.hear()
    two.do("spin")
    one.do("send 0 100")
    one.do("send 0 100")
    scene.until(lambda: scene.endpoint(two)[1]["unexpected_messages"] == 2)
    return one, two


def shows_shared_memory(scene):
    one, two = exchange(scene)
    domain, seen = scene.endpoint(two)
    assert domain["answered"] and domain["command"] == "talk"
    assert not seen["no_shared_memory"] and not seen["tcp_connections"]
    assert seen["completions"] == 0 and seen["posted_receives"] == 0
    assert seen["unexpected_limit_bytes"] == 256 << 20
    peer, = seen["peers"]
    assert peer["address"] == one.address and peer["index"] == 0
    assert (peer["path"], peer["state"], peer["lives"]) == ("shm", "in use", 1)
    assert peer["shm"]["received_messages"] == 1, peer
    assert peer["shm"]["received_bytes"] == 100
    assert peer["unexpected_bytes"] >= 200
    one.do("spin")
    _, seen = scene.endpoint(one)
    peer, = seen["peers"]
    assert peer["shm"]["sent_messages"] == 3
    assert peer["shm"]["sent_bytes"] == 300 and peer["credit_bytes"] > 0


def shows_tcp(scene):
    one, two = exchange(scene, FI_TANDEM_SHM="off")
    _, seen = scene.endpoint(two)
    assert seen["no_shared_memory"] == "disabled"
    assert seen["tcp_connections"] == 1
    peer, = seen["peers"]
    assert (peer["path"], peer["reason"]) == ("tcp", "disabled"), peer
    # Over TCP a message counts when it arrives.
    assert peer["tcp"]["received_messages"] == 3, peer
    assert peer["unexpected_bytes"] >= 200 and peer["given_bytes"] > 0
    one.do("spin")
    _, seen = scene.endpoint(one)
    peer, = seen["peers"]
    assert peer["tcp"]["sent_bytes"] == 300, peer
    assert peer["credit_bytes"] > 0


def shows_receives_and_waiting(scene):
    """A peer that is not there: the operation waits for a path."""
    one, two = scene.pair()
    two.end()
    one.do("receive")
    one.do("post 0 10")
    one.do("spin")
    _, seen = scene.endpoint(one)
    assert seen["posted_receives"] == 1
    peer, = seen["peers"]
    assert seen["waiting_for_path"] + peer["queued"] == 1, seen
    scene.until(lambda: scene.endpoint(one)[1]["peers"][0]["failed_attempts"])


def shows_more_peers_than_fit_at_first(scene):
    one = scene.talker(FI_TANDEM_SHM="off")
    for k in range(100):
        one.do(f"insert fi_sockaddr_in://127.0.0.1:{2000 + k}")
        one.do(f"post {k} 10")
    one.do("spin")
    domain, seen = scene.endpoint(one)
    assert [peer["address"] for peer in seen["peers"]] == \
        [f"127.0.0.1:{2000 + k}" for k in range(100)]
    assert domain["peers_left_off"] == 0


# ---- processes that do nothing -----------------------------------------------

def shows_the_last_state_of_one_that_computes(scene):
    one, two = exchange(scene)
    domain, before = scene.endpoint(two)
    # The next line ends the pass; after it the talker makes no call.
    two.do("receive")
    domain, seen = scene.endpoint(two)
    assert not domain["answered"] and seen["peers"] == before["peers"]
    two.child.send_signal(signal.SIGSTOP)
    domain, seen = scene.endpoint(two)
    assert not domain["answered"] and seen["peers"] == before["peers"]
    text, _ = scene.run(str(two.pid))
    assert "it makes no progress now" in text and one.address in text


def publishes_without_being_asked(scene):
    """What a process did before it computed is seen by the first look."""
    one, two = scene.pair()
    two.do("receive")
    one.do("spin")
    two.do("spin")
    one.do("send 0 100")
    two.say("wait")
    two.hear()

    tool = segments.tool()

    def seen_without_asking():
        two.do("spin")
        folder = f"/proc/{two.pid}/fd"
        segment, = (name for name in os.listdir(folder)
                    if os.readlink(f"{folder}/{name}").startswith(tool.MEMFD))
        fd = os.open(f"{folder}/{segment}", os.O_RDONLY)
        try:
            seen, = tool.parse(tool.copy_segment(fd))["endpoints"]
        finally:
            os.close(fd)
        return seen["peers"] and \
            seen["peers"][0]["received_messages"] == 1
    scene.until(seen_without_asking)


def wakes_one_that_sleeps(scene):
    one = scene.talker()
    one.do("sleep")
    domain, _ = scene.endpoint(one)
    # It may not have been asleep yet, but it answers.
    scene.until(lambda: scene.endpoint(one)[0]["answered"])
    assert domain["pid"] == one.pid


def does_not_show_what_is_off(scene):
    one = scene.talker(FI_TANDEM_STAT="no")
    one.do("spin")
    assert scene.read(one.pid)["domains"] == []
    _, said = scene.run(str(one.pid))
    assert "no endpoint" in said


def leaves_nothing_of_one_that_was_killed(scene):
    one = scene.talker()
    one.do("spin")
    name = scene.endpoint(one)[0]["incarnation"]
    one.end()
    with open("/proc/net/unix", encoding="ascii") as file:
        assert name not in file.read()
    seen = scene.read(one.pid)
    assert seen["domains"] == [] and seen["unreadable"] == []


def survives_many_looks_at_one_that_computes(scene):
    """The queue of the socket fills up: the process id is not told then."""
    one = scene.talker()
    name = scene.endpoint(one)[0]["incarnation"]
    callers = []
    while True:
        callers.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        callers[-1].setblocking(False)
        try:
            callers[-1].connect(f"\0tandem-stat/{name}")
        except BlockingIOError:
            break
    assert scene.endpoint(one)[0]["answered"] is False
    for caller in callers:
        caller.close()
    one.do("spin")
    scene.until(lambda: scene.endpoint(one)[0]["answered"])


def another_user_gets_nothing(scene):
    if os.geteuid():
        raise Skip("only root can be another user")
    one = scene.talker()
    one.do("spin")
    name = scene.endpoint(one)[0]["incarnation"]
    out, _ = scene.run("--json", user=65534, group=65534, extra_groups=[])
    seen = json.loads(out)
    assert seen["other_users"] >= 1
    assert name not in out and one.address not in out
    # Nor does the process tell a stranger who asks in spite of that.
    code = f"""
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout({DEADLINE_S})
s.connect("\\0tandem-stat/{name}")
print(s.recv_fds(s, 64, 1) if hasattr(s, "recv_fds") else
      socket.recv_fds(s, 64, 1))
"""
    done = subprocess.run([sys.executable, "-c", code], user=65534,
                          group=65534, extra_groups=[], text=True,
                          capture_output=True, check=True)
    assert done.stdout.startswith("(b'', []"), done.stdout


# ---- forms -------------------------------------------------------------------

def prometheus_can_read_it(scene):
    """"Text format" of Prometheus: names, labels, one group a metric."""
    exchange(scene)
    text, _ = scene.run("--prometheus")
    sample = re.compile(r'([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\.)*"'
                        r'(?:,[a-z]+="(?:[^"\\\n]|\\.)*")*\})? '
                        r'-?[0-9.]+(?:e[+-]?[0-9]+)?')
    types, series, current = {}, set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert kind in ("counter", "gauge") and current not in types
            types[current] = kind
            assert (kind == "counter") == current.endswith("_total")
            continue
        found = sample.fullmatch(line)
        assert found, line
        assert found.group(1) == current, line
        assert found.group(0).rsplit(" ", 1)[0] not in series, line
        series.add(found.group(0).rsplit(" ", 1)[0])
    assert "tandem_peer_messages_total" in types
    assert any('path="shm",direction="received"' in one for one in series)


def rates_are_told(scene):
    one, two = scene.pair()
    two.do("spin")
    tool = subprocess.Popen(
        scene.command("--json", "-w", "0.05", str(two.pid)), text=True,
        stdout=subprocess.PIPE)
    end = time.monotonic() + DEADLINE_S
    try:
        for line in tool.stdout:
            assert time.monotonic() < end
            two.do("receive")
            two.do("spin")
            one.do("send 0 1000")
            two.say("wait")
            two.hear()
            two.do("spin")
            peers = [peer for domain in json.loads(line)["domains"]
                     for peer in domain["endpoints"][0]["peers"]]
            if any(peer["rates"]["received_bytes"] > 0 for peer in peers):
                break
        else:
            raise AssertionError("it ended")
    finally:
        tool.kill()
        tool.communicate()
    lines = scene.run("-w", "0.02", "-n", "3", "--json",
                      str(two.pid))[0].splitlines()
    assert len(lines) == 3
    text, _ = scene.run("-w", "0.02", "-n", "1", str(two.pid))
    assert "RECEIVED/s" in text


def bad_command_lines_are_refused(scene):
    for words in (("-w", "0"), ("-w", "x"), ("-n", "3"), ("pid",),
                  ("--json", "--prometheus"), ("-w", "1", "--prometheus"),
                  ("-w", "1", "-n", "0")):
        _, said = scene.run(*words, status=2)
        assert "usage" in said, words


# ---- impostors ---------------------------------------------------------------

def memfd(data, seals=SEALS):
    fd = os.memfd_create("tandem-stat", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def answer(magic=0x31544154534D4454, form=1):
    return struct.pack("=QII", magic, form, 0)


class Impostor:
    """A statistics socket that gives @answer and the descriptors of @fds."""

    def __init__(self, name, reply, fds=()):
        self.name, self.reply, self.fds = name, reply, fds
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(f"\0tandem-stat/{name}")
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            if self.reply is not None:
                socket.send_fds(caller, [self.reply], list(self.fds))
            caller.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for fd in self.fds:
            os.close(fd)


def impostors():
    """(what it does, name, its answer, descriptors, words about it)"""
    hexed = [f"{k:032x}" for k in range(1, 13)]
    whole = segments.segment(hexed[0])
    read, write = os.pipe()
    os.close(write)
    odd = bytearray(segments.segment(hexed[4]))
    segments.put(odd, 128, "Q", 5)
    late = bytearray(segments.segment(hexed[5]))
    segments.put(late, 8, "I", 7)
    return (
        ("closes", hexed[1], None, (), "no segment in sight"),
        ("says nothing of use", hexed[2], b"x", (), "no segment in sight"),
        ("a pipe", hexed[3], answer(), (read,), "no segment"),
        ("writes for ever", hexed[4], answer(), (memfd(bytes(odd)),),
         "does not finish"),
        ("a later format", hexed[5], answer(form=7), (memfd(bytes(late)),),
         "format 7"),
        ("a later format inside", hexed[6], answer(), (memfd(bytes(late)),),
         "format 7"),
        ("another's segment", hexed[7], answer(), (memfd(whole),),
         "not its own"),
        ("no seals", hexed[8], answer(),
         (memfd(segments.segment(hexed[8]), 0),), "no segment"),
        ("cut", hexed[9], answer(),
         (memfd(segments.segment(hexed[9])[:700]),), "cut"),
        ("empty", hexed[10], answer(), (memfd(b""),), "0 bytes"),
        ("garbage", hexed[11], answer(), (memfd(os.urandom(9000)),),
         "no statistics"),
        ("no name", "../../etc", None, (), "no segment in sight"),
    )


def impostors_are_named(scene):
    one = scene.talker()
    one.do("spin")
    rows = impostors()
    there = [Impostor(name, reply, fds) for _, name, reply, fds, _ in rows]
    try:
        seen = scene.read(status=1)
        _, said = scene.run(status=1)
    finally:
        for impostor in there:
            impostor.close()
    why = {row["socket"]: row["why"] for row in seen["unreadable"]}
    for what, name, _, _, words in rows:
        assert words in why[name], (what, why[name])
    assert f"process {os.getpid()}: " in said
    assert one.pid in [domain["pid"] for domain in seen["domains"]]


def an_impostor_cannot_write_to_the_terminal(scene):
    """Texts of a segment that are not printable are not printed."""
    data = bytearray(segments.segment("cd" * 16))
    data[56:62] = b"1\x1b[2J\n"
    impostor = Impostor("cd" * 16, answer(), (memfd(bytes(data)),))
    try:
        text, _ = scene.run(str(os.getpid()))
    finally:
        impostor.close()
    assert "\x1b" not in text and "tandem 1?[2J?" in text, text


CHECKS = (
    shows_shared_memory, shows_tcp, shows_receives_and_waiting,
    shows_more_peers_than_fit_at_first,
    shows_the_last_state_of_one_that_computes, publishes_without_being_asked,
    wakes_one_that_sleeps, does_not_show_what_is_off,
    leaves_nothing_of_one_that_was_killed,
    survives_many_looks_at_one_that_computes, another_user_gets_nothing,
    prometheus_can_read_it, rates_are_told, bad_command_lines_are_refused,
    impostors_are_named, an_impostor_cannot_write_to_the_terminal,
)


def main():
    build, *words = sys.argv[1:]
    bad = 0
    for check in CHECKS:
        if words and not any(word in check.__name__ for word in words):
            continue
        scene = Scene(os.path.abspath(build))
        try:
            check(scene)
            print(f"ok {check.__name__}", flush=True)
        except Skip as why:
            print(f"skipped {check.__name__}: {why}", flush=True)
        except (AssertionError, ValueError, KeyError, OSError,
                subprocess.SubprocessError) as error:
            bad = 1
            print(f"FAILED {check.__name__}: {error!r}", flush=True)
            traceback.print_exc(limit=-2)
        finally:
            scene.close()
    return bad


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""tandem-stat: what the tandem endpoints of this user's processes are doing.

Each domain of the provider has a segment of statistics and an abstract unix
socket; doc/PROTOCOL-stat.md describes both. This program lists the sockets,
asks at each, and copies the segments. A process that does not answer, because it
makes no progress, shows what it published last. tandem-stat(1) describes the
command.

Segments are written by other processes: they are copied with pread(2), and
parse() trusts nothing in them.
"""

import argparse
import errno
import fcntl
import ipaddress
import json
import os
import select
import socket
import stat
import struct
import sys
import time

VERSION = "@VERSION@"

PREFIX = "@tandem-stat/"
MEMFD = "/memfd:tandem-stat"
MAGIC = 0x31544154534D4454
FORMAT = 1
RECORD = 256
MOST_BYTES = 4 << 20
ANSWER_SECONDS = 0.25
F_GET_SEALS = 1034
SEALS = 0x2 | 0x4  # F_SEAL_SHRINK, F_SEAL_GROW: no other file has them

ANSWER = struct.Struct("=QII")
HEAD = struct.Struct("=QIIQQ16sI4x32s40xQQQQIIII80x")
ENDPOINT = struct.Struct("=28sIIIII12Q4Q80x")
PEER = struct.Struct("=28sIQIIIIIIQ12Q6QIiI28x")
assert HEAD.size == ENDPOINT.size == PEER.size == RECORD

# Numbers of fi_ext_tandem.h; texts of the reasons as in fi_tandem(7), REPORT.
PATHS = ("none", "shm", "tcp", "foreign")
STATES = ("idle", "in use", "closed", "lost")
LARGE = ("", "cma", "bounce", "copy")
REASONS = ("", "other host or network namespace",
           "no shared memory on the other side", "other user id",
           "incompatible version", "refused by the other side",
           "memory, file descriptors or system calls refused",
           "segment not sealed", "disabled",
           "attach name in use by another process",
           "messages by another provider")

COUNTS = ("sent_messages", "sent_bytes", "received_messages", "received_bytes")


class Unreadable(Exception):
    """Why the statistics of a process cannot be read."""


# ---- the segment -------------------------------------------------------------

def word(names, number):
    """The name of a number, which may be one of a later version."""
    return names[number] if number < len(names) else f"unknown ({number})"


def printable(text):
    return "".join(c if c.isprintable() else "?" for c in text)


def address(raw, length):
    """HOST:PORT of a socket address in a record, or "?"."""
    family, port = struct.unpack_from("=H", raw)[0], raw[2] << 8 | raw[3]
    if length == 16 and family == socket.AF_INET:
        return f"{ipaddress.IPv4Address(raw[4:8])}:{port}"
    if length == 28 and family == socket.AF_INET6:
        scope = struct.unpack_from("=I", raw, 24)[0]
        host = str(ipaddress.IPv6Address(raw[8:24]))
        return f"[{host}%{scope}]:{port}" if scope else f"[{host}]:{port}"
    return "?"


def error_text(number):
    return os.strerror(number) if 0 < number < 1 << 16 else ""


def counts(values):
    return dict(zip(COUNTS, values))


def parse_peer(data, at):
    raw, length, index, path, state, reason, err, in_by, out_by, lives, *rest \
        = PEER.unpack_from(data, at)
    shm, tcp, foreign = (counts(rest[k:k + 4]) for k in (0, 4, 8))
    queued, pending, credit, given, held, backlog = rest[12:18]
    tries, tries_error, full = rest[18:]
    total = {name: shm[name] + tcp[name] + foreign[name] for name in COUNTS}
    return {"address": address(raw, length), "index": index,
            "path": word(PATHS, path), "state": word(STATES, state),
            "reason": word(REASONS, reason), "error": error_text(err),
            "large_in": word(LARGE, in_by), "large_out": word(LARGE, out_by),
            "lives": lives, **total, "shm": shm, "tcp": tcp,
            "foreign": foreign, "queued": queued, "pending": pending,
            "waiting_for_path": backlog, "credit_bytes": credit,
            "given_bytes": given, "unexpected_bytes": held,
            "full": bool(full), "failed_attempts": tries,
            "attempt_error": error_text(tries_error)}


def parse_endpoint(data, at):
    raw, length, scalable, no_shm, peers, left, posted, waiting, held, \
        account, account_most, used, size, backlog, entries, room, \
        connections, retries, *_ = ENDPOINT.unpack_from(data, at)
    return peers, {
        "address": address(raw, length), "scalable": bool(scalable),
        "no_shared_memory": word(REASONS, no_shm),
        "posted_receives": posted, "unexpected_messages": waiting,
        "unexpected_bytes": held, "unexpected_account_bytes": account,
        "unexpected_limit_bytes": account_most,
        "tcp_operations": used, "tcp_operations_limit": size,
        "waiting_for_path": backlog, "completions": entries,
        "completions_limit": room, "tcp_connections": connections,
        "tcp_failed_attempts": retries, "peers_left_off": left, "peers": []}


def check_start(data):
    if len(data) < RECORD:
        raise Unreadable(f"its segment has {len(data)} bytes only")
    magic, version, record = struct.unpack_from("=QII", data)
    if magic != MAGIC:
        raise Unreadable("its segment has no statistics")
    if version != FORMAT:
        raise Unreadable(f"its statistics have format {version}, this "
                         f"tandem-stat ({VERSION}) reads format {FORMAT}")
    if record != RECORD:
        raise Unreadable(f"its records have {record} bytes")


def parse(data):
    """The statistics in the copy of a segment, which anybody may have made."""
    check_start(data)
    _, _, _, size, started, incarnation, pid, release, seq, published, passes, \
        injects, endpoints, peers, endpoints_left, peers_left \
        = HEAD.unpack_from(data)
    if size > len(data) or (1 + endpoints + peers) * RECORD > size:
        raise Unreadable(f"its segment is cut: {len(data)} bytes for "
                         f"{endpoints} endpoints and {peers} peers")
    out = {"incarnation": incarnation.hex(), "own_pid": pid,
           "release": printable(release.split(b"\0")[0].decode(
               "ascii", "replace")),
           "sequence": seq, "started_ns": started, "published_ns": published,
           "passes": passes, "inject_bytes": injects,
           "endpoints_left_off": endpoints_left,
           "peers_left_off": peers_left, "endpoints": []}
    peer = (1 + endpoints) * RECORD
    end = peer + peers * RECORD
    for k in range(endpoints):
        number, endpoint = parse_endpoint(data, (1 + k) * RECORD)
        if number > (end - peer) // RECORD:
            raise Unreadable("its endpoints have more peers than records")
        for _ in range(number):
            endpoint["peers"].append(parse_peer(data, peer))
            peer += RECORD
        out["endpoints"].append(endpoint)
    return out


def copy_segment(fd):
    """The bytes of the segment @fd, written completely."""
    info = os.fstat(fd)
    try:
        seals = fcntl.fcntl(fd, F_GET_SEALS)
    except OSError:
        seals = 0
    if not stat.S_ISREG(info.st_mode) or seals & SEALS != SEALS:
        raise Unreadable("what it hands over is no segment")
    for attempt in range(50):
        data = os.pread(fd, min(info.st_size, MOST_BYTES), 0)
        check_start(data)
        seq = HEAD.unpack_from(data)[8]
        after = os.pread(fd, RECORD, 0)
        if not seq & 1 and len(after) == RECORD and \
                HEAD.unpack_from(after)[8] == seq:
            return data
        time.sleep(0.001 * attempt)
    raise Unreadable("it does not finish writing its statistics")


# ---- processes ---------------------------------------------------------------

def socket_names():
    """The names of all statistics sockets of this network namespace."""
    names = set()
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        for line in file:
            name = line.rstrip("\n").split(" ")[-1]
            if name.startswith(PREFIX):
                names.add(name[len(PREFIX):])
    return sorted(names)


def read_proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


class Source:
    """A statistics socket, and the process that listens there."""

    def __init__(self, name):
        self.name = name
        self.pid = 0  # not in this pid namespace, or not known
        self.asked = None  # the socket, until the answer
        self.fd = -1
        self.answered = self.gone = self.other_user = False
        self.why = ""

    def ask(self):
        self.asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.asked.setblocking(False)
        try:
            self.asked.connect(f"\0{PREFIX[1:]}{self.name}")
        except BlockingIOError:
            self.drop()  # as many others have asked, and it has not looked
            return
        except OSError:
            self.gone = True
            self.drop()
            return
        self.pid, uid, _ = struct.unpack("3i", self.asked.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid & 0xffffffff != os.geteuid():
            self.other_user = True
            self.drop()

    def drop(self):
        if self.asked:
            self.asked.close()
        self.asked = None

    def hear(self):
        """Take the answer."""
        try:
            data, fds, _, _ = socket.recv_fds(self.asked, 64, 1)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        self.drop()
        self.fd = fds[0] if fds else -1
        if len(data) >= ANSWER.size:
            magic, version, _ = ANSWER.unpack_from(data)
            self.answered = magic == MAGIC and self.fd >= 0
            if magic == MAGIC and version != FORMAT:
                self.why = f"it answers in format {version}, this " \
                    f"tandem-stat ({VERSION}) reads format {FORMAT}"

    def look_for(self):
        """The statistics in a descriptor of the process that is silent."""
        denied = False
        pids = [self.pid] if self.pid else \
            [int(name) for name in os.listdir("/proc") if name.isdigit()]
        for pid in pids:
            folder = f"/proc/{pid}/fd"
            try:
                numbers = os.listdir(folder)
            except PermissionError:
                denied = True
                continue
            except OSError:
                continue
            for number in numbers:
                found = self.look_at(f"{folder}/{number}")
                if found:
                    self.pid = pid
                    return found
        if denied and self.pid:
            raise Unreadable("it does not answer, and the kernel does not "
                             "let others read its descriptors")
        raise Unreadable("it does not answer, and has no segment in sight")

    def look_at(self, path):
        try:
            if not os.readlink(path).startswith(MEMFD):
                return None
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            found = parse(copy_segment(fd))
            return found if found["incarnation"] == self.name else None
        except (Unreadable, OSError):
            return None
        finally:
            os.close(fd)

    def read(self):
        """The statistics. Errors: Unreadable."""
        if self.why:
            raise Unreadable(self.why)
        if not self.answered:
            return self.look_for()
        try:
            found = parse(copy_segment(self.fd))
        except OSError as error:
            raise Unreadable(f"its segment cannot be read: "
                             f"{error.strerror}") from error
        if found["incarnation"] != self.name:
            raise Unreadable("it hands over a segment that is not its own")
        return found

    def close(self):
        self.drop()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def wait_for_answers(sources):
    end = time.monotonic() + ANSWER_SECONDS
    poll = select.poll()
    waiting = {source.asked.fileno(): source for source in sources
               if source.asked}
    for fd in waiting:
        poll.register(fd, select.POLLIN)
    while waiting:
        left = end - time.monotonic()
        events = poll.poll(max(left, 0) * 1000)
        if not events and left <= 0:
            break
        for fd, _ in events:
            waiting[fd].hear()
            if not waiting[fd].asked:
                poll.unregister(fd)
                del waiting[fd]


def describe(source, found):
    """What is shown of a domain."""
    command = printable(read_proc(source.pid, "comm").decode(
        errors="replace").rstrip("\n")) if source.pid else ""
    age = max(time.monotonic_ns() - found["published_ns"], 0) / 1e9
    return {"pid": source.pid or found["own_pid"],
            "other_pid_namespace": not source.pid,
            "command": command or "?", "answered": source.answered,
            "age_seconds": round(age, 3), **found}


def sample(pids):
    """What can be read now."""
    out = {"version": VERSION, "time": round(time.time(), 3), "domains": [],
           "unreadable": [], "other_users": 0}
    sources = [Source(name) for name in socket_names()]
    try:
        for source in sources:
            source.ask()
        wait_for_answers(sources)
        for source in sources:
            if source.gone or source.other_user:
                out["other_users"] += source.other_user
                continue
            try:
                domain = describe(source, source.read())
            except Unreadable as error:
                # It may have ended meanwhile.
                if source.name in socket_names() and \
                        (not pids or source.pid in pids):
                    out["unreadable"].append(
                        {"pid": source.pid, "socket": source.name,
                         "why": str(error)})
                continue
            if not pids or domain["pid"] in pids:
                out["domains"].append(domain)
    finally:
        for source in sources:
            source.close()
    out["domains"].sort(key=lambda d: (d["pid"], d["started_ns"]))
    return out


# ---- the command -------------------------------------------------------------

def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="tandem-stat", description="Show what the tandem endpoints of "
        "this user's processes are doing.", epilog="Exit status: 0; 1 a "
        "process could not be read; 2 usage.")
    parser.add_argument("pid", metavar="PID", nargs="*", type=int,
                        help="show these processes only")
    parser.add_argument("--version", action="version",
                        version=f"tandem-stat {VERSION}")
    return parser.parse_args()


def show(taken):
    print(json.dumps(taken, indent=2), flush=True)
    return 1 if taken["unreadable"] else 0


def main():
    options = parse_arguments()
    try:
        return show(sample(options.pid))
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        if error.errno != errno.ENOENT or error.filename != "/proc/net/unix":
            raise
        print("tandem-stat: /proc is not mounted", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

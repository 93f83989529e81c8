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


# ---- rates -------------------------------------------------------------------

def peers_of(taken):
    """((domain, endpoint, peer), key) of each peer of a sample."""
    for domain in taken["domains"]:
        for endpoint in domain["endpoints"]:
            for peer in endpoint["peers"]:
                yield domain, endpoint, peer, (
                    domain["incarnation"], endpoint["address"],
                    peer["address"], peer["index"])


def add_rates(taken, before):
    """Messages and bytes a second since the sample @before."""
    old = {key: (domain, peer) for domain, _, peer, key in peers_of(before)}
    for domain, _, peer, key in peers_of(taken):
        was = old.get(key)
        seconds = (domain["published_ns"] - was[0]["published_ns"]) / 1e9 \
            if was else 0
        peer["rates"] = {
            name: round((peer[name] - was[1][name]) / seconds, 1)
            if seconds > 0 and peer[name] >= was[1][name] else 0.0
            for name in COUNTS}


# ---- text --------------------------------------------------------------------

def size_text(number):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"


def note(peer):
    """Why the path is what it is, and what is wrong with it."""
    words = [peer["reason"]] if peer["reason"] else []
    if peer["state"] in ("closed", "lost"):
        words.append(peer["state"] + (f": {peer['error']}" if peer["error"]
                                      else ""))
    if peer["failed_attempts"]:
        words.append(f"{peer['failed_attempts']} failed attempts"
                     + (f": {peer['attempt_error']}" if peer["attempt_error"]
                        else ""))
    if peer["full"]:
        words.append("takes no more before it posts receives")
    if peer["large_in"]:
        words.append(f"large in by {peer['large_in']}")
    if peer["large_out"]:
        words.append(f"large out by {peer['large_out']}")
    return "; ".join(words)


def peer_rows(endpoint, rates):
    values = "rates" if rates else None
    unit = "/s" if rates else ""
    yield ("PEER", "PATH", f"SENT{unit}", f"BYTES{unit}", f"RECEIVED{unit}",
           f"BYTES{unit}", "QUEUED", "PENDING", "CREDIT", "UNEXPECTED",
           "LIVES", "NOTE")
    for peer in endpoint["peers"]:
        shown = peer[values] if values else peer
        yield (peer["address"], peer["path"],
               f"{shown['sent_messages']:.0f}",
               size_text(shown["sent_bytes"]),
               f"{shown['received_messages']:.0f}",
               size_text(shown["received_bytes"]),
               str(peer["queued"] + peer["waiting_for_path"]),
               str(peer["pending"]), size_text(peer["credit_bytes"]),
               size_text(peer["unexpected_bytes"]), str(peer["lives"]),
               note(peer))


def print_table(rows):
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("    " + "  ".join(
            cell.ljust(width) if k in (0, 1, len(row) - 1) else
            cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths))).rstrip())


def print_endpoint(endpoint, rates):
    kind = "scalable endpoint" if endpoint["scalable"] else "endpoint"
    no_shm = endpoint["no_shared_memory"]
    print(f"  {kind} {endpoint['address']}"
          + (f", no shared memory: {no_shm}" if no_shm else ""))
    print(f"    receives posted {endpoint['posted_receives']}, unexpected "
          f"messages {endpoint['unexpected_messages']}, memory for them "
          f"{size_text(endpoint['unexpected_account_bytes'])} of "
          f"{size_text(endpoint['unexpected_limit_bytes'])}, completions "
          f"{endpoint['completions']} of {endpoint['completions_limit']}")
    print(f"    sends by tcp {endpoint['tcp_operations']} of "
          f"{endpoint['tcp_operations_limit']}, waiting for a path "
          f"{endpoint['waiting_for_path']}, tcp connections "
          f"{endpoint['tcp_connections']}, failed attempts "
          f"{endpoint['tcp_failed_attempts']}")
    if endpoint["peers"]:
        print_table(peer_rows(endpoint, rates))
    if endpoint["peers_left_off"]:
        print(f"    and {endpoint['peers_left_off']} peers more")


def print_text(taken, rates):
    if rates:
        print(time.strftime("%H:%M:%S", time.localtime(taken["time"])))
    for domain in taken["domains"]:
        late = "" if domain["answered"] else ", it makes no progress now"
        where = " (of its own pid namespace)" if domain["other_pid_namespace"] \
            else ""
        print(f"process {domain['pid']}{where} {domain['command']}, tandem "
              f"{domain['release']}: {domain['age_seconds']:.1f} s ago{late}")
        if domain["inject_bytes"]:
            print(f"  injected messages that wait: "
                  f"{size_text(domain['inject_bytes'])}")
        for endpoint in domain["endpoints"]:
            print_endpoint(endpoint, rates)
        if domain["endpoints_left_off"]:
            print(f"  and {domain['endpoints_left_off']} endpoints more")
    print_troubles(taken)


def print_troubles(taken):
    """On standard error: what could not be read, and that nothing is there."""
    for trouble in taken["unreadable"]:
        who = f"process {trouble['pid']}" if trouble["pid"] else \
            f"the process of socket {trouble['socket']}"
        print(f"tandem-stat: {who}: {trouble['why']}", file=sys.stderr)
    if not taken["domains"] and not taken["unreadable"]:
        others = taken["other_users"]
        print("tandem-stat: no endpoint of this user here"
              + (f"; {others} domains of other users" if others else ""),
              file=sys.stderr)


# ---- prometheus --------------------------------------------------------------

ENDPOINT_METRICS = (
    ("posted_receives", "gauge", "Receives that wait for a message"),
    ("unexpected_messages", "gauge", "Messages that wait for a receive"),
    ("unexpected_bytes", "gauge", "Bytes of these messages"),
    ("unexpected_account_bytes", "gauge",
     "Bytes of unexpected messages and of credit that peers have"),
    ("unexpected_limit_bytes", "gauge", "Most that the account may hold"),
    ("tcp_operations", "gauge", "Operations under way by TCP"),
    ("waiting_for_path", "gauge", "Operations that wait for a path"),
    ("completions", "gauge", "Entries to be read in the fullest queue"),
    ("tcp_connections", "gauge", "TCP connections"),
    ("tcp_failed_attempts", "counter", "Attempts to connect that failed"),
)
PEER_METRICS = (
    ("lives", "counter", "Connections or sessions that the peer has had"),
    ("queued", "gauge", "Operations of which nothing was sent"),
    ("pending", "gauge", "Operations that wait for the peer"),
    ("credit_bytes", "gauge", "Bytes that the peer takes at once"),
    ("given_bytes", "gauge", "Bytes that the peer may send at once"),
)


def escaped(text):
    return text.replace("\\", r"\\").replace('"', r'\"').replace("\n", r"\n")


def line(name, labels, value):
    inside = ",".join(f'{key}="{escaped(str(text))}"'
                      for key, text in labels.items())
    return f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def metrics(taken):
    """(name, type, help, [(labels, value), ...]) of each metric."""
    domains, endpoints, peers = [], [], []
    for domain in taken["domains"]:
        who = {"pid": domain["pid"], "command": domain["command"],
               "domain": domain["incarnation"][:8]}
        domains.append((who, domain))
        for endpoint in domain["endpoints"]:
            where = {**who, "endpoint": endpoint["address"]}
            endpoints.append((where, endpoint))
            peers += [({**where, "peer": peer["address"],
                        "index": peer["index"]}, peer)
                      for peer in endpoint["peers"]]
    yield ("tandem_age_seconds", "gauge", "Age of what is shown",
           [(who, domain["age_seconds"]) for who, domain in domains])
    yield ("tandem_inject_bytes", "gauge", "Injected messages that wait",
           [(who, domain["inject_bytes"]) for who, domain in domains])
    for name, kind, text in ENDPOINT_METRICS:
        total = "_total" if kind == "counter" else ""
        yield (f"tandem_endpoint_{name}{total}", kind, text,
               [(where, endpoint[name]) for where, endpoint in endpoints])
    yield ("tandem_peer_in_use", "gauge", "1: a path is in use",
           [({**where, "path": peer["path"], "reason": peer["reason"]},
             int(peer["state"] == "in use")) for where, peer in peers])
    for what in ("messages", "bytes"):
        yield (f"tandem_peer_{what}_total", "counter",
               f"{what.capitalize()} of completed operations",
               [({**where, "path": path, "direction": way},
                 peer[path][f"{way}_{what}"]) for where, peer in peers
                for path in PATHS[1:] for way in ("sent", "received")])
    for name, kind, text in PEER_METRICS:
        total = "_total" if kind == "counter" else ""
        yield (f"tandem_peer_{name}{total}", kind, text,
               [(where, peer[name]) for where, peer in peers])
    yield ("tandem_unreadable", "gauge", "Domains that could not be read",
           [({}, len(taken["unreadable"]))])


def print_prometheus(taken):
    for name, kind, text, values in metrics(taken):
        if not values:
            continue
        print(f"# HELP {name} {text}\n# TYPE {name} {kind}")
        for labels, value in values:
            print(line(name, labels, value))


# ---- the command -------------------------------------------------------------

def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="tandem-stat", description="Show what the tandem endpoints of "
        "this user's processes are doing.", epilog="Exit status: 0; 1 a "
        "process could not be read; 2 usage.")
    parser.add_argument("pid", metavar="PID", nargs="*", type=int,
                        help="show these processes only")
    parser.add_argument("-w", "--watch", metavar="SECONDS", type=float,
                        help="show rates, again and again")
    parser.add_argument("-n", "--count", metavar="N", type=int,
                        help="with -w: end after N times")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true",
                      help="print one JSON object, with -w one a line")
    form.add_argument("--prometheus", action="store_true",
                      help="print the text format of Prometheus")
    parser.add_argument("--version", action="version",
                        version=f"tandem-stat {VERSION}")
    options = parser.parse_args()
    if options.watch is not None and not 0.01 <= options.watch <= 86400:
        parser.error("-w takes 0.01 to 86400 seconds")
    if options.watch and options.prometheus:
        parser.error("--prometheus has no rates: ask again instead of -w")
    if options.count is not None and (not options.watch or options.count < 1):
        parser.error("-n goes with -w, and is 1 or more")
    return options


def show(taken, options):
    if options.json:
        print(json.dumps(taken, indent=None if options.watch else 2))
    elif options.prometheus:
        print_prometheus(taken)
    else:
        print_text(taken, bool(options.watch))
    sys.stdout.flush()
    return 1 if taken["unreadable"] else 0


def watch(options):
    before = sample(options.pid)
    status = done = 0
    next_time = time.monotonic()
    while options.count is None or done < options.count:
        next_time += options.watch
        time.sleep(max(next_time - time.monotonic(), 0))
        taken = sample(options.pid)
        add_rates(taken, before)
        status = show(taken, options)
        before = taken
        done += 1
    return status


def main():
    options = parse_arguments()
    try:
        return watch(options) if options.watch else \
            show(sample(options.pid), options)
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

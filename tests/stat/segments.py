#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""Segments that were never written by a process of tandem, for tandem-stat.

doc/PROTOCOL-stat.md has the layout, which is written down here once more: a change
of it on one side only fails.
"""

import importlib.util
import os
import random
import socket
import struct
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

MAGIC = b"TDMSTAT1"


def tool():
    """tools/stat.py as a module."""
    path = os.path.join(TOP, "tools", "stat.py")
    spec = importlib.util.spec_from_file_location("tandem_stat", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put(record, offset, form, *values):
    struct.pack_into("=" + form, record, offset, *values)


def sockaddr(host, port):
    if ":" in host:
        return struct.pack("=HHI", socket.AF_INET6, socket.htons(port), 0) \
            + socket.inet_pton(socket.AF_INET6, host) + bytes(4)
    return struct.pack("=HH", socket.AF_INET, socket.htons(port)) \
        + socket.inet_aton(host) + bytes(8)


def head(endpoints, peers, incarnation, size=16 << 10):
    out = bytearray(256)
    out[0:8] = MAGIC
    put(out, 8, "II", 1, 256)
    put(out, 16, "QQ", size, 1000)
    out[32:48] = bytes.fromhex(incarnation)
    put(out, 48, "I", 4711)
    out[56:60] = b"9.8\0"
    put(out, 128, "QQQQ", 4, 2000, 77, 88)
    put(out, 160, "IIII", endpoints, peers, 5, 6)
    return out


def endpoint(host, port, peers):
    out = bytearray(256)
    raw = sockaddr(host, port)
    out[0:len(raw)] = raw
    put(out, 28, "IIIII", len(raw), 1, 8, peers, 3)
    put(out, 48, "12Q", *range(101, 113))
    put(out, 144, "4Q", 0, 1, 2, 3)
    return out


def peer(host, port, path=1):
    out = bytearray(256)
    raw = sockaddr(host, port)
    out[0:len(raw)] = raw
    put(out, 28, "I", len(raw))
    put(out, 32, "Q", 12)
    put(out, 40, "IIIIII", path, 3, 1, 104, 1, 2)
    put(out, 64, "Q", 9)
    put(out, 72, "12Q", *range(1, 13))
    put(out, 168, "6Q", *range(21, 27))
    put(out, 216, "IiI", 31, 111, 1)
    return out


def segment(incarnation="ab" * 16):
    """One endpoint with two peers, and one with none."""
    records = head(2, 2, incarnation) + endpoint("192.0.2.1", 4000, 2) \
        + endpoint("fe80::1", 4001, 0) + peer("192.0.2.2", 5000) \
        + peer("2001:db8::2", 5001, path=2)
    return bytes(records) + bytes((16 << 10) - len(records))


# ---- what the parser makes of them -------------------------------------------

def check_values(stat):
    found = stat.parse(segment())
    assert found["incarnation"] == "ab" * 16 and found["own_pid"] == 4711
    assert found["release"] == "9.8" and found["sequence"] == 4
    assert (found["started_ns"], found["published_ns"]) == (1000, 2000)
    assert (found["passes"], found["inject_bytes"]) == (77, 88)
    assert found["endpoints_left_off"] == 5 and found["peers_left_off"] == 6
    first, second = found["endpoints"]
    assert first["address"] == "192.0.2.1:4000" and first["scalable"]
    assert first["no_shared_memory"] == "disabled"
    assert first["peers_left_off"] == 3 and second["peers"] == []
    assert [first[name] for name in (
        "posted_receives", "unexpected_messages", "unexpected_bytes",
        "unexpected_account_bytes", "unexpected_limit_bytes",
        "tcp_operations", "tcp_operations_limit", "waiting_for_path",
        "completions", "completions_limit", "tcp_connections",
        "tcp_failed_attempts")] == list(range(101, 113))
    assert second["address"] == "[fe80::1]:4001"
    one, two = first["peers"]
    assert one["address"] == "192.0.2.2:5000" and one["index"] == 12
    assert two["address"] == "[2001:db8::2]:5001" and two["path"] == "tcp"
    assert (one["path"], one["state"]) == ("shm", "lost")
    assert one["reason"] == "other host or network namespace"
    assert one["error"] == os.strerror(104) and one["lives"] == 9
    assert (one["large_in"], one["large_out"]) == ("cma", "bounce")
    for k, path in enumerate(("shm", "tcp", "foreign")):
        assert list(one[path].values()) == list(range(4 * k + 1, 4 * k + 5))
    assert one["sent_messages"] == 1 + 5 + 9
    assert [one[name] for name in (
        "queued", "pending", "credit_bytes", "given_bytes",
        "unexpected_bytes", "waiting_for_path")] == list(range(21, 27))
    assert one["failed_attempts"] == 31 and one["full"]
    assert one["attempt_error"] == os.strerror(111)


def changed(offset, form, *values):
    data = bytearray(segment())
    put(data, offset, form, *values)
    return bytes(data)


def refusals():
    """(what is wrong, the segment, words of the refusal)."""
    whole = segment()
    return (
        ("nothing", b"", "0 bytes"),
        ("less than a head", whole[:200], "200 bytes"),
        ("the head alone", whole[:256], "cut"),
        ("the last record cut", whole[:256 * 4 + 255], "cut"),
        ("no magic", changed(0, "Q", 0), "no statistics"),
        ("a later format", changed(8, "I", 2), "format 2"),
        ("other records", changed(12, "I", 128), "128 bytes"),
        ("larger than it is", changed(16, "Q", 1 << 40), "cut"),
        ("more endpoints than bytes", changed(160, "I", 1 << 31), "cut"),
        ("more peers than bytes", changed(164, "I", 0xffffffff), "cut"),
        ("more peers than records", changed(256 + 40, "I", 3), "more peers"),
    )


def check_refusals(stat):
    for what, data, words in refusals():
        try:
            stat.parse(data)
        except stat.Unreadable as why:
            assert words in str(why), (what, str(why))
        else:
            raise AssertionError(f"{what}: was read")


def check_garbage(stat):
    """No bytes make anything but statistics or Unreadable."""
    chance = random.Random(20)
    read = 0
    for _ in range(5000):
        data = bytearray(segment()[:256 * 5])
        put(data, 16, "Q", len(data))
        for _ in range(chance.randrange(1, 30)):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        try:
            found = stat.parse(bytes(data))
        except stat.Unreadable:
            continue
        read += 1
        found["age_seconds"] = 0
        found.update(pid=1, command="x", answered=True,
                     other_pid_namespace=False)
        list(stat.metrics({"domains": [found], "unreadable": []}))
        for one in found["endpoints"]:
            list(stat.peer_rows(one, False))
    assert read > 100, read


def check_labels(stat):
    """Prometheus, "Text format": these three are escaped in a label."""
    text = stat.line("m", {"a": 'q"\\\n'}, 3)
    assert text == 'm{a="q\\"\\\\\\n"} 3', text


def main():
    stat = tool()
    for check in (check_values, check_refusals, check_garbage, check_labels):
        check(stat)
        print(f"ok {check.__name__}")


if __name__ == "__main__":
    sys.exit(main())

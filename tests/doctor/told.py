# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""What a program is told in the set-ups of setups.py.

By name of the set-up: a line of the log at level info, and a line of the report of
FI_TANDEM_REPORT=full, with the cause and the remedy; None where there cannot be one:
no report of an endpoint that did not open, no log of the side that decides nothing.
"""

CMA = (r"bounce area: allow processes to read .*CAP_SYS_PTRACE",
       r"large messages by bounce -> .*CAP_SYS_PTRACE")
REFUSED = r"cannot be reached by tcp: Connection refused: .*FI_TANDEM_IFACE"
UNREACHABLE = (
    r"cannot be reached by tcp: .*unreachable: .*set FI_TANDEM_IFACE",
    r"Network is unreachable -> .*set FI_TANDEM_IFACE")
ELSEWHERE = (r"10\.77\.0\.2:\d+: tcp: other host or network namespace",
             r"other host or network namespace -> .*FI_TANDEM_SHM_DIR")
KEY = r"Key was rejected by service -> give both sides the same key"
NONE_THERE = r"no shared memory on the other side -> .*of the peer say why"


def resource(cause, remedy):
    return (rf"endpoint without shared memory: {cause}: .*{remedy}",
            rf"system calls refused -> .*{remedy}")


TOLD = {
    "well": (r"tandem \d+\.\d+\.\d+ on libfabric \d+\.\d+ \(commit .*, with ",
             r"tandem \d+\.\d+\.\d+, libfabric \d+\.\d+, host .*tandem0"),
    # This machine.
    "parameter misspelt": (
        r"FI_TANDEM_IFACES is no parameter .* nearest is FI_TANDEM_IFACE$",
        None),
    "value not understood": (
        r"FI_TANDEM_CMA=perhaps is not understood \(yes or no\)", None),
    "value out of range": (
        r"FI_TANDEM_EAGER_SIZE=1T is out of range \(256 to 1048576", None),
    "interface that does not exist": (
        r"FI_TANDEM_IFACE=eth9: no such interface; there are .*tandem0",
        None),
    "docker0 only": (r"endpoint at 172\.17\.0\.1:\d+ \(docker0\)",
                     r"interface docker0 \(172\.17"),
    "link down": (r"endpoint at 127\.0\.0\.1:\d+ \(lo\)", r"interface lo "),
    "netlink refused": (r"interfaces cannot be listed: .*AF_NETLINK", None),
    "unix sockets refused": resource("Operation not permitted",
                                     "unix sockets"),
    "memfd refused": resource("Operation not permitted", "memfd_create"),
    "memory full": resource("No space left on device", "memory limit|ulimit -v"),
    "no descriptors": resource("Too many open files", "ulimit -n"),
    "RLIMIT_FSIZE": resource("File too large", "ulimit -f"),
    "CMA refused": CMA,
    "CMA turned off": (r"bounce area: unset FI_TANDEM_CMA",
                       r"large messages by bounce -> unset FI_TANDEM_CMA"),
    "shared memory turned off": (r"tcp: disabled",
                                 r"disabled -> unset FI_TANDEM_SHM"),
    "port of the range in use": (
        r"no port of FI_TANDEM_PORT_RANGE=5077-5077 can be bound.*"
        r"end what uses the ports", None),
    "no free port": (
        r"cannot be bound: Address already in use: .*ip_local_port_range",
        None),
    # A peer.
    "pair well, two hosts": ELSEWHERE,
    "other user": (r"no shared memory: another user id",
                   r"other user id -> run both processes as one user"),
    "other PID namespace": (None, CMA[1]),
    "other user namespace": (None, CMA[1]),
    "CMA in one direction": CMA,
    "ptrace_scope": CMA,
    "shared memory turned off at the peer": (
        r"tcp: no shared memory on the other side", NONE_THERE),
    "memfd refused at the peer": (
        r"tcp: no shared memory on the other side", NONE_THERE),
    "unix sockets refused at the peer": (
        r"tcp: no shared memory on the other side", NONE_THERE),
    "few descriptors at the peer": (
        r"no shared memory: refused by the other side",
        r"refused by the other side -> .*of the peer say why"),
    "another key": (r"Key was rejected by service: give both sides the same",
                    KEY),
    "peer without the key": (
        r"refused by the peer: .*the keys or the releases", KEY),
    "key of the peer unknown": (REFUSED + r".*the peer has a key",
                                r"Connection refused -> .*has a key"),
    "nobody listens": (REFUSED, r"Connection refused -> .*FI_TANDEM_IFACE"),
    "answers dropped": (
        r"cannot be reached by tcp: Connection timed out: .*firewall",
        r"Connection timed out -> .*firewall.*FI_TANDEM_PORT_RANGE"),
    "no route": UNREACHABLE,
    "wrong interface": UNREACHABLE,
    "IPv6 only": UNREACHABLE,
    "host unreachable": (
        r"cannot be reached by tcp: No route to host: .*FI_TANDEM_IFACE",
        r"No route to host -> .*FI_TANDEM_IFACE"),
    "unknown name": (r'node "no-such-host\.invalid" .* not resolved', None),
    "loopback address of another host": (
        REFUSED, r"no shared memory on the other side -> .*FI_TANDEM_IFACE"),
    "docker0 on both hosts": (
        REFUSED, r"no shared memory on the other side -> .*FI_TANDEM_IFACE"),
    "peer of another version": (
        r"refused by the peer: the peer speaks version 2 of the protocol, "
        r"this side version 1: install one release",
        r"Protocol not available -> install one release of tandem"),
    "only by shared memory": (None, ELSEWHERE[1]),
}

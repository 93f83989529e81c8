#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""setups.py BUILD [WORD...]: tandem-doctor in machines that are set up badly.

Each set-up is a row of a table below: how the machine or the pair is made, and
the finding that must name the cause and the remedy. A row without a finding is
a machine that is well. WORDs select the rows that have one in their names.

Every finding with a level above "ok" must have a remedy, and the exit status
must agree with the findings.

In the set-ups that told.py names, a program with FI_LOG_LEVEL=info and
FI_TANDEM_REPORT=full must be told the cause as well, by the log and by the report.
"""

import concurrent.futures
import errno
import json
import os
import re
import signal
import shutil
import socket
import subprocess
import sys
import tempfile

from hosts import Host, Skip, command, deny, enter_namespaces
from told import TOLD

KEYS = ("one secret of more than 16 bytes", "another secret of that kind")


class Case:
    """A machine with its network, and a folder for files."""

    def __init__(self, build):
        self.build = build
        self.folder = tempfile.mkdtemp(prefix="tandem-doctor.")
        os.chmod(self.folder, 0o755)
        self.env = {"FI_PROVIDER_PATH": os.path.join(build, ".libs")}
        self.wrap = []
        self.options = ["--timeout=20"]
        self.children = []
        self.hosts = []
        self.address = None

    def host(self):
        self.hosts.append(Host())
        return self.hosts[-1]

    def file(self, name, data=b""):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def environment(self, more):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("FI_")}
        env.update(more)
        return env

    def doctor(self):
        return os.path.join(self.build, "tools", "tandem-doctor")

    def start(self, host, *words, env=None):
        """Start a command on a host; returns its first line."""
        child = subprocess.Popen(host.inside(*words), stdout=subprocess.PIPE,
                                 text=True, env=self.environment(
                                     {**self.env, **(env or {})}))
        self.children.append(child)
        return child.stdout.readline().strip()

    def listen(self, host, wrap=(), env=None, options=()):
        """Start tandem-doctor --listen there: self.address."""
        self.address = self.start(host, *wrap, self.doctor(), "--listen",
                                  *options, env=env)
        if not self.address:
            if wrap:
                host.run(*wrap, "true")
            raise AssertionError("tandem-doctor --listen printed no address")

    def run(self):
        words = [*self.wrap, self.doctor(), "--json", *self.options]
        if self.address:
            words.append(self.address)
        return subprocess.run(self.hosts[0].inside(*words),
                              capture_output=True, text=True, check=False,
                              timeout=60, env=self.environment(self.env))

    def program(self):
        """What a program of libfabric writes on stderr there: log and report."""
        env = self.environment({
            **self.env, "FI_LOG_LEVEL": "info", "FI_LOG_PROV": "tandem",
            "FI_TANDEM_REPORT": "full", "FI_TANDEM_CONN_TIMEOUT": "2",
            "FI_TANDEM_REFUSED_TIMEOUT": "1"})
        probe = os.path.join(self.build, "tools", "probe")
        keys = [word for option in self.options if option[:6] == "--key="
                for word in ("-k", option[6:])]
        words = [*self.wrap, probe, "-t", "4", *keys]
        address = self.address
        with tempfile.TemporaryFile("w+") as said:
            if not address:
                peer = subprocess.Popen(
                    self.hosts[0].inside(*words, "listen"), stderr=said,
                    stdout=subprocess.PIPE, text=True, env=env)
                self.children.append(peer)
                line = peer.stdout.readline().split("\t")
                address = line[1] if line[0] == "endpoint" else ""
            if address:
                host, _, port = address.rpartition("/")[2].rpartition(":")
                subprocess.run(
                    self.hosts[0].inside(*words, "ask", host.strip("[]"),
                                         port), stderr=said, check=False,
                    stdout=subprocess.DEVNULL, env=env, timeout=60)
            said.seek(0)
            return said.read()

    def be_brief(self):
        """The peer will not answer: do not wait for it."""
        self.options[0] = "--timeout=1"

    def close(self):
        for child in self.children:
            child.kill()
            child.communicate()
        for host in self.hosts:
            host.close()
        shutil.rmtree(self.folder)


# ---- how a machine is set up -------------------------------------------------

def machine(env=None, wrap=None, link=("tandem0", "10.77.0.1/24")):
    """One host with one network."""
    def make(case):
        host = case.host()
        if link:
            host.link(*link)
        case.env.update(env or {})
        case.wrap = wrap() if wrap else []
    return make


def no_module(case):
    machine()(case)
    case.env["FI_PROVIDER_PATH"] = case.folder


def file_named(case):
    """A file with + in front, as the guides have it."""
    machine()(case)
    path = os.path.join(case.env["FI_PROVIDER_PATH"], "libtandem-fi.so")
    case.env["FI_PROVIDER_PATH"] = "+" + path


def no_file_named(case):
    no_module(case)
    case.env["FI_PROVIDER_PATH"] = f"+{case.folder}/libtandem-fi.so"


def damaged_module(case):
    no_module(case)
    case.file("libtandem-fi.so", b"no ELF file" * 100)


def foreign_module(case):
    """The module needs a version of a symbol that libfabric does not have."""
    no_module(case)
    with open(os.path.join(case.build, ".libs", "libtandem-fi.so"), "rb") as f:
        data = f.read()
    case.file("libtandem-fi.so", data.replace(b"FABRIC_1.", b"FABRIC_9."))


def no_libfabric(case):
    machine()(case)
    case.file("libfabric.so.1", b"no ELF file" * 100)
    case.env["LD_LIBRARY_PATH"] = case.folder


def low_backlog(case):
    machine()(case)
    case.hosts[0].write("/proc/sys/net/core/somaxconn", "16")


def port_in_use(case):
    machine()(case)
    case.env["FI_TANDEM_PORT_RANGE"] = "5077"
    case.listen(case.hosts[0])
    case.address = None


def no_ports_left(case):
    machine()(case)
    case.hosts[0].write("/proc/sys/net/ipv4/ip_local_port_range", "5078 5078")
    case.start(case.hosts[0], sys.executable, "-c", SILENT, "10.77.0.1", "5078")


def link_down(case):
    machine()(case)
    case.hosts[0].run("ip", "link", "set", "tandem0", "down")


def loopback_name(case):
    machine()(case)
    hosts = case.file("hosts", b"127.0.0.1 localhost\n127.0.1.1 doctorhost\n")
    case.hosts[0].run("hostname", "doctorhost") if shutil.which("hostname") \
        else case.hosts[0].write("/proc/sys/kernel/hostname", "doctorhost")
    case.wrap = ["unshare", "--mount", "sh", "-c",
                 f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"]


# ---- how a pair is set up ----------------------------------------------------

def same_host(peer_env=None, peer_wrap=(), wrap=(), options=(), env=None):
    def make(case):
        machine()(case)
        case.listen(case.hosts[0],
                    peer_wrap() if callable(peer_wrap) else peer_wrap,
                    peer_env)
        case.wrap = wrap() if callable(wrap) else list(wrap)
        case.env.update(env or {})
    return make


def two_hosts(case, here="10.77.0.1/24", there="10.77.0.2/24"):
    first, second = case.host(), case.host()
    first.link("tandem0", here, second, there)
    return first, second


def apart(peer_env=None, env=None, addresses=("10.77.0.1/24", "10.77.0.2/24")):
    def make(case):
        _, second = two_hosts(case, *addresses)
        case.listen(second, env=peer_env)
        case.env.update(env or {})
    return make


def keys(peer, own):
    """A key, or None, of the peer and of this side."""
    def make(case):
        machine()(case)
        files = [key is not None and case.file(f"key{key}",
                                               KEYS[key].encode())
                 for key in (peer, own)]
        options = [[f"--key={path}"] if path else [] for path in files]
        if peer != own:
            case.be_brief()
        case.listen(case.hosts[0], options=options[0])
        case.options += options[1]
    return make


def nobody_listens(case):
    two_hosts(case)
    case.address = "10.77.0.2:5079"


def answers_dropped(case):
    _, second = two_hosts(case)
    case.be_brief()
    case.listen(second)
    second.run("ip", "route", "add", "blackhole", "10.77.0.1/32")


def no_route(case):
    two_hosts(case)
    case.address = "192.0.2.1:5079"


def host_unreachable(case):
    first, _ = two_hosts(case)
    first.run("ip", "route", "add", "unreachable", "10.77.0.2/32")
    case.address = "10.77.0.2:5079"


def unknown_name(case):
    machine()(case)
    case.address = "no-such-host.invalid:5079"


def loopback_address(case):
    apart({"FI_TANDEM_IFACE": "lo"})(case)


def same_bridge(case):
    """Both hosts have a docker0 with one address; the peer listens there."""
    first, second = two_hosts(case)
    for host in (first, second):
        host.link("docker0", "172.17.0.1/16")
    case.listen(second, env={"FI_TANDEM_IFACE": "docker0"})


def ipv6_only(case):
    machine(link=("tandem0", "fd77::1/64"))(case)
    case.address = "10.77.0.2:5079"


def wrong_interface(case):
    apart(env={"FI_TANDEM_IFACE": "lo"})(case)
    case.be_brief()


def silent_program(case):
    machine()(case)
    case.be_brief()
    case.start(case.hosts[0], sys.executable, "-c", SILENT, "10.77.0.1", "5079")
    case.address = "10.77.0.1:5079"


def newer_release(case):
    machine()(case)
    case.start(case.hosts[0], sys.executable, "-c", NEWER, "10.77.0.1", "5079")
    case.address = "10.77.0.1:5079"


def stopped_peer(case):
    """Its probe is stopped; the kernel accepts connections for it."""
    machine()(case)
    case.be_brief()
    case.listen(case.hosts[0])
    port = int(case.address.rpartition(":")[2])
    done = subprocess.run(case.hosts[0].inside("ss", "-ltnpH",
                                               f"sport = :{port}"),
                          capture_output=True, text=True, check=False)
    pid = re.search(r"pid=(\d+)", done.stdout)
    if not pid:
        raise Skip("ss does not name the process of a socket")
    os.kill(int(pid.group(1)), signal.SIGSTOP)


def fake_yama(case):
    """This machine may have no Yama: the file of one that restricts readers."""
    same_host()(case)
    case.wrap = ["unshare", "--mount", "sh", "-c", """
        boot=$(cat /proc/sys/kernel/random/boot_id)
        mount -t tmpfs tmpfs /proc/sys/kernel &&
        mkdir /proc/sys/kernel/yama /proc/sys/kernel/random &&
        echo 1 >/proc/sys/kernel/yama/ptrace_scope &&
        echo "$boot" >/proc/sys/kernel/random/boot_id &&
        exec "$@" """, "sh", *NO_CAPABILITIES]


# Accepts connections and says nothing.
SILENT = """
import socket, sys
sock = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listening", flush=True)
while True:
    keep = sock.accept()
"""

# Speaks version 2 of the protocol only: doc/PROTOCOL-tcp.md, "Greeting".
NEWER = r"""
import socket, struct, sys
sock = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listening", flush=True)
while True:
    peer = sock.accept()[0]
    if peer.recv(128, socket.MSG_WAITALL):
        peer.sendall(b"\xf4tandem\n" +
                     struct.pack("<BBHHH112x", 2, 1, 128, 2, 2))
    peer.close()
"""

NO_CAPABILITIES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
OTHER_USER = ["setpriv", "--reuid=4711", "--clear-groups"]

# (name, how it is set up, level, check, cause, remedy). No level: all is well.
MACHINES = [
    ("well", machine(), None, "", "", ""),
    ("well by IPv6", machine(link=("tandem0", "fd77::1/64")), None, "", "", ""),
    ("the file is named", file_named, None, "", "", ""),
    ("no file named", no_file_named, "bad", "module",
     r"libtandem-fi\.so is not in .*:/.*FI_PROVIDER_PATH=\+/.*environment",
     r"FI_PROVIDER_PATH"),
    ("module not found", no_module, "bad", "module",
     r"libtandem-fi\.so is not in .*FI_PROVIDER_PATH=/.*environment",
     r"FI_PROVIDER_PATH"),
    ("module damaged", damaged_module, "bad", "module",
     r"libtandem-fi\.so cannot be loaded: .*ELF", r"install tandem again"),
    ("symbol version missing", foreign_module, "bad", "module",
     r"cannot be loaded: .*FABRIC_9\.\d.* not found",
     r"install libfabric 2\.1"),
    ("libfabric missing", no_libfabric, "bad", "libfabric",
     r"cannot be used: .*libfabric\.so\.1", r"install libfabric 2\.1"),
    ("FI_PROVIDER excludes", machine({"FI_PROVIDER": "tcp"}), "bad",
     "FI_PROVIDER", r"FI_PROVIDER=tcp .*environment.* leaves tandem out",
     r"unset FI_PROVIDER"),
    ("FI_PROVIDER negated", machine({"FI_PROVIDER": "^tandem"}), "bad",
     "FI_PROVIDER", r"FI_PROVIDER=\^tandem .* leaves tandem out",
     r"unset FI_PROVIDER"),
    ("parameter misspelt", machine({"FI_TANDEM_IFACES": "tandem0"}), "bad",
     "parameters", r"FI_TANDEM_IFACES is no parameter",
     r"rename it to FI_TANDEM_IFACE,"),
    ("value not understood", machine({"FI_TANDEM_CMA": "perhaps"}), "bad",
     "parameters", r"FI_TANDEM_CMA=perhaps is not understood",
     r"correct or unset FI_TANDEM_CMA"),
    ("value out of range", machine({"FI_TANDEM_EAGER_SIZE": "1T"}), "bad",
     "parameters", r"FI_TANDEM_EAGER_SIZE=1T is out of range",
     r"correct or unset FI_TANDEM_EAGER_SIZE"),
    ("interface that does not exist", machine({"FI_TANDEM_IFACE": "eth9"}),
     "bad", "interfaces",
     r"FI_TANDEM_IFACE=eth9: no such interface; there are .*"
     r"tandem0 \(10\.77\.0\.1\)", r"set FI_TANDEM_IFACE to one of these"),
    ("no interface up", None, "bad", "interfaces",
     r"no network interface is up", r"ip link set lo up"),
    ("link down", link_down, "note", "interfaces",
     r"no interface but loopback .*tandem0 is down",
     r"ip link set tandem0\w* up"),
    ("docker0 only", machine(link=("docker0", "172.17.0.1/16")), "note",
     "interfaces", r"docker0 172\.17\.0\.1 is taken; .*every host",
     r"FI_TANDEM_IFACE"),
    ("host name on loopback", loopback_name, "note", "host name",
     r"doctorhost stands for 127\.0\.1\.1", r"10\.77\.0\.1 in /etc/hosts"),
    ("netlink refused", machine(wrap=lambda: deny("socket", socket.AF_NETLINK)),
     "bad", "interfaces", r"AF_NETLINK", r"allow them in the sandbox"),
    ("unix sockets refused", machine(wrap=lambda: deny("socket",
                                                       socket.AF_UNIX)),
     "bad", "unix socket", r"unix sockets: Operation not permitted",
     r"sandbox"),
    ("memfd refused", machine(wrap=lambda: deny("memfd_create")), "bad",
     "memfd", r"memfd_create: Operation not permitted", r"sandbox"),
    ("memory full", machine(wrap=lambda: deny("fallocate",
                                              error=errno.ENOSPC)), "bad",
     "memfd", r"1 MiB of memfd: No space left", r"memory.*ulimit -v"),
    ("CMA refused", machine(wrap=lambda: deny("process_vm_readv")), "note",
     "here", r"no CMA.*process_vm_readv\(2\) is refused.*not permitted",
     r"allow process_vm_readv in the seccomp profile"),
    ("CMA turned off", machine({"FI_TANDEM_CMA": "no"}), "note", "here",
     r"no CMA.*FI_TANDEM_CMA forbids it", r"unset FI_TANDEM_CMA"),
    ("shared memory turned off", machine({"FI_TANDEM_SHM": "off"}), "note",
     "here", r"no shared memory.*FI_TANDEM_SHM=off here",
     r"unset FI_TANDEM_SHM here"),
    ("few descriptors", machine(wrap=lambda: ["prlimit", "--nofile=40:99"]),
     "note", "descriptors", r"40 file descriptors: room for about \d+ peers",
     r"ulimit -n 99"),
    ("no descriptors", machine(wrap=lambda: ["prlimit", "--nofile=12"]), "bad",
     "descriptors", r"file descriptors run out: .*Too many open files",
     r"ulimit -n"),
    ("RLIMIT_AS", machine(wrap=lambda: ["prlimit", f"--as={1 << 30}"]), "note",
     "limits", r"RLIMIT_AS: the address space is limited to 1 GiB",
     r"ulimit -v unlimited"),
    ("RLIMIT_FSIZE", machine(wrap=lambda: ["prlimit", "--fsize=65536"]), "bad",
     "memfd", r"shared memory cannot be made: .*File too large",
     r"ulimit -f unlimited"),
    ("low somaxconn", low_backlog, "note", "somaxconn",
     r"net\.core\.somaxconn is 16", r"sysctl -w net\.core\.somaxconn"),
    ("port of the range in use", port_in_use, "bad", "ports",
     r"FI_TANDEM_PORT_RANGE=5077 has no port.* in use", r"widen the range"),
    ("no free port", no_ports_left, "bad", "ports",
     r"no free TCP port .*5078", r"ip_local_port_range"),
]

PAIRS = [
    ("pair well, one host", same_host(), None, "", "", ""),
    ("pair well, two hosts", apart(), "note", "pair",
     r"this machine, in another network namespace", r"--network="),
    ("pair well, IPv6", apart(addresses=("fd77::1/64", "fd77::2/64")), "note",
     "pair", r"another network namespace", r"--network="),
    ("other user", same_host(peer_wrap=OTHER_USER), "note", "pair",
     r"no shared memory.*user id 0 here, 4711 at the peer",
     r"run both processes as one user"),
    ("other PID namespace", same_host(peer_wrap=[
        "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]), "note",
     "pair", r"the other process does not read.*different pid namespaces",
     r"--pid=host"),
    ("other user namespace", same_host(peer_wrap=[
        "unshare", "--user", "--map-root-user"]), "note", "pair",
     r"the other process does not read.*different user namespaces",
     r"--userns=host"),
    ("CMA in one direction", same_host(wrap=NO_CAPABILITIES), "note", "pair",
     r"this process does not read.*trace", r"CAP_SYS_PTRACE"),
    ("ptrace_scope", fake_yama, "note", "pair",
     r"this process does not read.*kernel\.yama\.ptrace_scope is 1",
     r"sysctl -w kernel\.yama\.ptrace_scope=0"),
    ("shared memory turned off at the peer",
     same_host(peer_env={"FI_TANDEM_SHM": "off"}), "note", "pair",
     r"FI_TANDEM_SHM=off at the peer", r"unset FI_TANDEM_SHM at the peer"),
    ("memfd refused at the peer",
     same_host(peer_wrap=lambda: deny("memfd_create")), "note", "pair",
     r"no shared memory.*at the peer: memfd_create", r"allow memfd_create"),
    ("unix sockets refused at the peer",
     same_host(peer_wrap=lambda: deny("socket", socket.AF_UNIX)), "note",
     "pair", r"no shared memory.*at the peer: Operation not permitted",
     r"AF_UNIX"),
    ("another key", keys(0, 1), "bad", "key", r"another key",
     r"same key.*--key FILE"),
    ("peer without the key", keys(None, 0), "bad", "key",
     r"another key, or none", r"same key.*--key FILE"),
    ("key of the peer unknown", keys(0, None), "bad", "key",
     r"the peer has a key and this side has none", r"--key FILE"),
    ("the same key", keys(0, 0), None, "", "", ""),
    ("nobody listens", nobody_listens, "bad", "port",
     r"nobody listens at port 5079", r"tandem-doctor --listen.*FI_TANDEM_PORT"),
    ("answers dropped", answers_dropped, "bad", "port",
     r"does not answer: a firewall", r"open TCP port.*FI_TANDEM_PORT_RANGE"),
    ("no route", no_route, "bad", "route",
     r"192\.0\.2\.1 cannot be reached: Network is unreachable",
     r"ip route get 192\.0\.2\.1"),
    ("host unreachable", host_unreachable, "bad", "route",
     r"cannot be reached: No route to host", r"ip route get 10\.77\.0\.2"),
    ("unknown name", unknown_name, "bad", "address",
     r"no-such-host\.invalid", r"address that tandem-doctor --listen printed"),
    ("loopback address of another host", loopback_address, "bad", "address",
     r"loopback address is that of each host itself", r"FI_TANDEM_IFACE there"),
    ("docker0 on both hosts", same_bridge, "bad", "address",
     r"172\.17\.0\.1 is also an address of this host \(docker0\)",
     r"FI_TANDEM_IFACE at the peer"),
    ("IPv6 only", ipv6_only, "bad", "address",
     r"IPv4 address, and no interface here has IPv4", r"IPv6 address of the"),
    ("wrong interface", wrong_interface, "bad",
     "interfaces", r"bound to lo \(127\.0\.0\.1\), but packets .*10\.77\.0\.1",
     r"set FI_TANDEM_IFACE to the interface of 10\.77\.0\.1"),
    ("another program listens", silent_program, "bad", "peer",
     r"a program other than tandem", r"tandem-doctor --listen"),
    ("peer of another version", newer_release, "bad", "version",
     r"another version of tandem's protocol", r"the same release on both"),
    ("few descriptors at the peer",
     same_host(peer_wrap=["prlimit", "--nofile=20"]), "note", "pair",
     r"no shared memory.*at the peer: 20 file descriptors", r"ulimit -n"),
    ("peer stopped", stopped_peer, "bad", "peer", r"process that is stopped",
     r"continue the process"),
    ("only by shared memory", apart(env={"FI_TANDEM_SHM": "only"}), "bad",
     "shared memory", r"FI_TANDEM_SHM=only", r"unset FI_TANDEM_SHM"),
]


# ---- judgement ---------------------------------------------------------------

def judge(done, level, check, cause, remedy):
    """Raises AssertionError with what tandem-doctor said."""
    try:
        findings = json.loads(done.stdout)["findings"]
    except ValueError:
        raise AssertionError(f"no JSON: {done.stdout}{done.stderr}") from None
    said = "\n".join("    {level} {check}: {text}\n      -> {remedy}"
                     .format(**finding) for finding in findings)
    levels = {finding["level"] for finding in findings}
    assert all(finding["remedy"] for finding in findings
               if finding["level"] != "ok"), f"no remedy:\n{said}"
    assert done.returncode == ("bad" in levels), \
        f"exit status {done.returncode}:\n{said}"
    if not level:
        assert levels == {"ok"}, f"more than ok:\n{said}"
        return
    assert any(finding["level"] == level and finding["check"] == check
               and re.search(cause, finding["text"])
               and re.search(remedy, finding["remedy"])
               for finding in findings), \
        f"not found: {level} {check}: {cause} -> {remedy}, in\n{said}"


def judge_told(name, said):
    """Raises AssertionError if log or report do not name the cause."""
    log = [line for line in said.splitlines()
           if not line.startswith("tandem[")]
    report = [line for line in said.splitlines() if line.startswith("tandem[")]
    for what, lines, want in zip(("log", "report"), (log, report), TOLD[name]):
        assert want is None or any(re.search(want, line) for line in lines), \
            f"{want} is not in the {what}:\n{said}"


def run_row(build, row):
    """(name, what went wrong or None, why it was left out or None)."""
    name, make, *want = row
    case = Case(build)
    try:
        if make:
            make(case)
        else:
            case.host().run("ip", "link", "set", "lo", "down")
        judge(case.run(), *want)
        if name in TOLD:
            judge_told(name, case.program())
        return name, None, None
    except Skip as why:
        return name, None, str(why)
    except (AssertionError, subprocess.TimeoutExpired) as why:
        return name, str(why) or repr(why), None
    finally:
        case.close()


def main():
    try:
        enter_namespaces()
    except Skip as why:
        print(f"no namespaces here: {why}")
        print(f"0 passed, 0 failed, {len(MACHINES + PAIRS)} skipped")
        return 0
    build = os.path.abspath(sys.argv[1])
    unknown = set(TOLD) - {row[0] for row in MACHINES + PAIRS}
    assert not unknown, f"told.py has set-ups that are none: {unknown}"
    rows = [row for row in MACHINES + PAIRS if not sys.argv[2:]
            or any(word in row[0] for word in sys.argv[2:])]
    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 2) as pool:
        for name, wrong, left_out in pool.map(lambda row: run_row(build, row),
                                              rows):
            passed += not wrong and not left_out
            failed += bool(wrong)
            skipped += bool(left_out)
            if left_out:
                print(f"skip  {name}: {left_out}")
            else:
                print(f"FAIL  {name}: {wrong}" if wrong else f"ok    {name}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""tandem-doctor: check this machine for tandem, and the way to a peer.

The program "probe" calls libfabric and prints facts; the conclusions are drawn
here. A finding is "ok", a "note" (tandem works, but less well than it could) or
"bad" (something must be done). All but "ok" have a remedy. tandem-doctor(1)
describes the command.
"""

import argparse
import ctypes
import errno
import fcntl
import fnmatch
import ipaddress
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import urllib.parse

VERSION = "@VERSION@"
LIBEXEC = "@pkglibexecdir@"
PROVIDER_DIR = "@provdir@"
CONF = "/etc/libfabric.conf"
MODULE = "libtandem-fi.so"

# Numbers of fi_ext_tandem.h.
PATHS = {0: "none", 1: "shm", 2: "tcp", 3: "foreign"}
LARGE = {0: "", 1: "cma", 2: "bounce", 3: "copy"}
(OTHER_HOST, NO_ATTACH, OTHER_USER, VERSIONS, REFUSED, NO_MEMORY, NOT_SEALED,
 DISABLED, NAME_TAKEN, FOREIGN) = range(1, 11)

# Interfaces that managers of containers make, the same on every host.
SAME_EVERYWHERE = ("docker*", "br-[0-9a-f]*", "virbr*", "cni*", "podman*",
                   "lxcbr*", "lxdbr*", "incusbr*")

# Errors that concern this process, not the peer.
OWN_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

CAP_SYS_PTRACE = 19
MIB = 1 << 20


def read(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return default


def setting(name):
    """(value, where it comes from) of a variable of libfabric."""
    if name in os.environ:
        return os.environ[name], "the environment"
    for line in read(CONF).splitlines():
        key, _, value = line.partition("=")
        if key.strip() == name:
            return value.strip(), CONF
    return "", ""


def own_parameters():
    """The FI_TANDEM_* variables that are in force here, and their values."""
    names = {name for name in os.environ if name.startswith("FI_TANDEM_")}
    names |= set(re.findall(r"^(FI_TANDEM_\w+)", read(CONF), re.M))
    return {name: setting(name)[0] for name in sorted(names)}


# ---- findings ----------------------------------------------------------------

class Findings:
    def __init__(self):
        self.list = []
        self.facts = {}
        self.pair = {}

    def add(self, level, check, text, remedy=""):
        assert level == "ok" or remedy, text
        self.list.append({"level": level, "check": check, "text": text,
                          "remedy": remedy})

    def ok(self, check, text):
        self.add("ok", check, text)

    def note(self, check, text, remedy):
        self.add("note", check, text, remedy)

    def bad(self, check, text, remedy):
        self.add("bad", check, text, remedy)

    def status(self, strict):
        levels = {finding["level"] for finding in self.list}
        return 1 if "bad" in levels or strict and "note" in levels else 0

    def print_text(self, quiet):
        for finding in self.list:
            if finding["level"] == "ok" and quiet:
                continue
            print(f"{finding['level']:4}  {finding['check']}: "
                  f"{finding['text']}")
            if finding["remedy"]:
                print(f"      -> {finding['remedy']}")

    def print_json(self, status):
        json.dump({"version": VERSION, "status": status,
                   "findings": self.list, "facts": self.facts,
                   "pair": self.pair}, sys.stdout, indent=2)
        print()


# ---- the probe ---------------------------------------------------------------

class Answer:
    """What the probe printed: {name: [[value, ...], ...]}."""

    def __init__(self, out, err, code):
        self.lines = {}
        for line in out.splitlines():
            name, *values = line.split("\t")
            self.lines.setdefault(name, []).append(values)
        self.err = err
        self.code = code

    def one(self, name):
        """The values of the first line of that name, or None."""
        return self.lines.get(name, [None])[0]

    def all(self, name):
        return self.lines.get(name, [])


def probe_command(*args):
    here = os.path.dirname(os.path.realpath(__file__))
    paths = [os.path.join(here, "probe"), os.path.join(LIBEXEC, "probe")]
    return [next(filter(os.path.exists, paths), paths[-1]), *args]


def probe_environment(more):
    """Its warnings on stderr, its own name, no report: as doctor reads it."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("FI_LOG_")}
    env.update(FI_TANDEM_STAND_IN="no", FI_TANDEM_REPORT="no", LC_ALL="C")
    env.update(more)
    return env


def probe(*args, env=None, limit=60):
    try:
        done = subprocess.run(probe_command(*args), capture_output=True,
                              text=True, errors="replace", timeout=limit,
                              env=probe_environment(env or {}), check=False)
        return Answer(done.stdout, done.stderr.strip(), done.returncode)
    except subprocess.TimeoutExpired as late:
        out = (late.stdout or b"").decode(errors="replace")
        return Answer(out, f"no end after {limit} s", -1)
    except OSError as error:
        return Answer("", str(error), -1)


# ---- libfabric and the module ------------------------------------------------

def load_error(path):
    """Why the dynamic linker does not load a module, or ""."""
    try:
        module = ctypes.CDLL(path)
    except OSError as error:
        return str(error)
    return "" if hasattr(module, "fi_prov_ini") else "it lacks fi_prov_ini"


def load_remedy(why):
    if "FABRIC_" in why:
        return "install libfabric 2.1 or newer, the one tandem was built with"
    missing = re.search(r"(lib[\w+.-]+): cannot open", why)
    if missing:
        return f"install the package that has {missing.group(1)}"
    return "install tandem again: the file is damaged or of another machine"


def search_path(answer):
    """The directories and files in which libfabric looks, in its order."""
    value, where = setting("FI_PROVIDER_PATH")
    default = ["/usr/lib/libfabric"]
    found = re.search(r"default: ([^)\s]+)", (answer.one("search") or [""])[0])
    if found:
        default = [found.group(1)]
    elif answer.one("library"):
        default = [os.path.join(os.path.dirname(answer.one("library")[0]),
                                "libfabric")]
    if not value:
        return default, default, ""
    items = [item for item in value.lstrip("@").split(":") if item]
    paths = [item.lstrip("+") for item in items]
    # Without a directory among them, libfabric looks into its own as well.
    if all(item.startswith("+") for item in items):
        paths += default
    return paths, default, f"FI_PROVIDER_PATH={value} ({where})"


def check_module_file(findings, answer):
    """libfabric did not load the module: find out why."""
    paths, default, setter = search_path(answer)
    for path in paths:
        file = path if path.endswith(".so") else os.path.join(path, MODULE)
        if not os.path.exists(file):
            continue
        why = load_error(file)
        if not why and not os.access(file, os.R_OK):
            why = "it cannot be read"
        findings.bad("module", f"{file} cannot be loaded: "
                     f"{why or 'libfabric refuses it'}", load_remedy(why))
        return
    elsewhere = next((folder for folder in [*default, PROVIDER_DIR]
                      if os.path.exists(os.path.join(folder, MODULE))), "")
    text = f"{MODULE} is not in {':'.join(paths)}, where libfabric looks"
    if setter:
        text += f" because of {setter}"
    if elsewhere in default and setter:
        remedy = "unset FI_PROVIDER_PATH: libfabric finds tandem without it"
    elif elsewhere:
        remedy = f"export FI_PROVIDER_PATH=+{elsewhere}/{MODULE}"
    else:
        remedy = ("install libfabric-tandem, or set FI_PROVIDER_PATH to + and "
                  f"the path of {MODULE}")
    findings.bad("module", text, remedy)


def check_no_entry(findings, answer):
    """There is no entry of tandem: find the variable that is to blame."""
    value, where = setting("FI_PROVIDER")
    if value and probe("entries", env={"FI_PROVIDER": "tandem"}).code == 0:
        findings.bad("FI_PROVIDER", f"FI_PROVIDER={value} ({where}) leaves "
                     "tandem out", "unset FI_PROVIDER, or set it to tandem")
    elif not answer.one("module"):
        check_module_file(findings, answer)
    elif setting("FI_TANDEM_IFACE")[0] and \
            probe("entries", env={"FI_TANDEM_IFACE": ""}).code == 0:
        value, where = setting("FI_TANDEM_IFACE")
        text = said_by_provider(answer, "FI_TANDEM_IFACE") or \
            f"FI_TANDEM_IFACE={value}: no such interface"
        findings.bad("interfaces", f"{text} ({where})",
                     "set FI_TANDEM_IFACE to one of these, or unset it")
    elif netlink_refused():
        findings.bad("interfaces", "the kernel refuses AF_NETLINK sockets, by "
                     f"which interfaces are listed: {netlink_refused()}",
                     "allow them in the sandbox: RestrictAddressFamilies= of "
                     "systemd, the seccomp profile of the container")
    else:
        findings.bad("interfaces", "no network interface is up",
                     "ip link set lo up, or that of the network to use")


def check_module(findings):
    """Returns the answer of the probe, or None if tandem cannot be used."""
    program = probe_command()[0]
    if not os.access(program, os.X_OK):
        findings.bad("probe", f"the program {program} of tandem-doctor is "
                     "missing", "install libfabric-tandem-tools again")
        return None
    answer = probe("entries")
    if not answer.one("libfabric"):
        findings.bad("libfabric", "libfabric cannot be used: "
                     f"{answer.err or 'the probe ended without a word'}",
                     "install libfabric 2.1 or newer, with its library where "
                     "ldconfig finds it")
        return None
    check_parameters(findings, answer)
    if answer.code:
        check_no_entry(findings, answer)
        return None
    findings.ok("libfabric", f"{answer.one('libfabric')[0]}, "
                f"{(answer.one('library') or ['linked statically'])[0]}")
    findings.ok("module", f"tandem {answer.one('release')[0]}, "
                f"{(answer.one('module') or ['built in'])[0]}")
    return answer


# ---- parameters --------------------------------------------------------------

def said_by_provider(answer, word):
    """The first warning of the provider that has a word, or ""."""
    return next((line.removeprefix("tandem: ")
                 for line in answer.err.splitlines()
                 if line.startswith("tandem: ") and word in line), "")


def check_parameters(findings, answer):
    """The provider itself knows which names and values are wrong."""
    wrong = 0
    for line in answer.err.splitlines():
        said = re.match(r"tandem: (FI_TANDEM_\w*)(.*)", line)
        if not said or "no such interface" in line:
            continue
        wrong += 1
        nearest = re.search(r"the nearest is (\w+)", line)
        remedy = f"correct or unset {said.group(1)}: fi_info -g tandem"
        if nearest:
            remedy = f"rename it to {nearest.group(1)}, or unset it"
        findings.bad("parameters", said.group(1) + said.group(2), remedy)
    known = {name for name, in answer.all("parameter")}
    used = [f"{name}={value}" for name, value in own_parameters().items()
            if name in known]
    if not wrong and known:
        findings.ok("parameters", " ".join(used) or "all at their defaults")


# ---- interfaces --------------------------------------------------------------

def netlink_refused():
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
        return ""
    except OSError as error:
        return error.strerror


def links_without_use(used):
    """(name, what it lacks) of the interfaces that are not offered."""
    links = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            if name in used:
                continue
            request = struct.pack("16sH22x", name.encode()[:15], 0)
            reply = fcntl.ioctl(sock, 0x8913, request)  # SIOCGIFFLAGS
            flags = struct.unpack_from("H", reply, 16)[0]
            links.append((name, "is down" if not flags & 1 else
                          "has no carrier" if not flags & 0x40 else
                          "has no address, or is left out"))
    return links


def is_loopback(ip):
    return ipaddress.ip_address(ip.partition("%")[0]).is_loopback


def check_interfaces(findings, answer):
    entries = [entry[:2] for entry in answer.all("entry")]
    findings.facts["interfaces"] = entries
    name, ip = entries[0]
    findings.ok("interfaces", f"{name} {ip} is taken, of "
                + ", ".join(" ".join(entry) for entry in entries))
    try:
        links = links_without_use({entry[0] for entry in entries})
    except OSError:
        links = []
    idle = ", ".join(" ".join(link) for link in links)
    if all(is_loopback(ip) for _, ip in entries):
        findings.note("interfaces", "no interface but loopback can be used: "
                      "peers on other hosts are out of reach"
                      + (f" ({idle})" if idle else ""),
                      f"ip link set {links[0][0] if links else 'NAME'} up, and "
                      "give it an address, if there are other hosts")
    elif any(fnmatch.fnmatchcase(name, like) for like in SAME_EVERYWHERE):
        findings.note("interfaces", f"{name} {ip} is taken; a manager of "
                      "containers makes it, with the same address on every "
                      "host" + (f"; {idle}" if idle else ""),
                      "bring up the interface of the network between the "
                      "hosts, or name it by FI_TANDEM_IFACE")
    elif idle:
        findings.ok("interfaces", f"not taken: {idle}")
    check_host_name(findings, entries)


def check_host_name(findings, entries):
    name = socket.gethostname()
    try:
        ip = socket.getaddrinfo(name, None)[0][4][0]
    except (OSError, IndexError):
        return
    outside = next((entry for entry in entries if not is_loopback(entry[1])),
                   None)
    if outside and is_loopback(ip):
        findings.note("host name", f"{name} stands for {ip} here: an endpoint "
                      "that is opened by this name is out of reach of other "
                      "hosts", f"give {name} the address {outside[1]} in "
                      "/etc/hosts, or pass programs the address")


# ---- limits and the kernel ---------------------------------------------------

def amount(number):
    if number == resource.RLIM_INFINITY:
        return "no limit"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}"
        number /= 1024


def check_descriptors(findings):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    peers = max(0, (soft - min(32, soft // 5) - 16) // 3)
    text = (f"{soft} file descriptors: room for about {peers} peers by "
            "shared memory, which take three each")
    if soft < 256:
        findings.note("descriptors", text, f"ulimit -n {hard}"
                      if hard > soft else "raise the hard limit: "
                      "/etc/security/limits.conf, LimitNOFILE= of systemd, "
                      "--ulimit nofile= of the container")
    else:
        findings.ok("descriptors", text)


def check_limits(findings):
    check_descriptors(findings)
    for name, what, option, least in (
            ("RLIMIT_AS", "address space", "v", 4096 * MIB),
            ("RLIMIT_FSIZE", "size of a file, memfd included", "f", 64 * MIB)):
        soft = resource.getrlimit(getattr(resource, name))[0]
        if soft != resource.RLIM_INFINITY and soft < least:
            findings.note("limits", f"{name}: the {what} is limited to "
                          f"{amount(soft)}; shared memory with some peers "
                          "will be refused", f"ulimit -{option} unlimited")
    backlog = int(read("/proc/sys/net/core/somaxconn") or 4096)
    if backlog < 128:
        findings.note("somaxconn", f"net.core.somaxconn is {backlog}: when "
                      "more processes connect at once, the others wait for a "
                      "second or longer", "sysctl -w net.core.somaxconn=4096")
    free = re.search(r"MemAvailable: *(\d+)", read("/proc/meminfo"))
    free = int(free.group(1)) * 1024 if free else 0
    if 0 < free < 256 * MIB:
        findings.note("memory", f"{amount(free)} of memory are free, less than "
                      "an endpoint may keep of unexpected messages",
                      "set FI_TANDEM_UNEXP_MAX lower, or free memory")
    findings.ok("limits", f"somaxconn {backlog}, memory free {amount(free)}")


def own_read_refused():
    """Why this process may not read memory by process_vm_readv(2), or ""."""
    class Range(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "process_vm_readv"):
        return "the C library has no process_vm_readv"
    source, target = ctypes.create_string_buffer(8), \
        ctypes.create_string_buffer(8)
    ranges = [ctypes.byref(Range(ctypes.addressof(buffer), 8))
              for buffer in (target, source)]
    one = ctypes.c_ulong(1)
    if libc.process_vm_readv(os.getpid(), ranges[0], one, ranges[1], one,
                             ctypes.c_ulong(0)) == 8:
        return ""
    return os.strerror(ctypes.get_errno())


def memfd_refused():
    try:
        fd = os.memfd_create("tandem-doctor", os.MFD_ALLOW_SEALING)
    except OSError as error:
        return f"memfd_create: {error.strerror}"
    try:
        os.posix_fallocate(fd, 0, MIB)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return ""
    except OSError as error:
        return f"1 MiB of memfd: {error.strerror}"
    finally:
        os.close(fd)


def unix_refused():
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.bind(f"\0tandem-doctor.{os.getpid()}")
        return ""
    except OSError as error:
        return error.strerror


def check_kernel(findings):
    sandbox = ("allow it in the sandbox of the process: the seccomp profile of "
               "the container, RestrictAddressFamilies= or SystemCallFilter= "
               "of systemd")
    wrong = 0
    for check, why, text in (
            ("memfd", memfd_refused(), "shared memory cannot be made"),
            ("unix socket", unix_refused(), "processes of a host cannot meet "
             "by unix sockets")):
        if why:
            wrong += 1
            remedy = sandbox
            if "File too large" in why:
                remedy = "ulimit -f unlimited"
            elif "No space" in why or "Cannot allocate" in why:
                remedy = ("more memory for the container or control group; "
                          "ulimit -v unlimited")
            findings.bad(check, f"{text}: {why}", remedy)
    if not wrong:
        findings.ok("kernel", "shared memory and unix sockets are allowed")


# ---- two processes -----------------------------------------------------------

def own_facts():
    """What the other side of a pair has to know of this one."""
    status = dict(re.findall(r"^(\w+):\s*(.*)$", read("/proc/self/status"),
                             re.M))
    names = {}
    for name in ("net", "pid", "user", "ipc", "mnt"):
        try:
            names[name] = os.readlink(f"/proc/self/ns/{name}")
        except OSError:
            names[name] = ""
    return {"host": socket.gethostname(), "uid": os.geteuid(),
            "boot": read("/proc/sys/kernel/random/boot_id"),
            "namespaces": names, "version": VERSION,
            "ptrace_scope": read("/proc/sys/kernel/yama/ptrace_scope"),
            "ptrace": bool(int(status.get("CapEff", "0"), 16)
                           >> CAP_SYS_PTRACE & 1),
            "seccomp": status.get("Seccomp", "0") != "0",
            "read": own_read_refused(), "memfd": memfd_refused(),
            "unix": unix_refused(),
            "descriptors": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "parameters": own_parameters()}


def parameter_is(facts, name, words):
    return facts["parameters"].get(name, "").lower() in words


def reader_trouble(reader, other):
    """(cause, remedy): why a side may not read the memory of the other."""
    if parameter_is(reader, "FI_TANDEM_CMA", ("no", "off", "false", "0")):
        return "FI_TANDEM_CMA forbids it", "unset FI_TANDEM_CMA"
    if reader["read"]:
        return (f"process_vm_readv(2) is refused there: {reader['read']}",
                "allow process_vm_readv in the seccomp profile of the "
                "container, or use a kernel with CONFIG_CROSS_MEMORY_ATTACH")
    differ = [name for name in ("pid", "user")
              if reader["namespaces"][name] != other["namespaces"][name]]
    if differ:
        return (f"the processes are in different {' and '.join(differ)} "
                "namespaces", "run both in one: --pid=host or "
                "--pid=container:NAME, --userns=host of the container, or "
                "give the reader CAP_SYS_PTRACE")
    if reader["ptrace_scope"] not in ("", "0") and not reader["ptrace"]:
        return (f"kernel.yama.ptrace_scope is {reader['ptrace_scope']}",
                "sysctl -w kernel.yama.ptrace_scope=0, or give the programs "
                "CAP_SYS_PTRACE")
    return ("the kernel does not let it trace the other process",
            "give the programs CAP_SYS_PTRACE; a security module or a program "
            "that is not dumpable (set-uid, file capabilities) forbids it")


def check_large(findings, check, view, here, peer):
    """@view: what this side reports; @here and @peer: facts of the sides."""
    for mode, reader, other, who in ((view["large_in"], here, peer, "this"),
                                     (view["large_out"], peer, here,
                                      "the other")):
        if mode == "bounce":
            cause, remedy = reader_trouble(reader, other)
            findings.note(check, f"{who} process does not read large messages "
                          "from the memory of its peer (no CMA), they are "
                          f"copied twice: {cause}", remedy)


def parse_view(values):
    path, reason, large_in, large_out, text = (values + [""] * 5)[:5]
    return {"path": PATHS.get(int(path or 0), path), "reason": int(reason or 0),
            "text": text, "large_in": LARGE.get(int(large_in or 0), ""),
            "large_out": LARGE.get(int(large_out or 0), "")}


def memory_trouble(facts, who):
    """Why shared memory was refused on a side, or None."""
    for what in ("memfd", "unix"):
        if facts[what]:
            return (f"{who}: {facts[what]}", "allow memfd_create and AF_UNIX "
                    "sockets in the sandbox; ulimit -f unlimited")
    if facts["descriptors"] < 256:
        return (f"{who}: {facts['descriptors']} file descriptors",
                "raise the limit: ulimit -n 1024")
    return None


def shm_trouble(view, there, here, peer):
    """(level, cause, remedy): why a pair does not use shared memory."""
    same = here["boot"] and here["boot"] == peer["boot"]
    reason = view["reason"]
    if reason == REFUSED and there["reason"] not in (0, REFUSED):
        reason = there["reason"]
    for facts, who in ((here, "here"), (peer, "at the peer")):
        for name in ("FI_TANDEM_SHM", "FI_TANDEM_LOCAL"):
            if parameter_is(facts, name, ("no", "off", "false", "0")):
                return ("note", f"{name}={facts['parameters'][name]} {who}",
                        f"unset {name} {who}")
    if reason == OTHER_HOST and not same:
        return "ok", "the peer is on another host", ""
    if here["namespaces"]["net"] != peer["namespaces"]["net"] and same:
        return ("note", "the peer is on this machine, in another network "
                "namespace", "run both in one network namespace: "
                "--network=host or --network=container:NAME; or let both see "
                "one folder, which FI_TANDEM_SHM_DIR names")
    if here["uid"] != peer["uid"]:
        return ("note", f"user id {here['uid']} here, {peer['uid']} at the "
                "peer", "run both processes as one user")
    if reason == VERSIONS:
        return ("note", f"tandem {here['version']} here, {peer['version']} at "
                "the peer", "install the same release on both sides")
    trouble = memory_trouble(here, "here") or memory_trouble(peer,
                                                             "at the peer")
    if trouble:
        return "note", *trouble
    if reason == NAME_TAKEN:
        return ("note", "another process has the name of the attach socket",
                "start the program again: it gets another port")
    return ("note", view["text"] or there["text"] or "the reason is not known",
            "ulimit -n 4096; ulimit -v unlimited; see REPORT in fi_tandem(7)")


def ask(host, port, options, env=None):
    wait = options.timeout
    key = ["-k", options.key] if options.key else []
    more = {"FI_TANDEM_CONN_TIMEOUT": str(wait),
            "FI_TANDEM_REFUSED_TIMEOUT": "1"}
    more.update(env or {})
    return probe("-t", str(wait + 2), "-f", json.dumps(own_facts()), *key,
                 "ask", host, str(port), env=more, limit=6 * wait + 20)


def speed_text(answer):
    latency, rate = answer.one("speed")
    return f"{latency} us for 8 bytes, {rate} MB/s for 1 MiB"


def judge_pair(findings, check, answer):
    """The exchange succeeded: which path, how large messages go. Returns it."""
    here, there = (parse_view(answer.one(name) or [])
                   for name in ("here", "there"))
    own, peer = own_facts(), json.loads(answer.one("facts")[0])
    findings.pair.setdefault("paths", []).append(
        {"here": here, "there": there, "speed": answer.one("speed")})
    findings.pair["peer"] = peer
    if here["path"] == "shm":
        findings.ok(check, f"shared memory: {speed_text(answer)}; large "
                    f"messages in by {here['large_in']}, out by "
                    f"{here['large_out']}")
        check_large(findings, check, here, own, peer)
        return "shm"
    if here["path"] == "foreign":
        findings.ok(check, f"{here['text']}: {speed_text(answer)}")
        return "foreign"
    level, cause, remedy = shm_trouble(here, there, own, peer)
    findings.ok(check, f"TCP: {speed_text(answer)}")
    findings.add(level, check, f"no shared memory with this peer: {cause}",
                 remedy)
    return "tcp"


# ---- this machine ------------------------------------------------------------

class Listener:
    """A probe that answers, as a child. @address: (host, port), or None."""

    def __init__(self, options):
        key = ["-k", options.key] if options.key else []
        self.child = subprocess.Popen(
            probe_command("-f", json.dumps(own_facts()), *key, "listen"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=probe_environment({}))
        line = self.child.stdout.readline().rstrip("\n").split("\t")
        self.address = split_address(line[1]) if line[0] == "endpoint" else None
        self.interface = line[-1]
        self.failure = line[1:] if line[0] == "failed" else ["", "0", ""]

    def close(self):
        self.child.kill()
        self.child.communicate()


def open_trouble(findings, check, code, text):
    """An endpoint could not be opened: say what stands in its way."""
    ports = setting("FI_TANDEM_PORT_RANGE")[0]
    low = int(re.match(r"\d*", ports).group() or 65535)
    if "key" in text:
        findings.bad("key", text, "give --key a file of 16 to 64 bytes")
    elif code == errno.EADDRINUSE and ports:
        cause = "all its ports are in use"
        if low < 1024 and os.geteuid():
            cause = "ports below 1024 are for root"
        findings.bad("ports", f"FI_TANDEM_PORT_RANGE={ports} has no port for "
                     f"an endpoint: {cause}", "widen the range, or end what "
                     f"uses it: ss -ltnp 'sport >= :{low}'")
    elif code == errno.EADDRINUSE:
        span = read("/proc/sys/net/ipv4/ip_local_port_range")
        findings.bad("ports", "there is no free TCP port for an endpoint (of "
                     f"{span})", "sysctl -w net.ipv4.ip_local_port_range="
                     "'1024 65535', or set FI_TANDEM_PORT_RANGE")
    elif code in (errno.EMFILE, errno.ENFILE):
        findings.bad("descriptors", f"file descriptors run out: {text}",
                     "raise the limit of file descriptors: ulimit -n 1024")
    elif code == errno.ENOMEM:
        findings.bad("memory", f"memory runs out: {text}",
                     "ulimit -v unlimited; more memory for the container")
    else:
        findings.bad(check, "no endpoint can be opened: "
                     + (text or "the probe ended"), "FI_LOG_LEVEL=info "
                     "FI_LOG_PROV=tandem in the environment of your program "
                     "says more")


def check_here(findings, options):
    """Two processes of this machine exchange messages, by each path."""
    listener = Listener(options)
    try:
        if not listener.address:
            _, code, text = listener.failure
            open_trouble(findings, "here", int(code), text)
            return
        answer = ask(*listener.address, options)
        if answer.one("facts") and not answer.one("failed"):
            if judge_pair(findings, "here", answer) != "shm":
                return
            answer = ask(*listener.address, options,
                         {"FI_TANDEM_SHM": "off"})
        if answer.one("failed"):
            step, code, text = answer.one("failed")
            if step == "open" or int(code) in OWN_LIMITS:
                open_trouble(findings, "here", int(code), text)
            else:
                findings.bad("here", "two processes of this machine do not "
                             f"reach each other: {text}", "look for a "
                             "firewall rule that concerns the machine's own "
                             f"address {listener.address[0]}")
        elif answer.one("speed"):
            findings.ok("here", f"TCP: {speed_text(answer)}")
        else:
            open_trouble(findings, "here", 0, answer.err)
    finally:
        listener.close()


# ---- a peer ------------------------------------------------------------------

def split_address(text):
    """(host, port) of "HOST:PORT", "[IPV6]:PORT" or a text of FI_ADDR_STR."""
    parts = urllib.parse.urlsplit("//" + text.rpartition("://")[2])
    if not parts.hostname or not parts.port:
        raise ValueError(f"{text} is not HOST:PORT")
    return parts.hostname, parts.port


def is_own(family, ip):
    """Is an IP address one of this network namespace?"""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.bind((ip, 0))
        return True
    except OSError:
        return False


def local_source(family, ip, port):
    """The address from which packets go there; raises OSError."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((ip, port))
        return sock.getsockname()[0]


def connect_error(family, ip, port, seconds):
    """0, or the errno with which a TCP connection fails."""
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(seconds)
        try:
            sock.connect((ip, port))
            return 0
        except socket.timeout:
            return errno.ETIMEDOUT
        except OSError as error:
            return error.errno


def interface_of(findings, ip):
    return next((name for name, own in findings.facts.get("interfaces", [])
                 if own == ip), "this host")


def explain_refused(findings, peer, own, port):
    where = interface_of(findings, peer)
    if is_loopback(peer):
        findings.bad("address", f"nobody listens at {peer} port {port} here: "
                     "a loopback address is that of each host itself, never "
                     "that of another", "give the peer an interface that "
                     "others reach (FI_TANDEM_IFACE there; its name must not "
                     "stand for 127.0.1.1 in its /etc/hosts), and use its "
                     "address")
    elif own:
        findings.bad("address", f"{peer} is also an address of this host "
                     f"({where}), and nobody listens at port {port} here: "
                     "does the peer have an interface with the same address, "
                     "such as docker0?", "set FI_TANDEM_IFACE at the peer to "
                     "the network between the hosts, such as 10.0.0.0/8")
    else:
        findings.bad("port", f"{peer} answers that nobody listens at port "
                     f"{port}", "start tandem-doctor --listen there; if it "
                     "runs, a firewall rejects the port: open TCP port "
                     f"{port} there, or a range, and set FI_TANDEM_PORT_RANGE "
                     "to it")


def explain_unreachable(findings, peer, port, code, own):
    """A plain TCP connection fails with an errno."""
    if code == errno.ECONNREFUSED:
        explain_refused(findings, peer, own, port)
    elif code == errno.ETIMEDOUT:
        findings.bad("port", f"{peer} port {port} does not answer: a firewall "
                     "drops the packets, or the host is off", "open TCP port "
                     f"{port} at the peer and on the way, or a range, and set "
                     "FI_TANDEM_PORT_RANGE to it; ping the host")
    else:
        findings.bad("route", f"{peer} cannot be reached: {os.strerror(code)}",
                     f"ip route get {peer}; is the link up (ip link), the "
                     "address of the right network?")


def explain_silence(findings, peer, port, answer, options):
    """TCP connects, but the peer did not answer through tandem."""
    step, code, text = answer.one("failed") or ["", "0", answer.err]
    code = int(code)
    if step == "open" or code in OWN_LIMITS:
        open_trouble(findings, "pair", code, text)
    elif code == errno.EKEYREJECTED:
        findings.bad("key", "the peer has another key, or none: " + text,
                     "start both sides with the same key: tandem-doctor "
                     "--key FILE, with the same bytes in FILE")
    elif code == errno.ENOPROTOOPT:
        findings.bad("version", "the peer speaks another version of tandem's "
                     "protocol", "install the same release on both sides")
    elif code == errno.ECONNREFUSED:
        findings.bad("key", f"{peer} port {port} accepts connections, but "
                     "turns this process away: the peer has "
                     + ("another key" if options.key else "a key and this "
                        "side has none")
                     + ", or an address translator (NAT) is in between",
                     "start both sides with the same --key FILE; give both "
                     "hosts addresses of one network")
    elif code == errno.EHOSTUNREACH and \
            setting("FI_TANDEM_SHM")[0].lower() == "only":
        findings.bad("shared memory", "FI_TANDEM_SHM=only, and the peer "
                     "cannot be reached by shared memory",
                     "unset FI_TANDEM_SHM")
    elif code == errno.ETIMEDOUT:
        findings.bad("peer", f"what listens at {peer} port {port} accepts "
                     "connections and says nothing: a program other than "
                     "tandem, or a process that is stopped", "use the address "
                     "that tandem-doctor --listen has printed there; continue "
                     "the process")
    else:
        findings.bad("pair", f"{peer} port {port}: {text}", "FI_LOG_LEVEL=info "
                     "FI_LOG_PROV=tandem in the environment of both programs "
                     "says more")


def find_peer(findings, host, port):
    """(family, ip, source) of the peer, or None with a finding."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        findings.bad("address", f"{host}: {error.strerror}",
                     "use the address that tandem-doctor --listen printed")
        return None
    family, ip = infos[0][0], infos[0][4][0]
    try:
        return family, ip, local_source(family, ip, port)
    except OSError as error:
        code = error.errno
    version = {socket.AF_INET: 4, socket.AF_INET6: 6}[family]
    if any(ipaddress.ip_address(own.partition("%")[0]).version == version
           for _, own in findings.facts["interfaces"]
           if not is_loopback(own)):
        explain_unreachable(findings, ip, port, code, False)
    else:
        findings.bad("address", f"{ip} is an IPv{version} address, and no "
                     f"interface here has IPv{version}", "give an interface "
                     f"an IPv{version} address, or use an "
                     f"IPv{10 - version} address of the peer: FI_TANDEM_IFACE "
                     "there")
    return None


def check_pair(findings, host, port, options):
    found = find_peer(findings, host, port)
    if not found:
        return
    family, ip, source = found
    code = connect_error(family, ip, port, options.timeout)
    if code:
        explain_unreachable(findings, ip, port, code, is_own(family, ip))
        return
    findings.ok("pair", f"{ip} port {port} accepts connections from {source}")
    answer = ask(ip, port, options)
    mine = answer.one("endpoint")
    if answer.one("failed") or not answer.one("facts"):
        if mine and split_address(mine[0])[0] != source:
            findings.bad("interfaces", f"the endpoint is bound to {mine[1]} "
                         f"({split_address(mine[0])[0]}), but packets to "
                         f"{ip} leave from {source}", "set FI_TANDEM_IFACE "
                         f"to the interface of {source}, or unset it")
        else:
            explain_silence(findings, ip, port, answer, options)
        return
    if judge_pair(findings, "pair", answer) != "shm":
        return
    answer = ask(ip, port, options, {"FI_TANDEM_SHM": "off"})
    if answer.one("speed"):
        findings.ok("pair", f"TCP: {speed_text(answer)}")
    else:
        explain_silence(findings, ip, port, answer, options)


# ---- the command -------------------------------------------------------------

def listen(options):
    """Answer others until a signal ends this. Returns the exit status."""
    listener = Listener(options)
    try:
        if not listener.address:
            findings = Findings()
            if check_module(findings):
                _, code, text = listener.failure
                open_trouble(findings, "listen", int(code), text)
            findings.print_text(True)
            return 1
        host, port = listener.address
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if options.json:
            print(json.dumps({"address": address,
                              "interface": listener.interface}), flush=True)
        else:
            print(f"{address}\non the other side: tandem-doctor {address}",
                  flush=True)
        if is_loopback(host):
            print(f"note: no other host reaches {host}: bring up an "
                  "interface, or set FI_TANDEM_IFACE", file=sys.stderr)
        for line in listener.child.stdout:
            if line.startswith("asked\t") and not options.json:
                print(f"asked by {line.split()[1]}", flush=True)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        listener.close()


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="tandem-doctor", description="Check this machine for tandem, "
        "and the way to the peer ADDRESS.", epilog="Exit status: 0 all is "
        "well, 1 something must be done, 2 usage.")
    parser.add_argument("address", metavar="ADDRESS", nargs="?",
                        help="what tandem-doctor --listen printed on the "
                        "other side, HOST:PORT")
    parser.add_argument("--listen", action="store_true",
                        help="print an address and answer others there")
    parser.add_argument("--key", metavar="FILE", help="use the bytes of FILE, "
                        "16 to 64, as the key of the endpoint")
    parser.add_argument("--timeout", metavar="SECONDS", type=int, default=5,
                        help="how long a peer may take (default: 5)")
    parser.add_argument("--json", action="store_true",
                        help="print one JSON object")
    parser.add_argument("--quiet", action="store_true",
                        help="print findings that have a remedy only")
    parser.add_argument("--strict", action="store_true",
                        help="exit status 1 for notes too")
    parser.add_argument("--version", action="version",
                        version=f"tandem-doctor {VERSION}")
    options = parser.parse_args()
    if options.listen and options.address:
        parser.error("--listen takes no ADDRESS")
    if not 1 <= options.timeout <= 3600:
        parser.error("--timeout takes 1 to 3600 seconds")
    try:
        options.peer = options.address and split_address(options.address)
    except ValueError as error:
        parser.error(str(error))
    return options


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.listen:
        return listen(options)
    findings = Findings()
    answer = check_module(findings)
    check_limits(findings)
    check_kernel(findings)
    findings.facts.update(own_facts())
    if answer:
        check_interfaces(findings, answer)
        check_here(findings, options)
        if options.peer:
            check_pair(findings, *options.peer, options)
    status = findings.status(options.strict)
    if options.json:
        findings.print_json(status)
    else:
        findings.print_text(options.quiet)
    return status


if __name__ == "__main__":
    sys.exit(main())

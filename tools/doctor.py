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
import fcntl
import fnmatch
import ipaddress
import json
import os
import re
import resource
import socket
import struct
import subprocess
import sys

VERSION = "@VERSION@"
LIBEXEC = "@pkglibexecdir@"
PROVIDER_DIR = "@provdir@"
CONF = "/etc/libfabric.conf"
MODULE = "libtandem-fi.so"

# Interfaces that managers of containers make, the same on every host.
SAME_EVERYWHERE = ("docker*", "br-[0-9a-f]*", "virbr*", "cni*", "podman*",
                   "lxcbr*", "lxdbr*", "incusbr*")

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
    paths = []
    for item in value.split(":"):
        paths += default if item == "DEFAULT" else [item.lstrip("+@")]
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
        remedy = f"export FI_PROVIDER_PATH={elsewhere}"
    else:
        remedy = ("install libfabric-tandem, or set FI_PROVIDER_PATH to the "
                  f"directory that has {MODULE}")
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
            findings.bad(check, f"{text}: {why}", remedy)
    if not wrong:
        findings.ok("kernel", "shared memory and unix sockets are allowed")


# ---- the command -------------------------------------------------------------

def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="tandem-doctor", description="Check this machine for tandem.", epilog="Exit status: 0 all is "
        "well, 1 something must be done, 2 usage.")
    parser.add_argument("--json", action="store_true",
                        help="print one JSON object")
    parser.add_argument("--quiet", action="store_true",
                        help="print findings that have a remedy only")
    parser.add_argument("--strict", action="store_true",
                        help="exit status 1 for notes too")
    parser.add_argument("--version", action="version",
                        version=f"tandem-doctor {VERSION}")
    return parser.parse_args()


def main():
    options = parse_arguments()
    findings = Findings()
    answer = check_module(findings)
    check_limits(findings)
    check_kernel(findings)
    if answer:
        check_interfaces(findings, answer)
    status = findings.status(options.strict)
    if options.json:
        findings.print_json(status)
    else:
        findings.print_text(options.quiet)
    return status


if __name__ == "__main__":
    sys.exit(main())

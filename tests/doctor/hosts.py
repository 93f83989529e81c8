# SPDX-License-Identifier: BSD-2-Clause
"""Hosts and sandboxes for the set-ups of tandem-doctor and the cases of tandem-perf.

A Host is a network namespace with a process that keeps it. All hosts end with
the program. deny() makes a command prefix under which a system call is refused.
"""

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys

# Numbers of the system calls that deny() knows, by machine.
CALLS = {
    "x86_64": {"process_vm_readv": 310, "memfd_create": 319, "socket": 41,
               "fallocate": 285},
    "aarch64": {"process_vm_readv": 270, "memfd_create": 279, "socket": 198,
                "fallocate": 47},
}


class Skip(Exception):
    """This machine cannot be set up so."""


def command(*words):
    """Run a command; Skip if it is refused."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"{' '.join(words)}: {done.stderr.strip()}")


def enter_namespaces():
    """Go on with mounts and processes that end with this program, as their root.

    Runs the program again, once. Skip if namespaces are forbidden here.
    """
    if "TANDEM_SETUPS" in os.environ:
        return
    user = [] if os.geteuid() == 0 else ["unshare", "--user",
                                         "--map-root-user"]
    words = [*user, "unshare", "--net", "--uts", "--mount", "--pid", "--fork",
             "--kill-child", "--mount-proc"]
    command(*words, "true")
    os.environ["TANDEM_SETUPS"] = "1"
    os.execvp(words[0], [*words, sys.executable, *sys.argv])


class Host:
    def __init__(self):
        # The name of this machine may stand for a loopback address here. The
        # empty line tells that the namespace is there.
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c",
             "echo testhost.invalid >/proc/sys/kernel/hostname; echo; "
             "exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if not self.keeper.stdout.readline():
            raise Skip(self.keeper.communicate()[1].decode().strip())
        self.pid = self.keeper.pid
        self.run("ip", "link", "set", "lo", "up")

    def inside(self, *words):
        """The words of a command that runs on this host."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net",
                f"--uts=/proc/{self.pid}/ns/uts", *words]

    def run(self, *words):
        command(*self.inside(*words))

    def write(self, path, text):
        self.run("sh", "-c", f"echo {text} >{path}")

    def link(self, name, address, other=None, other_address=None):
        """A veth link to a host, or to nowhere. Both ends are up."""
        end = name if other else f"{name}p"
        where = ["netns", str(other.pid)] if other else []
        self.run("ip", "link", "add", name, "type", "veth", "peer", "name",
                 end, *where)
        self.set_up(name, address)
        (other or self).set_up(end, other_address)
        for host, nic in ((self, name), (other or self, end)):
            # Until the link runs, fi_getinfo(3) does not offer its address.
            for _ in range(1000):
                done = subprocess.run(
                    host.inside("ip", "-o", "link", "show", nic),
                    capture_output=True, text=True, check=True)
                if "state UP" in done.stdout:
                    break
            else:
                raise Skip(f"{nic} does not come up")

    def set_up(self, name, address):
        if address:
            family = ["nodad"] if ":" in address else []
            self.run("ip", "address", "add", address, "dev", name, *family)
        self.run("ip", "link", "set", name, "up")

    def close(self):
        self.keeper.kill()
        self.keeper.communicate()


# ---- system calls that are refused -------------------------------------------

def deny(name, first=None, error=errno.EPERM):
    """Command prefix: the call fails with @error, if its first argument is that."""
    if platform.machine() not in CALLS:
        raise Skip(f"system calls of {platform.machine()} are not known")
    number = CALLS[platform.machine()][name]
    return [sys.executable, os.path.abspath(__file__), str(number),
            str(error), "any" if first is None else str(int(first))]


def install_filter(number, error, first):
    """seccomp(2): the filter is inherited by the program that follows."""
    load, equal, give = 0x20, 0x15, 0x06
    allow, refuse = 0x7fff0000, 0x00050000 | error
    code = [(load, 0, 0, 0), (equal, 0, 3 if first is not None else 1, number)]
    if first is not None:
        code += [(load, 0, 0, 16), (equal, 0, 1, first)]
    code += [(give, 0, 0, refuse), (give, 0, 0, allow)]
    raw = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(raw)
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    zero = ctypes.c_ulong(0)
    if libc.prctl(no_new_privileges, ctypes.c_ulong(1), zero, zero, zero) or \
            libc.prctl(set_seccomp, ctypes.c_ulong(mode_filter),
                       ctypes.create_string_buffer(program), zero, zero):
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    install_filter(int(sys.argv[1]), int(sys.argv[2]),
                   None if sys.argv[3] == "any" else int(sys.argv[3]))
    os.execvp(sys.argv[4], sys.argv[4:])

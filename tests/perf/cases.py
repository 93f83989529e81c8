#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
"""cases.py BUILD [WORD...]: tandem-perf between processes of one host and of two.

Each case is a method of Cases: figures with all data checked, over several
providers; CSV and pictures; and each way in which the other side can fail, with the
words in which both sides say so. No figure is judged. WORDs select the cases that
have one in their names.
"""

import csv
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "doctor"))
# pylint: disable-next=wrong-import-position
from hosts import Host, Skip, enter_namespaces

SIZES = "0,1,8,4097,300K"
BRIEF = ["--seconds=0.01", "--window=8"]
SECONDS = 120           # until a command that should have ended has failed
LONG_RUN = 5_000_000    # operations: a run of so many outlasts the act on it
PORT = "47593"


class Proxy(threading.Thread):
    """Passes lines between a client and a server, changed by a function."""

    def __init__(self, port, change):
        super().__init__(daemon=True)
        self.change = change
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = str(self.listener.getsockname()[1])
        self.server = socket.create_connection(("127.0.0.1", int(port)))
        self.start()

    def run(self):
        client = self.listener.accept()[0]
        threading.Thread(target=self.relay, args=(self.server, client),
                         daemon=True).start()
        self.relay(client, self.server)

    def relay(self, source, target):
        try:
            for line in source.makefile():
                target.sendall(self.change(line).encode())
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def one_line_server(text):
    """A server that says a line to one caller. Returns its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        caller = listener.accept()[0]
        caller.sendall(text.encode())
        caller.recv(1000)
        # Silence, until the caller has had enough.
        caller.recv(1000)
        caller.close()
    threading.Thread(target=serve, daemon=True).start()
    return str(listener.getsockname()[1])


class Cases:
    """Where the commands run, and the cases."""

    def __init__(self, build):
        self.perf = os.path.join(build, "tandem-perf")
        self.module = os.path.join(build, ".libs")
        self.folder = tempfile.mkdtemp(prefix="tandem-perf.")
        self.children = []
        self.hosts = [Host(), Host()]
        self.hosts[0].link("tandem0", "10.77.0.1/24", self.hosts[1],
                           "10.77.0.2/24")

    def close(self):
        for child in self.children:
            child.kill()
            child.communicate()
        for host in self.hosts:
            host.close()
        shutil.rmtree(self.folder)

    def start(self, *options, host=None, env=None):
        words = [self.perf, *options]
        if host:
            words = host.inside(*words)
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("FI_")}
        child = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**clean, "FI_PROVIDER_PATH": self.module, **(env or {})})
        self.children.append(child)
        return child

    def serve(self, *options, port="0", host=None, env=None):
        """Start a server. Returns it and its port."""
        server = self.start(f"--port={port}", *options, host=host, env=env)
        line = server.stdout.readline()
        found = re.match(r"waiting at port (\d+)", line)
        assert found, f"the server said {line}{server.communicate()}"
        return server, found.group(1)

    @staticmethod
    def end(child, status, pattern=""):
        """The child ends with the status and says so. Returns its output."""
        out, err = child.communicate(timeout=SECONDS)
        assert child.returncode == status, \
            f"exit status {child.returncode}:\n{out}{err}"
        assert re.search(pattern, err), f"no \"{pattern}\" in:\n{out}{err}"
        return out

    def both(self, *options, env=None, hosts=1):
        """Both sides succeed. Returns what the client printed."""
        places = [None, None] if hosts == 1 else self.hosts
        server, port = self.serve(host=places[0], env=env)
        client = self.start(f"--port={port}", *BRIEF, *options,
                            "127.0.0.1" if hosts == 1 else "10.77.0.1",
                            host=places[1], env=env)
        out = self.end(client, 0)
        self.end(server, 0)
        return out

    def refused(self, *options, pattern, there=None, server_options=()):
        """The client fails with the pattern, and the server with another."""
        server, port = self.serve(*server_options)
        client = self.start(f"--port={port}", *BRIEF, *options, "127.0.0.1")
        self.end(client, 1, pattern)
        self.end(server, 1, there or pattern)

    # ---- figures ----

    def checked(self, **where):
        """All tests, checked; each has its figures."""
        provider = where.pop("provider", "tandem")
        out = self.both("--csv", "--check", "--test=all",
                        f"--size={SIZES}", f"--provider={provider}", **where)
        rows = list(csv.DictReader(out.splitlines()))
        sizes = [0, 1, 8, 4097, 300 * 1024]
        want = [(name, size) for name in ("message", "tagged", "write", "read")
                for size in sizes] + [("atomic", 8)]
        got = [(row["pattern"], int(row["bytes"])) for row in rows]
        assert got == want, out
        for row in rows:
            # tcp leaves atomic operations to ofi_rxm.
            assert row["provider"] in (provider, f"{provider};ofi_rxm"), row
            times = [float(row[f"latency_{name}_us"])
                     for name in ("min", "median", "p99")]
            assert 0 < times[0] <= times[1] <= times[2], row
            assert int(row["latency_iterations"]) > 0, row
            rate = float(row["operations_per_s"])
            assert rate > 0 and int(row["operations"]) > 0, row
            assert abs(rate * int(row["bytes"]) / 1e6 -
                       float(row["mb_per_s"])) <= 0.001 * rate, row

    def data_are_right_over_shared_memory(self):
        self.checked()

    def data_are_right_over_tcp_of_tandem(self):
        self.checked(env={"FI_TANDEM_SHM": "off"})

    def data_are_right_between_hosts(self):
        self.checked(hosts=2)

    def data_are_right_over_libfabrics_shm(self):
        self.checked(provider="shm")

    def data_are_right_over_libfabrics_tcp(self):
        self.checked(provider="tcp", hosts=2)

    def data_are_right_over_rxm(self):
        self.checked(provider="tcp;ofi_rxm")

    def data_are_right_over_sockets(self):
        self.checked(provider="sockets")

    def table_names_the_path(self):
        for env, hosts, path in (({}, 1, "shared memory"),
                                 ({"FI_TANDEM_SHM": "off"}, 1, "TCP"),
                                 ({}, 2, "TCP")):
            out = self.both("--size=8", env=env, hosts=hosts)
            assert re.search(rf"^tagged messages: tandem, {path}", out), out

    def columns_are_those_asked_for(self):
        out = self.both("--size=1:4", "--measure=bandwidth", "--test=write")
        assert "MB/s" in out and "median" not in out, out
        assert len(re.findall(r"^ +[124] +[\d.]+$", out, re.M)) == 3, out

    def iterations_are_those_asked_for(self):
        out = self.both("--csv", "--size=8", "--iterations=123")
        row = next(csv.DictReader(out.splitlines()))
        # Whole windows: 16 of 8.
        assert (row["latency_iterations"], row["operations"],
                row["window"]) == ("123", "128", "8"), out

    def server_that_keeps_takes_clients_one_by_one(self):
        server, port = self.serve("--keep")
        for _ in range(3):
            self.end(self.start(f"--port={port}", *BRIEF, "--size=8",
                                "127.0.0.1"), 0)
        assert server.poll() is None

    def picture_is_svg(self):
        path = os.path.join(self.folder, "out.svg")
        options = [f"--plot={path}", "--size=0,8,64K", "--test=tagged,read"]
        if not shutil.which("gnuplot"):
            client = self.start(*options, "127.0.0.1")
            self.end(client, 1, "--plot needs gnuplot")
            return
        self.both(*options)
        root = xml.etree.ElementTree.parse(path).getroot()
        assert root.tag.endswith("svg"), root.tag
        text = "".join(root.itertext())
        for name in ("tagged messages", "one-sided reads", "Bandwidth"):
            assert name in text, text

    # ---- wrong data ----

    def wrong_data(self, test, change, pattern):
        server, port = self.serve("--timeout=1")
        proxy = Proxy(port, change)
        client = self.start(f"--port={proxy.port}", *BRIEF, "--check",
                            "--size=100", f"--test={test}", "127.0.0.1")
        self.end(client, 1, pattern)
        self.end(server, 1, pattern)

    def wrong_data_are_found(self):
        # The server expects the payload of another run.
        def change(line):
            return re.sub(r"^(run .* )(\d+)$", lambda m:
                          m.group(1) + str(int(m.group(2)) + 1), line)
        self.wrong_data("tagged", change, "wrong data: 100 of 100 bytes came")
        self.wrong_data("message", change, "wrong data: 100 of 100 bytes came")
        self.wrong_data("read", change, "wrong data: 100 of 100 bytes came")

    def wrong_memory_is_found(self):
        def change(line):
            return re.sub(r"^verify (\d+)",
                          lambda m: f"verify {int(m.group(1)) + 1}", line)
        for test in ("write", "atomic"):
            self.wrong_data(test, change, "wrong data: operation 1 of ")

    # ---- errors ----

    def nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        client = self.start(f"--port={port}", "127.0.0.1")
        self.end(client, 1, f"127.0.0.1 port {port}: Connection refused: "
                            "start tandem-perf there first")

    def unknown_host(self):
        self.end(self.start("host.invalid"), 1, "host.invalid port " + PORT)

    def stranger_there(self):
        port = one_line_server("HTTP/1.1 400 Bad Request\r\n")
        self.end(self.start(f"--port={port}", "127.0.0.1"), 1,
                 "is not tandem-perf")

    def silence_there(self):
        port = one_line_server("")
        self.end(self.start(f"--port={port}", "--timeout=1", "127.0.0.1"), 1,
                 "has not answered for 1 s")

    def other_version(self):
        said = ("is release 9.9 with protocol 99, this is release .*: "
                "install the same release on both sides")
        port = one_line_server("tandem-perf 99 9.9\n")
        self.end(self.start(f"--port={port}", "127.0.0.1"), 1, said)
        server, port = self.serve()
        with socket.create_connection(("127.0.0.1", int(port))) as caller:
            caller.sendall(b"tandem-perf 99 9.9\n")
            self.end(server, 1, said)

    def port_in_use(self):
        _, port = self.serve()
        self.end(self.start(f"--port={port}"), 1,
                 f"cannot listen at port {port}: Address already in use")

    def orders_beyond_all_limits(self):
        for order in ("open tagged tandem 9999999999999 64 0",
                      "open tagged tandem 8 999999 0", "open x tandem 8 8 0",
                      "run 1 8 1 1 1", "x" * 5000):
            server, port = self.serve()
            with socket.create_connection(("127.0.0.1", int(port))) as caller:
                caller.sendall(f"tandem-perf 1 0.1.0\n{order}\n".encode())
                self.end(server, 1, "ordered|sends no lines")

    def in_the_middle(self, test, act):
        """Act on the server and the client while a run is under way.

        The first runs, which warm up, may end before the act.
        """
        server, port = self.serve("--timeout=3")
        running = threading.Event()

        def change(line):
            if running.order and line == "ready\n":
                running.set()
            order = line.split()
            if order[0] == "run" and int(order[4]) >= LONG_RUN:
                running.order = True
            return line
        running.order = False
        proxy = Proxy(port, change)
        client = self.start(f"--port={proxy.port}", "--iterations=1000000000",
                            "--size=8", f"--test={test}", "--timeout=3",
                            "127.0.0.1")
        assert running.wait(SECONDS), client.communicate()
        act(server, client)

    def server_dies(self):
        def act(server, client):
            server.kill()
            self.end(client, 1, "has ended")
        for test in ("tagged", "write"):
            self.in_the_middle(test, act)

    def client_dies(self):
        def act(server, client):
            client.kill()
            self.end(server, 1, "has ended")
        for test in ("message", "read"):
            self.in_the_middle(test, act)

    def server_stops(self):
        def act(server, client):
            server.send_signal(signal.SIGSTOP)
            self.end(client, 1, "no operation has ended for 3 s")
        self.in_the_middle("tagged", act)

    def no_such_provider(self):
        self.refused("--provider=nosuch",
                     pattern="libfabric finds no provider nosuch here")

    def not_offered(self):
        self.refused("--provider=sm2", "--test=write",
                     pattern="sm2 does not offer this")

    def all_tests_are_those_that_there_are(self):
        server, port = self.serve()
        client = self.start(f"--port={port}", *BRIEF, "--provider=sm2",
                            "--csv", "--test=all", "--size=8", "127.0.0.1")
        out = self.end(client, 0, "no figures for read: .*sm2 does not offer")
        self.end(server, 0)
        assert [row["pattern"] for row in csv.DictReader(out.splitlines())
                ] == ["message", "tagged", "atomic"], out

    def other_provider_than_the_servers(self):
        self.refused("--provider=tandem", server_options=["--provider=tcp"],
                     pattern="asks for tandem, the server was started for tcp")

    def domain_is_chosen(self):
        out = self.both("--domain=lo", "--size=8")
        assert "shared memory" in out, out

    def no_such_domain(self):
        self.refused("--domain=nosuch", pattern="tandem offers nothing at "
                     "nosuch: fi_info -p tandem lists its domains")

    def wrong_command_lines(self):
        for options, why in (
                (["--size=7q"], "not a range of sizes: 7q"),
                (["--size=8:4"], "not a range of sizes: 8:4"),
                (["--size=2G"], "not a range of sizes: 2G"),
                (["--window=0"], "not a window: 0"),
                (["--test=foo"], "not a test: foo"),
                (["--measure=foo"], "not a measure: foo"),
                (["--seconds=0"], "not a time in seconds: 0"),
                (["--iterations=-1"], "not a number of operations: -1"),
                (["--port=70000"], "not a port: 70000"),
                (["--nosuch"], "--help lists the options"),
                (["a", "b"], "one host, not b too")):
            self.end(self.start(*options), 2, why)
        assert "usage:" in self.end(self.start("--help"), 0)
        assert re.match(r"tandem-perf \d", self.end(self.start("-V"), 0))


def run_case(build, name):
    """(what went wrong or None, why it was left out or None)."""
    cases = None
    try:
        cases = Cases(build)
        getattr(cases, name)()
        return None, None
    except Skip as why:
        return None, str(why)
    except (AssertionError, subprocess.TimeoutExpired) as why:
        return str(why) or repr(why), None
    finally:
        if cases:
            cases.close()


HELPERS = ("close", "start", "serve", "end", "both", "refused", "checked",
           "wrong_data", "in_the_middle")


def main():
    try:
        enter_namespaces()
    except Skip as why:
        print(f"no namespaces here: {why}")
        return 77
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    build = os.path.abspath(sys.argv[1])
    names = [name for name in vars(Cases) if not name.startswith("_")
             and name not in HELPERS and (
                 not sys.argv[2:] or any(w in name for w in sys.argv[2:]))]
    passed = failed = skipped = 0
    for name in names:
        wrong, left_out = run_case(build, name)
        passed += not wrong and not left_out
        failed += bool(wrong)
        skipped += bool(left_out)
        if left_out:
            print(f"skip  {name}: {left_out}", flush=True)
        else:
            print(f"FAIL  {name}: {wrong}" if wrong else f"ok    {name}",
                  flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0 or not passed


if __name__ == "__main__":
    sys.exit(main())

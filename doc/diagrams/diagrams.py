#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draw the pictures of README.md and ARCHITECTURE.md.

    doc/diagrams/diagrams.py LINKS           write the .svg files beside this
    doc/diagrams/diagrams.py --check LINKS   are they what it would write?

LINKS is the file "links" that .ci/layers.sh leaves in its folder of build/. It
has the uses of symbols between folders, one a line: the folder that uses and
the one that defines, the object, the symbol, and "way" if the arrows between
folders allow it, else "exception".

Needs nothing but Python 3. Boxes are (x, y, width, height); arrows run between
two points, with an optional label beside their middle.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

INK, SOFT, SHM, TCP = "#1f2933", "#7b8794", "#1b7f5c", "#2f5fb3"
PAPER, BOX, HOST = "#ffffff", "#f5f7fa", "#fbfcfd"


class Picture:
    def __init__(self, width, height, title):
        self.body = []
        self.width, self.height, self.title = width, height, title

    def box(self, x, y, w, h, fill=BOX, stroke=SOFT, dash=False):
        extra = ' stroke-dasharray="5 4"' if dash else ""
        self.body.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" '
            f'fill="{fill}" stroke="{stroke}"{extra}/>')

    def text(self, x, y, words, size=13, color=INK, weight="normal",
             anchor="middle", mono=False):
        family = "monospace" if mono else "sans-serif"
        words = (words.replace("&", "&amp;").replace("<", "&lt;")
                 .replace(">", "&gt;"))
        self.body.append(
            f'<text x="{x}" y="{y}" font-family="{family}" '
            f'font-size="{size}" font-weight="{weight}" fill="{color}" '
            f'text-anchor="{anchor}">{words}</text>')

    def node(self, x, y, w, h, name, *lines, mono=True, **style):
        self.box(x, y, w, h, **style)
        top = y + h / 2 - 8.5 * len(lines) + 5
        self.text(x + w / 2, top, name, 14, weight="bold", mono=mono)
        for i, line in enumerate(lines):
            self.text(x + w / 2, top + 17 * (i + 1), line, 12, SOFT)

    def arrow(self, x1, y1, x2, y2, color=INK, both=False, width=1.5,
              dash=False):
        name = {INK: "ink", SHM: "shm", TCP: "tcp"}[color]
        start = f' marker-start="url(#{name})"' if both else ""
        extra = ' stroke-dasharray="5 4"' if dash else ""
        self.body.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" '
            f'stroke="{color}" stroke-width="{width}"{extra}{start} '
            f'marker-end="url(#{name})"/>')

    def bend(self, points, color=INK, dash=False):
        name = {INK: "ink", SHM: "shm", TCP: "tcp"}[color]
        extra = ' stroke-dasharray="5 4"' if dash else ""
        path = " ".join(f"{x},{y}" for x, y in points)
        self.body.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" '
            f'stroke-width="1.5"{extra} marker-end="url(#{name})"/>')

    def svg(self):
        heads = "".join(
            f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" '
            f'markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse">'
            f'<path d="M0 0 L10 5 L0 10 z" fill="{color}"/></marker>'
            for name, color in (("ink", INK), ("shm", SHM), ("tcp", TCP)))
        return "\n".join(
            [f'<svg xmlns="http://www.w3.org/2000/svg" '
             f'width="{self.width}" height="{self.height}" '
             f'viewBox="0 0 {self.width} {self.height}" role="img">',
             f"<title>{self.title}</title>",
             f"<defs>{heads}</defs>",
             f'<rect width="{self.width}" height="{self.height}" '
             f'fill="{PAPER}"/>'] + self.body + ["</svg>", ""])


def overview():
    """Two hosts, four processes, one provider."""
    p = Picture(760, 330, "Processes of one host use shared memory, "
                          "processes of different hosts use TCP")
    for side, x in (("host 1", 20), ("host 2", 450)):
        p.box(x, 20, 290, 285, fill=HOST)
        p.text(x + 16, 44, side, 14, SOFT, "bold", "start")
        for i, y in enumerate((62, 202)):
            n = i + (0 if x == 20 else 2)
            p.box(x + 30, y, 230, 80, stroke=INK)
            p.text(x + 145, y + 26, f"process {n}", 14, weight="bold")
            p.text(x + 145, y + 46, "one endpoint, one AV,", 12, SOFT)
            p.text(x + 145, y + 63, "one CQ: tandem", 12, SOFT)
        p.arrow(x + 145, 144, x + 145, 200, SHM, both=True, width=3)
        p.text(x + 155, 177, "shared memory", 13, SHM, "bold", "start")
    for y1, y2 in ((90, 90), (105, 225), (240, 120), (255, 255)):
        p.arrow(282, y1, 478, y2, TCP, both=True)
    p.text(380, 290, "TCP", 13, TCP, "bold")
    return p


# Folders from the top of the picture to its bottom: place, height, what it is.
ROOMS = {
    "tcp": (40, 100, 58, "the owner: what the application sees"),
    "coll": (440, 101, 42, "plans of collective operations"),
    "tcp/wire": (40, 186, 58, "the TCP transport"),
    "av": (40, 272, 58, "addresses and locality"),
    "peer": (40, 358, 58, "owner side of fi_peer(3): queues, matching"),
    "shm": (440, 358, 58, "a peer provider of its own: rings, copies"),
    "include": (240, 452, 58, "what owner and peers tell each other"),
    "base": (240, 538, 44, "toolbox"),
}


# Arrows between folders that are not above one another.
BENDS = {
    ("tcp", "coll"): [(322, 128), (438, 128)],
    ("coll", "base"): [(722, 122), (740, 122), (740, 560), (522, 560)],
}


def room_of(include):
    """The folder of a header as it stands in an #include, or None."""
    folder, name = os.path.split(include)
    if folder in ROOMS:
        return folder
    return "include" if name.startswith(("tdm_", "fi_ext_")) else None


def links(path):
    """Uses of symbols between folders, as two sets: pairs of folders that the
    arrows allow, and exceptions (folder, folder, object, symbol)."""
    ways, exceptions = set(), set()
    with open(path, encoding="utf-8") as f:
        for line in f:
            user, home, source, symbol, kind = line.split()
            if kind == "way":
                ways.add((user, home))
            else:
                exceptions.add((user, home, source, symbol))
    if not ways:
        sys.exit(f"{path} has no use of a symbol")
    return ways, exceptions


def includes(top):
    """Pairs (folder, folder): files of the first include some of the second."""
    found = set()
    for room in ROOMS:
        where = os.path.join(top, room)
        for name in sorted(os.listdir(where)):
            if not name.endswith((".c", ".h")):
                continue
            with open(os.path.join(where, name), encoding="utf-8") as f:
                for line in f:
                    match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
                    other = match and room_of(match.group(1))
                    if other and other != room:
                        found.add((room, other))
    return found


def reach(start, edges):
    """What @start leads to over @edges."""
    seen, todo = set(), [start]
    while todo:
        here = todo.pop()
        for a, b in edges:
            if a == here and b not in seen:
                seen.add(b)
                todo.append(b)
    return seen


def layers(uses):
    """Folders, and which of them include or link to which others."""
    edges, exceptions = uses
    edges = edges | includes(os.path.dirname(os.path.dirname(HERE)))
    for a, b in edges:
        if ROOMS[a][1] >= ROOMS[b][1] or a in reach(b, edges):
            sys.exit(f"{a}/ uses {b}/, which is not below it")
    p = Picture(760, 600, "Direction of dependencies between the folders")
    p.node(40, 30, 680, 40, "application and libfabric core", mono=False,
           fill=PAPER, dash=True)
    p.arrow(180, 70, 180, 98)
    for room, (x, y, h, what) in ROOMS.items():
        p.node(x, y, 280, h, room + "/", what)
    # An arrow that others imply together is left out.
    for a, b in sorted(edges):
        if b in reach(a, edges - {(a, b)}):
            continue
        if (a, b) in BENDS:
            p.bend(BENDS[a, b])
            continue
        (ax, ay, ah, _), (bx, by, _, _) = ROOMS[a], ROOMS[b]
        p.arrow((ax + bx) / 2 + 140, ay + ah, (ax + bx) / 2 + 140, by - 2)
    # The place in the picture is that of an arrow from tcp/ to shm/.
    for i, (a, b, source, symbol) in enumerate(sorted(exceptions)):
        if i or (a, b) != ("tcp", "shm"):
            sys.exit(f"{source} uses {symbol} of {b}/: draw it too")
        p.bend([(322, 115), (400, 115), (400, 372), (438, 372)], dash=True)
        p.text(408, 222, "the exception:", 12, anchor="start")
        p.text(408, 239, f"{source}.c links to {symbol}()", 12,
               anchor="start")
    p.arrow(322, 387, 438, 387, SHM, both=True, dash=True)
    p.text(580, 296, "at run time only, by public libfabric calls:", 12, SHM)
    p.text(580, 313, "exported CQ, counters, receive queue, EQ", 12, SHM)
    p.text(580, 330, "and domain; user ids in the AV", 12, SHM)
    p.text(590, 170, "solid arrow: may include and link to,", 12, SOFT)
    p.text(590, 187, "and to all that follows", 12, SOFT)
    p.text(590, 210, "dashed green arrow: calls by fid, no include", 12, SHM)
    return p


def route():
    """How a pair finds its path."""
    p = Picture(760, 400, "States of a pair of endpoints")
    p.node(40, 150, 160, 60, "UNKNOWN", "attach", mono=True)
    p.node(300, 150, 160, 60, "UNKNOWN", "probe", mono=True)
    p.node(560, 150, 160, 60, "UNKNOWN", "attach again", mono=True)
    p.node(300, 20, 160, 60, "LOCAL", "shared memory", stroke=SHM)
    p.node(300, 300, 160, 60, "REMOTE", "TCP", stroke=TCP)
    p.arrow(200, 180, 298, 180)
    p.text(249, 165, "nobody", 12)
    p.text(249, 200, "listens", 12)
    p.arrow(460, 180, 558, 180)
    p.text(509, 165, "its TCP port", 12)
    p.text(509, 200, "answers", 12)
    p.bend([(340, 210), (340, 232), (160, 232), (160, 212)])
    p.text(250, 249, "refused: try later", 12)
    p.bend([(90, 150), (90, 40), (298, 40)], SHM)
    p.text(100, 30, "attached", 12, SHM, anchor="start")
    p.bend([(640, 150), (640, 40), (462, 40)], SHM)
    p.text(634, 30, "attached", 12, SHM, anchor="end")
    p.bend([(90, 210), (90, 340), (298, 340)], TCP)
    p.text(100, 290, "not of this network", 12, TCP, anchor="start")
    p.text(100, 307, "namespace, refused, or", 12, TCP, anchor="start")
    p.text(100, 324, "shared memory is off", 12, TCP, anchor="start")
    p.bend([(640, 210), (640, 340), (462, 340)], TCP)
    p.text(634, 324, "again nobody, or refused", 12, TCP, anchor="end")
    p.bend([(300, 65), (150, 65), (150, 148)])
    p.text(160, 82, "peer lost", 12, anchor="start")
    p.bend([(300, 312), (270, 312), (270, 268), (60, 268), (60, 212)])
    p.text(276, 282, "peer lost", 12, anchor="start")
    p.bend([(460, 66), (546, 66), (546, 308), (462, 308)], TCP)
    for y, words in ((84, "the peer"), (101, "connected"), (118, "by TCP")):
        p.text(554, y, words, 12, TCP, anchor="start")
    return p


def main():
    stale = 0
    check = sys.argv[1:2] == ["--check"]
    if len(sys.argv) != 2 + check:
        sys.exit(__doc__)
    uses = links(sys.argv[-1])
    for draw in (overview, layers, route):
        path = os.path.join(HERE, draw.__name__ + ".svg")
        svg = (draw(uses) if draw == layers else draw()).svg()
        if check:
            try:
                with open(path, encoding="utf-8") as f:
                    same = f.read() == svg
            except OSError:
                same = False
            if not same:
                print(f"{path}: run doc/diagrams/diagrams.py {sys.argv[-1]}")
                stale = 1
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(svg)
    return stale


if __name__ == "__main__":
    sys.exit(main())

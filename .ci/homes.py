#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A function is declared in the header of its file's name.

X.h and X_priv.h declare the functions of X.c and of X_*.c. A header that is an
interface, or that declares a few functions of another file for a reason, names
that file.
"""

import glob
import os
import re
import sys

FOLDERS = ("base", "include", "av", "peer", "shm", "tcp", "tcp/wire")
FUNCTION = re.compile(
    r'^(?!static|extern|typedef|#|\s|/|\})[^\n;(={]*?\b(tdm_\w+)\(', re.M)


def text_of(path, comments=True):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return text if comments else re.sub(r'/\*.*?\*/', '', text, flags=re.S)


def end_of_call(text, at):
    """The place behind the parenthesis that closes the one at @at."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i + 1
    return len(text)


def functions(path):
    """(name, is it a definition?) of each extern function in a file."""
    text = text_of(path, comments=False)
    for match in FUNCTION.finditer(text):
        rest = text[end_of_call(text, match.end() - 1):]
        mark = re.match(r'[^;{]*([;{])', rest)
        if mark:
            yield match.group(1), mark.group(1) == "{"


def is_home(header, source):
    if os.path.dirname(header) != os.path.dirname(source):
        return False
    own = os.path.basename(header)[:-2].replace("_priv", "")
    name = os.path.basename(source)[:-2]
    return name == own or name.startswith(own + "_")


def main():
    defined = {name: source
               for folder in FOLDERS
               for source in sorted(glob.glob(f"{folder}/*.c"))
               for name, body in functions(source) if body}
    declared = bad = 0
    for folder in FOLDERS:
        for header in sorted(glob.glob(f"{folder}/*.h")):
            text = text_of(header)
            for name, body in functions(header):
                source = defined.get(name)
                if body or not source:
                    continue
                declared += 1
                file = os.path.basename(source)
                if is_home(header, source) or \
                        re.search(rf'\b{re.escape(file)}\b', text):
                    continue
                print(f"{header}: {name}() is in {source}, "
                      f"which the header does not name")
                bad += 1
    print(f"{declared} functions are declared at home")
    return bad != 0


sys.exit(main())

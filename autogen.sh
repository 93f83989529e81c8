#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Make configure and the Makefile.in; needed once after a clone.
set -e
cd "$(dirname "$0")"
exec autoreconf -fi

# SPDX-License-Identifier: BSD-2-Clause
"""tandem for Spack: put this file into a repository of yours as
packages/libfabric-tandem/package.py, and the release tarball into the folder
where you run `spack install libfabric-tandem`."""

import os

from spack.package import *


class LibfabricTandem(AutotoolsPackage):
    """libfabric provider that reaches processes on the same host through shared
    memory and others through TCP, as one provider."""

    manual_download = True
    url = f"file://{os.getcwd()}/tandem-0.1.0.tar.xz"

    license("BSD-2-Clause")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@2.1:")
    depends_on("libevent@2.1:")
    depends_on("openssl@3:")
    depends_on("zlib-api")
    # tandem-doctor, tandem-stat
    depends_on("python@3.9:", type="run")

    def setup_run_environment(self, env):
        env.prepend_path("FI_PROVIDER_PATH", "+" + join_path(
            self.prefix.lib.libfabric, "libtandem-fi.so"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def module_answers(self):
        fi_info = Executable(self.spec["libfabric"].prefix.bin.fi_info)
        fi_info.add_default_env("FI_PROVIDER_PATH", self.prefix.lib.libfabric)
        fi_info("-p", "tandem")

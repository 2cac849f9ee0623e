"""Builds scan.c. It uses nothing of Python, so one wheel serves every version; without a compiler it is left out."""

import sys

from setuptools import Extension, setup

# It reads what strangers wrote: a write out of bounds that a test missed ends the process rather than taking it over.
# The Dockerfile and tests/analyzer/reading/test_hardening.py have the same.
# Distributions set another level of FORTIFY_SOURCE, and two are an error.
HARDENED = ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong", "-fstack-clash-protection"]
LINKED = ["-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]
IS_LINUX = sys.platform == "linux"

setup(
    ext_modules=[
        Extension(
            "fleetprof_accelerator._scan",
            ["fleetprof_accelerator/scan.c"],
            # This file too: a build folder that is there would keep an object of other flags.
            depends=["setup.py", *(f"fleetprof_accelerator/{name}.h" for name in ("arguments", "json", "texts"))],
            extra_compile_args=["-O3", "-g0", "-fvisibility=hidden", *(HARDENED if IS_LINUX else [])],
            extra_link_args=LINKED if IS_LINUX else [],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

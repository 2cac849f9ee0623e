"""Builds scan.c. It uses nothing of Python, so one wheel serves every version; without a compiler it is left out."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "fleetprof_accelerator._scan",
            ["fleetprof_accelerator/scan.c"],
            depends=["fleetprof_accelerator/json.h", "fleetprof_accelerator/texts.h"],
            extra_compile_args=["-O3", "-g0", "-fvisibility=hidden"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

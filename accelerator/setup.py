"""Builds scan.c. It uses nothing of Python, so one wheel serves every version; without a compiler it is left out."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "fleetprof_accelerator._scan",
            ["fleetprof_accelerator/scan.c"],
            depends=[f"fleetprof_accelerator/{name}.h" for name in ("arguments", "json", "texts")],
            extra_compile_args=["-O3", "-g0", "-fvisibility=hidden"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

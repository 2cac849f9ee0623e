"""Builds the scanner with Cargo. One wheel serves every version of Python; without Rust it is left out."""

from setuptools import setup
from setuptools_rust import Binding, RustExtension

setup(
    rust_extensions=[
        RustExtension(
            "fleetprof_accelerator._scan",
            binding=Binding.PyO3,
            # The lock file says which crates, by their digests.
            args=["--locked"],
            debug=False,
            py_limited_api="auto",
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

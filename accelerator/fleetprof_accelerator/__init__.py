"""The optional accelerator of fleetprof's trace reader: `scan.c`, compiled.

`fleetprof_analyzer.reading.scanning` uses it where it is installed; results are the same without. Guarantees: importing
it starts nothing; `load` raises OSError where the compiled file is missing or does not fit this machine.
"""

import ctypes
from pathlib import Path

_VERSION = 1


class Block(ctypes.Structure):
    """`Block` of scan.c."""

    _fields_ = [
        ("capacity", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in (
            "category", "name", "place", "shape", "start_ns", "duration_ns", "correlation", "detail", "external_id",
            "present", "args_at", "args_length",
        )),
        ("instant_capacity", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in (
            "instant_at", "instant_length", "memory_device", "memory_at_ns", "memory_allocated", "memory_reserved",
        )),
        *((name, ctypes.c_int64) for name in ("rows", "instants", "memories", "events")),
    ]  # fmt: skip


def load() -> ctypes.CDLL:
    """The compiled functions of scan.c, with their types. Raises OSError."""
    found = sorted(Path(__file__).parent.glob("_scan*"))
    if not found:
        raise OSError("fleetprof_accelerator was built without a C compiler: it holds no compiled scanner")
    library = ctypes.CDLL(str(found[0]))
    library.fp_version.restype = ctypes.c_int
    if library.fp_version() != _VERSION:
        raise OSError(f"{found[0].name} is of version {library.fp_version()}, this package needs {_VERSION}")
    scanner, text = ctypes.c_void_p, ctypes.c_char_p
    for name, answer, arguments in (
        ("fp_new", scanner, [ctypes.c_int8, ctypes.c_int8]),
        ("fp_free", None, [scanner]),
        ("fp_keep_category", ctypes.c_int, [scanner, text, ctypes.c_int, ctypes.c_int8]),
        ("fp_keep_instant", ctypes.c_int, [scanner, text, ctypes.c_int]),
        ("fp_scan", ctypes.c_int64, [scanner, text, ctypes.c_int64, ctypes.POINTER(Block)]),
        ("fp_text_count", ctypes.c_int64, [scanner, ctypes.c_int]),
        ("fp_text", ctypes.c_void_p, [scanner, ctypes.c_int, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = answer, arguments
    return library

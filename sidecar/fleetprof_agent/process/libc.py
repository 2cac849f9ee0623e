"""The agent's calls of the C library itself, because Python's way would change something of the job's.

A Python socket made around a descriptor of the job (`fileno=`) sets O_NONBLOCK on the description that its owner
shares, once the job has called `socket.setdefaulttimeout`: a logger on a socket then loses lines. And a forked child
may load and look up nothing: a thread of its parent may have held the loader's lock at the fork.

Guarantees: nothing is loaded (ctypes has had this handle since its import, and PyTorch imports ctypes); functions are
looked up when this module is imported, none later; no descriptor's flags change.
"""

from __future__ import annotations

import ctypes
import os
import struct

AF_UNIX = 1
_ADDRESS_BYTES = 128  # struct sockaddr_storage
_getsockname = ctypes.pythonapi["getsockname"]
try:
    _on_exit, _exit = ctypes.pythonapi["on_exit"], ctypes.pythonapi["_exit"]
    _cxa_atexit, _fflush = ctypes.pythonapi["__cxa_atexit"], ctypes.pythonapi["fflush"]
except AttributeError:  # not glibc: has no on_exit
    _on_exit = None  # type: ignore[assignment]


def read_socket_path(descriptor: int) -> str:
    """The path that a Unix socket is bound to; "" for all other descriptors."""
    address = ctypes.create_string_buffer(_ADDRESS_BYTES)
    length = ctypes.c_uint32(_ADDRESS_BYTES)
    if _getsockname(descriptor, address, ctypes.byref(length)) != 0:
        return ""
    found = address.raw[: min(length.value, _ADDRESS_BYTES)]
    if len(found) < 3 or struct.unpack_from("=H", found)[0] != AF_UNIX or not found[2]:
        return ""  # of another family, unbound, or without a path
    return os.fsdecode(found[2:].partition(b"\0")[0])


def skip_destructors_at_exit() -> None:
    """The exit that has begun flushes C's streams and ends with the status it has, before C++'s destructors.

    What Python does at exit is done by then. Nothing where the C library is not glibc.
    """
    if _on_exit is None:
        return
    # Run in the reverse order, and before what was registered when the libraries were loaded.
    _on_exit(_exit, None)
    _cxa_atexit(_fflush, None, None)

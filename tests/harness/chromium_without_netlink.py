#!/usr/bin/env python3
"""Starts the program that FLEETPROF_CHROMIUM names, with these arguments, and without netlink sockets.

Chromium hears of each change of a network interface through such a socket, and then ends all its requests with
ERR_NETWORK_CHANGED, those to loopback too. The tests on Kubernetes make and remove interfaces beside those of pages.
Without the socket it takes the network as it is. Guarantees: standard library alone; file descriptors stay open, since
Playwright speaks through them.
"""

import ctypes
import os
import platform
import struct
import sys

# Of linux/audit.h and asm/unistd.h: the architecture, and the number of socket(2) on it.
_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_AF_NETLINK = 16
_EAFNOSUPPORT = 97
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # codes of linux/bpf_common.h
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
_NUMBER_AT, _ARCHITECTURE_AT, _FAMILY_AT = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


def refuse_netlink() -> None:
    """Has socket(AF_NETLINK, …) fail in this process and what it becomes. Raises OSError."""
    architecture, number = _SOCKET[platform.machine()]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 0, 5, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_EQUAL, 0, 3, number),
        (_LOAD, 0, 0, _FAMILY_AT),
        (_JUMP_IF_EQUAL, 0, 1, _AF_NETLINK),
        (_RETURN, 0, 0, _FAIL_WITH | _EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    filter_ = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, *arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(filter_)),
    ):
        if libc.prctl(option, *arguments, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option})")


if __name__ == "__main__":
    if platform.machine() in _SOCKET:
        refuse_netlink()
    os.execv(os.environ["FLEETPROF_CHROMIUM"], [os.environ["FLEETPROF_CHROMIUM"], *sys.argv[1:]])

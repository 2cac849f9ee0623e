"""The process at the other end of a Unix socket."""

import socket
import struct


def peer_uid(connection: socket.socket) -> int:
    """The uid of the process that opened the other end, by the kernel's word."""
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)

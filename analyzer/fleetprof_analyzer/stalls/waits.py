"""The kernel's word on what a thread waits in (`wchan`), as the kinds of waiting that rules ask for.

A name that no row has is said by none of them: poll and epoll wait for anything. Source: Linux 5.10 to 6.18.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final


class Wait(Enum):
    """Kinds of waiting."""

    SLEEP = "sleep"
    OTHER_THREAD = "other thread"
    CHILD = "child"
    FILE_LOCK = "file lock"
    PIPE = "pipe"
    SOCKET = "socket"
    FILE_SYSTEM = "file system"


_BEGINNINGS: Final[Sequence[tuple[Wait, tuple[str, ...]]]] = (
    (Wait.SLEEP, ("hrtimer_nanosleep", "do_nanosleep", "common_nsleep")),
    (Wait.OTHER_THREAD, ("futex_",)),
    (Wait.CHILD, ("do_wait", "kernel_wait4", "kernel_waitid")),
    (Wait.FILE_LOCK, ("locks_lock_inode_wait", "flock_lock_inode_wait", "fcntl_setlk", "posix_lock_inode_wait")),
    (Wait.PIPE, ("pipe_", "anon_pipe_", "fifo_pipe_", "wait_for_partner")),
    (
        Wait.SOCKET,
        ("wait_woken", "sk_wait_data", "unix_stream_", "inet_csk_accept", "__skb_wait_for_more_packets", "inet_wait_"),
    ),
    (
        Wait.FILE_SYSTEM,
        ("rpc_", "nfs_", "nfs4_", "fuse_", "request_wait_answer", "ceph_", "cl_sync_", "io_schedule", "folio_wait_"),
    ),
    (Wait.FILE_SYSTEM, ("wait_on_page_", "__wait_on_buffer", "jbd2_", "wait_on_commit")),
)


def find_wait(waits_in: str) -> Wait | None:
    """The kind of waiting in a function of the kernel."""
    name = waits_in.removeprefix("__arm64_").removeprefix("__x64_")
    return next((wait for wait, beginnings in _BEGINNINGS if name.startswith(beginnings)), None)

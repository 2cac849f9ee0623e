"""The stacks that a request read: the verdict of each look, and the groups of ranks at the same place."""

from typing import Annotated

from msgspec import Meta

from fleetprof_webui.models.model import Model, Ns, UnixNs


class StackFrame(Model):
    """One line that a thread is in."""

    file: str
    line: int
    function: str
    is_own: Annotated[bool, Meta(description="the job's own code, not a library's")]


class OtherThread(Model):
    """A thread of the first rank of a group beside its main one."""

    name: str
    frames: list[StackFrame]


class RankGroup(Model):
    """Ranks whose main threads are at the same place; frames are the innermost first, none where no stack is known."""

    ranks: Annotated[list[int], Meta(description="the first of them")]
    rank_count: int
    nodes: Annotated[list[str], Meta(description="where they run, the first of them")]
    is_named: Annotated[bool, Meta(description="the verdict names one of them")]
    state: Annotated[str, Meta(description="the first one's main thread by the kernel, a letter of proc(5)")]
    frames: list[StackFrame]
    threads: list[OtherThread]


class StacksLook(Model):
    """One look at the job."""

    at_unix_ns: UnixNs | None
    cause: Annotated[str, Meta(description="a word of docs/hangs.md")]
    sentence: str
    advice: str
    may_go_on: Annotated[bool, Meta(description="a healthy job may look alike while it works for long")]
    stands_ns: Ns
    groups: list[RankGroup]
    groups_left_out: int


class StacksPage(Model):
    """The document of a request for stacks, the latest look last."""

    looks: list[StacksLook]

"""Work of devices as a graph that resolves itself: each node begins when it was launched and what it follows has ended.

A meeting (a collective) begins on each member by itself, and ends on all of them when the last has come and the
transfer is over. Work may hold several meetings, as a batch of sends does: it ends with the last of them. Guarantees:
the same graph gives the same times, in whatever order its nodes are added. Times in µs.
"""

from collections import deque
from dataclasses import dataclass, field

_DEPENDENCY_US = 1.0


@dataclass(eq=False, slots=True)
class Meeting:
    """A collective of `size` members; `late_us` is how much later than the transfer each of them notices its end."""

    size: int
    transfer_us: float
    late_us: list[float]
    members: list["Work"] = field(default_factory=list)
    came: int = 0


@dataclass(eq=False, slots=True)
class Work:
    """Work on a stream. `beside`: while one of these runs it takes `slowed` times as long."""

    launched: float
    length: float
    follows: list["Work"]
    meeting: Meeting | None = None
    batch: list[Meeting] = field(default_factory=list)
    beside: list["Work"] = field(default_factory=list)
    slowed: float = 1.0
    start: float = 0.0
    until: float = 0.0  # when the last meeting of the batch that is over was over
    left: int = 0  # meetings of the batch that are not
    end: float | None = None
    pending: int = 0
    followers: list["Work"] = field(default_factory=list)
    hosts: list[int] = field(default_factory=list)  # ranks whose hosts wait for it

    @property
    def ended(self) -> float:
        assert self.end is not None
        return self.end


class WorkGraph:
    """Nodes as they are added; `woken` are the ranks whose hosts may go on."""

    def __init__(self) -> None:
        self.woken: deque[int] = deque()
        self._ready: list[Work] = []

    def add(self, node: Work) -> Work:
        for earlier in node.follows:
            if earlier.end is None:
                node.pending += 1
                earlier.followers.append(node)
        if node.meeting is not None:
            node.meeting.members.append(node)
        for part in node.batch:
            part.members.append(node)
        node.left = len(node.batch)
        if not node.pending:
            self._ready.append(node)
            self._settle()
        return node

    def _settle(self) -> None:
        while self._ready:
            node = self._ready.pop()
            node.start = node.launched
            for earlier in node.follows:
                if (begin := earlier.ended + _DEPENDENCY_US) > node.start:
                    node.start = begin
            if node.batch:
                for part in node.batch:
                    self._come(part)
                continue
            if node.meeting is None:
                length = node.length
                for one in node.beside:
                    if one.end is None or one.end > node.start:
                        length = node.length * node.slowed
                        break
                self._end(node, node.start + length)
                continue
            meeting = node.meeting
            meeting.came += 1
            if meeting.came == meeting.size:
                over = max(member.start for member in meeting.members) + meeting.transfer_us
                for member, late in zip(meeting.members, meeting.late_us, strict=True):
                    self._end(member, over + late)

    def _come(self, meeting: Meeting) -> None:
        """One more member of a meeting of batches is there."""
        meeting.came += 1
        if meeting.came < meeting.size:
            return
        over = max(member.start for member in meeting.members) + meeting.transfer_us
        for member, late in zip(meeting.members, meeting.late_us, strict=True):
            member.until = max(member.until, over + late)
            member.left -= 1
            if not member.left:
                self._end(member, member.until)

    def _end(self, node: Work, moment: float) -> None:
        node.end = moment
        if node.hosts:
            self.woken.extend(node.hosts)
        for follower in node.followers:
            follower.pending -= 1
            if not follower.pending:
                self._ready.append(follower)
        node.followers, node.follows, node.beside, node.hosts = [], [], [], []

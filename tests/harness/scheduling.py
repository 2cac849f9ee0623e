"""The order in which pytest-xdist hands out tests: those of a group together, others a few at a time.

One at a time costs a message, and the controller a look at all that it handed out before; and what the tests of a file
share would be made in each worker. Many at a time would leave a worker with slow ones at the end.
"""

from collections import Counter

from xdist.scheduler.loadgroup import LoadGroupScheduling

_AT_ONCE = 4


class FewAtATime(LoadGroupScheduling):  # type: ignore[misc]
    """As `--dist loadgroup`, but for tests without a group: neighbours of a file are together."""

    def __init__(self, *how: object) -> None:
        super().__init__(*how)
        self._scopes: dict[str, str] = {}
        self._tests_of: Counter[str] = Counter()

    def _split_scope(self, nodeid: str) -> str:
        if nodeid not in self._scopes:
            scope = super()._split_scope(nodeid)
            if scope == nodeid:
                file = nodeid.partition("::")[0]
                scope = f"{file} {self._tests_of[file] // _AT_ONCE}"
                self._tests_of[file] += 1
            self._scopes[nodeid] = scope
        return self._scopes[nodeid]

"""Puts together the messages of an agent about the modules of one marked iteration.

Guarantees: columns stay of equal length and bounded, whatever the agent sends (agent_messages.py has checked types and
ranges); messages may come twice or in any order. The number of a module is that of the agent's message, not its mark's.
"""

from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api.samples import MOST_MODULES, ModuleColumns

_COLUMNS: Final = ModuleColumns.__struct_fields__


class ModuleRecorder:
    """The modules of one rank and capture."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, ...]] = {}

    def add(self, fields: Mapping[str, Any]) -> None:
        """One message "modules" as in wire.py."""
        rows = zip(*(fields[name] for name in _COLUMNS), strict=True)
        self._rows.update((n, row) for n, row in enumerate(rows, fields["first"]) if n < MOST_MODULES)

    def columns(self) -> ModuleColumns:
        """All that was said, in the agent's order."""
        rows = [row for _, row in sorted(self._rows.items())]
        return ModuleColumns(**{name: [row[at] for row in rows] for at, name in enumerate(_COLUMNS)})

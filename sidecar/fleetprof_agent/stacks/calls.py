"""The name of what a line calls, from its instructions alone: no frame, no variable and no file is looked at.

Guarantees: raises nothing; "" where Python (before 3.11) does not tell, or where the instruction is no call.
"""

from __future__ import annotations

import sys
from typing import Any

from fleetprof_agent.errors import pass_on

CALL_CHARACTERS = 80


def find_call(code: Any, instruction: int) -> str:
    """The call that an instruction makes, as in "time.sleep"."""
    try:
        # Not imported here: the main thread may hang in an import, and keep its lock.
        instructions = sys.modules["dis"].get_instructions(code)
        before: list[Any] = []
        for one in instructions:
            if one.offset >= instruction:
                break
            before.append(one)
        else:
            return ""
        if "CALL" not in one.opname:
            return ""
        begin = one.positions.lineno, one.positions.col_offset
        names: list[str] = []
        for each in before:
            if each.opname.startswith("LOAD_") and (each.positions.lineno, each.positions.col_offset) == begin:
                names = [each.argval] if _begins(each) else [*names, each.argval]
        return ".".join(names)[:CALL_CHARACTERS]
    except Exception as error:  # another version's instructions
        pass_on(error)
        return ""


def _begins(instruction: Any) -> bool:
    return not instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD"))

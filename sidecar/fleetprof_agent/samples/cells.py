"""A notebook's name of the cell that a file name stands for: its kernel compiles cells as files that exist nowhere.

Guarantees: imports nothing, and reads what IPython has loaded; what it does not know is a cell without a number.
Source: IPython.core.compilerop.CachingCompiler, which keeps the number of each file for its own tracebacks.
"""

from __future__ import annotations

import re
import sys

from fleetprof_agent.errors import pass_on

# `<ipython-input-3-…>` of a terminal, /tmp/ipython-input-3-….py, and /tmp/ipykernel_PID/HASH.py
_CELL = re.compile(r"(?:^<|[/\\])ipython-input-(\d+)-[^/\\]*$|[/\\]ipykernel_\d+[/\\][^/\\]*$")


def name_cell(file: str) -> str:
    """`cell In[3]`, "a notebook's cell" where its number is not known, "" for any other file."""
    match = _CELL.search(file)
    if match is None:
        return ""
    number = match[1] or _find_number(file)
    return f"cell In[{number}]" if number else "a notebook's cell"


def _find_number(file: str) -> str:
    try:
        number = sys.modules["IPython"].get_ipython().compile._filename_map[file]
        return str(int(number))
    except Exception as error:  # no shell, or one of another make
        pass_on(error)
        return ""

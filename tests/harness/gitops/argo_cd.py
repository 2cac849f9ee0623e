"""Argo CD's health checks: the Lua of its ConfigMap, run as Argo CD runs it: Lua 5.1, `obj` in, status and message out.

Source: Argo CD, util/lua/lua.go and docs/operator-manual/health.md.
"""

from collections.abc import Mapping
from typing import Any, Final

from lupa.lua51 import LuaRuntime

STATES: Final = {"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"}


def judge(script: str, document: Mapping[str, Any]) -> tuple[str, str]:
    """(status, message) of an object. Raises LuaError where the script fails, AssertionError on a wrong answer."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    run: Any = lua.eval(f"function(obj) {script}\nend")
    answer = run(_to_lua(lua, document))
    assert answer["status"] in STATES, f"{answer['status']!r} is no state of Argo CD's"
    return str(answer["status"]), str(answer["message"] or "")


def _to_lua(lua: LuaRuntime, value: object) -> object:
    if isinstance(value, Mapping):
        return lua.table_from({key: _to_lua(lua, item) for key, item in value.items()})
    if isinstance(value, list):
        return lua.table_from([_to_lua(lua, item) for item in value])
    return value

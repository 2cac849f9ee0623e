"""The variables that the trainer's container gets, beside those that the user gave it.

Guarantees: pure; a value of the user is never replaced. PYTHONPATH alone is extended: ours stands before a literal
value, and before what `envFrom` may give, which the kubelet puts in place of `$(PYTHONPATH)`. What the image itself
sets cannot be seen here (docs/injection.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleetprof_api.pods import AGENT_FOLDER, KINETO_CONFIG_FILE, SOCKET_DIRECTORY, kineto_variables

_AGENT: Final = f"{SOCKET_DIRECTORY}/{AGENT_FOLDER}"
# With another value in one of these the trainer and the sidecar would never meet.
_INDISPENSABLE: Final = ("KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR", "KINETO_ONDEMAND_TRACE_DIR")


@dataclass(slots=True)
class EnvironmentChange:
    """`why_not` is set when the user's own values rule a capture out; else `added` and `replaced` (by index)."""

    added: list[dict[str, str]] = field(default_factory=list)
    replaced: dict[int, dict[str, str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    why_not: str = ""
    with_agent: bool = True


def plan_environment(container: Mapping[str, Any], *, with_agent: bool) -> EnvironmentChange:
    """The changes to the container's `env`."""
    change = EnvironmentChange(with_agent=with_agent)
    env = container.get("env") or []
    # The last one of a name counts.
    given = {str(entry.get("name")): (index, entry) for index, entry in enumerate(env)}
    for name, value in kineto_variables(SOCKET_DIRECTORY, f"{SOCKET_DIRECTORY}/{KINETO_CONFIG_FILE}").items():
        if name not in given:
            change.added.append({"name": name, "value": value})
            continue
        entry = given[name][1]
        if entry.get("value") == value:
            continue
        if name in _INDISPENSABLE:
            change.why_not = f"container {container.get('name')!r} sets {name} itself"
            return change
        change.warnings.append(f"{name} is the pod's own: orders may reach the training process later")
    if with_agent:
        _extend_python_path(container, given.get("PYTHONPATH"), change)
    if not change.with_agent and "FLEETPROF_AGENT" not in given:
        change.added.append({"name": "FLEETPROF_AGENT", "value": "0"})
    return change


def _extend_python_path(
    container: Mapping[str, Any], given: tuple[int, Mapping[str, Any]] | None, change: EnvironmentChange
) -> None:
    if given is None:
        inherited = [_AGENT, "$(PYTHONPATH)"] if container.get("envFrom") else [_AGENT]
        change.added.append({"name": "PYTHONPATH", "value": ":".join(inherited)})
        return
    index, entry = given
    if entry.get("valueFrom"):
        change.with_agent = False
        change.warnings.append(
            "PYTHONPATH comes from a reference: the agent is left out, captures start by time instead of by iteration"
        )
        return
    value = str(entry.get("value") or "")
    if _AGENT not in value.split(":"):
        # As it is: an empty entry is the working directory.
        change.replaced[index] = {"name": "PYTHONPATH", "value": f"{_AGENT}:{value}" if value else _AGENT}

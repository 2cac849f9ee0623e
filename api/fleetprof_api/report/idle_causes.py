"""The causes of idle time: the fields of `IdleCauses` are the one list, and `IDLE_CAUSES` is that list by name.

A new cause is a row here, and what measures it (`GapPart` in the analyzer's `rank/measures/idle`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_type_hints

import msgspec
from msgspec import Meta

ShownAs = Literal["data_loading", "host", "optimizer", "other"]
"""The class of idle time as which a bar draws a cause."""


@dataclass(frozen=True, slots=True)
class IdleCause:
    """One cause in words. `because` completes "the device is idle because …"; `parts` are fields and their titles."""

    title: str
    meaning: str
    because: str
    shown_as: ShownAs
    parts: Mapping[str, str]


def _cause(title: str, meaning: str, because: str, shown_as: ShownAs) -> Meta:
    return Meta(description=meaning, ge=0, extra={"title": title, "because": because, "shown_as": shown_as})


def _part(of: str, title: str, meaning: str) -> Meta:
    return Meta(description=f"of {of}: {meaning}", ge=0, extra={"title": title, "of": of})


class IdleCauses(msgspec.Struct, kw_only=True, frozen=True):
    """The causes of devices' idle time, ns. Formulas: docs/measures.md#idle.

    data_loading + synchronization + launching + host + optimizer + waiting + unknown = `TimeBreakdown.idle`, exactly;
    the last six are parts of `synchronization`, `host` and `waiting`.
    """

    data_loading: Annotated[
        int,
        _cause("data loading", "the host waited for the next batch", "it waits for the next batch", "data_loading"),
    ] = 0
    synchronization: Annotated[
        int,
        _cause(
            "synchronization",
            "the host waited for the device, and started again",
            "the host waits for it, and has nothing ready when it is done",
            "host",
        ),
    ] = 0
    launching: Annotated[
        int,
        _cause(
            "launching", "in the launch call, and from it to the start", "launching takes longer than the work", "host"
        ),
    ] = 0
    host: Annotated[
        int,
        _cause(
            "host",
            "Python, operators, allocation and other calls before the launch",
            "the host has not launched the next work yet",
            "host",
        ),
    ] = 0
    optimizer: Annotated[
        int,
        _cause(
            "optimizer", "the host was in Optimizer.step or zero_grad", "the host is inside the optimizer", "optimizer"
        ),
    ] = 0
    waiting: Annotated[
        int,
        _cause(
            "waiting",
            "launched, and waiting for other work or an event",
            "work that is launched does not begin, though no recorded work runs on its device",
            "other",
        ),
    ] = 0
    unknown: Annotated[
        int,
        _cause("unknown", "no launch record, or a host that was not recorded", "the trace does not say why", "other"),
    ] = 0
    synchronization_blocked: Annotated[int, _part("synchronization", "in the call", "while in the call")] = 0
    host_operators: Annotated[int, _part("host", "operators", "inside operators")] = 0
    host_runtime: Annotated[int, _part("host", "other calls", "in other calls of CUDA or HIP")] = 0
    host_allocation: Annotated[int, _part("host", "allocation", "allocating or freeing memory")] = 0
    host_python: Annotated[int, _part("host", "Python", "between operators")] = 0
    waiting_short: Annotated[
        int, _part("waiting", "in gaps as short as a launch", "gaps no longer than a launch takes")
    ] = 0


def _read_table() -> dict[str, IdleCause]:
    metas: dict[str, Any] = {
        name: hint.__metadata__[0] for name, hint in get_type_hints(IdleCauses, include_extras=True).items()
    }
    parts: dict[str, dict[str, str]] = {}
    for name, meta in metas.items():
        if "of" in meta.extra:
            parts.setdefault(meta.extra["of"], {})[name] = meta.extra["title"]
    return {
        name: IdleCause(meaning=meta.description, parts=parts.get(name, {}), **meta.extra)
        for name, meta in metas.items()
        if "of" not in meta.extra
    }


IDLE_CAUSES: Final[Mapping[str, IdleCause]] = _read_table()
"""The causes, which add up to the idle time, by the names of their fields and in their order."""

"""A planted tree of modules: a model of four equal layers between an embedding and a head."""

from typing import Final, Literal

from fleetprof_api.report.findings import Example
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree

MS: Final = 1_000_000
_FILE: Final = "models/net.py"


def _node(
    name: str, kind: str, ms: int, line: int, held: int, *, roof: int | None = None, **more: object
) -> ModuleNode:
    bound: Literal["compute", "memory", ""] = "" if roof is None else "compute" if roof > 300 else "memory"
    return ModuleNode(
        name=name, depth=name.count("."), class_name=kind, calls=1, forward=ModuleTimes(device_ns=ms * MS),
        parameter_bytes=held, call_file=_FILE if "." in name else "train.py", call_line=line, measured_iterations=5,
        roof=bound, roof_permille=roof, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def plant_tree(example: Example, *, with_roofs: bool = True) -> ModuleTree:
    """Its time is 100 ms of a device; the layers take 20 ms each, and `Net.0.up` is the first of two lines of each."""

    def roof(value: int) -> int | None:
        return value if with_roofs else None

    nodes = [
        _node("Net", "Net", 95, 31, 0, roof=roof(520), example=example),
        _node("Net.embed", "Embedding", 5, 12, 400 << 20, roof=roof(90)),
    ]
    for layer in range(4):
        nodes += [
            _node(f"Net.{layer}", "Block", 20, 14, 0, roof=roof(450)),
            _node(f"Net.{layer}.up", "Linear", 9, 20, 64 << 20, roof=roof(700), example=example),
            _node(f"Net.{layer}.down", "Linear", 8, 21, 64 << 20, roof=roof(640)),
        ]
    nodes.append(_node("Net.head", "Linear", 10, 16, 400 << 20, roof=roof(810)))
    return ModuleTree(
        measured_iterations=5, iteration_ns=120 * MS, whole=ModuleTimes(device_ns=100 * MS),
        in_modules=ModuleTimes(device_ns=95 * MS), nodes=nodes,
    )  # fmt: skip

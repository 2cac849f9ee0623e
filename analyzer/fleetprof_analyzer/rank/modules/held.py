"""The sums of what the agent said of modules: bytes that they hold, and the batch that they were given.

Guarantees: pure; a sum of which a part is not known is null; a batch is that of the root with the most time.
"""

from collections.abc import Sequence
from typing import Any, Final

from fleetprof_api.report.module_tree import HeldBytes, ModuleNode
from fleetprof_api.samples import ModuleColumns

_PARTS: Final = HeldBytes.__struct_fields__


def add_held(columns: ModuleColumns) -> HeldBytes:
    """Over all modules that the agent named."""
    return HeldBytes(**{name: _add(getattr(columns, name)) for name in _PARTS})


def _add(column: Sequence[int | None]) -> int | None:
    known = [value for value in column if value is not None]
    return sum(known) if known and len(known) == len(column) else None


def find_batch(columns: ModuleColumns, roots: Sequence[ModuleNode], *, by_device: bool) -> dict[str, Any]:
    """Fields of ModuleTree: rows of the main root, and elements of the embedding in it that was given most."""
    if not roots or not columns.rows:
        return {}
    basis = "device_ns" if by_device else "host_ns"
    main = max(roots, key=lambda node: getattr(node.forward, basis) + getattr(node.backward, basis))
    rows = dict(zip(columns.name, columns.rows, strict=False)).get(main.name)
    found: dict[str, Any] = {} if rows is None else {"rows": rows, "rows_of": main.name}
    inside = [
        (count, name)
        for count, name in zip(columns.indices, columns.name, strict=False)
        if count is not None and (name == main.name or name.startswith(f"{main.name}."))
    ]
    if inside:
        most, name = max(inside, key=lambda one: one[0])
        found |= {"indices": most, "indices_of": name}
    return found

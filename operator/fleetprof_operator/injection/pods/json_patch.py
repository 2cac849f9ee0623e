"""The difference of two JSON documents as a JSON Patch (RFC 6902).

Guarantees: pure; applied to the first document it gives the second; what is equal is not mentioned. Lists are compared
as what injection does to them: elements inserted at one place, or changed where they are.
"""

from typing import Any


def make_patch(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """The operations; [] when nothing changed."""
    if before is after:
        return []  # most of a pod, which costs nothing then
    if isinstance(before, dict) and isinstance(after, dict):
        operations: list[dict[str, Any]] = []
        for key in [*before, *(key for key in after if key not in before)]:
            place = f"{path}/{_escape(key)}"
            if key not in after:
                operations.append({"op": "remove", "path": place})
            elif key not in before:
                operations.append({"op": "add", "path": place, "value": after[key]})
            else:
                operations += make_patch(before[key], after[key], place)
        return operations
    if isinstance(before, list) and isinstance(after, list):
        return _compare_lists(before, after, path)
    return [] if _is_same(before, after) else [{"op": "replace", "path": path, "value": after}]


def _compare_lists(before: list[Any], after: list[Any], path: str) -> list[dict[str, Any]]:
    grown = len(after) - len(before)
    if grown < 0:
        return [{"op": "replace", "path": path, "value": after}]
    start = 0 if after[grown:] == before else len(before)
    kept = after[:start] + after[start + grown :]
    inserted = [
        {"op": "add", "path": f"{path}/{start + index}", "value": value}
        for index, value in enumerate(after[start : start + grown])
    ]
    changed = [op for i, (a, b) in enumerate(zip(before, kept, strict=True)) for op in make_patch(a, b, f"{path}/{i}")]
    return changed + inserted


def _is_same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b  # JSON tells 1 from true


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

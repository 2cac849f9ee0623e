"""The memory that a summary's child may take: half of the container's limit, on either version of control groups."""

from pathlib import Path

import pytest
from fleetprof_sidecar.captures.summary_queue import memory_for_a_child

GIB = 1 << 30


@pytest.mark.parametrize(
    ("version_2", "version_1", "bytes_"),
    [
        ("402653184\n", None, 192 << 20),
        ("max\n", None, 4 * GIB),
        (None, "402653184\n", 192 << 20),
        (None, "9223372036854771712\n", 4 * GIB),  # version 1's way to say that there is no limit
        (None, None, 4 * GIB),
        (str(64 * GIB), None, 4 * GIB),
    ],
)
def test_a_child_gets_half(tmp_path: Path, version_2: str | None, version_1: str | None, bytes_: int) -> None:
    files = [tmp_path / "memory.max", tmp_path / "memory.limit_in_bytes"]
    for file, text in zip(files, (version_2, version_1), strict=True):
        if text is not None:
            file.write_text(text)
    assert memory_for_a_child(files) == bytes_

"""The limits of the memory of a process, from the files of control groups and of /proc."""

from pathlib import Path

import pytest
from fleetprof_api.process.memory import container_limit, machine_memory


@pytest.mark.parametrize(
    ("texts", "limit"),
    [
        (["536870912\n"], 536870912),
        (["max\n"], None),
        ([], None),
        (["max\n", "9223372036854771712\n"], None),  # version 1's way to say that there is no limit
        (["max\n", "536870912\n"], 536870912),
        (["\udcff"], None),
        (["-1\n"], None),
    ],
)
def test_the_containers_memory_limit(tmp_path: Path, texts: list[str], limit: int | None) -> None:
    files = [tmp_path / str(number) for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text.encode(errors="surrogateescape"))
    assert container_limit([tmp_path / "absent", *files]) == limit


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("MemTotal:       16 kB\nMemFree: 2 kB\nMemAvailable:   8 kB\n", (8192, 16384)),
        ("MemTotal:       16 kB\n", (None, 16384)),
        ("MemTotal:\nMemAvailable:   8 kB\n", (None, None)),
        ("MemTotal: much kB\n", (None, None)),
        ("", (None, None)),
    ],
)
def test_what_the_machine_has_left(tmp_path: Path, text: str, memory: tuple[int | None, int | None]) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert machine_memory(tmp_path / "meminfo") == memory


def test_a_machine_that_does_not_tell(tmp_path: Path) -> None:
    assert machine_memory(tmp_path / "meminfo") == (None, None)

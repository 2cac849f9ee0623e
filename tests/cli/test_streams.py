"""A terminal that lacks characters, a full disk behind the output, a closed pipe: no command ends with a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fleetprof_cli.terminal.streams import fit

TRACES = Path(__file__).parents[1] / "data" / "traces" / "gpu_one_step"
FULL = Path("/dev/full")
COMMAND = [sys.executable, "-m", "fleetprof_cli.main"]
WORDS = [["--version"], ["list", "--help"], ["completion", "bash"], ["analyze", "-o", "json", str(TRACES)]]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_characters_that_the_terminal_lacks_look_alike(encoding: str, environment: dict[str, str]) -> None:
    result = subprocess.run(
        [*COMMAND, "analyze", str(TRACES)],
        env=environment | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    text = result.stdout.decode(encoding)
    assert ("█" if encoding == "utf-8" else "#") in text
    assert "?" not in text


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "█▓▒░ a… 1–2 −3 µs 2×"),
        ("latin-1", "#=+. a. 1-2 -3 µs 2×"),
        ("ascii", "#=+. a. 1-2 -3 us 2x"),
    ],
)
def test_what_stands_for_a_character_is_as_wide(
    encoding: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "out").open("w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert fit("█▓▒░ a… 1–2 −3 µs 2×") == expected


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
@pytest.mark.parametrize("behind", ["a full disk", "a closed pipe"])
def test_output_that_cannot_be_written_is_one_sentence(
    behind: str, words: list[str], environment: dict[str, str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    if behind == "a full disk":
        os.close(writing)
        writing = os.open(FULL, os.O_WRONLY)
    result = subprocess.run(
        [*COMMAND, *words], env=environment, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writing)
    reason = "No space left on device" if behind == "a full disk" else "Broken pipe"
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == f"fleetprof: cannot write the output: {reason}"
    assert all(line.startswith("fleetprof: ") for line in result.stderr.splitlines())


def test_a_job_runs_where_nobody_can_be_told(environment: dict[str, str]) -> None:
    with FULL.open("w") as full:
        result = subprocess.run(
            [*COMMAND, "run", "--no-hub", "--", "sh", "-c", "echo trained; exit 3"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            timeout=60,
            check=False,
        )
    assert (result.returncode, result.stdout) == (3, "trained\n")

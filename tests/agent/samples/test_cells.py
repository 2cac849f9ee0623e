"""A line in a notebook is told by the number that the notebook shows, not by the file that its kernel made up."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_agent.samples.cells import name_cell
from fleetprof_agent.samples.stacks import StackTable

HASHED = "/tmp/ipykernel_12/447279227.py"


def plant_shell(monkeypatch: pytest.MonkeyPatch, numbers: Any) -> None:
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map=numbers))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (HASHED, "cell In[4]"),
        ("/tmp/ipykernel_12/1.py", "a notebook's cell"),
        ("<ipython-input-3-a1b2>", "cell In[3]"),
        ("/tmp/ipython-input-17-3405185120.py", "cell In[17]"),
        ("C:\\Users\\me\\Temp\\ipykernel_12\\99.py", "a notebook's cell"),
        ("/home/me/ipykernel_launcher.py", ""),
        ("/opt/lib/python3.11/site-packages/ipykernel/kernelapp.py", ""),
        ("/home/me/ipykernel_1/src/train.py", ""),
        ("/home/me/train.py", ""),
        ("<string>", ""),
    ],
)
def test_cells_have_the_notebooks_number(file: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_shell(monkeypatch, {HASHED: 4})
    assert name_cell(file) == expected


@pytest.mark.parametrize("numbers", [None, {}, {HASHED: None}, {HASHED: "x"}])
def test_a_shell_that_does_not_tell_fails_nothing(numbers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_shell(monkeypatch, numbers)
    assert name_cell(HASHED) == "a notebook's cell"
    monkeypatch.delitem(sys.modules, "IPython")
    assert name_cell(HASHED) == "a notebook's cell"


def test_places_are_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_shell(monkeypatch, {HASHED: 4})
    table = StackTable()
    files: list[str] = []

    def send(kind: str, **fields: Any) -> bool:
        files.extend(fields.get("file", ()))
        return True

    table.intern([(compile("x = 1", HASHED, "exec"), 0)])
    table.flush(send)
    assert files == ["cell In[4]"]

"""docs/benchmarks.md shows what bench/results holds: records in, tables out."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_page", ROOT / "bench/benchmarks_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page = load_generator()


def figure(name: str, value: str, target: str = "", met: bool | None = None) -> dict[str, Any]:
    return {"section": "cost", "name": name, "value": value, "target": target, "met": met}


def write_record(folder: Path, name: str, *figures: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps({"machine": {"cores": 2}, "figures": figures}))


def test_each_day_is_a_column_the_newest_first(tmp_path: Path) -> None:
    write_record(tmp_path, "2026-01-01.json", figure("hook", "3 µs", "<= 2 µs", met=False))
    write_record(tmp_path, "2026-01-02.json", figure("hook", "1 µs", "<= 2 µs", met=True))
    table = page.make_tables(tmp_path)["bench"]
    assert "| figure | target | 2026-01-02 | 2026-01-01 |" in table
    assert "| hook | ≤ 2 µs | 1 µs | 3 µs (**missed**) |" in table
    assert "| 2026-01-02 | cores 2 |" in table


def test_an_indented_figure_stays_with_the_one_above_it(tmp_path: Path) -> None:
    write_record(
        tmp_path,
        "2026-01-02.json",
        figure("one", "1 %"),
        figure("  bare", "2 %"),
        figure("other", "3 %"),
        figure("  bare", "4 %"),
    )
    rows = [line for line in page.make_tables(tmp_path)["bench"].splitlines() if line.endswith("% |")]
    assert rows == ["| one |  | 1 % |", "| … bare |  | 2 % |", "| other |  | 3 % |", "| … bare |  | 4 % |"]


def test_of_a_record_in_plain_text_the_last_section_stands_there(tmp_path: Path) -> None:
    (tmp_path / "faults-2026-01-01.txt").write_text("python bench/faults.py\n\n=== before\n0 of 3\n=== after\n3 of 3\n")
    assert page.make_tables(tmp_path) == {"faults": "`python bench/faults.py`, 2026-01-01:\n\n    3 of 3\n"}


def test_a_long_record_in_plain_text_is_linked(tmp_path: Path) -> None:
    (tmp_path / "faults-2026-01-01.txt").write_text("python bench/faults.py\n\n=== all\n" + "case\n" * 40)
    made = page.make_tables(tmp_path)["faults"]
    assert made.count("    case") == 30
    assert "10 more lines are in [the record](../bench/results/faults-2026-01-01.txt)." in made


def test_a_table_stands_between_its_marks() -> None:
    begin, end = page.BEGIN.format("a"), page.END.format("a")
    assert page.fill(f"x\n{begin}old\n{end}y\n", {"a": "new\n"}) == f"x\n{begin}\nnew\n\n{end}y\n"


def test_records_without_a_place_in_the_page_are_named() -> None:
    with pytest.raises(SystemExit, match="for the records of cold"):
        page.fill("no marks", {"cold": ""})


def test_a_result_with_another_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(SystemExit, match="must be named"):
        page.read_records(tmp_path)


def test_the_page_is_fresh() -> None:
    text = (ROOT / "docs/benchmarks.md").read_text()
    assert page.fill(text, page.make_tables(ROOT / "bench/results")) == text

"""A page's templates are compiled once for many processes, and never from what is not theirs."""

import sys
from pathlib import Path

import pytest
from fleetprof_analyzer.views.page.compiled_templates import CompiledTemplates
from jinja2 import DictLoader, Environment

TEXT = "{{ 1 + value }} ranks"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were compiled."""
    texts: list[str] = []
    compile_text = Environment.compile

    def note(environment: Environment, source: str, *more: object) -> object:
        texts.append(source)
        return compile_text(environment, source, *more)  # type: ignore[call-overload]

    monkeypatch.setattr(Environment, "compile", note)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return texts


def render(folder: Path, text: str = TEXT, *, trim_blocks: bool = False, optimized: bool = False) -> str:
    """As a process of its own would."""
    environment = Environment(
        autoescape=True,
        trim_blocks=trim_blocks,
        optimized=optimized,
        loader=DictLoader({"page": text}),
        bytecode_cache=CompiledTemplates(folder),
    )
    return environment.get_template("page").render(value=3)


def test_the_second_process_compiles_nothing(tmp_path: Path, compiled: list[str]) -> None:
    assert [render(tmp_path / "kept") for _ in range(2)] == ["4 ranks"] * 2
    assert compiled == [TEXT]


def test_another_text_and_other_options_are_compiled_anew(tmp_path: Path, compiled: list[str]) -> None:
    for text, trim_blocks in ((TEXT, False), (TEXT + "!", False), (TEXT, False), (TEXT, True)):
        assert render(tmp_path, text, trim_blocks=trim_blocks).startswith("4 ranks")
    assert compiled == [TEXT, TEXT + "!", TEXT, TEXT]  # one is kept of each name


@pytest.mark.parametrize("keep", [0, 31, 32, 40])
def test_a_damaged_file_is_replaced(tmp_path: Path, compiled: list[str], keep: int) -> None:
    render(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:keep])
    assert [render(tmp_path) for _ in range(2)] == ["4 ranks"] * 2
    assert compiled == [TEXT] * 2


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path, compiled: list[str]) -> None:
    (tmp_path / "file").touch()
    assert [render(tmp_path / "file") for _ in range(2)] == ["4 ranks"] * 2
    assert compiled == [TEXT] * 2


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("python_keeps", "optimized"), [(False, False), (True, True)])
def test_nothing_is_kept_where_python_keeps_nothing_and_of_what_filters_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python_keeps: bool, optimized: bool
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", not python_keeps)
    assert render(tmp_path, optimized=optimized) == "4 ranks"
    assert list(tmp_path.iterdir()) == []

"""Labels as the downward API writes them."""

from pathlib import Path

import pytest
from fleetprof_sidecar.labels import MAX_LABELS, read_labels
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", {}),
        ('app="llama"\nteam="a"', {"app": "llama", "team": "a"}),
        ('jobset.sigs.k8s.io/jobset-name="x"\n', {"jobset.sigs.k8s.io/jobset-name": "x"}),
        ('empty=""\n', {"empty": ""}),
        ('odd="a\\"b\\\\c"\n', {"odd": 'a"b\\c'}),
        ('no quotes=x\nbroken\n=\nok="1"\n', {"ok": "1"}),
        ('bad="\\q"\nok="1"\n', {"ok": "1"}),
    ],
)
def test_each_line_is_a_label(tmp_path: Path, text: str, labels: dict[str, str]) -> None:
    (tmp_path / "labels").write_text(text)
    assert read_labels(tmp_path / "labels") == labels


def test_no_file_means_no_labels(tmp_path: Path) -> None:
    assert read_labels(None) == read_labels(tmp_path / "missing") == read_labels(tmp_path) == {}


def test_no_more_labels_are_read_than_the_hub_takes(tmp_path: Path) -> None:
    (tmp_path / "labels").write_text("".join(f'l{i}="x"\n' for i in range(1000)))
    assert len(read_labels(tmp_path / "labels")) == MAX_LABELS


@given(st.binary())
def test_no_content_is_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "labels"
    path.write_bytes(data)
    assert all(isinstance(value, str) for value in read_labels(path).values())

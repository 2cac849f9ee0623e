"""The name of a build."""

import re

import pytest
from fleetprof_api import __version__
from fleetprof_api.process.version import VERSION, name_build

# PEP 440, as packaging reads it.
FORM = re.compile(r"\d+(\.\d+)*(\.dev\d+\+g[0-9a-f]{8})?")


@pytest.mark.parametrize(
    ("commit", "name"),
    [("", "0.1.0"), ("1a2b3c4d5e6f7081", "0.1.0.dev0+g1a2b3c4d"), ("ffffffff", "0.1.0.dev0+gffffffff")],
)
def test_builds_of_different_commits_have_different_names(commit: str, name: str) -> None:
    assert name_build("0.1.0", commit) == name
    assert FORM.fullmatch(name)


def test_a_source_tree_has_the_release_s_number() -> None:
    assert __version__ == VERSION

"""One promise, end to end: whatever one tenant does to the hub, another's capture succeeds and the hub stays small.

The job's token ends every six seconds meanwhile, and its sidecar dials again by itself.
"""

import tempfile
from pathlib import Path

import pytest
from harness.hub.shared_hub import RANKS, play

MOST_MIB = 300


@pytest.mark.attack
@pytest.mark.timeout(900)
def test_a_hostile_tenant_does_not_keep_others_from_their_captures() -> None:
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp") as folder:
        found = play(Path(folder))
    print(found)
    assert found["attacked_to_the_end"], found
    assert (found["reason"], found["ranks"]) == ("Complete", ["UPLOADED"] * RANKS), found
    assert found["peak_mib"] <= MOST_MIB, found

"""`kubectl fleetprof capture` of what has ended fails at once, in words, with an exit code and without a request."""

from typing import Any

import pytest
from fleetprof_cli.exit_codes import ExitCode
from harness.kubernetes.request_ground import RequestGround

pytestmark = pytest.mark.cluster
OVER = "has ended: all of its pods are over (2 Succeeded)"
GONE = "has no pod in namespace"


@pytest.mark.parametrize(
    ("target", "left", "says"),
    [
        (["job/llama"], True, f"Job/llama {OVER}"),
        (["job/llama"], False, f"Job/llama {GONE}"),
        (["pod/llama-0"], True, "Pod/llama-0 has ended: all of its pods are over (1 Succeeded)"),
        (["-l", "batch.kubernetes.io/job-name=llama"], True, OVER),
    ],
)
async def test_a_target_that_has_ended(
    ground: RequestGround, run: Any, target: list[str], left: bool, says: str
) -> None:
    for number in range(2):
        ground.add_pod(f"llama-{number}", "Succeeded")
        if not left:
            ground.remove_pod(f"llama-{number}")
    result = await run("capture", *target, "--iterations", "3")
    assert (result.returncode, result.stdout) == (ExitCode.REFUSED, "")
    assert says in result.stderr
    assert ground.must("GET", ground.path("profilerequests"))["items"] == []

"""Requests from `kubectl apply` to their end, against a real API server with simulated sidecars."""

import pytest
from request_ground import Ground

pytestmark = pytest.mark.cluster


async def test_two_ranks_are_captured_and_the_end_is_written(ground: Ground) -> None:
    first, second = await ground.add_rank(0, 2), await ground.add_rank(1, 2)
    made = ground.ask()
    uid = await ground.deliver(first)
    await ground.deliver(second)
    status = await ground.until_finished()
    assert uid == made["metadata"]["uid"]
    assert {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]} == {
        "TargetsResolved": ("True", "Resolved"),
        "Captured": ("True", "AllCaptured"),
        "Uploaded": ("True", "AllUploaded"),
        "Analyzed": ("Unknown", "NoAnalyzer"),
        "Succeeded": ("True", "Complete"),
    }
    assert status["ranks"] == {"targeted": 2, "armed": 2, "captured": 2, "uploaded": 2, "failed": 0}
    assert (status["target"], status["observedGeneration"]) == ("Job/llama", 1)
    await ground.until(lambda: "finalizers" not in ground.request()["metadata"], "the finalizer to go")
    assert (ground.store / f"v1/{ground.namespace}/{uid}/ledger.json").exists()
    assert not ground.request()["metadata"].get("annotations")
    assert ground.events()[-1] == ("Normal", "Complete")

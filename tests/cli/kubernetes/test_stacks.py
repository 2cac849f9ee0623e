"""`kubectl fleetprof stacks` against a real API server and operator: a job that hangs, from the question to the line.

Scripted sidecars answer in place of a job's.
"""

import asyncio
import gzip
import json
from typing import Any

import pytest
from fleetprof_api import keys
from harness.hub.planted_stacks import HANGS, SAYS, WAITS, answer
from harness.kubernetes.request_ground import RequestGround, condition, message

pytestmark = pytest.mark.cluster


async def test_a_hung_job_is_told_from_the_command_to_the_line(ground: RequestGround, start: Any, run: Any) -> None:
    ground.start_operator()
    ranks = [await ground.add_rank(rank, 2) for rank in range(2)]
    store = {"FLEETPROF_STORE": str(ground.store)}
    command = await start("stacks", "job/llama", **store)
    await asyncio.gather(*(answer(rank, process) for rank, process in zip(ranks, (WAITS, HANGS), strict=True)))
    out, err = await asyncio.wait_for(command.communicate(), 90)
    assert command.returncode == 0, err.decode()
    text = out.decode()
    sentence = f"{SAYS} Rank 0 waits for it. Its node is node-s-llama-1."
    assert text.startswith(f"Job/llama: 2 ranks\n{sentence}\n")
    assert "/job/train.py:7 hang" in text

    (made,) = ground.must("GET", ground.path("profilerequests"))["items"]
    name, status = made["metadata"]["name"], made["status"]
    assert made["spec"]["capture"] == {"stacks": {"samples": 1}}
    assert "window" not in made["spec"]
    assert (condition(status), message(status)) == (("True", "Complete"), sentence)
    assert condition(status, "Analyzed") == ("True", "StacksJudged")
    assert status["headline"] == {"topFinding": sentence}
    assert status["storeURL"].endswith("stacks.json.gz")
    stored = ground.store / keys.stacks_key(ground.namespace, made["metadata"]["uid"])
    assert json.loads(gzip.decompress(stored.read_bytes()))["samples"][0]["verdict"]["ranks"] == [1]
    assert not [m for rank in ranks for m in rank.received if m.HasField("arm")]

    again = await run("stacks", name, "-o", "json", **store)
    assert json.loads(again.stdout)["samples"][0]["verdict"]["sentence"] == sentence
    # A store that cannot be read leaves what the status holds.
    without = await run("stacks", name, FLEETPROF_STORE=str(ground.folder / "nothing"))
    assert (without.returncode, without.stdout) == (1, f"{sentence}\n"), without.stderr
    assert f"Analyzed: StacksJudged: {sentence}" not in (await run("wait", name)).stderr


async def test_who_may_not_make_requests_may_not_ask(ground: RequestGround, run: Any) -> None:
    refused = await run("stacks", "job/llama", "--as", "guest")
    assert refused.returncode == 5
    assert 'User "guest" cannot' in refused.stderr

"""Figures asked through the API server's proxy: with which token, how often, and what a refusal says."""

from collections.abc import Mapping
from typing import Any

import pytest
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_cli.kubernetes.figures import FiguresReader
from fleetprof_cli.messages import Failure
from fleetprof_operator.kubernetes.cluster import Cluster

SYSTEM = "/api/v1/namespaces/fleetprof-system"
FIGURES: dict[str, Any] = {"at_unix_ns": 1, "interval_ns": 5, "workloads": []}


class ScriptedProxy(Cluster):
    """The answers of the API server and the operator behind it, in this order; the last for ever."""

    def __init__(self, *answers: dict[str, Any] | ApiRefused, token: ApiRefused | None = None) -> None:
        self.answers = list(answers)
        self.refused_token = token
        self.paths: list[str] = []
        self.tokens: list[str] = []

    async def get(
        self, path: str, *, metadata_only: bool = False, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        self.paths.append(path)
        self.tokens.append((headers or {})["Fleetprof-Token"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, ApiRefused):
            raise answer
        return answer

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.paths.append(path)
        if self.refused_token is not None:
            raise self.refused_token
        assert body["spec"] == {"audiences": ["figures.fleetprof.io"], "expirationSeconds": 600}
        return {"status": {"token": "short-lived"}}


def reader(cluster: Cluster) -> FiguresReader:
    return FiguresReader(cluster, system_namespace="fleetprof-system", service="fleetprof-top")


async def test_one_token_serves_many_looks_and_replicas_that_stand_by() -> None:
    cluster = ScriptedProxy(ApiRefused(503, "", "this replica stands by"), FIGURES)
    asking = reader(cluster)
    for _ in range(2):
        assert (await asking.read("team", "Job/llama")).workloads == []
    figures = f"{SYSTEM}/services/fleetprof-top:http/proxy/figures?namespace=team&workload=Job%2Fllama"
    assert cluster.paths == [f"{SYSTEM}/serviceaccounts/fleetprof-top/token", *[figures] * 3]
    assert set(cluster.tokens) == {"short-lived"}


@pytest.mark.parametrize(
    ("cluster", "message", "next_step"),
    [
        (ScriptedProxy(FIGURES, token=ApiRefused(403, "Forbidden", "may not")), "may not", "the Role fleetprof-top"),
        (ScriptedProxy(ApiRefused(403, "Forbidden", "may not")), "may not", "the Role fleetprof-top"),
        (ScriptedProxy(ApiRefused(401, "", "no good token")), "no good token", "the Role fleetprof-top"),
        (
            ScriptedProxy(FIGURES, token=ApiRefused(404, "NotFound", "none")),
            "there are no figures",
            "--system-namespace",
        ),
        (ScriptedProxy(ApiRefused(503, "", "stands by")), "no operator answers", "is it there?"),
    ],
)
async def test_a_refusal_says_what_to_do(cluster: Cluster, message: str, next_step: str) -> None:
    with pytest.raises(Failure, match=message) as failed:
        await reader(cluster).read("", "")
    assert next_step in failed.value.next_step

"""The grants of an analyzer Job's pod: its own capture, its own outputs, while its Job goes on, and nothing else.

The operator's service over a real gRPC port, and the analyzer's own store in front of it; the store behind it is in
memory for the rules, and a real S3 server for the whole way.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc.aio
import msgspec
import pytest
from fleetprof_analyzer.capture.exit_codes import JobExit
from fleetprof_analyzer.capture.main import run
from fleetprof_api import keys
from fleetprof_api.hub.analyses_pb2_grpc import add_AnalysesServicer_to_server
from fleetprof_api.report.report import read_report
from fleetprof_operator.analyses.analyzer_job import job_name
from fleetprof_operator.analyses.rights import AnalysedCapture, find_read_problem, find_write_problem
from fleetprof_operator.analyses.service import BURST, CALLS_PER_S, AnalysesService
from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.access.bucket import TokenBucket
from fleetprof_store.base import NotFound, StoreError
from fleetprof_store.directory import DirectoryStore
from fleetprof_store.granted import GrantedStore
from harness.kubernetes.memory_cluster import MemoryCluster
from harness.memory_store import MemoryStore
from harness.traces.planted.traces import plant_capture

OURS = "fleetprof-system"
MINE = AnalysedCapture("default", "a", "report")


class Tokens:
    """An authenticator: a token is `pod/uid`, of our namespace unless it says another."""

    async def authenticate(self, token: str) -> Principal | None:
        pod, uid, *other = token.split("/")
        return None if pod == "wrong" else Principal(other[0] if other else OURS, pod, uid)


class Scene:
    """The service in front of a store, over `captures` by the name of their Job."""

    def __init__(self, store: Any, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.cluster = MemoryCluster()
        self.captures: dict[str, AnalysedCapture] = {}
        self.lookups = 0
        self.port = 0
        self.service = AnalysesService(self.cluster, OURS, store, Tokens(), self.find)  # type: ignore[arg-type]
        self._server = grpc.aio.server()

    def find(self, job: str) -> AnalysedCapture | None:
        self.lookups += 1
        return self.captures.get(job)

    async def start(self) -> None:
        add_AnalysesServicer_to_server(self.service, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(1)
        self.service.close()

    def begin(self, command: str, uid: str, namespace: str = "default", **pod: Any) -> str:
        """A Job and its running pod; the pod's token."""
        name = job_name(command, uid)
        self.captures[name] = AnalysedCapture(namespace, uid, command)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "j", "controller": True}
        metadata = {"name": f"{name}-x", "uid": f"pod-{command}-{uid}", "ownerReferences": [owner]}
        body = {"metadata": metadata, "status": {"phase": "Running"}} | pod
        self.cluster.put(f"/api/v1/namespaces/{OURS}/pods/{name}-x", body)
        return f"{name}-x/pod-{command}-{uid}"

    def granted(self, token: str, patience_s: float = 0.0) -> GrantedStore:
        file = self.folder / "token"
        file.write_text(token)
        return GrantedStore(f"127.0.0.1:{self.port}", file, None, patience_s=patience_s)

    async def analyze(self, token: str, *arguments: str, **environment: str) -> tuple[int, str]:
        """`fleetprof-analyzer` as in the pod: its exit code and termination message."""
        identity, log = self.folder / "identity", self.folder / "termination-log"
        identity.mkdir(exist_ok=True)
        (identity / "token").write_text(token)
        log.write_text("")
        given = {"FLEETPROF_HUB": f"127.0.0.1:{self.port}", "FLEETPROF_IDENTITY": str(identity)} | environment
        code = await asyncio.to_thread(run, arguments, given, termination_log=log)
        return code, log.read_text()


@pytest.fixture
async def make_scene(tmp_path: Path) -> AsyncIterator[Callable[[Any], Any]]:
    scenes: list[Scene] = []

    async def make(store: Any) -> Scene:
        scenes.append(Scene(store, tmp_path))
        await scenes[-1].start()
        return scenes[-1]

    yield make
    for scene in scenes:
        await scene.stop()


@pytest.mark.attack
@pytest.mark.parametrize(
    "key",
    ["v1/default/b/ledger.json", "v1/other/a/ledger.json", "v1/default/a/../b/ledger.json", "v1/default/a/report.json",
     "v1/default/ab/ledger.json", "v1/default/a/ranks/0/../../../b/ranks/0/trace.json.gz", "v1/default/a/", "",
     "v1/default/a/ranks/0/trace.json.gz\n", "v1/default/a/x"],
)  # fmt: skip
def test_only_the_inputs_of_its_own_capture_are_read(key: str) -> None:
    assert "is not an input of this analysis" in find_read_problem(MINE, key)


@pytest.mark.parametrize(
    "rest", ["request.json", "ledger.json", "ranks/0/trace.json.gz", "ranks/1000000/samples.json.gz",
             "ranks/7/summary.json.gz", "ranks/7/operations.bin"]
)  # fmt: skip
def test_all_of_the_inputs_are(rest: str) -> None:
    assert find_read_problem(MINE, f"v1/default/a/{rest}") == ""


@pytest.mark.attack
@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("report", {"report.json", "report.html", "slices/head.json.gz", "timeline/fleet.bin", "timeline/rank-3.bin"}),
        ("merge", {"report.json", "report.html", "slices/head.json.gz", "timeline/fleet.bin"}),
        ("summarise", {"ranks/3/summary.json.gz", "ranks/3/operations.bin", "timeline/rank-3.bin"}),
    ],
)
def test_each_command_writes_what_it_makes_and_nothing_else(command: str, writes: set[str]) -> None:
    capture = AnalysedCapture("default", "a", command)
    names = ["request.json", "ledger.json", "report.json", "report.html", "ranks/3/trace.json.gz", "x",
             "ranks/3/samples.json.gz", "ranks/3/summary.json.gz", "ranks/3/operations.bin", "ranks/4/summary.json.gz",
             "timeline/fleet.bin", "timeline/rank-3.bin", "timeline/rank-4.bin", "timeline/rank-03.bin", "timeline/x",
             "ranks/03/summary.json.gz", "../b/report.json", "ranks/3/../../report.json",
             "slices/head.json.gz", "slices/none.json.gz", "slices/../head.json.gz"]  # fmt: skip
    ranks = frozenset({3})
    allowed = {name for name in names if not find_write_problem(capture, f"v1/default/a/{name}", 100, ranks)}
    assert allowed == writes
    for prefix in ("v1/default/b/", "v1/other/a/", "", "v1/default/a"):
        assert all(find_write_problem(capture, prefix + name, 100, ranks) for name in names)
    assert all("are allowed" in find_write_problem(capture, f"v1/default/a/{n}", 1 << 40, ranks) for n in writes)


@pytest.mark.attack
@pytest.mark.s3
async def test_a_jobs_pod_reaches_its_own_capture_and_no_other(make_scene: Any, s3_server: Any) -> None:
    """A pod that a hostile trace took over, with all it holds, against a real store."""
    scene = await make_scene(s3_server.make_store(s3_server.make_bucket(), "profiles"))
    mine, theirs = plant_capture(scene.store, ranks=2).uid, "b" * 8
    for key, data in (("ledger.json", b"{}"), ("ranks/0/trace.json.gz", b"secret"), ("report.json", b"{}")):
        scene.store.put(f"v1/team-b/{theirs}/{key}", data)
    scene.begin("report", theirs, "team-b")
    before = {info.key: scene.store.get(info.key) for info in scene.store.list("v1/")}
    granted = scene.granted(scene.begin("report", mine))

    def attack() -> None:
        assert {info.key for info in granted.list("")} == {key for key in before if mine in key}
        assert list(granted.list(f"v1/team-b/{theirs}/")) == []
        for key in [key for key in before if theirs in key] + [
            "v1/team-b/x/ledger.json",
            keys.report_key("default", mine),
        ]:
            with pytest.raises(StoreError, match="PERMISSION_DENIED"):
                granted.get(key)
        for key in [*before, keys.summary_key("default", mine, 0), f"v1/default/{mine}/ranks/9/trace.json.gz"]:
            with pytest.raises(StoreError, match="PERMISSION_DENIED"):
                granted.put(key, b"forged")
        for call in (granted.delete, lambda k: granted.grant_upload(k, [], lifetime_s=1)):
            with pytest.raises(StoreError, match="nothing can be"):
                call([keys.report_key("default", mine)])

    await asyncio.to_thread(attack)
    assert {info.key: scene.store.get(info.key) for info in scene.store.list("v1/")} == before


@pytest.mark.s3
async def test_the_report_is_the_one_that_credentials_would_have_made(make_scene: Any, s3_server: Any) -> None:
    scene = await make_scene(s3_server.make_store(s3_server.make_bucket(), "profiles"))
    uid = plant_capture(scene.store, ranks=3, failed=(1,)).uid

    def take() -> Any:
        report = read_report(scene.store.get(keys.report_key("default", uid)))
        assert b"<html" in scene.store.get(keys.report_page_key("default", uid))
        scene.store.delete([keys.report_key("default", uid), keys.report_page_key("default", uid)])
        return msgspec.structs.replace(report, made_unix_ns=0)

    assert await scene.analyze(scene.begin("report", uid), "report", "default", uid) == (JobExit.DONE, "")
    whole = take()
    assert [rank.rank for rank in whole.ranks] == [0, 2]
    for shard in ("0", "1"):
        token = scene.begin("summarise", uid)
        words = ("summarise", "default", uid, "--of", "2")
        assert await scene.analyze(token, *words, JOB_COMPLETION_INDEX=shard) == (JobExit.DONE, "")
    assert await scene.analyze(scene.begin("merge", uid), "merge", "default", uid) == (JobExit.DONE, "")
    assert take() == whole
    assert json.loads(scene.store.get(keys.ledger_key("default", uid)))["uid"] == uid


@pytest.mark.attack
@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("wrong/x", "UNAUTHENTICATED"),
        ("fleetprof-report-a-x/pod-report-a/team", "only analyzer Jobs' pods may ask"),  # a pod of that name elsewhere
        (
            "fleetprof-report-a-x/pod-report-b",
            "only running pods of analyzer Jobs",
        ),  # the name of one, the uid of another
        ("nobody/pod-report-a", "only running pods of analyzer Jobs"),
        ("operator-1/pod-operator", "only running pods of analyzer Jobs"),  # ours, but no Job's
        ("fleetprof-report-done-x/pod-report-done", "only running pods of analyzer Jobs"),  # at its end
    ],
)
async def test_whoever_is_no_running_pod_of_a_job_gets_nothing(make_scene: Any, token: str, says: str) -> None:
    scene = await make_scene(MemoryStore())
    scene.store.put("v1/default/a/ledger.json", b"{}")
    scene.begin("report", "a")
    scene.begin("report", "done", status={"phase": "Succeeded"})
    deployment = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": job_name("report", "a"), "controller": True}
    metadata = {"name": "operator-1", "uid": "pod-operator", "ownerReferences": [deployment]}
    scene.cluster.put(f"/api/v1/namespaces/{OURS}/pods/operator-1", {"metadata": metadata})
    with pytest.raises(StoreError, match=says):
        await asyncio.to_thread(scene.granted(token).list, "")


@pytest.mark.attack
async def test_after_its_job_a_pod_gets_nothing_more(make_scene: Any) -> None:
    scene = await make_scene(MemoryStore())
    plant_capture(scene.store, ranks=1)
    granted = scene.granted(scene.begin("report", "a"))
    await asyncio.to_thread(granted.list, "")
    scene.captures.clear()
    with pytest.raises(StoreError, match="no analysis is under way") as caught:
        await asyncio.to_thread(granted.list, "")
    assert caught.value.retryable  # after a restart of the operator the analysis may be known again


async def test_an_operator_that_is_away_is_waited_for(make_scene: Any) -> None:
    scene = await make_scene(MemoryStore())
    token = scene.begin("report", "a")
    captures = dict(scene.captures)
    scene.captures.clear()
    listing = asyncio.create_task(asyncio.to_thread(scene.granted(token, 60.0).list, ""))
    while not scene.lookups:
        await asyncio.sleep(0.02)
    scene.captures.update(captures)
    assert list(await listing) == []


@pytest.mark.attack
def test_a_pod_is_answered_at_a_bounded_pace() -> None:
    pace = TokenBucket(BURST, CALLS_PER_S, 0.0)
    assert {pace.take_or_refuse(1, 0.0) for _ in range(200)} == {0.0}
    assert [pace.take_or_refuse(1, 0.0) for _ in range(3)] == [0.01, 0.02, 0.03]
    waits = [pace.take_or_refuse(1, 0.0) for _ in range(1000)]
    assert waits[196:] == [2.0] + [None] * 803
    assert pace.take_or_refuse(1, 0.05) == pytest.approx(1.96)  # what was refused is not waited for
    assert pace.take_or_refuse(1, 60.0) == 0.0


async def test_a_store_that_signs_nothing_says_so(make_scene: Any, tmp_path: Path) -> None:
    scene = await make_scene(DirectoryStore(tmp_path / "store", b"s" * 32, ""))
    granted = scene.granted(scene.begin("report", "a"))
    with pytest.raises(StoreError, match="signs no addresses") as caught:
        await asyncio.to_thread(granted.get, "v1/default/a/ledger.json")
    assert not isinstance(caught.value, NotFound)


async def test_an_analysis_without_inputs_says_where_it_looked(make_scene: Any) -> None:
    scene = await make_scene(MemoryStore())
    code, outcome = await scene.analyze(scene.begin("report", "none"), "report", "default", "none")
    # Addresses of memory are of no scheme that is fetched.
    assert code == JobExit.STORE_REFUSES
    assert "signed address is of scheme 'memory'" in outcome


def test_plain_text_stays_on_loopback(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    with pytest.raises(ValueError, match="not a loopback address"):
        GrantedStore("operator.example:8443", tmp_path / "token", None)

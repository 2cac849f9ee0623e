"""`kubectl fleetprof` as users run it, against a real API server and a real operator with scripted sidecars."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleetprof_api.report.report import write_report
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.request_ground import RequestGround, condition
from harness.reference.simulated_reports import simulate

pytestmark = pytest.mark.cluster

TIME = "2026-11-21T09:45:12Z"


def finish(
    ground: RequestGround, name: str, *, succeeded: str = "True", reason: str = "Complete", **status: Any
) -> None:
    """Writes the end into a request, where no operator does."""
    condition = {
        "type": "Succeeded",
        "status": succeeded,
        "reason": reason,
        "message": "words",
        "lastTransitionTime": TIME,
    }
    counts = {"targeted": 2, "armed": 2, "captured": 2, "uploaded": 2, "failed": 0}
    whole_status = {"conditions": [condition], "ranks": counts, "completionTime": TIME, "target": "Job/llama", **status}
    ground.must("PATCH", ground.path("profilerequests", name) + "/status", {"status": whole_status})


async def test_a_namespace_without_captures_says_how_to_take_one_there(ground: RequestGround, run: Any) -> None:
    assert (await run("list")).stdout == (
        f"No capture in namespace {ground.namespace} yet. Take one: kubectl fleetprof capture job/NAME -n "
        f"{ground.namespace}\n"
    )


async def test_a_request_that_waits_for_its_turn_says_its_place(ground: RequestGround, run: Any) -> None:
    ground.ask("third")
    condition = {"type": "Succeeded", "status": "Unknown", "reason": "Waiting", "lastTransitionTime": TIME}
    status = {
        "target": "Job/llama",
        "queuePosition": 2,
        "conditions": [{**condition, "message": "place 2 in the queue"}],
    }
    ground.must("PATCH", ground.path("profilerequests", "third") + "/status", {"status": status})
    head, row = (line.split() for line in (await run("list")).stdout.splitlines())
    assert head[:5] == ["NAME", "TARGET", "RANKS", "STATE", "QUEUE"]
    assert row[:4] == ["third", "Job/llama", "Waiting", "2"]


async def test_a_capture_from_the_command_to_the_end(ground: RequestGround, start: Any, run: Any) -> None:
    ground.start_operator()
    ranks = [await ground.add_rank(rank, 2) for rank in range(2)]
    capture = await start("capture", "job/llama", "--iterations", "3", "--canary", "Never", "-o", "json")
    await asyncio.gather(*(ground.deliver(rank) for rank in ranks))
    out, err = await asyncio.wait_for(capture.communicate(), 90)
    assert capture.returncode == 0, err.decode()
    document = json.loads(out)
    assert document["spec"]["window"] == {"iterations": 3}
    assert document["status"]["ranks"]["uploaded"] == 2
    assert "2 ranks" in err.decode()
    assert "2 of 2 ranks uploaded: Complete" in err.decode()

    name = document["metadata"]["name"]
    listed = await run("list")
    assert [line.split()[:4] for line in listed.stdout.splitlines()][1] == [name, "Job/llama", "2/2", "Complete"]
    everywhere = json.loads((await run("list", "-A", "-o", "json")).stdout)
    assert name in [item["metadata"]["name"] for item in everywhere]
    waited = await run("wait", name)
    assert waited.returncode == 0, waited.stderr
    cancelled = await run("cancel", name)
    assert (cancelled.returncode, f"{name} has ended already (Complete)" in cancelled.stderr) == (2, True)

    folder = ground.folder / "got"
    fetched = await run("traces", name, "-o", str(folder), "--ranks", "1", FLEETPROF_STORE=str(ground.store))
    assert fetched.returncode == 0, fetched.stderr
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files >= {"ledger.json", "request.json", "ranks/1/trace.json.gz"}
    assert not (folder / "ranks/0").exists()


async def test_ctrl_c_takes_the_capture_back(ground: RequestGround, start: Any) -> None:
    ground.start_operator()
    rank = await ground.add_rank(0, 1)
    capture = await start("capture", "job/llama", "--canary", "never")
    arm = await rank.expect("arm")
    capture.send_signal(signal.SIGINT)
    await rank.expect("cancel")
    await rank.say_all(arm, "FAILED", reason="Cancelled", message="withdrawn")
    _, err = await asyncio.wait_for(capture.communicate(), 90)
    assert "cancelling the capture" in err.decode()
    assert capture.returncode == 4, err.decode()
    assert "0 of 1 ranks uploaded, 1 failed: Cancelled" in err.decode()
    (request,) = ground.must("GET", ground.path("profilerequests"))["items"]
    assert condition(request["status"]) == ("False", "Cancelled")


async def test_without_waiting_the_name_comes_back_and_can_be_waited_for(
    ground: RequestGround, run: Any, start: Any
) -> None:
    ground.add_pod("llama-0")
    made = await run("capture", "job/llama", "--no-wait", "--every", "2")
    assert made.returncode == 0, made.stderr
    kind, _, name = made.stdout.strip().partition("/")
    assert kind == "profilerequest.fleetprof.io"
    waiting = await start("wait", name)
    await asyncio.sleep(1)
    finish(ground, name, succeeded="False", reason="AllRanksFailed", ranks={"targeted": 2, "uploaded": 0, "failed": 2})
    _, err = await asyncio.wait_for(waiting.communicate(), 60)
    assert waiting.returncode == 4
    assert "0 of 2 ranks uploaded, 2 failed: AllRanksFailed, words" in err.decode()


async def test_a_file_is_sent_as_it_is(ground: RequestGround, run: Any, tmp_path: Path) -> None:
    ground.add_pod("llama-0")
    spec = {
        "target": {"selector": {"matchLabels": {"batch.kubernetes.io/job-name": "llama"}}},
        "window": {"durationMillis": 100},
    }
    kind = {"apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfileRequest"}
    document = {**kind, "metadata": {"name": "r"}, "spec": spec}
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(document))
    made = await run("capture", "-f", str(tmp_path / "r.yaml"), "--no-wait", "-o", "yaml")
    assert made.returncode == 0, made.stderr
    assert yaml.safe_load(made.stdout)["spec"]["window"] == {"durationMillis": 100}
    again = await run("capture", "-f", str(tmp_path / "r.yaml"), "--no-wait")
    assert again.returncode == 5
    assert 'profilerequests.fleetprof.io "r" already exists' in again.stderr


async def test_a_dry_run_asks_nobody_and_its_output_can_be_applied(ground: RequestGround, run: Any) -> None:
    shown = await run("capture", "-l", "app in (a, b)", "--sample", "2", "--dry-run=client", KUBECONFIG="/nowhere")
    assert shown.returncode == 0, shown.stderr
    applied = ground.api.kubectl("apply", "--dry-run=server", "-n", ground.namespace, "-f", "-", text=shown.stdout)
    assert applied.returncode == 0, applied.stderr


# words, exit code, what is said
WRONG: list[tuple[list[str], int, str]] = [
    (["capture", "job/other"], 5, "there is no Job other in namespace"),
    (["capture", "jobset/x"], 5, "this cluster has no kind JobSet"),
    (["capture", "thing/x"], 2, "kind 'thing' is not one of job, pod"),
    (["capture", "things.example.com/x"], 2, "this cluster has no API group example.com"),
    (["capture", "llama"], 2, "must be KIND/NAME"),
    (["capture"], 2, "say what to capture, once"),
    (["capture", "job/llama"], 5, "Job/llama has no pod"),
    (["capture", "jobs.batch/llama"], 5, "Job/llama has no pod"),
    (["capture", "-l", "app=x"], 5, "app=x has no pod"),
    (["report"], 5, "take a capture: kubectl fleetprof capture job/NAME -n team-"),
    (["report", "x"], 5, '"x" not found'),
    (["diff", "x", "y"], 5, '"x" not found'),
    (["wait", "x"], 5, "see what there is: kubectl fleetprof list -n team-"),
    (["cancel", "x"], 5, '"x" not found'),
    (["traces", "x", "-o", "y"], 5, '"x" not found'),
    (["list", "--context", "other"], 6, "cannot use the kubeconfig"),
    (["list", "--as", "guest"], 5, 'User "guest" cannot list resource "profilerequests"'),
    (["list", "--token", "nobody's"], 6, "does not accept your credentials"),
    (["list", "--kubeconfig", "/nowhere"], 6, "there is no kubeconfig /nowhere"),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
async def test_what_is_wrong_is_said_with_its_code(run: Any, words: list[str], code: int, message: str) -> None:
    result = await run(*words)
    assert (result.returncode, result.stdout) == (code, ""), result.stderr
    assert message in result.stderr


async def test_a_table_for_a_program_is_whole(ground: RequestGround, run: Any) -> None:
    name = "a-capture-of-the-nightly-regression-of-llama-7b-xyz"
    ground.ask(name, target={"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "nightly-llama-7b-long"}})
    listed = await run("list")
    assert name in listed.stdout
    assert len(listed.stdout.splitlines()) == 2


async def test_a_job_whose_pods_were_not_injected_is_refused_with_the_way_on(ground: RequestGround, run: Any) -> None:
    ground.add_pod("llama-0", injected=False)
    result = await run("capture", "job/llama")
    assert result.returncode == 5
    assert "none of the 1 pods of Job/llama has the fleetprof sidecar" in result.stderr
    assert f"kubectl fleetprof doctor job/llama -n {ground.namespace}" in result.stderr
    looked = await run("doctor", "job/llama")
    assert looked.returncode == 1
    assert "has no sidecar: neither it nor its namespace is labelled fleetprof.io/inject=true" in looked.stdout
    assert f"kubectl label namespace {ground.namespace} fleetprof.io/inject=true" in looked.stdout


async def test_the_doctor_looks_through_a_real_api(ground: RequestGround, run: Any) -> None:
    ground.add_pod("llama-0")
    ground.ask("earlier")
    finish(ground, "earlier", succeeded="False", reason="NothingSpeaksKineto")
    looked = json.loads((await run("doctor", "job/llama", "-o", "json")).stdout)
    found = {check["name"]: check["found"] for check in looked["checks"]}
    assert found["fleetprof"] == "this cluster has ProfileRequests"
    assert found["your rights"] == "you may ask for captures in this namespace"
    assert found["webhook"] == "there is none: no pod gets its sidecar by itself"
    assert "NothingSpeaksKineto" in found["request earlier"]
    assert "pod llama-0" in found


async def test_somebody_without_rights_is_told_which(ground: RequestGround, run: Any) -> None:
    listed = await run("list", user="guest")
    assert listed.returncode == 5
    assert 'User "guest" cannot list resource "profilerequests"' in listed.stderr
    assert ground.namespace in listed.stderr
    assert "the ClusterRole fleetprof-viewer" in listed.stderr
    # Who may not look at Jobs and pods is not held up by that.
    made = await run("capture", "job/llama", user="guest")
    assert made.returncode == 5
    assert 'User "guest" cannot create resource "profilerequests"' in made.stderr
    looked = await run("doctor", "job/llama", user="guest")
    assert looked.returncode == 1
    assert "you may not create, get, delete profilerequests.fleetprof.io in this namespace" in looked.stdout
    assert "pods is forbidden" in looked.stdout


async def test_without_a_kubeconfig_the_next_step_is_to_name_one(run: Any) -> None:
    result = await run("list", KUBECONFIG="/nowhere:/nor/here")
    assert (result.returncode, result.stdout) == (6, "")
    assert result.stderr.splitlines() == [
        "fleetprof: there is no kubeconfig /nowhere:/nor/here",
        "fleetprof:   name another: --kubeconfig, --context or KUBECONFIG",
    ]


async def test_an_api_server_that_is_not_there_is_said(ground: RequestGround, run: Any, tmp_path: Path) -> None:
    config = yaml.safe_load(ground.api.kubeconfig().read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    (tmp_path / "away").write_text(yaml.safe_dump(config))
    result = await run("list", KUBECONFIG=str(tmp_path / "away"))
    assert result.returncode == 6
    assert "the API server does not answer" in result.stderr


async def test_without_the_store_the_report_is_what_the_status_says(ground: RequestGround, run: Any) -> None:
    ground.ask("five")
    early = await run("report", "five")
    assert (early.returncode, "five has no report yet" in early.stderr) == (1, True)
    headline = {"busyPermille": 613, "straggler": "rank 1"}
    finish(ground, "five", headline=headline, reportURL=f"https://ui.example/{ground.namespace}/five")
    result = await run("report")
    assert result.returncode == 2, result.stderr  # what was asked for was not had
    assert "busy 61.3 % of the window" in result.stdout
    assert "does not name its object store" in result.stderr
    assert (await run("report", "-o", "path")).stdout.strip() == f"https://ui.example/{ground.namespace}/five"
    exact = await run("report", "-o", "json")
    assert (exact.returncode, exact.stdout) == (2, "")


@pytest.mark.s3
async def test_two_requests_are_compared_with_the_users_credentials(
    ground: RequestGround, run: Any, s3_server: Any
) -> None:
    store = s3_server.make_store(bucket := s3_server.make_bucket(), "fp")
    for name, report in (("before", simulate(1)), ("after", simulate(2, compute=1.1))):
        root = f"v1/{ground.namespace}/{ground.ask(name)['metadata']['uid']}"
        store.put(f"{root}/report.json", write_report(report))
        finish(ground, name, reportURL=f"s3://{bucket}/fp/{root}/report.html")
    credentials = {"AWS_ACCESS_KEY_ID": s3_server.access_key, "AWS_SECRET_ACCESS_KEY": s3_server.secret_key}
    words = ("diff", "before", "after", "--s3-endpoint", s3_server.endpoint_url)
    result = await run(*words, "-o", "json", **credentials)
    assert (result.returncode, json.loads(result.stdout)["verdict"]) == (0, "slower"), result.stderr
    gate = await run(*words, "--fail-on-regression", "5", **credentials)
    assert (gate.returncode, "iterations take 7.1 % longer" in gate.stderr) == (7, True), gate.stderr


@pytest.mark.s3
async def test_report_and_traces_come_from_s3_with_the_users_credentials(
    ground: RequestGround, run: Any, s3_server: Any, tmp_path: Path
) -> None:
    uid = ground.ask("five")["metadata"]["uid"]
    bucket = s3_server.make_bucket()
    store = s3_server.make_store(bucket, "fp")
    root = f"v1/{ground.namespace}/{uid}"
    store.put(f"{root}/report.json", b'{"schema_version": 99}')
    store.put(f"{root}/report.html", b"<p>report</p>")
    store.put(f"{root}/ranks/0/trace.json.gz", b"trace")
    finish(ground, "five", reportURL=f"s3://{bucket}/fp/{root}/report.html")
    mine = {"AWS_ACCESS_KEY_ID": s3_server.access_key, "AWS_SECRET_ACCESS_KEY": s3_server.secret_key}
    there = ["--s3-endpoint", s3_server.endpoint_url]
    result = await run("report", "five", "-o", "json", *there, **mine, AWS_REGION="us-east-1")
    assert result.stdout == '{"schema_version": 99}', result.stderr
    address = f"s3://{bucket}/fp/{root}/report.html?endpoint={s3_server.endpoint_url}&region=us-east-1"
    finish(ground, "five", reportURL=address)
    shown = await run("report", "five", "-o", "json", **mine)  # no flag: the address says which server it is
    assert shown.stdout == '{"schema_version": 99}', shown.stderr
    page = f"https://ui.example/reports/{ground.namespace}/{uid}"
    finish(ground, "five", reportURL=page, storeURL=address.replace(s3_server.endpoint_url, "http://127.0.0.1:9"))
    elsewhere = await run("report", "five", "-o", "json", *there, **mine)  # reached by another way from here
    assert elsewhere.stdout == '{"schema_version": 99}', elsewhere.stderr
    assert f"{root}/report.html?" in (await run("report", "-o", "path", *there, **mine)).stdout  # not the web UI's page
    fetched = await run("traces", "five", "-o", str(tmp_path / "t"), *there, **mine, AWS_REGION="us-east-1")
    assert fetched.returncode == 0, fetched.stderr
    assert (tmp_path / "t/ranks/0/trace.json.gz").read_bytes() == b"trace"
    stranger = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    refused = await run("traces", "five", "-o", str(tmp_path / "u"), *there, **stranger)
    assert refused.returncode == 1
    assert "your own credentials are used" in refused.stderr


def test_kubectl_finds_the_plug_in_and_completes_it(api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    scripts = Path(sys.executable).parent
    for name in ("kubectl-fleetprof", "kubectl_complete-fleetprof"):
        (tmp_path / "bin" / name).symlink_to(scripts / name)
    os_path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    kubectl = [str(api.programs["kubectl"])]
    environment = os.environ | {"PATH": os_path, "KUBECONFIG": str(api.kubeconfig())}
    shown = subprocess.run([*kubectl, "fleetprof", "--help"], env=environment, capture_output=True, text=True)
    assert shown.stdout.startswith("Usage: kubectl fleetprof"), shown.stderr
    words = ["__complete", "fleetprof", "capture", "--iterati"]
    completed = subprocess.run([*kubectl, *words], env=environment, capture_output=True, text=True)
    assert completed.stdout.splitlines() == ["--iterations", "--iteration-range", ":4"], completed.stderr
    words = ["__complete", "fleetprof", "top", ""]
    completed = subprocess.run([*kubectl, *words], env=environment, capture_output=True, text=True)
    assert completed.stdout.splitlines() == [":4"], "without an operator nothing is offered"
    assert "Traceback" not in completed.stderr


async def test_top_says_what_is_missing(ground: RequestGround, run: Any) -> None:
    result = await run("top", "--system-namespace", ground.namespace)
    assert result.returncode == 5, result.stderr
    assert "where is fleetprof installed? --system-namespace" in result.stderr

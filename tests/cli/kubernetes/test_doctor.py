"""The doctor on a pod that does not answer, over pods of the real injection: each reason, each next step."""

import json

import pytest
from fleetprof_api import __version__
from fleetprof_api.pods import WITHOUT_SIDECAR_ANNOTATION
from fleetprof_cli.doctor.check import Verdict
from fleetprof_cli.kubernetes.doctor.observation import Observation, PodObservation, Unknown
from fleetprof_cli.kubernetes.doctor.pod_checks import judge_pods
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from harness.kubernetes.doctor_facts import (
    CONNECTED,
    NO_LABEL,
    PLAIN,
    Json,
    edit,
    inject,
    make_facts,
    say,
    trainer,
    with_status,
)


def test_a_pod_in_order_is_said_to_be() -> None:
    checks = list(judge_pods(make_facts(inject(PLAIN)), "Job/train"))
    assert {check.verdict for check in checks} == {Verdict.OK}, say(checks)
    assert "container train is set up to ask for captures" in say(checks)
    assert "connected to the hub at fleetprof-hub:8443" in say(checks)


UNHARMED = "the training processes are not affected"
FULL: Json = {
    "metadata": {"name": "team"},
    "spec": {"hard": {"requests.memory": "1Gi"}},
    "status": {"hard": {"requests.memory": "1Gi"}, "used": {"requests.memory": "1Gi"}},
}

# what is special, the sentence, the next step
SILENT: list[tuple[str, Observation, str, str]] = [
    ("no pod", make_facts(), "Job/train has no pod", "is the job running, in this namespace"),
    ("pods unreadable", make_facts(pods=Unknown("pods is forbidden")), "cannot be read: pods is forbidden", ""),
    (
        "label missing",
        make_facts(PLAIN, namespace=NO_LABEL),
        "neither it nor its namespace is labelled fleetprof.io/inject=true",
        "kubectl label namespace team fleetprof.io/inject=true",
    ),
    (
        "opted out",
        make_facts(edit(PLAIN, a=lambda p: p["metadata"].update(labels={"fleetprof.io/inject": "false"}))),
        "its label fleetprof.io/inject is false",
        "take the label away",
    ),
    ("no webhook", make_facts(PLAIN, webhooks=[]), "there is no webhook to add it", "fleetprof inject -f"),
    (
        "older than the webhook",
        make_facts(edit(PLAIN, a=lambda p: p["metadata"].update(creationTimestamp="2026-11-21T08:00:00Z"))),
        "older than fleetprof's webhook",
        "start the job again",
    ),
    (
        "wrong container",
        make_facts(edit(PLAIN, a=lambda p: p["metadata"].update(annotations={"fleetprof.io/container": "x"}))),
        "names 'x'; the containers are train",
        "correct the annotation",
    ),
    (
        "own Kineto daemon",
        make_facts(edit(PLAIN, a=lambda p: trainer(p).update(env=[{"name": "KINETO_USE_DAEMON", "value": "0"}]))),
        "container 'train' sets KINETO_USE_DAEMON itself",
        "take the variable out",
    ),
    (
        "no room",
        make_facts(PLAIN, limits=NamespaceLimits(quotas=[FULL])),
        "requests.memory",
        "make room in the namespace's quota",
    ),
    (
        "name taken",
        make_facts(edit(PLAIN, a=lambda p: p["spec"].update(volumes=[{"name": "fleetprof", "emptyDir": {}}]))),
        "it has a volume named 'fleetprof' of its own",
        "docs/injection.md",
    ),
    ("left alone", make_facts(PLAIN), "though it should have one", "start the job again"),
    ("webhook not seen", make_facts(PLAIN, webhooks=Unknown("forbidden")), "though it should have one", "again"),
    (
        "image not pullable",
        make_facts(with_status(state={"waiting": {"reason": "ImagePullBackOff", "message": "not found"}})),
        "its sidecar's image cannot be pulled: not found",
        "make registry.example/sidecar:1 reachable",
    ),
    (
        "went on without a sidecar",
        make_facts(
            edit(
                inject(PLAIN), a=lambda p: p["metadata"]["annotations"].update({WITHOUT_SIDECAR_ANNOTATION: "no image"})
            )
        ),
        "went on without a sidecar: no image",
        "start the job again",
    ),
    (
        "sidecar crashes",
        make_facts(
            with_status(
                state={"waiting": {"reason": "CrashLoopBackOff"}},
                lastState={"terminated": {"exitCode": 2, "message": "wrong settings"}},
                restartCount=3,
            )
        ),
        "keeps ending, the last time with code 2: wrong settings",
        "kubectl logs train-0 -n team -c fleetprof --previous",
    ),
    (
        "sidecar's process crashes",
        make_facts(inject(PLAIN), json.dumps({"message": f"the sidecar ended with 1; {UNHARMED}"})),
        "the sidecar ended with 1",
        "kubectl logs train-0 -n team -c fleetprof",
    ),
    (
        "not scheduled",
        make_facts(
            edit(
                inject(PLAIN),
                a=lambda p: p.update(
                    status={
                        "phase": "Pending",
                        "conditions": [
                            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
                        ],
                    }
                ),
            )
        ),
        "does not run: not scheduled: Unschedulable: no node",
        "kubectl describe pod/train-0 -n team",
    ),
    (
        "variable overridden",
        make_facts(
            edit(inject(PLAIN), a=lambda p: trainer(p).update(env=[{"name": "KINETO_USE_DAEMON", "value": "0"}]))
        ),
        "KINETO_USE_DAEMON='0', KINETO_IPC_SOCKET_DIR is missing",
        "something changed the pod after the injection",
    ),
    (
        "volume missing",
        make_facts(edit(inject(PLAIN), a=lambda p: trainer(p).update(volumeMounts=[]))),
        "container train does not see /run/fleetprof",
        "volume is not mounted",
    ),
    (
        "token refused",
        make_facts(
            inject(PLAIN), '{"message": "no connection to the hub at h:8443: UNAUTHENTICATED: token of another pod"}'
        ),
        "no connection to the hub at h:8443: UNAUTHENTICATED",
        "the hub refuses the pod's token",
    ),
    (
        "certificate of another CA",
        make_facts(inject(PLAIN), '{"message": "no connection to the hub at h:8443: SSL handshake failed"}'),
        "SSL handshake failed",
        "not from the CA that the pod got",
    ),
    (
        "hub not reachable",
        make_facts(inject(PLAIN), CONNECTED + '\n{"message": "no connection to the hub at h:8443: timed out"}'),
        "no connection to the hub at h:8443: timed out",
        "NetworkPolicy",
    ),
    (
        "name not resolved",
        make_facts(inject(PLAIN), '{"message": "no connection to the hub at h:8443: DNS resolution failed"}'),
        "DNS resolution failed",
        "dnsPolicy",
    ),
    (
        "torch too old",
        make_facts(inject(PLAIN), torch="torch 2.1.0+cu121"),
        "2.1.0+cu121",
        "too old: use PyTorch 2.10 or later",
    ),
]


@pytest.mark.parametrize(("facts", "found", "advice"), [row[1:] for row in SILENT], ids=[row[0] for row in SILENT])
def test_why_a_pod_does_not_answer(facts: Observation, found: str, advice: str) -> None:
    failures = [check for check in judge_pods(facts, "Job/train") if check.verdict == Verdict.FAIL]
    assert len(failures) == 1, say(failures)
    assert found in failures[0].found
    assert advice in failures[0].advice


@pytest.mark.parametrize(
    ("facts", "verdict", "found"),
    [
        (make_facts(edit(PLAIN, a=lambda p: p.update(status={"phase": "Succeeded"}))), "warn", "has ended (Succeeded)"),
        (make_facts(with_status(state={"running": {}}, restartCount=2)), "warn", "after 2 restarts"),
        (make_facts(with_status(state={"waiting": {"reason": "PodInitializing"}})), "warn", "has not started yet"),
        (make_facts(inject(PLAIN), ""), "warn", "says nothing about the hub"),
        (make_facts(inject(PLAIN), Unknown("forbidden")), "ok", "not checked: forbidden"),
        (make_facts(inject(PLAIN), torch="none /usr/bin/python3"), "ok", "not found: none /usr/bin/python3"),
        (make_facts(inject(PLAIN), torch=Unknown("no exec")), "ok", "the version of PyTorch was not checked: no exec"),
        (make_facts(inject(PLAIN), torch="torch 2.15.0"), "ok", "2.15.0"),
        (
            make_facts(
                edit(inject(PLAIN), a=lambda p: p["metadata"]["annotations"].update({"fleetprof.io/injected": "0"}))
            ),
            "ok",
            f"its sidecar is of version 0, this is {__version__}",
        ),
    ],
)
def test_what_fails_nothing(facts: Observation, verdict: str, found: str) -> None:
    checks = list(judge_pods(facts, "Job/train"))
    assert any(check.verdict == verdict and found in check.found for check in checks), say(checks)
    assert not any(check.verdict == Verdict.FAIL for check in checks)


def test_a_large_job_is_summed_up() -> None:
    pods = [PodObservation(pod=inject(PLAIN)) for _ in range(20)]
    checks = list(judge_pods(make_facts(pods=pods), "Job/train"))
    assert checks[-1].found == "20 in all, 20 of them injected"
    assert len(checks) < 40

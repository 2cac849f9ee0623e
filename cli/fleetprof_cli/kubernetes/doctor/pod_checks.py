"""The reason why a pod does not answer, for `kubectl fleetprof doctor`: from the pod, its status and a log.

Guarantees: pure; the first thing that explains the silence fails, with the next step; what could not be read is said.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fleetprof_api import __version__
from fleetprof_api.pods import (
    INJECTED_ANNOTATION,
    KINETO_CONFIG_FILE,
    SHARED_VOLUME,
    SIDECAR_CONTAINER,
    SOCKET_DIRECTORY,
    WITHOUT_SIDECAR_ANNOTATION,
    kineto_variables,
)
from fleetprof_operator.injection.pods.trainer_container import choose_trainer
from fleetprof_operator.kubernetes.pod_trouble import explain

from fleetprof_cli.doctor.check import Check, Verdict
from fleetprof_cli.doctor.interpreter import judge_torch
from fleetprof_cli.kubernetes.doctor.missing_sidecar import explain_missing
from fleetprof_cli.kubernetes.doctor.observation import Observation, PodObservation, Unknown
from fleetprof_cli.kubernetes.request_state import RequestState

Pod = Mapping[str, Any]
_NO_IMAGE: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_LAST_WORDS: Final = 300
# The last words of the sidecar's supervisor about its child.
_CRASHED: Final = "the training processes are not affected"
_SHOWN: Final = 8
_KINETO_CONFIG: Final = f"{SOCKET_DIRECTORY}/{KINETO_CONFIG_FILE}"


def judge_pods(facts: Observation, target: str) -> Iterable[Check]:
    """Every pod; where there are many, the first ones and how many more."""
    if isinstance(facts.pods, Unknown):
        yield Check("pods", Verdict.FAIL, f"those of {target} cannot be read: {facts.pods.why}")
        return
    if not facts.pods:
        advice = "is the job running, in this namespace (-n), under this name? a request that is applied waits for pods"
        yield Check("pods", Verdict.FAIL, f"{target} has no pod", advice)
        return
    for pod_facts in facts.pods[:_SHOWN]:
        yield from judge_pod(pod_facts, facts)
    if len(facts.pods) > _SHOWN:
        injected = sum(INJECTED_ANNOTATION in _annotations(other.pod) for other in facts.pods)
        yield Check("pods", Verdict.OK, f"{len(facts.pods)} in all, {injected} of them injected")


def judge_pod(facts: PodObservation, around: Observation) -> Iterator[Check]:
    """The findings about one pod: its sidecar, its trainer's environment, its link to the hub."""
    pod = facts.pod
    name = f"pod {pod['metadata']['name']}"
    phase = (pod.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        yield Check(name, Verdict.WARN, f"has ended ({phase})", "capture a job while it trains")
        return
    version = _annotations(pod).get(INJECTED_ANNOTATION)
    if version is None:
        yield _judge_missing(name, pod, around)
        return
    if why := _annotations(pod).get(WITHOUT_SIDECAR_ANNOTATION):
        yield Check(name, Verdict.FAIL, f"went on without a sidecar: {why}", "mend that, then start the job again")
        return
    sidecar = _judge_sidecar(name, pod)
    yield sidecar
    if sidecar.verdict == Verdict.FAIL:
        return
    if version != __version__:
        advice = "pods keep the sidecar that they were made with; start the job again to have the new one"
        yield Check(name, Verdict.OK, f"its sidecar is of version {version}, this is {__version__}", advice)
    yield from _judge_trainer(name, pod)
    yield from _judge_link(name, facts.pod["metadata"], facts.sidecar_log)
    yield from _judge_torch(name, pod, facts.torch)


def judge_latest(state: RequestState | None) -> Iterable[Check]:
    """Judges the end of the last request about this target."""
    if state is None:
        return
    name, reason = f"request {state.name}", state.reason()
    succeeded = state.status.condition("Succeeded")
    if not state.finished:
        yield Check(name, Verdict.OK, f"is under way: {state.sentence()}")
    elif succeeded is not None and succeeded.status == "True":
        yield Check(name, Verdict.OK, f"ended well: {reason}")
    else:
        advice = f"docs/reasons.md says what {reason} means" if reason else ""
        yield Check(name, Verdict.WARN, f"ended with {state.sentence()}", advice)


def _judge_missing(name: str, pod: Pod, around: Observation) -> Check:
    """The reason why a pod has no sidecar."""
    found, advice = explain_missing(pod, around)
    return Check(name, Verdict.FAIL, f"has no sidecar: {found}", advice)


def _judge_sidecar(name: str, pod: Pod) -> Check:
    """Tells whether the sidecar runs."""
    status = pod.get("status") or {}
    mine = next((c for c in _statuses(status) if c.get("name") == SIDECAR_CONTAINER), {})
    state = mine.get("state") or {}
    waiting = state.get("waiting") or {}
    last = (mine.get("lastState") or {}).get("terminated") or {}
    if waiting.get("reason") in _NO_IMAGE:
        image = _sidecar(pod.get("spec") or {}).get("image", "")
        advice = f"make {image} reachable for the node (registry, imagePullSecrets); the pod waits for it"
        return Check(name, Verdict.FAIL, f"its sidecar's image cannot be pulled: {waiting.get('message', '')}", advice)
    if waiting.get("reason") == "CrashLoopBackOff":
        message = " ".join(str(last.get("message") or "").split())[-_LAST_WORDS:]
        found = f"its sidecar keeps ending, the last time with code {last.get('exitCode')}"
        metadata = pod["metadata"]
        logs = f"kubectl logs {metadata['name']} -n {metadata['namespace']} -c {SIDECAR_CONTAINER} --previous"
        return Check(
            name, Verdict.FAIL, f"{found}: {message}" if message else found, f"the training is not affected; {logs}"
        )
    if trouble := explain(dict(status)):
        step = f"kubectl describe {name.replace(' ', '/')} -n {pod['metadata']['namespace']}"
        return Check(name, Verdict.FAIL, f"does not run: {trouble}", step)
    if "running" not in state:
        return Check(name, Verdict.WARN, "its sidecar has not started yet", "wait a moment, then look again")
    restarts = int(mine.get("restartCount") or 0)
    if restarts:
        advice = f"its last end: code {last.get('exitCode')}, {last.get('reason')}" if last else ""
        return Check(name, Verdict.WARN, f"its sidecar runs, after {restarts} restarts", advice)
    return Check(name, Verdict.OK, "its sidecar runs")


def _judge_trainer(name: str, pod: Pod) -> Iterator[Check]:
    """Tells whether the trainer's container still has what the injection gave it."""
    containers = pod["spec"]["containers"]
    choice = choose_trainer(pod)
    trainer = containers[choice.index] if choice.index >= 0 else containers[0]
    given = {entry.get("name"): entry.get("value") for entry in trainer.get("env") or ()}
    wrong = [
        f"{variable}={given.get(variable)!r}" if variable in given else f"{variable} is missing"
        for variable, value in kineto_variables(SOCKET_DIRECTORY, _KINETO_CONFIG).items()
        if given.get(variable) != value
    ]
    mounts = {mount.get("name") for mount in trainer.get("volumeMounts") or ()}
    what = f"container {trainer['name']}"
    if wrong:
        advice = "something changed the pod after the injection; another webhook, or the launcher that makes the pods?"
        serious = any("KINETO_CONFIG" not in variable for variable in wrong)
        yield Check(name, Verdict.FAIL if serious else Verdict.WARN, f"{what}: {', '.join(wrong)}", advice)
    elif SHARED_VOLUME not in mounts:
        advice = "the sockets' volume is not mounted there; did another webhook change the pod?"
        yield Check(name, Verdict.FAIL, f"{what} does not see {SOCKET_DIRECTORY}", advice)
    else:
        advice = choice.warning and f"if it is another one: {choice.warning}"
        yield Check(name, Verdict.OK, f"{what} is set up to ask for captures", advice)


def _judge_link(name: str, metadata: Mapping[str, Any], log: str | Unknown | None) -> Iterator[Check]:
    """Judges the sidecar's log on the hub, last word first."""
    if log is None:
        return
    if isinstance(log, Unknown):
        yield Check(name, Verdict.OK, f"not checked: {log.why}")
        return
    for line in reversed(log.splitlines()):
        message = _message(line)
        if message.startswith("connected to the hub"):
            yield Check(name, Verdict.OK, f"its sidecar is {message}")
            return
        if message.startswith("no connection to the hub"):
            yield Check(name, Verdict.FAIL, f"its sidecar has {message}", _advise_link(message))
            return
        if message.endswith(_CRASHED):
            logs = f"kubectl logs {metadata['name']} -n {metadata['namespace']} -c {SIDECAR_CONTAINER}"
            yield Check(name, Verdict.FAIL, message, f"its log says more: {logs}")
            return
    yield Check(
        name, Verdict.WARN, "its sidecar's log says nothing about the hub", "it may have just begun; look again"
    )


def _advise_link(message: str) -> str:
    text = message.lower()
    if "unauthenticated" in text or "token" in text:
        return "the hub refuses the pod's token: the operator's log says why; is the pod's service account still there?"
    if "certificate" in text or "ssl" in text or "handshake" in text:
        return "the certificate is not from the CA that the pod got at its creation: start the job again"
    if "resolve" in text or "dns" in text or "name or service" in text:
        return "the hub's name cannot be resolved: does the pod use the cluster's DNS (dnsPolicy)?"
    return "does the operator run? does a NetworkPolicy of this namespace forbid egress to it (port 8443)?"


def _judge_torch(name: str, pod: Pod, version: str | Unknown | None) -> Iterator[Check]:
    if version is None:
        return
    if isinstance(version, Unknown):
        yield Check(name, Verdict.OK, f"the version of PyTorch was not checked: {version.why}")
        return
    kind, _, rest = version.partition(" ")
    if kind == "torch":
        judged = judge_torch(rest, kineto=True)
        yield Check(f"{name} pytorch", judged.verdict, judged.found, judged.advice)
    else:
        advice = "the interpreter on PATH has no PyTorch; does the job train with another one?"
        yield Check(f"{name} pytorch", Verdict.OK, f"not found: {version[:200]}", advice)


def _message(line: str) -> str:
    try:
        return str(json.loads(line).get("message", ""))
    except (ValueError, AttributeError):
        return line


def _annotations(pod: Pod) -> Mapping[str, str]:
    annotations: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return annotations


def _sidecar(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return next((c for c in containers if c.get("name") == SIDECAR_CONTAINER), {})


def _statuses(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]

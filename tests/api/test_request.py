"""A ProfileRequest says everything that is wrong with it, each time with the field and what is allowed there."""

import copy
import json
from typing import Any

import pytest
from fleetprof_api.request import Collect, InvalidRequest, Selector, load_request, parse_request
from hypothesis import given
from hypothesis import strategies as st

WORKLOAD = {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}
VALID: dict[str, Any] = {
    "apiVersion": "fleetprof.io/v1alpha1",
    "kind": "ProfileRequest",
    "metadata": {"name": "look", "namespace": "team"},
    "spec": {"target": {"workload": WORKLOAD}, "window": {"iterations": 5}},
}


def with_value(path: str, value: object) -> dict[str, Any]:
    """The valid request with one field set; `path` as in an error."""
    document = copy.deepcopy(VALID)
    place: Any = document
    *way, last = path.split(".")
    for part in way:
        place = place.setdefault(part, {})
    place[last] = value
    return document


def problems_of(document: object) -> list[str]:
    with pytest.raises(InvalidRequest) as caught:
        parse_request(document)
    return caught.value.problems


LABEL = "of a-z, 0-9 and -, beginning and ending with a letter or digit"
NAME = "of a-z, 0-9, - and ., each part beginning and ending with a letter or digit"

# field, wrong value, what is said of it
WRONG = [
    ("apiVersion", "fleetprof.io/v2", "must be fleetprof.io/v1alpha1, got 'fleetprof.io/v2'"),
    ("kind", "Job", "must be ProfileRequest, got 'Job'"),
    ("metadata.name", "Look", f"must be a text of 1 to 52 characters {NAME}, got 'Look'"),
    ("metadata.name", "a" * 53, "must be a text of 1 to 52 characters"),
    ("metadata.generateName", "a" * 47, "must be a text of 1 to 46 characters"),
    ("metadata.namespace", "my team", f"must be a text of 1 to 63 characters {LABEL}, got 'my team'"),
    ("spec.target", "llama", "must be a mapping with the fields workload, selector, got 'llama'"),
    ("spec.target", {}, "exactly one of spec.target.workload and spec.target.selector must be set"),
    ("spec.target.workload.apiVersion", "batch", "e.g. v1, batch/v1, jobset.x-k8s.io/v1alpha2, got 'batch'"),
    ("spec.target.workload.kind", "job", "of letters and digits, beginning with a capital, e.g. Job, got 'job'"),
    ("spec.target.workload.name", "A B", f"{NAME}, got 'A B'"),
    ("spec.target.workload.apiVersion", "v1", "must be group/version for this kind, for example batch/v1 for Job"),
    ("spec.ranks", {}, "exactly one of spec.ranks.list, spec.ranks.sample and spec.ranks.every must be set"),
    ("spec.ranks", {"sample": 2, "every": 2}, "exactly one of spec.ranks.list, spec.ranks.sample and spec.ranks.every"),
    ("spec.ranks.list", [], "must be a list of 1 to 1024 items, each a whole number from 0 to 1000000"),
    ("spec.ranks.list", [1, 1], "must not name a value twice"),
    ("spec.ranks.list", [-1], "must be a whole number from 0 to 1000000, got -1"),
    ("spec.ranks.list", ["0"], "must be a whole number from 0 to 1000000, got '0'"),
    ("spec.ranks.sample", 0, "must be a whole number from 1 to 100000, got 0"),
    ("spec.ranks.every", 1, "must be a whole number from 2 to 100000, got 1"),
    ("spec.window", {}, "spec.window.iterations, spec.window.durationMillis or both"),
    ("spec.window", {"durationMillis": 500, "warmupIterations": 1}, "needs spec.window.iterations"),
    ("spec.window.iterations", 0, "must be a whole number from 1 to 100, got 0"),
    ("spec.window.iterations", 101, "must be a whole number from 1 to 100, got 101"),
    ("spec.window.iterations", True, "must be a whole number from 1 to 100, got true"),
    ("spec.window.iterations", 2.5, "must be a whole number from 1 to 100, got 2.5"),
    ("spec.window.durationMillis", 9, "must be a whole number from 10 to 60000, got 9"),
    ("spec.window.warmupIterations", -1, "must be a whole number from 0 to 100, got -1"),
    ("spec.collect", "Shapes", "must be a list of at most 4 items, each Shapes, Stacks, ModuleTree or"),
    ("spec.collect", ["shapes"], "must be Shapes, Stacks, ModuleTree or DeviceMetrics, got 'shapes'"),
    ("spec.collect", ["Modules"], "Modules is no choice any more: it named modules by class and ordinal; ModuleTree"),
    ("spec.collect", ["Shapes", "Memory"], "Memory is no choice any more: it changed nothing in a trace; ModuleTree"),
    ("spec.collect", ["Flops"], "Flops is no choice any more: it changed nothing in a trace; name Shapes"),
    ("spec.collect", ["Shapes", "Shapes"], "must not name a value twice"),
    ("spec.traces", "All", "must be Full, Summary or Auto, got 'All'"),
    ("spec.redact", ["Secrets"], "must be Shapes, Paths or Names, got 'Secrets'"),
    ("spec.limits.maxTraceBytes", 1, "must be a whole number from 1048576 to 68719476736, got 1"),
    ("spec.limits.maxSlowdownPercent", -1, "must be a whole number from 0 to 1000, got -1"),
    ("spec.activeDeadlineSeconds", 29, "must be a whole number from 30 to 86400, got 29"),
    ("spec.ttlSecondsAfterFinished", -1, "must be a whole number from 0 to 31536000, got -1"),
    ("spec.suspend", "yes", "must be true or false, got 'yes'"),
    ("spec.storage.profile", "", "must be a text of 1 to 63 characters, got ''"),
    ("spec.analysis.parallelism", 0, "must be a whole number from 1 to 1000, got 0"),
    (
        "spec.analysis.resources.limits",
        {"cpu": "much"},
        "must be a text that is a quantity, e.g. 500m, 2Gi, got 'much'",
    ),
    ("spec.analysis.resources.limits", {"disk": "1"}, "may name cpu, memory and ephemeral-storage"),
    (
        "spec.analysis.kernelClasses",
        [{"pattern": "gemm", "class": "Compute"}, {"pattern": "a", "class": "Copy"}],
        "must be Compute, Communication or Memory, got 'Copy'",
    ),
    (
        "spec.analysis.kernelClasses",
        [{"pattern": "***", "class": "Memory"}],
        "not of * alone, e.g. my_all_reduce*kernel, got '***'",
    ),
    ("spec.analysis.kernelClasses", [{"pattern": "gemm"}], "is required: Compute, Communication or Memory"),
    ("spec.windw", {}, "is not a field here; did you mean window?"),
    ("spec.extra", 1, "is not a field here; allowed: target, ranks, window,"),
    ("spec.limits.memory", 1, "is not a field here; allowed: maxTraceBytes, maxSlowdownPercent"),
]


@pytest.mark.parametrize(
    ("path", "value", "message"), WRONG, ids=[f"{path}={value!r}"[:60] for path, value, _ in WRONG]
)
def test_a_wrong_field_is_named_with_what_is_allowed(path: str, value: object, message: str) -> None:
    (problem,) = problems_of(with_value(path, value))
    field, _, rest = problem.partition(": ")
    assert field.startswith((path, path.rpartition(".")[0]))
    assert message in rest


def test_all_problems_are_told_at_once() -> None:
    document = with_value("spec.window.iterations", 0)
    document["spec"]["traces"] = "All"
    del document["spec"]["target"]
    assert [problem.partition(":")[0] for problem in problems_of(document)] == [
        "spec.target",
        "spec.window.iterations",
        "spec.traces",
    ]


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ({"key": "a", "operator": "In"}, "values must be set for In and NotIn"),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, "must not be set for Exists and DoesNotExist"),
        (
            {"key": "", "operator": "Exists"},
            "a text of 1 to 317 characters that are a label's name, e.g. app, app.kubernetes.io/",
        ),
        ({"key": "a", "operator": "Has"}, "must be In, NotIn, Exists or DoesNotExist, got 'Has'"),
    ],
)
def test_a_wrong_selector_is_named(requirement: dict[str, Any], message: str) -> None:
    target = {"selector": {"matchExpressions": [requirement]}}
    (problem,) = problems_of(with_value("spec.target", target))
    assert message in problem


def test_an_empty_selector_is_refused() -> None:
    (problem,) = problems_of(with_value("spec.target", {"selector": {"matchLabels": {}}}))
    assert problem == ("spec.target.selector: must hold matchLabels or matchExpressions; an empty selector is refused")


def test_a_long_window_needs_chosen_ranks() -> None:
    document = with_value("spec.window", {"durationMillis": 10_001})
    assert problems_of(document) == ["spec.window.durationMillis: above 10000 needs spec.ranks to choose some ranks"]
    document["spec"]["ranks"] = {"sample": 2}
    assert parse_request(document).spec.recorded.duration_millis == 10_001


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "request: must be one YAML document, got 0"),
        ("a: 1\n---\nb: 2\n", "request: must be one YAML document, got 2"),
        ("a: b: c", "request: is not YAML"),
        ("[]", "request: must be a mapping with the fields apiVersion, kind, metadata, spec, status"),
        ("!!python/object:os.system {}", "request: is not YAML"),
    ],
)
def test_text_that_is_no_request_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        load_request(text)
    assert caught.value.problems[0].startswith(message)


def test_a_request_survives_being_written_and_read() -> None:
    request = parse_request(with_value("spec.collect", ["Shapes", "Stacks"]))
    assert load_request(request.to_json()) == request
    assert request.spec.collect == [Collect.SHAPES, Collect.STACKS]
    assert request.spec.active_deadline_seconds == 900


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
        max_leaves=20,
    )
)
def test_any_document_is_refused_in_words(document: object) -> None:
    problems = problems_of({**VALID, "spec": document})
    assert problems
    assert all(": " in problem and len(problem) <= 600 for problem in problems)


@pytest.mark.parametrize(
    ("selector", "labels", "fits"),
    [
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"a": "1"}, False),
    ],
)
def test_a_selector_chooses_as_kubernetes_does(selector: dict[str, Any], labels: dict[str, str], fits: bool) -> None:
    assert Selector.model_validate(selector).matches(labels) is fits


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"workload": WORKLOAD}, "Job/llama"),
        ({"selector": {"matchLabels": {"app": "x"}}}, "app=x"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}}, "a In (1, 2)"),
    ],
)
def test_a_target_is_shown_in_short(target: dict[str, Any], text: str) -> None:
    assert parse_request(with_value("spec.target", target)).target_text() == text


@pytest.mark.parametrize(
    ("least", "most", "fits"),
    [
        ("500m", "1", True),
        ("1", "1", True),
        (1, "1000m", True),
        ("1001m", 1, False),
        ("1G", "1Gi", True),
        ("1Gi", "1G", False),
        ("1e3", "1k", True),
        ("1E3", "999", False),
        ("1E", "1000P", True),
        (".5", "400m", False),
        ("1000n", "1u", True),
    ],
)
def test_what_a_worker_is_promised_is_not_more_than_it_may_use(least: str | int, most: str | int, fits: bool) -> None:
    document = with_value("spec.analysis.resources", {"requests": {"cpu": least}, "limits": {"cpu": most}})
    if fits:
        parse_request(document)
    else:
        (problem,) = problems_of(document)
        assert problem.startswith("spec.analysis.resources: spec.analysis.resources.requests must not be more than")


MINIMAL = json.dumps(VALID)[:-1] + ', "status": '


def _bomb(levels: int) -> str:
    lines = [
        "a0: &a0 [x]",
        *(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)),
    ]
    return MINIMAL + "{" + ", ".join(lines) + "}}"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_bomb(8), "anchors and aliases"),
        (MINIMAL + "&it {}}", "anchors and aliases"),
        (MINIMAL + "[" * 200 + "]" * 200 + "}", "deeper than 32 levels"),
        (MINIMAL + "[" * 40_000, "deeper than 32 levels"),
        (MINIMAL + "x" * 70_000 + "}", "more than 65,536 characters"),
    ],
    ids=["bomb", "anchor", "deep", "very deep", "long"],
)
def test_yaml_that_becomes_much_larger_is_refused_before_that(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        load_request(text)

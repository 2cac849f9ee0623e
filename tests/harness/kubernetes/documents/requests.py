"""Right and wrong requests, for the API server and the typed Python alike."""

from functools import partial
from typing import Any

from harness.kubernetes.documents.fields import with_field

REQUESTS = "/apis/fleetprof.io/v1alpha1/namespaces/default/profilerequests"
VALID: dict[str, Any] = {
    "apiVersion": "fleetprof.io/v1alpha1",
    "kind": "ProfileRequest",
    "metadata": {"name": "look", "namespace": "default"},
    "spec": {
        "target": {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}},
        "window": {"iterations": 5},
    },
}


with_value = partial(with_field, VALID)
"""The valid request with the field at `path` set; None takes it away."""


def _selected(requirement: dict[str, Any]) -> dict[str, Any]:
    return {"selector": {"matchExpressions": [requirement]}}


SPEC = "spec"
TARGET = "spec.target"
WORKLOAD = "spec.target.workload"
EXPRESSION = "spec.target.selector.matchExpressions[0]"

STACKS: dict[str, Any] = {"target": VALID["spec"]["target"], "capture": {"stacks": {}}}

# path and value that leave the request right: the ends of bounds, and the other side of each rule
RIGHT: list[tuple[str, Any]] = [
    ("metadata.name", "a" * 52),
    ("spec.target.workload", {"apiVersion": "v1", "kind": "Pod", "name": "a"}),
    ("spec.target.workload", {"apiVersion": "v1", "kind": "ReplicationController", "name": "a.b-c"}),
    ("spec.target.workload", {"apiVersion": "ml.example/v2beta3", "kind": "MyJob2", "name": "a" * 253}),
    ("spec.target", {"selector": {"matchLabels": {f"example.com/a{n}": "" for n in range(16)}}}),
    ("spec.target", _selected({"key": "a", "operator": "In", "values": ["b", ""]})),
    ("spec.target", _selected({"key": "a.b/C_d", "operator": "DoesNotExist"})),
    ("spec.target", _selected({"key": "a", "operator": "Exists", "values": []})),
    ("spec.ranks", {"list": [0, 1_000_000]}),
    ("spec.ranks", {"list": list(range(1024))}),
    ("spec.ranks", {"sample": 1}),
    ("spec.ranks", {"every": 100_000}),
    ("spec.window", {"iterations": 100, "warmupIterations": 0}),
    ("spec.window", {"durationMillis": 10}),
    ("spec.window", {"durationMillis": 10_000}),
    ("spec", {**VALID["spec"], "window": {"durationMillis": 60_000}, "ranks": {"every": 2}}),
    ("spec", STACKS),
    ("spec", {**VALID["spec"], "window": {"durationMillis": 2000}, "iteration": {"range": "execute model #1"}}),
    ("spec", {**STACKS, "capture": {"stacks": {"samples": 3}}, "collect": []}),
    ("spec.collect", []),
    ("spec.collect", ["Shapes", "Stacks", "ModuleTree", "DeviceMetrics"]),
    ("spec.activities", ["Device"]),
    ("spec", {**VALID["spec"], "activities": ["Device"], "collect": ["DeviceMetrics"]}),
    ("spec", {**VALID["spec"], "activities": [], "collect": ["Stacks"]}),
    ("spec.window", {"iterations": 100, "durationMillis": 5000, "warmupIterations": 2}),
    ("spec.redact", ["Names", "Paths", "Shapes"]),
    ("spec.limits", {}),
    ("spec.limits", {"maxTraceBytes": 1 << 36, "maxSlowdownPercent": 0}),
    ("spec.activeDeadlineSeconds", 86_400),
    ("spec.missingRanksGraceSeconds", 0),
    ("spec.ttlSecondsAfterFinished", 31_536_000),
    ("spec.suspend", True),
    ("spec.storage", {}),
    ("spec.storage.profile", "a" * 63),
    ("spec.analysis", {"parallelism": 1000, "resources": {}, "kernelClasses": []}),
    ("spec.analysis.resources", {"requests": {"cpu": 0, "memory": "2G"}, "limits": {"cpu": "1e-3", "memory": "2Gi"}}),
    ("spec.analysis.resources", {"requests": {"cpu": 4}, "limits": {"ephemeral-storage": ".5Gi"}}),
    ("spec.analysis.kernelClasses", [{"pattern": "*a*", "class": "Compute"}] * 64),
]

# path and value that make the request wrong, the field that the API server names, its words
WRONG: list[tuple[str, Any, str, str]] = [
    ("metadata.name", "a" * 53, "metadata.name", "must have at most 52 characters"),
    ("spec", None, "spec", "Required value"),
    ("spec.target", None, "spec.target", "Required value"),
    ("spec.window", None, "spec", "exactly one of spec.window and spec.capture must be set"),
    ("spec.capture", {"stacks": {}}, "spec", "exactly one of spec.window and spec.capture must be set"),
    ("spec.iteration", {"range": "a"}, "spec.iteration", "needs spec.window.durationMillis"),
    ("spec.iteration", {"range": ""}, "spec.iteration.range", "at least 1 chars long"),
    ("spec.iteration", {"range": "a\u0000"}, "spec.iteration.range", "must be printable ASCII"),
    ("spec", {**STACKS, "capture": {}}, "spec.capture.stacks", "Required value"),
    (
        "spec",
        {**STACKS, "capture": {"stacks": {"samples": 4}}},
        "spec.capture.stacks.samples",
        "less than or equal to 3",
    ),
    ("spec", {**STACKS, "ranks": {"sample": 2}}, "spec.ranks", "are those of all ranks: leave spec.ranks out"),
    ("spec", {**STACKS, "collect": ["Shapes"]}, "spec.collect", "record nothing: leave spec.collect out"),
    ("spec", {**STACKS, "activities": ["Device"]}, "spec.activities", "record nothing: leave spec.activities out"),
    (
        "spec",
        {**VALID["spec"], "activities": ["Device"], "collect": ["Stacks"]},
        "spec.collect",
        "say something of operators, which spec.activities leaves out",
    ),
    ("spec.activities", ["Host"], "spec.activities[0]", '"Device"'),
    (
        "spec",
        {**VALID["spec"], "window": {"iterations": 5, "durationMillis": 500}, "iteration": {"range": "a"}},
        "spec.iteration",
        "needs spec.window.durationMillis alone",
    ),
    ("spec.target", {}, TARGET, "exactly one of spec.target.workload and spec.target.selector must be set"),
    (
        "spec.target.selector",
        {"matchLabels": {"a": "b"}},
        TARGET,
        "exactly one of spec.target.workload and spec.target.selector must be set",
    ),
    ("spec.target.workload.name", None, f"{WORKLOAD}.name", "Required value"),
    ("spec.target.workload.apiVersion", "batch", f"{WORKLOAD}.apiVersion", "must be a version or group/version"),
    ("spec.target.workload.apiVersion", "v1", f"{WORKLOAD}.apiVersion", "must be group/version for this kind"),
    ("spec.target.workload.apiVersion", "v" * 318, f"{WORKLOAD}.apiVersion", "317"),
    ("spec.target.workload.kind", "job", f"{WORKLOAD}.kind", "beginning with a capital, for example Job"),
    ("spec.target.workload.kind", "", f"{WORKLOAD}.kind", "at least 1 chars long"),
    ("spec.target.workload.name", "A B", f"{WORKLOAD}.name", "must be a name, of a-z, 0-9, - and ."),
    ("spec.target.workload.name", "a..b", f"{WORKLOAD}.name", "each part beginning and ending with a letter or digit"),
    ("spec.target", {"selector": {}}, f"{TARGET}.selector", "an empty selector is refused"),
    ("spec.target", {"selector": {"matchLabels": {}}}, f"{TARGET}.selector", "an empty selector is refused"),
    (
        "spec.target",
        {"selector": {"matchLabels": {"a b": "c"}}},
        f"{TARGET}.selector.matchLabels",
        "must have label names",
    ),
    (
        "spec.target",
        {"selector": {"matchLabels": {"a": "-"}}},
        f"{TARGET}.selector.matchLabels[a]",
        "must be a label's value",
    ),
    (
        "spec.target",
        {"selector": {"matchLabels": {f"a{n}": "b" for n in range(17)}}},
        f"{TARGET}.selector.matchLabels",
        "must have at most 16 items",
    ),
    ("spec.target", _selected({"operator": "Exists"}), f"{EXPRESSION}.key", "Required value"),
    ("spec.target", _selected({"key": "a", "operator": "Has"}), f"{EXPRESSION}.operator", '"In", "NotIn", "Exists"'),
    ("spec.target", _selected({"key": "a", "operator": "In"}), EXPRESSION, "values must be set for In and NotIn"),
    (
        "spec.target",
        _selected({"key": "a", "operator": "Exists", "values": ["b"]}),
        EXPRESSION,
        "must not be set for Exists and DoesNotExist",
    ),
    ("spec.target", _selected({"key": "a/b/c", "operator": "Exists"}), f"{EXPRESSION}.key", "must be a label's name"),
    (
        "spec.target",
        _selected({"key": "a", "operator": "In", "values": ["b c"]}),
        f"{EXPRESSION}.values[0]",
        "must be a label's value",
    ),
    ("spec.ranks", {}, "spec.ranks", "exactly one of spec.ranks.list, spec.ranks.sample and spec.ranks.every"),
    ("spec.ranks", {"sample": 2, "every": 2}, "spec.ranks", "exactly one of spec.ranks.list"),
    ("spec.ranks.list", [], "spec.ranks.list", "should have at least 1 items"),
    ("spec.ranks.list", [1, 1], "spec.ranks.list[1]", "Duplicate value: 1"),
    ("spec.ranks.list", [-1], "spec.ranks.list[0]", "greater than or equal to 0"),
    ("spec.ranks.list", list(range(1025)), "spec.ranks.list", "must have at most 1024 items"),
    ("spec.ranks.sample", 0, "spec.ranks.sample", "greater than or equal to 1"),
    ("spec.ranks.every", 1, "spec.ranks.every", "greater than or equal to 2"),
    ("spec.window", {}, "spec.window", "or both must be set"),
    (
        "spec.window",
        {"durationMillis": 500, "warmupIterations": 1},
        "spec.window.warmupIterations",
        "needs spec.window.iterations",
    ),
    ("spec.window.iterations", 0, "spec.window.iterations", "greater than or equal to 1"),
    ("spec.window.iterations", 101, "spec.window.iterations", "less than or equal to 100"),
    ("spec.window.iterations", 2.5, "spec.window.iterations", "integer"),
    ("spec.window.iterations", "5", "spec.window.iterations", "integer"),
    ("spec.window", {"durationMillis": 9}, "spec.window.durationMillis", "greater than or equal to 10"),
    ("spec.window", {"durationMillis": 60001}, "spec.window.durationMillis", "less than or equal to 60000"),
    ("spec.window", {"durationMillis": 10001}, "spec.window.durationMillis", "above 10000 needs spec.ranks"),
    ("spec.collect", "Shapes", "spec.collect", "array"),
    ("spec.collect", ["shapes"], "spec.collect[0]", '"Shapes", "Stacks", "ModuleTree"'),
    ("spec.collect", ["Shapes", "Shapes"], "spec.collect[1]", 'Duplicate value: "Shapes"'),
    ("spec.traces", "All", "spec.traces", '"Full", "Summary", "Auto"'),
    ("spec.redact", ["Secrets"], "spec.redact[0]", '"Shapes", "Paths", "Names"'),
    ("spec.limits.maxTraceBytes", 1, "spec.limits.maxTraceBytes", "greater than or equal to 1048576"),
    ("spec.limits.maxSlowdownPercent", 1001, "spec.limits.maxSlowdownPercent", "less than or equal to 1000"),
    ("spec.activeDeadlineSeconds", 29, "spec.activeDeadlineSeconds", "greater than or equal to 30"),
    ("spec.activeDeadlineSeconds", 86401, "spec.activeDeadlineSeconds", "less than or equal to 86400"),
    ("spec.missingRanksGraceSeconds", -1, "spec.missingRanksGraceSeconds", "greater than or equal to 0"),
    ("spec.ttlSecondsAfterFinished", -1, "spec.ttlSecondsAfterFinished", "greater than or equal to 0"),
    ("spec.suspend", "yes", "spec.suspend", "boolean"),
    ("spec.storage.profile", "", "spec.storage.profile", "at least 1 chars long"),
    ("spec.analysis.parallelism", 0, "spec.analysis.parallelism", "greater than or equal to 1"),
    (
        "spec.analysis.resources.limits",
        {"cpu": "much"},
        "spec.analysis.resources.limits.cpu",
        "should match '^([0-9]+",
    ),
    (
        "spec.analysis.resources.limits",
        {"cpu": -1},
        "spec.analysis.resources.limits.cpu",
        "greater than or equal to 0",
    ),
    (
        "spec.analysis.resources.requests",
        {"nvidia.com/gpu": 1},
        "spec.analysis.resources.requests",
        "requests may name cpu, memory and ephemeral-storage",
    ),
    (
        "spec.analysis.resources.limits",
        {"disk": "1Gi"},
        "spec.analysis.resources.limits",
        "limits may name cpu, memory and ephemeral-storage",
    ),
    (
        "spec.analysis.resources",
        {"requests": {"memory": "2Gi"}, "limits": {"memory": "2G"}},
        "spec.analysis.resources",
        "requests must not be more than spec.analysis.resources.limits",
    ),
    (
        "spec.analysis.kernelClasses",
        [{"pattern": "gemm", "class": "compute"}],
        "spec.analysis.kernelClasses[0].class",
        '"Compute", "Communication", "Memory"',
    ),
    (
        "spec.analysis.kernelClasses",
        [{"pattern": "gemm", "class": "Compute"}, {"pattern": "**", "class": "Memory"}],
        "spec.analysis.kernelClasses[1].pattern",
        "should match '^[ -~]*",
    ),
    (
        "spec.analysis.kernelClasses",
        [{"pattern": "gemm", "class": "Compute"}] * 65,
        "spec.analysis.kernelClasses",
        "must have at most 64 items",
    ),
    ("spec.windw", {}, "spec.windw", 'unknown field "spec.windw"'),
    ("spec.limits.memory", 1, "spec.limits.memory", 'unknown field "spec.limits.memory"'),
]

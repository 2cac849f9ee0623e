"""A variable is named by a noun of what it holds, not by the verb that filled it; a name of a class means one thing."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from harness.repository import ROOT, source_files

# Each hides what it is a name of: a message, an answer, a file, a number?
VERBS = {"said", "told", "got", "asked", "done", "gone", "seen"}
# Whoever binds one writes it; to parse what does not hold it takes seconds.
WRITTEN = re.compile(rf"(?<![a-zA-Z0-9])_*({'|'.join(sorted(VERBS))})_*(?![a-zA-Z0-9])")

# The idioms of Python's own documentation: a search keeps in `seen` the set of what it has visited, and
# `asyncio.wait` gives (done, pending).
IDIOMS = {
    "seen": re.compile(r"seen: set\[.*\] = set\(\)|seen = (set\(\)|\{[^:]*\})"),
    "done": re.compile(r"done, \w+ = await asyncio\.wait\(.*"),
}


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Whatever a module gives a name to: variables, parameters, attributes, patterns, functions, classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


@pytest.mark.parametrize(
    "code",
    [
        "said = 1", "for said in x: pass", "def f(said): pass", "self.said = 1", "self._said = 1", "(said := 1)",
        "def said(): pass", "with x as said: pass", "match x:\n case [said]: pass", "{said: 1 for said in x}",
        "class A:\n said: str", "try:\n pass\nexcept E as said: pass",
    ],
)  # fmt: skip
def test_every_way_to_give_a_name_is_seen(code: str) -> None:
    assert "said" in {name.strip("_") for name, _ in bound_names(ast.parse(code))}


def is_idiom(name: str, statement: str) -> bool:
    """Tells whether the field reads this name so, bound by this statement."""
    return name in IDIOMS and IDIOMS[name].fullmatch(statement) is not None


@pytest.mark.parametrize(
    ("name", "statement", "fits"),
    [
        ("seen", "seen = set()", True), ("seen", "seen: set[str] = set()", True), ("seen", "seen = {first}", True),
        ("seen", "seen = []", False), ("seen", "seen: dict[str, int] = {}", False), ("_seen", "_seen = set()", False),
        ("done", "done, pending = await asyncio.wait(tasks)", True), ("done", "done = subprocess.run(words)", False),
        ("said", "said = set()", False),
    ],
)  # fmt: skip
def test_an_idiom_of_the_field_is_one_statement(name: str, statement: str, fits: bool) -> None:
    assert is_idiom(name, statement) == fits


def test_no_name_is_a_verb_that_hides_what_it_holds() -> None:
    found = []
    for path in source_files():
        text = (ROOT / path).read_text()
        if not WRITTEN.search(text):
            continue
        lines = text.splitlines()
        names = bound_names(ast.parse("\n".join(lines)))
        found += [
            f"{path}:{line}: {name}"
            for name, line in names
            if name.strip("_") in VERBS and not is_idiom(name, lines[line - 1].strip())
        ]
    assert found == [], "name what it holds: message, answer, result, request, ledger"


# Modules that nobody imports have their names for themselves: tests, and the programs that a job runs.
PROGRAMS = re.compile(
    r".*/(test_\w+|conftest)\.py|bench/real/programs/.*|bench/capture/own_profiled_job\.py"
    r"|tests/harness/(policies/recorded_job|training/(uneven_)?training)\.py"
)

# One concept in several layers, by a convention that a reader knows.
MIRRORED = {
    "Settings": "each program has one: what it is told from outside",
    "Metrics": "each program has one: its registry",
    "Condition": "Kubernetes' metav1.Condition, in the status of a kind and in the ledger",
    "KernelClass": "an entry of a request, and the same in what the analyzer is told",
    "RankCounts": "a part of a request's status, and the same in the web UI's answer",
    "Answer": "what a report's page says first, and the same in the web UI's answer",
}
# The parts of the kinds' types that are read, under their names.
GENERATED = ("api/fleetprof_api/stored_request.py", "api/fleetprof_api/policy/stored_status.py")


CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)


def repeated_classes(paths: Iterable[str]) -> dict[str, list[str]]:
    """The places where each name of several classes that other modules can import is defined."""
    texts = {
        path: (ROOT / path).read_text()
        for path in paths
        if not (PROGRAMS.fullmatch(path) or path in GENERATED or (ROOT / path).is_symlink())
    }
    # Each definition is such a line, and a few texts have such lines as well.
    lines = Counter(name for text in texts.values() for name in CLASS.findall(text) if not name.startswith("_"))
    places: dict[str, list[str]] = {}
    for path, text in texts.items():
        if not any(lines[name] > 1 for name in CLASS.findall(text)):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and lines[node.name] > 1:
                places.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    return {name: found for name, found in places.items() if len(found) > 1}


@pytest.fixture(scope="module")
def places() -> dict[str, list[str]]:
    return repeated_classes(source_files())


def test_one_class_name_means_one_thing(places: dict[str, list[str]]) -> None:
    unexplained = {name: found for name, found in places.items() if name not in MIRRORED}
    assert unexplained == {}, "name each by what it is, or make them one class"


def test_no_exception_outlives_its_reason(places: dict[str, list[str]]) -> None:
    assert [name for name in MIRRORED if name not in places] == []


DECLARED = re.compile(r"\b(?:const|let|function)\s+\[?(\w+)|#(\w+)\s*[:=]|[(,]\s*(\w+)(?=\s*[:,)][^\"'`]*=>)")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("const said = 1;", "said"), ("const [said, setSaid] = useState();", "said"), ("function told() {}", "told"),
        ("readonly #told: () => void;", "told"), ("(_, said) => { f(said); }", "said"),
    ],
)  # fmt: skip
def test_names_of_the_frontend_are_found(code: str, name: str) -> None:
    assert name in {found for match in DECLARED.findall(code) for found in match}


def test_no_name_of_the_frontend_is_such_a_verb() -> None:
    found = []
    for path in sorted((ROOT / "webui/frontend/src").rglob("*.ts*")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            names = {name for match in DECLARED.findall(line) for name in match}
            found += [f"{path.relative_to(ROOT)}:{number}: {name}" for name in sorted(names & VERBS)]
    assert found == [], "name what it holds: message, answer, result, request, ledger"

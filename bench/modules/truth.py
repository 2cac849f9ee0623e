"""The module of each operator by the model's own word, which the analyzer does not read.

Each module says its name around its forward (`truth:NAME`, an annotation of the user), and each node of autograd's
graph says, before it runs, which module made it: found on the live graph, when the module returns.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, Final

import torch
from fleetprof_analyzer.rank.modules.assignment import Assignment
from fleetprof_analyzer.rank.modules.kinds import ModulePhase
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.trace.trace import Bools, Category, Rows, Trace

_FORWARD: Final = "truth:"
_NODE: Final = "truth of a node:"
_COMPILED: Final = "_orig_mod"
_EVALUATES: Final = "autograd::engine::evaluate_function: "


class ModuleTruth:
    """The truth of one model and whatever else is called beside it."""

    def __init__(self) -> None:
        self._makers: dict[Any, str] = {}  # nodes of the graph, kept alive: their identity is theirs alone
        self._inside = [""]

    def add(self, root: torch.nn.Module, name: str) -> None:
        """Has each module in `root` say its name; `name`: the root's."""
        for path, module in root.named_modules():
            if _COMPILED in path:
                continue  # inside compiled code there are no modules
            own = f"{name}.{path}" if path else name
            module.forward = functools.partial(self._run, own, module.forward)

    def _run(self, name: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._tell_graph([args, kwargs], self._inside[-1])
        self._inside.append(name)
        try:
            with torch.profiler.record_function(_FORWARD + name):
                result = forward(*args, **kwargs)
            self._tell_graph([result], name)
            return result
        finally:
            self._inside.pop()

    def tell(self, values: Any) -> None:
        """Notes the nodes of the graph behind these values that no module made."""
        self._tell_graph([values], "")

    def _tell_graph(self, values: list[Any], name: str) -> None:
        waiting = [tensor.grad_fn for tensor in _find_tensors(values) if tensor.grad_fn is not None]
        while waiting:
            node = waiting.pop()
            if node not in self._makers:
                self._tell(node, name)
                waiting += [following for following, _ in node.next_functions if following is not None]

    def _tell(self, node: Any, name: str) -> None:
        if node in self._makers:
            return
        self._makers[node] = name

        def say(*_: Any) -> None:
            with torch.profiler.record_function(_NODE + name):
                pass

        node.register_prehook(say)


def _find_tensors(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, dict):
        yield from _find_tensors(list(values.values()))
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _find_tensors(value)


def judge(trace: Trace, found: Assignment, is_inside: Bools | None = None) -> Counter[str]:
    """Own time of operators (ns) that is right, wrong, unassigned (a module made it, none is named), or outside.

    `is_inside`: rows of which a module around them alone is named; their time is unassigned, and "around" where it is.
    """
    truth = _find_truth(trace, found)
    verdict: Counter[str] = Counter()
    is_operator = (found.rows.category == Category.OPERATOR) & ~found.is_mark
    for at in is_operator.nonzero()[0].tolist():
        path = int(found.path[at])
        # A module that a forward makes itself has not said its name: its maker has.
        named = "" if path == NOWHERE else found.paths[path].name.replace(f".{_COMPILED}", "").partition(".(")[0]
        own = int(found.own_ns[at])
        if found.phase[at] == ModulePhase.COMMUNICATION:  # of no module, by definition
            verdict["outside"] += own
        elif named and is_inside is not None and is_inside[at]:
            is_around = f"{truth[at]}.".startswith(f"{named}.")
            verdict["unassigned" if is_around else "wrong"] += own
            verdict["around"] += own if is_around else 0
        elif named == truth[at]:
            verdict["right" if named else "outside"] += own
        else:
            verdict["wrong" if named else "unassigned"] += own
            verdict[f"{trace.names[found.rows.name[at]]}: {truth[at]!r} taken for {named!r}"] += own
    return verdict


def _find_truth(trace: Trace, found: Assignment) -> list[str]:
    """The module of each row of `found`; "" for none."""
    annotations = trace.rows.select(trace.rows.category == Category.ANNOTATION)
    events = [*_list(trace, annotations, None), *_list(trace, found.rows, range(len(found.rows)))]
    events.sort(key=lambda event: event[:3])
    stack: list[tuple[int, int]] = []  # end, event
    place = None
    parents: list[int] = []
    for number, (where, start, minus, _, _) in enumerate(events):
        if where != place:
            stack, place = [], where
        while stack and stack[-1][0] <= start and minus:
            stack.pop()
        parents.append(stack[-1][1] if stack else -1)
        if minus:
            stack.append((start - minus, number))
    node_of: list[int] = []
    made_by: dict[int, str] = {}
    for number, (_, _, _, _, name) in enumerate(events):
        parent = parents[number]
        node_of.append(number if name.startswith(_EVALUATES) else -1 if parent < 0 else node_of[parent])
        if name.startswith(_NODE) and node_of[-1] >= 0:
            made_by.setdefault(node_of[-1], name.removeprefix(_NODE))
    truth: list[str] = []
    of_row = [""] * len(found.rows)
    for number, (_, _, _, row, name) in enumerate(events):
        if name.startswith(_FORWARD):
            truth.append(name.removeprefix(_FORWARD))
        elif name.startswith(_EVALUATES):
            truth.append(made_by.get(number, ""))
        else:
            truth.append("" if parents[number] < 0 else truth[parents[number]])
        if row >= 0:
            of_row[row] = truth[-1]
    return of_row


def _list(trace: Trace, rows: Rows, numbers: Iterable[int] | None) -> Iterator[tuple[int, int, int, int, str]]:
    """(thread, start, minus the duration, number, name) of each row."""
    columns = (rows.place.tolist(), rows.start_ns.tolist(), rows.duration_ns.tolist(), rows.name.tolist())
    for number, (place, start, length, name) in zip(numbers or repeat(-1), zip(*columns, strict=True), strict=False):
        yield place, start, -length, number, trace.names[name]

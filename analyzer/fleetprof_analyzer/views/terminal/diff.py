"""The comparison of two reports as plain text for a terminal.

Guarantees: no line longer than the width (at least 60); no control character of a trace reaches the terminal; what is
not shown by the test is never worded as a change.
"""

from dataclasses import dataclass
from textwrap import wrap

from fleetprof_api.quantities import amount, change, duration, percent, size
from fleetprof_api.report.diff import (
    CollectiveChange,
    Diff,
    KernelChange,
    MeasureChange,
    ModuleChange,
    Side,
    StragglerSide,
    Verdict,
)
from fleetprof_api.spoken_names import say_name

from fleetprof_analyzer.rank.iteration_measures import IDLE, STAGE
from fleetprof_analyzer.views.differences import measure_words
from fleetprof_analyzer.words.ranks import name_ranks
from fleetprof_analyzer.words.straggler_list import CAUSES
from fleetprof_analyzer.words.text import plain

_NARROWEST = 60
_WORTH = 0.005  # of the iteration: what is shorter is not listed
_MOST = 8
_UID_SHOWN = 8  # enough to name it: commands take the beginning of one
_WORDS: dict[Verdict, str] = {"more": "more", "less": "less", "not_shown": "", "not_judged": "?"}


def render_diff(diff: Diff, width: int = 100) -> str:
    """The comparison in lines of at most `width` characters."""
    width = max(width, _NARROWEST)
    blocks = [
        [_side("before", diff.before), _side("after ", diff.after)],
        _verdict(diff, width) if diff.comparable else _reasons(diff, width),
        [line for note in diff.notes for line in _wrapped(f"note: {plain(note, 400)}", width, "")],
        _measures(diff),
        _kernels(diff, width),
        _collectives(diff),
        _modules(diff, width),
        _stragglers(diff, width),
    ]
    lines = [line for block in blocks if block for line in [*block, ""]]
    return "\n".join(line if len(line) <= width else line[: width - 1] + "…" for line in lines).rstrip() + "\n"


def _side(words: str, side: Side) -> str:
    what = [plain(side.title, 60) or "report"]
    if side.uid and side.uid != side.title:
        what.append(plain(side.uid[:_UID_SHOWN], 40))
    what.append(f"{side.ranks} ranks")
    if side.iterations:
        first = "" if side.first_iteration is None else f" from {side.first_iteration}"
        what.append(f"{side.iterations} iterations{first}")
    what += [plain(name, 40) for name in side.devices[:2]]
    what += [f"PyTorch {plain(version, 20)}" for version in side.torch_versions[:1]]
    return f"{words}  {', '.join(what)}"


def _reasons(diff: Diff, width: int) -> list[str]:
    return [
        "These two cannot be compared:",
        *(line for why in diff.reasons for line in _wrapped(plain(why, 400), width)),
    ]


def _verdict(diff: Diff, width: int) -> list[str]:
    level = f"False alarms: at most {percent(100 * diff.level)} of comparisons. "
    least = f"Below {percent(100 * diff.minimum_effect)} of an iteration nothing is called a change."
    return [*_wrapped(say_verdict(diff), width, ""), *_wrapped(level + least, width, "")]


def say_verdict(diff: Diff) -> str:
    """Tells whether iterations take longer, within which interval, and what would decide it where that is open."""
    found = diff.unprofiled
    iteration = next((row for row in diff.measures if row.measure == "iteration"), None)
    if found is not None and (found.verdict != "not_judged" or iteration is None):
        counts = found.before_iterations, found.after_iterations
        compared = _Compared(found.before_ns, found.after_ns, found.low_ns, found.high_ns, counts)
        how = f"medians of {counts[0]} and {counts[1]} iterations without the profiler"
    elif iteration is not None:
        counts = diff.before.iterations, diff.after.iterations
        compared = _Compared(iteration.before, iteration.after, iteration.low, iteration.high, counts)
        how = f"means of {counts[0]} and {counts[1]} captured iterations"
    else:
        return "No verdict: no iteration is known to be whole on both sides."
    return f"{_judged(diff, compared)} ({how})."


@dataclass(frozen=True, slots=True)
class _Compared:
    """Lengths of an iteration, the interval of their difference, and how many iterations stand behind them."""

    before: int
    after: int
    low: int | None
    high: int | None
    iterations: tuple[int, int]


def _judged(diff: Diff, found: _Compared) -> str:
    times = f"{duration(found.before)} → {duration(found.after)} per iteration"
    size_of = _relative(found.before, found.after) + _interval(found.before, found.low, found.high)
    match diff.verdict:
        case "slower" | "faster":
            return f"{diff.verdict.capitalize()}: {times}, {size_of}"
        case "not_shown" if found.low is not None and found.high is not None and found.before:
            reach = max(abs(found.low), abs(found.high))
            if reach <= diff.minimum_effect * found.before:
                return f"No change: {times}, {size_of}"
            needed = _needed(found, diff.minimum_effect)
            return f"Cannot tell yet: {times}, {size_of}, may be noise; {needed}"
        case "not_shown":
            return f"Cannot tell yet: {times}, {size_of}, may be noise"
    return f"No verdict: {times}, {size_of}"


def _needed(found: _Compared, minimum: float) -> str:
    """The number of iterations on each side that would tell the change seen, or that there is none worth a word."""
    assert found.low is not None
    assert found.high is not None
    change_ns = max(abs(found.after - found.before), minimum * found.before)
    count = min(found.iterations) * ((found.high - found.low) / 2 / change_ns) ** 2
    rounded = max(round(count), min(found.iterations) + 1)
    return f"about {rounded:,} iterations on each side would decide"


def _relative(before: int, after: int) -> str:
    return change(after / before) if before else "–"


def _interval(before: int, low: int | None, high: int | None) -> str:
    if low is None or high is None or not before:
        return ""
    return f" [{change(1 + low / before)}, {change(1 + high / before)}]"


def _measures(diff: Diff) -> list[str]:
    length = next((max(row.before, row.after) for row in diff.measures if row.measure == "iteration"), 0)
    lines = []
    for row in diff.measures:
        detail = row.measure.startswith((IDLE, STAGE))
        if detail and max(row.before, row.after) < _WORTH * length and row.verdict not in ("more", "less"):
            continue
        lines.append(_measure(row))
    if lines:
        head = f"{'per iteration and rank':<27} {'before':>9} {'after':>9} {'change':>9}  {'interval':<23}"
        lines.insert(0, head.rstrip())
    return lines


def _measure(row: MeasureChange) -> str:
    difference = ("+" if row.difference > 0 else "") + amount(row.difference, row.unit)
    within = ""
    if row.low is not None and row.high is not None:
        within = f"[{amount(row.low, row.unit)}, {amount(row.high, row.unit)}]"
    before, after = amount(row.before, row.unit), amount(row.after, row.unit)
    line = f"  {measure_words(row.measure):<25} {before:>9} {after:>9} {difference:>9}  {within:<23}"
    return f"{line} {_WORDS[row.verdict]}".rstrip()


def _kernels(diff: Diff, width: int) -> list[str]:
    length = diff.before.iteration_ns or 0
    chosen = [row for row in diff.kernels if abs(row.difference_ns) >= max(1, _WORTH * length)][:_MOST]
    lines = ["Kernels that differ most, per rank and iteration (time, launches × mean)"] if chosen else []
    for row in chosen:
        numbers = f"  {_signed(row.difference_ns):>9}  {_launches(row):<45}  "
        lines.append(numbers + plain(say_name(row.name), max(16, width - len(numbers))))
    return lines


def _launches(row: KernelChange) -> str:
    if not row.before_count:
        return f"only after: {row.after_count:g} × {duration(row.after_mean_ns)}"
    if not row.after_count:
        return f"only before: {row.before_count:g} × {duration(row.before_mean_ns)}"
    sides = (
        f"{row.before_count:g} × {duration(row.before_mean_ns)} → {row.after_count:g} × {duration(row.after_mean_ns)}"
    )
    return f"{sides} {_WORDS[row.verdict]}".rstrip()


def _modules(diff: Diff, width: int) -> list[str]:
    length = diff.before.iteration_ns or 0
    chosen = [row for row in diff.modules if abs(row.difference_ns) >= max(1, _WORTH * length)][:_MOST]
    lines = ["Modules that differ most, own work of one iteration each (not tested)"] if chosen else []
    for row in chosen:
        numbers = f"  {_signed(row.difference_ns):>9}  {_work(row):<45}  "
        lines.append(numbers + plain(row.name, max(16, width - len(numbers))))
    return lines


def _work(row: ModuleChange) -> str:
    if row.before_ns is None:
        return f"only after: {duration(row.after_ns)}"
    if row.after_ns is None:
        return f"only before: {duration(row.before_ns)}"
    parts = [f"{duration(row.before_ns)} → {duration(row.after_ns)}"]
    if row.before_launches != row.after_launches:
        parts.append(f"{row.before_launches:,} → {row.after_launches:,} launches")
    if None not in (saved := (row.before_saved_bytes, row.after_saved_bytes)) and saved[0] != saved[1]:
        parts.append(f"saved {size(saved[0] or 0)} → {size(saved[1] or 0)}")
    return ", ".join(parts)


def _collectives(diff: Diff) -> list[str]:
    length = diff.before.iteration_ns or 0
    chosen = [row for row in diff.collectives if abs(row.difference_ns) >= max(1, _WORTH * length)][:_MOST]
    lines = ["Collectives that differ most, per rank and iteration (waiting included; not tested)"] if chosen else []
    return lines + [_collective(row) for row in chosen]


def _collective(row: CollectiveChange) -> str:
    each = "" if row.message_bytes is None else f" of {size(row.message_bytes)}"
    group = f" in {plain(row.group, 20)}" if row.group else ""
    times = f"{duration(row.before_ns)} → {duration(row.after_ns)}"
    counts = f"{row.before_count:g} → {row.after_count:g} calls"
    return f"  {_signed(row.difference_ns):>9}  {plain(row.kind, 20).replace('_', '-')}{each}{group}: {times}, {counts}"


def _signed(nanoseconds: int) -> str:
    return ("+" if nanoseconds > 0 else "") + duration(nanoseconds)


def _stragglers(diff: Diff, width: int) -> list[str]:
    sides = (("before", diff.stragglers_before), ("after", diff.stragglers_after))
    verdicts = [(words, side) for words, side in sides if side is not None and side.verdict != "not_judged"]
    if not verdicts or all(side.verdict == "nobody" for _, side in verdicts):
        return []
    return [
        "Who held the others up",
        *(line for words, side in verdicts for line in _wrapped(f"{words}: {_straggler(side)}", width)),
    ]


_HOLDS_UP = {
    "straggler": "the others wait for {}",
    "heavy_stage": "the pipeline stage of {} takes longer than the others",
    "slow_link": "a link of {} is slow",
    "moving_imbalance": "the ranks are slow in turns",
    "undecided": "cannot tell yet",
}


def _straggler(side: StragglerSide) -> str:
    if side.verdict == "nobody":
        return "nobody"
    who = name_ranks(side.ranks) if side.ranks else "some ranks"
    why = f" ({', '.join(CAUSES.get(cause, cause) for cause in side.causes)})" if side.causes else ""
    costs = f", potential saving {percent(100 * side.gain)} of an iteration" if side.gain else ""
    return f"{_HOLDS_UP[side.verdict].format(who)}{why}{costs}"


def _wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    return wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ")

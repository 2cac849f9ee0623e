"""The report as plain text for a terminal.

Guarantees: no line longer than the width (at least 60); no control character of a trace reaches the terminal; says in
words what a chart would show.
"""

from collections.abc import Sequence
from statistics import median
from textwrap import wrap

from fleetprof_api.quantities import change, duration, rate, share, size
from fleetprof_api.report.report import KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.spoken_names import say_name

from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_analyzer.views.differences import list_differences
from fleetprof_analyzer.words.causes import add_stages, find_silences, list_causes, longest_iteration
from fleetprof_analyzer.words.code import in_brackets
from fleetprof_analyzer.words.efficiency import list_efficiency, list_throughput
from fleetprof_analyzer.words.energy import list_energy
from fleetprof_analyzer.words.findings import say_finding
from fleetprof_analyzer.words.launches import list_launches, list_sampled
from fleetprof_analyzer.words.recording import describe_memory, judge_residue
from fleetprof_analyzer.words.straggler_list import list_stragglers
from fleetprof_analyzer.words.tables import (
    list_asked_classes,
    list_data_loading,
    list_memory,
    list_operators,
)
from fleetprof_analyzer.words.text import parts_of, plain, rank_name
from fleetprof_analyzer.words.window import list_unrecorded

_NARROWEST = 60
_MOST_RANKS = 64
_MOST_PROBLEMS = 20
_FEW = 5
_MARKS = {"compute": "█", "exposed_communication": "▓", "exposed_memory": "▒", "idle": "░", "unrecorded": "·"}


def render_text(report: Report, width: int = 100) -> str:
    """The report in lines of at most `width` characters."""
    width = max(width, _NARROWEST)
    blocks = [
        _head(report),
        _answer(report, width),
        _findings(report, width),
        list_stragglers(report.stragglers, width),
        _totals(report, width),
        _stages(report),
        [*_longest(report, width), *list_operators(report, width), *list_asked_classes(report, width)],
        list_launches(report),
        [*list_memory(report), *list_data_loading(report)],
        _ranks(report, width),
        list_differences(report.heterogeneity),
        _say("Throughput", list_throughput(report), width),
        _say("Arithmetic", list_efficiency(report), width),
        _say("Energy", list_energy(report), width),
        _start(report),
        _cost(report, width),
        _ledger(report, width),
        _problems(report, width),
    ]
    lines = [line for block in blocks if block for line in [*block, ""]]
    return "\n".join(line if len(line) <= width else line[: width - 1] + "…" for line in lines).rstrip() + "\n"


def _say(what: str, sentences: list[str], width: int) -> list[str]:
    return [line for one in sentences for line in wrap(f"{what}: {one}", width, subsequent_indent="  ")]


def _head(report: Report) -> list[str]:
    lines = [plain(report.title) or "fleetprof report"]
    request = report.request
    if request is not None:
        window = (
            f"{request.asked_iterations} iterations"
            if request.asked_iterations is not None
            else duration(request.asked_duration_ns)
        )
        where = f" of {plain(request.target, 60)}" if request.target else ""
        how = {"step": f" from step {request.asked_first_step}", "time": " from one time on"}.get(
            request.start_mode, ""
        )
        lines.append(f"{window}{where}{how}; {len(report.ranks)} of {_asked_ranks(report)} ranks recorded")
        if request.requester:
            lines.append(f"asked for by {plain(request.requester, 80)}")
        if request.outcome:
            lines.append(f"{plain(request.outcome)}: {plain(request.message)}".rstrip(": "))
    return lines


def _answer(report: Report, width: int) -> list[str]:
    answer = give_answer(report)
    lines = wrap(answer.sentence, width, break_on_hyphens=False)
    for sentence in answer.evidence:
        lines += wrap(sentence, width, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
    if answer.next_step:
        lines += wrap(f"What to try: {answer.next_step}.", width, subsequent_indent="    ")
    return lines


def _asked_ranks(report: Report) -> int:
    return len({entry.rank for entry in report.ledger}) or len(report.ranks)


def _totals(report: Report, width: int) -> list[str]:
    lines = []
    for total in report.totals:
        what = "GPU time" if total.time_basis == "device" else "time (no GPU)"
        lines.append(f"Where the {what} of {total.ranks} rank{'s' * (total.ranks > 1)} went")
        lines.append("  " + _bar(total.time_ns, width - 4))
        for name, words, part in parts_of(total.time_ns):
            if not part:
                continue
            lines.append(f"  {_MARKS[name]} {words:<22} {share(part, total.time_ns.span):>8}  {duration(part):>10}")
            hidden = total.time_ns.overlapped_communication if name == "compute" else 0
            if hidden:
                of_it = f"{share(hidden, total.time_ns.span):>8}  {duration(hidden):>10}"
                lines.append(f"    {'of it beside comm.':<22} {of_it}")
        for row in list_unrecorded(total):
            lines += _wrapped(f"not recorded: {duration(row.time_ns)}: {row.words}", width)
        lines += _idle(total, report.ranks, width)
    return lines


def _findings(report: Report, width: int) -> list[str]:
    lines = ["Findings, each with its potential saving (of the time, at most)"] if report.findings else []
    for finding in report.findings:
        advice = f". Try: {plain(finding.advice, 300)}" if finding.advice else ""
        gain = share(finding.gain_permille, 1000) if finding.gain_permille else "-"
        text = f"{gain:>7}  {say_finding(finding)}{advice}"
        lines += wrap(text, width, initial_indent="  ", subsequent_indent=" " * 11, break_on_hyphens=False)
    return lines


def _stages(report: Report) -> list[str]:
    """The use of the main threads' time, over all ranks that tell."""
    sums = add_stages(report.ranks)
    whole = sum(time_ns for _, time_ns, _ in sums)
    if not whole:
        return []
    with_device = any(device_ns for _, _, device_ns in sums)
    lines = [f"Stages of an iteration (main thread{', device work launched in it' * with_device})"]
    for words, time_ns, device_ns in sums:
        line = f"    {words:<22} {share(time_ns, whole):>8}  {duration(time_ns):>10}"
        lines.append(line + (f"  {duration(device_ns):>10}" if with_device else ""))
    lines += [
        f"    the host runs nothing {one.words}{in_brackets(one.place)}: {duration(one.time_ns)}"
        for one in find_silences(report.ranks)
    ]
    return lines


def _idle(total: KindTotal, ranks: Sequence[Rank], width: int) -> list[str]:
    if total.idle_ns is None or not total.time_ns.idle:
        return []
    lines = ["Why the GPU was idle"]
    for cause in list_causes(total.idle_ns):
        line = f"    {cause.row.title:<22} {share(cause.time_ns, total.time_ns.idle):>8}  {duration(cause.time_ns):>10}"
        if len(line) + 2 + len(cause.parts) <= width:
            lines.append(f"{line}  {cause.parts}".rstrip())
        else:
            lines += [line, f"        {cause.parts}"]
    worst = longest_iteration(ranks)
    return [*lines, *([f"    {worst}"] if worst else []), *list_sampled(ranks)]


def _longest(report: Report, width: int) -> list[str]:
    """The longest kernels and collectives, a few of each."""
    lines = []
    for kernel in report.kernels[:_FEW]:
        numbers = f"  {duration(kernel.total_ns):>10} {kernel.count:>8} × {duration(kernel.p50_ns):>9}  "
        lines.append(numbers + plain(say_name(kernel.name), max(20, width - len(numbers))))
    if lines:
        lines.insert(0, "Longest kernels (time, count × median)")
    for row in report.communication[:_FEW] if report.kernels else []:
        bus = "" if row.bus_bytes_per_s is None else f", {rate(row.bus_bytes_per_s)} on the bus"
        each = "" if row.message_bytes is None else f" of {size(row.message_bytes)}"
        group = f" in {plain(row.group, 20)}" if row.group else ""
        kind = plain(row.kind.replace("_", "-"), 20)
        over = share(row.overlapped_ns, row.total_ns)
        lines.append(f"  {duration(row.total_ns):>10} {row.count:>8} × {kind}{each}{group}{bus}, {over} overlapped")
    return lines


def _bar(time_ns: TimeBreakdown, width: int) -> str:
    if time_ns.span <= 0:
        return ""
    bar, reached, drawn = "", 0, 0
    for name, _, part in parts_of(time_ns):
        reached += part
        upto = min(width, reached * width // time_ns.span)  # a stored report may be anybody's
        bar += _MARKS[name] * (upto - drawn)
        drawn = upto
    return bar


def _ranks(report: Report, width: int) -> list[str]:
    if not report.ranks:
        return []
    bar_width = max(10, width - 76)
    lines = [f"{'rank':>5}  {'kind':<4} {'iterations':>10} {'median':>10} {'compute':>9} {'comm.':>9} {'idle':>9}"]
    lines[0] += f" {'span':>10}"
    for rank in report.ranks[:_MOST_RANKS]:
        time_ns = rank.time_ns
        lines.append(
            f"{rank_name(rank.rank):>5}  {rank.kind:<4} {len(rank.iterations):>10} {duration(_median(rank)):>10}"
            f" {share(time_ns.compute, time_ns.span):>9} {share(time_ns.exposed_communication, time_ns.span):>9}"
            f" {share(time_ns.idle, time_ns.span):>9} {duration(time_ns.span):>10}  {_bar(time_ns, bar_width)}"
        )
    if len(report.ranks) > _MOST_RANKS:
        lines.append(f"… and {len(report.ranks) - _MOST_RANKS} ranks more: they are in report.json and report.html")
    return lines


def _median(rank: Rank) -> int | None:
    durations = [iteration.duration_ns for iteration in rank.iterations]
    return int(median(durations)) if durations else None


def _start(report: Report) -> list[str]:
    start = report.start
    if len(start.ranks) < 2:
        return []
    same = {True: "the same on all ranks", False: "NOT the same on all ranks", None: "not known to be the same"}
    how = {
        "agent_steps": " (by the agent's step times)",
        "profiler_steps": " (by ProfilerStep numbers)",
        "none": ": neither the agent's step times nor ProfilerStep ranges are there",
    }[start.verified_by]
    spread = "unknown: a trace has no absolute time" if start.spread_ns is None else duration(start.spread_ns)
    hosts = f" on {start.hosts} hosts" if start.hosts > 1 else ""
    clocks = f"{hosts}, their clocks' offset included" if start.hosts != 1 and start.spread_ns is not None else ""
    if start.spread_ns is not None and start.spread_ns > max(rank.time_ns.span for rank in report.ranks):
        clocks = (
            f"{hosts} by their clocks, longer than each recording: these are no traces of one time, or clocks differ"
        )
    return [f"First iteration: {same[start.same_first_iteration]}{how}", f"Start spread: {spread}{clocks}"]


def _cost(report: Report, width: int) -> list[str]:
    memory = describe_memory(report)
    lines = _cost_in_time(report)
    if memory is not None:
        lines += ["Memory of the recording (resident, of a training process)"]
        lines += _wrapped(f"at its peak {memory.peak} ({memory.peak_context})", width)
        lines += _wrapped(f"kept afterwards {memory.kept} ({memory.kept_context})", width)
    return lines


def _cost_in_time(report: Report) -> list[str]:
    cost = report.capture_cost
    if cost is None:
        return []
    lines = ["Cost of the capture (iteration time of the job)"]
    for words, phase in (("before", cost.before), ("during", cost.during), ("after", cost.after)):
        interval = ""
        if phase.median_low_ns is not None:
            interval = f"  [{duration(phase.median_low_ns)}, {duration(phase.median_high_ns)}]"
        lines.append(f"  {words:<7} {duration(phase.median_ns):>10} median of {phase.iterations}{interval}")
    within = cost.during_ratio_interval
    during = f"  during the window {change(cost.during_ratio)}"
    lines.append(
        during + (f" [{change(within.low)}, {change(within.high)}]" if within else " (too few for an interval)")
    )
    lines.append(f"  stall at the end {duration(cost.stall_ns)}")
    if cost.residue_ratio is not None:
        interval = ""
        if cost.residue_interval is not None:
            low, high = cost.residue_interval.low, cost.residue_interval.high
            interval = f" [{change(1 + low)}, {change(1 + high)}]"
        lines.append(f"  afterwards {change(1 + cost.residue_ratio)}{interval}: {judge_residue(cost)}")
    return lines


def _ledger(report: Report, width: int) -> list[str]:
    failed = [entry for entry in report.ledger if entry.reason is not None]
    if not report.ledger:
        return []
    lines = [f"Ledger: {len(report.ledger) - len(failed)} of {len(report.ledger)} lines without a failure"]
    for entry in failed[:_MOST_RANKS]:
        lines += _wrapped(f"rank {entry.rank}: {entry.reason}: {plain(entry.message)}", width)
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, initial_indent="  ", subsequent_indent="      ")


def _problems(report: Report, width: int) -> list[str]:
    if not report.problems:
        return []
    lines = [f"Problems with the input ({len(report.problems)})"]
    for problem in report.problems[:_MOST_PROBLEMS]:
        where = f"{plain(problem.source, 60)}: " if problem.source else ""
        lines += _wrapped(f"{where}{problem.count} × {plain(problem.kind, 40)}: {plain(problem.message, 300)}", width)
    if len(report.problems) > _MOST_PROBLEMS:
        lines.append(f"  … and {len(report.problems) - _MOST_PROBLEMS} more in report.json")
    return lines

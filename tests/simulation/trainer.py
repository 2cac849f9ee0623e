"""Simulated trainers that speak the real datagrams: Kineto's (as torch 2.15 sends them) and the agent's.

What real PyTorch does is tested with real PyTorch; this is for faults on command and for numbers of ranks.

    python tests/simulation/trainer.py --directory DIR --ranks 8 [--directory DIR2 ...] [--seconds 60] [--fault NAME]

prints one JSON line per rank at its end (SIGTERM, SIGINT or --seconds).
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from dataclasses import asdict, fields
from typing import Any

from simulated_job import Faults, SimulatedJob
from simulated_trainer import SimulatedTrainer


async def run_trainers(trainers: list[SimulatedTrainer], seconds: float, stop: asyncio.Event) -> None:
    """Starts all, spread over one poll interval, and ends them after `seconds` (0: never) or at `stop`."""
    for index, trainer in enumerate(trainers):
        trainer.start()
        if index % 16 == 15:
            await asyncio.sleep(trainer.job.poll_s * 16 / max(16, len(trainers)))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds or None)
    for trainer in trainers:
        trainer.exit()


def make_trainers(
    directories: list[str], ranks: int, first_rank: int, job: SimulatedJob, faults: Faults, faulty_ranks: set[int]
) -> list[SimulatedTrainer]:
    """`ranks` trainers for each directory, numbered through."""
    numbered = enumerate((directory for directory in directories for _ in range(ranks)), start=first_rank)
    return [
        SimulatedTrainer(directory, rank, job, faults if rank in faulty_ranks or not faulty_ranks else None)
        for rank, directory in numbered
    ]


def _parse_fault(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    kinds: dict[str, Any] = {option.name: option.type for option in fields(Faults)}
    if name not in kinds:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(kinds)}")
    kind = kinds[name]
    return name, value in ("", "1", "true") if kind is bool else kind(value)


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--directory", action="append", required=True, help="a sidecar's directory; may be repeated")
    parser.add_argument("--ranks", type=int, default=1, help="ranks for each directory")
    parser.add_argument("--first-rank", type=int, default=0)
    parser.add_argument("--world-size", type=int, default=0)
    parser.add_argument("--step-ms", type=float, default=50.0)
    parser.add_argument("--poll-ms", type=float, default=1000.0)
    parser.add_argument("--steps-per-iteration", type=int, default=1)
    parser.add_argument("--no-agent", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu or cuda: what the agent says")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--started-unix-ns", type=int, default=0, help="when step 0 was, the same for all ranks")
    parser.add_argument("--fault", type=_parse_fault, action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("--faulty-rank", type=int, action="append", default=[], help="default: all")
    options = parser.parse_args(arguments)
    job = SimulatedJob(
        world_size=options.world_size or options.ranks * len(options.directory),
        step_s=options.step_ms / 1000,
        poll_s=options.poll_ms / 1000,
        steps_per_iteration=options.steps_per_iteration,
        agent=not options.no_agent,
        device_kind=options.device,
        started_unix_ns=options.started_unix_ns or time.time_ns(),
    )
    faults = Faults(**dict(options.fault))

    async def serve() -> None:
        trainers = make_trainers(
            options.directory, options.ranks, options.first_rank, job, faults, set(options.faulty_rank)
        )
        stop = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        print(json.dumps({"job": asdict(job), "ranks": len(trainers)}), flush=True)
        await run_trainers(trainers, options.seconds, stop)
        for trainer in trainers:
            print(json.dumps(trainer.stats()), flush=True)
            trainer.remove_sockets()

    asyncio.run(serve())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

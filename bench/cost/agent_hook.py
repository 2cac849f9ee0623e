"""The cost of the agent's hook per optimizer step: python bench/cost/agent_hook.py [--steps N]

Prints, as JSON, the median time of one optimizer step of a small model (ns) bare, with an empty hook and with the
agent's, in interleaved rounds, and the hook's own time called in a loop (ns); `steps` per round; and the median time of
the word that every process says which imports PyTorch (`announce_ns`). In a loop all that a hook touches is in the
caches; in a training it is not, so `in_place` has the time of one call within iterations of `iteration_ns`: of an empty
function, of Kineto's own hook, of the agent's (median, and mean with its reports). The agent serves a socket directory
in which nobody answers, which is the dearest case: each report fails.
"""

import argparse
import atexit
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path


def measure(function, count: int) -> float:
    """Nanoseconds per call of `function` over `count` calls."""
    began = time.perf_counter_ns()
    for _ in range(count):
        function()
    return (time.perf_counter_ns() - began) / count


def measure_in_place(torch, ways, width: int = 1024, iterations: int = 80, rounds: int = 4) -> dict[str, float]:
    """The time of one call of each of `ways` (name: hook) after a step of a training of 20 ms; ways take turns."""
    layers = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU()) for _ in range(6)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.randn(32, width)
    took: dict[str, list[int]] = {name: [] for name in ways}
    lasted = []
    for _ in range(rounds):
        for name, hook in ways.items():
            for index in range(iterations):
                began = time.perf_counter_ns()
                model(batch).square().mean().backward()
                optimizer.step()
                called = time.perf_counter_ns()
                hook(optimizer, (), {})
                ended = time.perf_counter_ns()
                optimizer.zero_grad()
                if index >= iterations // 8:  # the first ones after a change of turns find other caches
                    took[name].append(ended - called)
                    lasted.append(time.perf_counter_ns() - began)
    found = {name: round(statistics.median(values)) for name, values in took.items()}
    return found | {
        "agent_mean": round(statistics.mean(took["agent"])),
        "iteration_ns": round(statistics.median(lasted)),
    }


def measure_announcement(agent, current_step, directory: str) -> float:
    """Nanoseconds that an agent of its own takes to bind its socket and say that it is there."""
    other = agent.Agent(directory, current_step, agent.own_profile.OwnProfile())
    took = measure(lambda: other.announce(lambda: None), 1)
    atexit.unregister(other.leave)
    other.leave()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp") as directory:
        os.environ |= {"KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": directory, "KINETO_LOG_LEVEL": "99"}
        import torch
        from torch.optim.optimizer import _global_optimizer_post_hooks as hooks

        torch.set_num_threads(1)
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        model(torch.randn(4, 8)).sum().backward()
        kineto = dict(hooks)

        from fleetprof_agent import agent

        current_step = torch.autograd.profiler.KinetoStepTracker.current_step
        agent.start(lambda: None)
        (ours,) = set(hooks.values()) - set(kineto.values())
        ways = {"bare": [], "empty_hook": [lambda _optimizer, _args, _kwargs: None], "agent": [ours]}
        rounds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, added in ways.items():
                hooks.clear()
                hooks.update(kineto)
                hooks.update({-index - 1: hook for index, hook in enumerate(added)})
                rounds[name].append(measure(optimizer.step, options.steps))
        announced = [measure_announcement(agent, current_step, directory) for _ in range(options.rounds)]
        alone = [measure(lambda: ours(optimizer, (), {}), 20 * options.steps) for _ in range(options.rounds)]
        nothing = [measure(lambda: None, 20 * options.steps) for _ in range(options.rounds)]
        hooks.clear()
        (of_kineto,) = kineto.values()
        empty = ways["empty_hook"][0]
        in_place = measure_in_place(torch, {"empty": empty, "kineto": of_kineto, "agent": ours})
        medians = {name: statistics.median(values) for name, values in rounds.items()}
        result = {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "steps": options.steps,
            "step_ns": {name: round(value) for name, value in medians.items()},
            "hook_ns": round(statistics.median(alone) - statistics.median(nothing)),
            "limit_ns": 2000,
            "in_place": in_place,
            "announce_ns": round(statistics.median(announced)),
            "announce_limit_ns": 500_000,
        }
        json.dump(result, sys.stdout, indent=2)
        print()
        agent._agent.leave()
        for leftover in Path(directory).iterdir():
            leftover.unlink()


if __name__ == "__main__":
    main()

"""A small real training whose pace follows a story: `python recorded_job.py STORY SEED SECONDS`, also under torchrun.

The processor's part of an iteration is some milliseconds; the loader's wait is the rest, as where data comes from a
store. So a story keeps its pace on a machine that does other work too.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, IterableDataset

WAIT_S = 0.25
CHANGES_S = 630.0  # when a job that changes does: after ten minutes of its own past


class Batches(IterableDataset[torch.Tensor]):  # type: ignore[misc]  # PyTorch is not there where types are checked
    """Batches that come as fast as the story says."""

    def __init__(self, story: str, seed: int, seconds: float) -> None:
        self.story = story
        self.draw = random.Random(seed)
        self.seconds = seconds
        self.began = time.monotonic()

    def __iter__(self) -> Iterator[torch.Tensor]:
        while (at := time.monotonic() - self.began) < self.seconds:
            time.sleep(WAIT_S * self._slower(at) * self.draw.lognormvariate(0, 0.08))
            yield torch.randn(32, 64)

    def _slower(self, at: float) -> float:
        changed = at >= CHANGES_S
        match self.story:
            case "data-starved" if changed:
                return self.draw.uniform(5, 9)
            case "idle" if changed:
                return (self.seconds - at) / WAIT_S
            case "drift" if changed:
                return 1 + 0.5 * min(1.0, (at - CHANGES_S) / 60)
            case "slow start" if at < 400:
                return 4.0
            case "one slow rank" if os.environ.get("RANK") == "1":
                return 1.6
        return 1.0


def pause(story: str, model: nn.Module, at: float, until: float) -> None:
    """The work of a training between its iterations: an evaluation of four minutes, or a checkpoint of one."""
    if story == "evaluation phases" and at % 900 > 600:
        model.eval()
        with torch.no_grad():
            while at % 900 > 600 and at < until:
                model(torch.randn(32, 64))
                time.sleep(1)
                at += 1
        model.train()
    elif story == "checkpoint pauses" and at % 480 > 420:
        with tempfile.TemporaryFile() as file:
            torch.save(model.state_dict(), file)
        time.sleep(480 - at % 480)


def main() -> None:
    """Trains until its time is over."""
    story, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    model: nn.Module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    if "WORLD_SIZE" in os.environ:
        distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = Batches(story, seed + int(os.environ.get("RANK", "0")), seconds)
    for batch in DataLoader(batches, batch_size=None):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        pause(story, model, time.monotonic() - batches.began, seconds)


if __name__ == "__main__":
    main()

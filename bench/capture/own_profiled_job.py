"""A job that profiles itself by what its package offers: KIND FOLDER, until FOLDER/stop is there; knows nothing of us.

Runs in the environment that own_profilers.py makes. Each cycle of the profiler (wait, warm-up, active) leaves one trace
in FOLDER, written by the package's own means. It prints each phase of the profiler as it comes. PACE: seconds that it
sleeps after a step, and ten times as long after an export.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

CYCLE = {"wait": 80, "warmup": 12, "active": 6}
LENGTH = sum(CYCLE.values())
TRACES = Path(sys.argv[2])
STOP = TRACES / "stop"
PACE_S = float(os.environ.get("PACE", "0"))
EXPORT_S = 10 * PACE_S

_step, _export = profile.step, profile.export_chrome_trace
_phases: list[str] = []


def _say(phase: str) -> None:
    if _phases[-1:] != [phase]:
        _phases.append(phase)
        print(f"phase {phase}", flush=True)


def _told_step(self: Any) -> None:
    _step(self)
    _say(self.current_action.name)
    time.sleep(PACE_S)


def _told_export(self: Any, *args: Any, **kwargs: Any) -> None:
    _say("EXPORT")
    _export(self, *args, **kwargs)
    time.sleep(EXPORT_S)  # a large trace


profile.step, profile.export_chrome_trace = _told_step, _told_export  # type: ignore[method-assign, assignment]


def _model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))


def _batches() -> Iterator[torch.Tensor]:
    while not STOP.exists():
        yield torch.randn(8, 64)


def train_plain(compiled: str = "", **options: Any) -> None:
    """PyTorch's own profiler, as its tutorial shows."""
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    forward = torch.compile(model, backend=compiled) if compiled else model
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(**CYCLE),
        on_trace_ready=tensorboard_trace_handler(str(TRACES)),
        **options,
    ) as own:
        for batch in _batches():
            forward(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            own.step()


def train_lightning() -> None:
    """Lightning's PyTorchProfiler: one cycle, then no more until the next fit."""
    import lightning
    from lightning.pytorch.profilers import PyTorchProfiler

    class Batches(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Iterator[torch.Tensor]:
            return _batches()

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = _model()

        def training_step(self, batch: Any, _number: int) -> Any:
            return self.model(batch).square().mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    while not STOP.exists():
        own = PyTorchProfiler(dirpath=TRACES, filename="own", schedule=schedule(**CYCLE), record_shapes=True)
        trainer = lightning.Trainer(
            accelerator="cpu", profiler=own, max_epochs=1, max_steps=LENGTH + 1, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        with suppress(AssertionError):  # Lightning 2.6: of a fit that ended before anything was recorded
            trainer.fit(Module(), torch.utils.data.DataLoader(Batches(), batch_size=None))


def train_transformers() -> None:
    """Hugging Face's Trainer with a callback around torch.profiler, as its documentation shows."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, _number: int) -> dict[str, torch.Tensor]:
            return {"x": torch.randn(64)}

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = _model()

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": self.model(x).square().mean()}

    class Profile(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _arguments: Any, _state: Any, control: Any, **_: Any) -> None:
            own.step()
            control.should_training_stop = STOP.exists()

    arguments = TrainingArguments(
        output_dir=str(TRACES / "out"), max_steps=10**7, per_device_train_batch_size=8, use_cpu=True, report_to="none",
        logging_strategy="no", save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
        dataloader_pin_memory=False, train_sampling_strategy="sequential",
    )  # fmt: skip
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(**CYCLE),
        on_trace_ready=tensorboard_trace_handler(str(TRACES)),
        profile_memory=True,
    ) as own:
        Trainer(model=Model(), args=arguments, train_dataset=Rows(), callbacks=[Profile()]).train()


def train_accelerate() -> None:
    """accelerate's profile(), which exports at its end: one for each cycle."""
    from accelerate import Accelerator
    from accelerate.utils import ProfileKwargs

    accelerator = Accelerator(cpu=True)
    model = _model()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
    batches, number = _batches(), 0
    while not STOP.exists():
        number += 1
        options = ProfileKwargs(
            activities=["cpu"], schedule_option={**CYCLE, "repeat": 1}, output_trace_dir=str(TRACES / f"{number:04}")
        )
        with accelerator.profile(options) as own:
            for batch in islice(batches, LENGTH + 1):
                accelerator.backward(model(batch).square().mean())
                optimizer.step()
                optimizer.zero_grad()
                own.step()
            if STOP.exists():
                options.output_trace_dir = None  # nothing was recorded


KINDS = {
    "plain": train_plain,
    "plain, stacks, shapes, memory": partial(train_plain, with_stack=True, profile_memory=True, record_shapes=True),
    "plain, torch.compile": partial(train_plain, "inductor"),
    "lightning": train_lightning,
    "transformers": train_transformers,
    "accelerate": train_accelerate,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    _say("NONE")
    KINDS[sys.argv[1]]()

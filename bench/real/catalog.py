"""The real programs: which file, how its user starts it, how many ranks it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from environment import NEWEST, WITH_TORCHREC

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Program:
    """A program below `programs/`; `words` makes its command line from the environment's folder of commands."""

    name: str
    file: str
    package: str
    ranks: int
    words: Callable[[Path, str], list[str]]
    environment: str = NEWEST

    @property
    def job(self) -> str:
        """Its name as a job."""
        return self.name.replace("_", "-")

    def command(self, commands: Path) -> list[str]:
        """The command that its user types, by whole paths."""
        return self.words(commands, str(PROGRAMS / f"{self.file}.py"))


def _python(commands: Path, script: str) -> list[str]:
    return [str(commands / "python"), script]


def _ipython(commands: Path, script: str) -> list[str]:
    return [str(commands / "ipython"), script]


def _torchrun(commands: Path, script: str) -> list[str]:
    return [str(commands / "torchrun"), "--standalone", "--nproc-per-node", "2", script]


CATALOG = [
    Program("hugging_face", "trainers/hugging_face", "transformers", 2, _torchrun),
    Program("lightning_ddp", "trainers/lightning_ddp", "lightning", 2, _python),
    Program("lightning_closure", "trainers/lightning_closure", "lightning", 1, _python),
    Program("accelerate_loop", "trainers/accelerate_loop", "accelerate", 2, _torchrun),
    Program("fsdp2", "plain/fsdp2", "torch", 2, _torchrun),
    Program("deepspeed_zero1", "trainers/deepspeed_zero1", "deepspeed", 2, _torchrun),
    Program("compiled", "plain/compiled", "torch", 2, _torchrun),
    Program("torchvision_resnet", "models/torchvision_resnet", "torchvision", 1, _python),
    Program("timm_vit", "models/timm_vit", "timm", 1, _python),
    Program("recommender", "models/recommender", "torch", 2, _torchrun),
    Program("torchrec_dlrm", "models/torchrec_dlrm", "torchrec", 2, _torchrun, WITH_TORCHREC),
    Program("lstm_language_model", "models/lstm_language_model", "torch", 1, _python),
    Program("accumulation", "plain/accumulation", "torch", 2, _torchrun),
    Program("streaming", "plain/streaming", "torch", 2, _torchrun),
    Program("ipython", "plain/plain_loop", "ipython", 1, _ipython),
    Program("jupyter_kernel", "plain/jupyter_kernel", "ipykernel", 1, _python),
]

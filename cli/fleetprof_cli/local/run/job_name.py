"""The name of a job that `fleetprof run` starts, if no --name is given.

Guarantees: a name is a DNS label as Kubernetes wants them, so that the same ProfileRequest fits both worlds.
"""

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from typing import Final

MAX_LENGTH: Final = 52
MAX_NAMESPACE_LENGTH: Final = 63


def name_job(command: Sequence[str], environment: Mapping[str, str], taken: Set[str]) -> str:
    """A name for the command: the Slurm job's, which all its nodes share; else the script's, made unique here."""
    slurm_id = environment.get("SLURM_JOB_ID")
    if slurm_id:
        return as_label(f"{environment.get('SLURM_JOB_NAME', 'slurm')[:32]}-{slurm_id}")
    name = as_label(_subject(command))
    number = 1
    unique = name
    while unique in taken:
        number += 1
        unique = f"{name[: MAX_LENGTH - 4]}-{number}"
    return unique


def _subject(command: Sequence[str]) -> str:
    """The script or module that a launcher's command line names, else the program."""
    for before, word in zip(("", *command), command, strict=False):
        if word.endswith(".py"):
            return PurePath(word).stem
        if before in ("-m", "--module") and not word.startswith(("torch.distributed", "accelerate", "deepspeed")):
            return word.rpartition(".")[2]
    return PurePath(command[0]).name


def refuse_name(name: str, most: int = MAX_LENGTH) -> str:
    """The reason why `fleetprof run` takes no such name of a job, or of a namespace; empty where it does."""
    if len(name) <= most and re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name):
        return ""
    return (
        f"{name!r} must be 1 to {most} of a-z, 0-9 and '-', beginning and ending with a letter or digit; "
        f"for example {as_label(name)!r}"
    )


def as_label(text: str) -> str:
    """The nearest DNS label: lower case, digits and hyphens, at most 52 characters, `job` when nothing is left."""
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_LENGTH].strip("-")
    return label or "job"

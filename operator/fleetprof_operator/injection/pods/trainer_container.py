"""The container of a pod that trains: the one that the pod names, else the one that asks for an accelerator.

Guarantees: pure; a container is chosen or the reason why not is said.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetprof_api.pods import CONTAINER_ANNOTATION

# Devices have the name of their maker's domain; what Kubernetes itself counts has none, or its own.
_ACCELERATORS: Final = (
    "nvidia.com/",
    "amd.com/",
    "gpu.intel.com/",
    "habana.ai/",
    "huawei.com/",
    "aws.amazon.com/neuron",
    "google.com/tpu",
    "cloud-tpus.google.com/",
)


_LAUNCHER: Final = re.compile(
    r"""(?:^|[\s/;&|"'(])(?:torchrun|deepspeed|accelerate\s+launch)(?=$|[\s;&|"')])"""
    r"|\btorch\.distributed\.(?:run|launch)\b|\baccelerate\.commands\.launch\b"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The trainer's place among the containers; `warning` when it was a guess; `why_not` when there is none."""

    index: int = -1
    warning: str = ""
    why_not: str = ""


def runs_launcher(container: Mapping[str, Any]) -> bool:
    """Tells whether the container's command names a launcher that imports PyTorch itself, also within a shell's text.

    The sidecar does not see the processes of other containers: without the agent this tells it whom not to trace.
    """
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return bool(_LAUNCHER.search(" ".join(map(str, words))))


def choose_trainer(pod: Mapping[str, Any]) -> Choice:
    """The annotation's container; else the one that asks for an accelerator; else the only one; else the first."""
    containers: Sequence[Mapping[str, Any]] = pod["spec"].get("containers") or ()
    if not containers:
        return Choice(why_not="the pod has no container")
    names = [str(container.get("name")) for container in containers]
    wanted = ((pod.get("metadata") or {}).get("annotations") or {}).get(CONTAINER_ANNOTATION)
    if wanted is not None:
        if wanted in names:
            return Choice(names.index(wanted))
        return Choice(why_not=f"{CONTAINER_ANNOTATION} names {wanted!r}; the containers are {', '.join(names)}")
    accelerated = [index for index, container in enumerate(containers) if _asks_for_accelerator(container)]
    if len(accelerated) == 1 or len(containers) == 1:
        return Choice(accelerated[0] if accelerated else 0)
    first = accelerated[0] if accelerated else 0
    several = "several containers ask" if accelerated else "no container asks"
    return Choice(
        first,
        f"{several} for an accelerator: {names[first]!r} is taken for the training container; "
        f"the annotation {CONTAINER_ANNOTATION} names another",
    )


def _asks_for_accelerator(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    if resources.get("claims"):
        return True  # dynamic resource allocation
    names = [*(resources.get("limits") or ()), *(resources.get("requests") or ())]
    return any(name.startswith(_ACCELERATORS) for name in names)

"""The owner of a frame's code: the user's own, an installed package's, or PyTorch's and the standard library's.

Guarantees: pure; tells by the file's path alone, which the training process named: nothing is opened.
"""

import re
import sys
from typing import Final

OWN: Final = 0
INSTALLED: Final = 1
FOUNDATION: Final = 2

_FOUNDATION: Final = re.compile(
    r"^<(?!ipython)|^$|[/\\]lib[/\\]python3[.\d]*t?[/\\](?!site-packages|dist-packages)|[/\\]lib[/\\]python3\d\.zip"
    r"|[/\\](?:site|dist)-packages[/\\](?:torch|torchgen|functorch)[/\\]|^torch[/\\]"
)
_INSTALLED: Final = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


# PyTorch cuts the places that modules come from off the names of frames in a trace: of a package its name is left.
_FRAME: Final = re.compile(
    r"(?P<file>[^()]{1,1024}\.py|<ipython[^()]{1,200}>)\((?P<line>\d{1,9})\): (?P<function>.{1,512})"
)
_TOP: Final = re.compile(r"^[\w.-]+?(?=\.py$|[/\\])")
_FOUNDATIONS: Final = frozenset(("torch", "torchgen", "functorch", *sys.stdlib_module_names))
_PACKAGES: Final = frozenset((
    "accelerate", "apex", "datasets", "deepspeed", "diffusers", "flash_attn", "fleetprof_agent", "huggingface_hub",
    "lightning", "lightning_fabric", "lightning_utilities", "megatron", "numpy", "pandas", "peft", "PIL",
    "pytorch_lightning", "ray", "scipy", "sklearn", "tensordict", "timm", "tokenizers", "torchaudio", "torchdata",
    "torchmetrics", "torchrec", "torchtext", "torchvision", "tqdm", "transformer_engine", "transformers", "trl",
))  # fmt: skip


def read_frame(name: str) -> tuple[str, str, int] | None:
    """(file, function, first line of the function) of a frame in a trace; None where the name says something else."""
    match = _FRAME.fullmatch(name)
    return None if match is None else (match["file"], match["function"], int(match["line"]))


def is_own_frame(name: str) -> bool:
    """Tells whether a frame in a trace is of the user's own code, as far as its name tells."""
    frame = read_frame(name)
    if frame is None or tell_owner(frame[0]) != OWN:
        return False
    top = _TOP.match(frame[0])
    return top is None or not (top[0] in _FOUNDATIONS or (top[0] in _PACKAGES and top[0] + ".py" != frame[0]))


def is_module(name: str) -> bool:
    """Tells whether a frame in a trace is the call of a module, by class and ordinal: `nn.Module: Linear_3`."""
    return name.startswith("nn.Module: ")


def tell_owner(file: str) -> int:
    """OWN, INSTALLED or FOUNDATION."""
    if _FOUNDATION.search(file):
        return FOUNDATION
    return INSTALLED if _INSTALLED.search(file) else OWN

"""Whose code a frame is: the user's own, an installed package's, or PyTorch's and the standard library's.

Guarantees: pure; tells by the file's path alone, which the training process named: nothing is opened.
"""

import re
from typing import Final

OWN: Final = 0
INSTALLED: Final = 1
FOUNDATION: Final = 2

_FOUNDATION: Final = re.compile(
    r"^<(?!ipython)|^$|[/\\]lib[/\\]python3[.\d]*t?[/\\](?!site-packages|dist-packages)|[/\\]lib[/\\]python3\d\.zip"
    r"|[/\\](?:site|dist)-packages[/\\](?:torch|torchgen|functorch)[/\\]|^torch[/\\]"
)
_INSTALLED: Final = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def tell_owner(file: str) -> int:
    """OWN, INSTALLED or FOUNDATION."""
    if _FOUNDATION.search(file):
        return FOUNDATION
    return INSTALLED if _INSTALLED.search(file) else OWN

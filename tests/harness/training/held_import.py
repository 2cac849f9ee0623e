"""Holds PyTorch's import in its middle, as a slow disk does: Kineto asks for orders by then, and nobody trains yet."""

import os
import sys
import time


def hold(until_file: str) -> None:
    """From now on, until this file is there."""
    sys.meta_path.insert(0, _HeldImport(until_file))


class _HeldImport:
    def __init__(self, until_file: str) -> None:
        self._until_file = until_file

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        while name == "torch.profiler" and not os.path.exists(self._until_file):
            time.sleep(0.02)

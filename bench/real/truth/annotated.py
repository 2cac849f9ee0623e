"""Hidden annotations: time stamps of what a training program does, in a file beside it; the trace holds none.

Runs at the start of every interpreter of the bench's environment (a `.pth` line, see environment.py) where
BENCH_STAMPS names a folder. Wraps PyTorch's own entries (a model's call, a loss, `backward`, an optimizer's step, the
loader's next batch) once `torch` is imported, and DeepSpeed's; programs stay as they are. Each process writes
`PID.stamps`, three int64 a stamp: Unix ns, the number of the label that holds from then on (`LABELS`, 0: none of them),
and for how many ns the thread has waited for a core so far; zeros behind the last. Guarantees: the main thread alone;
the innermost label holds; nothing is written by forked workers; a few µs each.
"""

import functools
import mmap
import os
import struct
import sys
import threading
import time

LABELS = ("", "data_loading", "forward", "loss", "backward", "zero_grad", "optimizer")
MOST_STAMPS = 1 << 20
LOSSES = (
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits",
)  # fmt: skip


class Stamps:
    """Writes down when the label of the main thread changes, into memory that is a file."""

    def __init__(self, path):
        with open(path, "wb+") as file:
            file.truncate(24 * MOST_STAMPS)
            # All pages at once: a fault in a stamp would be time of its own.
            self._memory = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
        self._thread, self._count, self._held, self._on = threading.main_thread().ident, 0, [0], True
        self._waits = os.open(f"/proc/self/task/{threading.main_thread().native_id}/schedstat", os.O_RDONLY)
        os.register_at_fork(after_in_child=self._stop)

    def _stop(self):
        self._on = False

    def _write(self, label):
        if self._count < MOST_STAMPS:
            waited = int(os.pread(self._waits, 64, 0).split()[1])
            struct.pack_into("qqq", self._memory, 24 * self._count, time.time_ns(), label, waited)
            self._count += 1

    def enter(self, label):
        """Tells if the label holds from now on: within another, a closure's in a step and a loss's in a model do."""
        if not self._on or threading.get_ident() != self._thread:
            return False
        around = LABELS[self._held[-1]]
        if around and not (around == "optimizer" != label or (around == "forward" and label == "loss")):
            return False
        number = LABELS.index(label)
        self._held.append(number)
        self._write(number)
        return True

    def leave(self):
        """The label around it holds again."""
        self._held.pop()
        self._write(self._held[-1])


def wrap(stamps, label, function):
    """The function, with its time under a label, but where torch.compile looks at it."""
    import torch

    is_compiling = torch.compiler.is_compiling

    @functools.wraps(function)
    def stamped(*args, **kwargs):
        if is_compiling() or not stamps.enter(label):
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            stamps.leave()

    return stamped


def free_closure(stamps, step):
    """An optimizer's step whose closure is no part of it: what it does is annotated by itself, or not at all."""

    @functools.wraps(step)
    def stepped(self, closure=None, *args, **kwargs):
        if closure is not None:
            closure = wrap(stamps, "", closure)
        return step(self, *([] if closure is None else [closure]), *args, **kwargs)

    return stepped


def annotate(stamps):
    """Wraps PyTorch's entries."""
    import torch
    import torch.nn.functional
    import torch.utils.data.dataloader as loader
    from torch.nn.modules.loss import _Loss
    from torch.optim import Optimizer

    for owner, name, label in (
        (torch.nn.Module, "__call__", "forward"),
        (torch.nn.Module, "zero_grad", "zero_grad"),
        (Optimizer, "zero_grad", "zero_grad"),
        (torch.Tensor, "backward", "backward"),
        (torch.autograd, "backward", "backward"),
        (torch.nn.utils, "clip_grad_norm_", "optimizer"),
        (torch.nn.utils, "clip_grad_value_", "optimizer"),
        (torch.amp.GradScaler, "unscale_", "optimizer"),
        (torch.amp.GradScaler, "step", "optimizer"),
        (torch.amp.GradScaler, "update", "optimizer"),
        (loader._BaseDataLoaderIter, "__next__", "data_loading"),
        *((torch.nn.functional, name, "loss") for name in LOSSES),
    ):
        setattr(owner, name, wrap(stamps, label, getattr(owner, name)))
    _Loss.__call__ = wrap(stamps, "loss", _Loss.__call__)
    patch_step = Optimizer._patch_step_function

    @functools.wraps(patch_step)
    def patch_and_stamp(self):
        patch_step(self)
        step = type(self).step
        if not hasattr(step, "stamped"):
            type(self).step = stamped = wrap(stamps, "optimizer", free_closure(stamps, step))
            stamped.hooked = stamped.stamped = True

    Optimizer._patch_step_function = patch_and_stamp


def annotate_deepspeed(stamps):
    """Wraps the entries that DeepSpeed has instead of PyTorch's."""
    from deepspeed.runtime.engine import DeepSpeedEngine

    DeepSpeedEngine.backward = wrap(stamps, "backward", DeepSpeedEngine.backward)
    DeepSpeedEngine.step = wrap(stamps, "optimizer", DeepSpeedEngine.step)


class Finder:
    """Finds nothing; wraps the entries of the packages when their import is done."""

    annotates = True  # a folder of packages that has two names is gone through twice

    def __init__(self):
        self._ways, self._stamps = {"torch": annotate, "deepspeed.runtime.engine": annotate_deepspeed}, None

    def find_spec(self, name, path=None, target=None):
        """The spec that the finders behind this one give, its loader primed; else None."""
        if name not in self._ways:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._prime(spec.loader, self._ways.pop(name))
                return spec
        return None

    def _prime(self, loader, way):
        run = loader.exec_module

        def execute(module):
            run(module)
            if self._stamps is None:
                self._stamps = Stamps(os.path.join(os.environ["BENCH_STAMPS"], f"{os.getpid()}.stamps"))
            way(self._stamps)

        loader.exec_module = execute


if os.environ.get("BENCH_STAMPS") and not any(getattr(one, "annotates", False) for one in sys.meta_path):
    sys.meta_path.insert(0, Finder())

"""PyTorch without its compiler: imported instead of torch's first import by jobs that do not compile, and by torchrun.

The first optimizer imports the compiler, and so does the first profile, for nothing but to be passed by: 1.5 of the
3.3 s of processor time that a small job takes on either PyTorch. What the compiler alone asks for is imported with
torch itself: the exporter, the shapes of operators and collectives on tensors without data, NVIDIA's bindings. A third
of what is left is a search for garbage among modules that stay, at the import and again at the end: none is made before
the import is done, and what is there then is left out of it. A job that is to run unmodified has WITH_COMPILER in its
environment.
"""

import gc
import sys
import types
from typing import Any


class _Nothing(types.ModuleType):
    """Has every name, and can be called; each name is nothing again."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Nothing(name))
        return getattr(self, name)

    def __call__(self, *_: object, **__: object) -> "_Nothing":
        return self

    def __bool__(self) -> bool:
        return False


def _pass_by(function: Any = None, recursive: bool = True, **_: object) -> Any:
    return function


def _put(name: str, **attributes: object) -> _Nothing:
    module = sys.modules[name] = _Nothing(name)
    module.__path__ = []
    for attribute, value in attributes.items():
        setattr(module, attribute, value)
    return module


_put("torch._dynamo", disable=_pass_by)
_put("torch._inductor", config=_put("torch._inductor.config"))
_put("torch.export")
_put("torch.distributed._meta_registrations")
_put("torch._meta_registrations")
sys.modules["cuda.bindings"] = None  # type: ignore[assignment]  # its import fails, as where it is not installed

gc.disable()
import torch  # noqa: E402

# The operators' shapes set the class of this class; without one, a DataLoader's workers make no generator.
torch._C._set_generator_metaclass(type)
gc.freeze()
gc.enable()

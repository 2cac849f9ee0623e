"""PyTorch without its compiler: imported instead of torch's first import by jobs that do not compile, and by torchrun.

The first optimizer imports the compiler, and so does the first profile, for nothing but to be passed by: 1.5 of the
3.3 s of processor time that a small job takes on either PyTorch. What the compiler alone asks for is imported with
torch itself: the exporter, the shapes of operators and collectives on tensors without data, NVIDIA's bindings. A fifth
of the import is what small jobs do not use: graphs and their transforms, quantization, data pipes and so on. A third of
what is left is a search for garbage among modules that stay, at the import and again at the end: none is made before
the import is done, and what is there then is left out of it.

WITH_COMPILER in a job's environment: "whole" leaves PyTorch as it is; "front" keeps the half of the compiler that reads
Python (torch._dynamo), which is all that torch.compile(backend="eager") uses, and leaves out the half that makes
kernels: a third of such a job.
"""

import gc
import os
import sys
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from typing import Any

HAS_FRONT = os.environ.get("WITH_COMPILER") == "front"
UNUSED_BY_ALL = (
    "torch._native",
    "torch._strobelight",
    "torch.ao",
    "torch.distributions",
    "torch.masked",
    "torch.package",
    "torch.quantization",
    "torch.utils.data.datapipes",
)
UNUSED_BY_THE_FRONT = (
    "torch._inductor.codegen",
    "torch._inductor.compile_fx",
    "torch._inductor.decomposition",
    "torch._inductor.fx_passes",
    "torch._inductor.graph",
    "torch._inductor.ir",
    "torch._inductor.kernel",
    "torch._inductor.lowering",
    "torch._inductor.pattern_matcher",
    "torch._inductor.scheduler",
    "torch._inductor.select_algorithm",
    "torch.distributed.tensor",
)
UNUSED_BY_PLAIN_JOBS = (
    "torch._functorch.eager_transforms",
    "torch._higher_order_ops",
    "torch._subclasses",
    "torch.func",
    "torch.fx",
    "torch.hub",
    "torch.nn.intrinsic",
    "torch.nn.qat",
    "torch.nn.quantizable",
    "torch.nn.quantized",
    "torchgen",
)
UNUSED = UNUSED_BY_ALL + (UNUSED_BY_THE_FRONT if HAS_FRONT else UNUSED_BY_PLAIN_JOBS)


class _Nothing(types.ModuleType):
    """Has every name, can be called, and is a type that nothing has; each name is nothing again."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Nothing(name))
        return getattr(self, name)

    def __call__(self, *_: object, **__: object) -> "_Nothing":
        return self

    def __bool__(self) -> bool:
        return False

    def __mro_entries__(self, _: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, _: object) -> bool:
        return False

    def __or__(self, _: object) -> "_Nothing":
        return self

    __ror__ = __getitem__ = __or__

    def __iter__(self) -> Iterator[object]:
        return iter(())


class _FinderOfNothing:
    """Finds these modules and all below them, each of them nothing."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if any(name == left_out or name.startswith(f"{left_out}.") for left_out in UNUSED):
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Nothing(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _pass_by(function: Any = None, recursive: bool = True, **_: object) -> Any:
    return function


def _put(name: str, **attributes: object) -> _Nothing:
    module = sys.modules[name] = _Nothing(name)
    module.__path__ = []
    for attribute, value in attributes.items():
        setattr(module, attribute, value)
    return module


if not HAS_FRONT:
    _put("torch._dynamo", disable=_pass_by)
    _put("torch._inductor", config=_put("torch._inductor.config"))
    _put("torch.export")
    _put("torch.distributed._meta_registrations")
    _put("torch._meta_registrations")
for library in ("cuda.bindings", "pynvml", "triton"):
    sys.modules[library] = None  # type: ignore[assignment]  # its import fails, as where it is not installed
sys.meta_path.insert(0, _FinderOfNothing())

gc.disable()
import torch  # noqa: E402

if HAS_FRONT:
    import torch._dynamo  # which the first optimizer would do
else:
    # The operators' shapes set the class of this class; without one, a DataLoader's workers make no generator.
    torch._C._set_generator_metaclass(type)
gc.freeze()
gc.enable()

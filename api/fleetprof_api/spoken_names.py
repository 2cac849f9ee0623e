"""The name of an event as people say it: `aten::mm` is "mm", a kernel's template is the operation that it carries.

Guarantees: pure; never empty; at most `MOST_CHARACTERS`; linear in the length of the name. Two names may be
said alike: events are told apart and searched by the whole name.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

MOST_CHARACTERS: Final = 80
_TAIL: Final = 24
_MOST_READ: Final = 2000

RULES: Final = tuple(
    (re.compile(pattern), spoken)
    for pattern, spoken in (
        # Operators of PyTorch.
        (r"^autograd::engine::evaluate_function: ", ""),
        (r"^(?:torch::autograd::)?CppNode<(.+?)>?$", r"\1"),
        (r"^(?:torch::(?:autograd|jit)::|aten::|prims::|nn\.Module: )(?:\(anonymous namespace\)::)?(?=\w)", ""),
        (r"(?<=\w)Backward\d+$", "Backward"),
        (r"^## (.+) ##$", r"\1"),
        (r"^Optimizer\.(?:step|zero_grad)#(?=\w)", ""),
        (r"^enumerate\(DataLoader\)#_?(\w+?)(?:DataLoader)?Iter\.__next__$", r"DataLoader next (\1)"),
        # Python: what is called, then where it stands.
        (r"^<built-in (?:method|function) (?: of )?(\w+)\b.*>$", r"\1"),
        (r"^<class '(?:[^']*[.>])?(\w+)'>$", r"\1"),
        (r"^(?:[^:()]*/)?([^/():]+\.py)\((\d+)\): (.+)$", r"\3 \1:\2"),
        # Work of devices.
        (r"^Memcpy (\w+) \((Pageable|Pinned|Managed) -> \w+\)$", r"Memcpy \1 \2"),
        (r"^Memcpy (\w+) \(\w+ -> (Pageable|Pinned|Managed)\)$", r"Memcpy \1 \2"),
        (r"^(Memcpy|Memset) ?(\w*) \([\w >-]+\)$", r"\1 \2"),
        (r"^nccl(?:Dev)?Kernel_(\w+).*$", r"NCCL \1"),
        (r"^(Cijk_[A-Z][a-z]+_[A-Z][a-z]+_[A-Z]+)_\w*?(MT\d+x\d+x\d+)\w*$", r"\1 \2"),
        (r"(?:_warpgroupsize[\dx]+)?_execute_\w+$", ""),
    )
)
"""Patterns and the text that replaces a match of each, in the order in which they are applied."""

# A kernel that does what its first argument says.
_CARRIERS: Final = re.compile(
    r"(?:\w*_)?elementwise_kernel\w*|reduce_kernel|multi_tensor_apply_kernel|Kernel2?|DeviceKernel"
)
# Identifiers around the operation, which say nothing of it.
_SILENT: Final = re.compile(
    r"at|native|c10|std|cub|thrust|cuda_cub|cutlass|detail|anonymous|namespace|binary_internal|internal|memory|"
    r"lambda|operator|const|void|unsigned|signed|int|long|short|char|bool|float|double|size_t|true|false|"
    r"Half|BFloat16|complex|[Aa]rray|ArrayRef|Tensor|TensorIterator(?:Base)?|Scalar|(?:Trivial)?OffsetCalculator|OpaqueType|"
    r"ReduceOp|func_wrapper_t|[AB]?UnaryFunctor|Binary(?:OpScalar)?Functor|gpu_kernel_impl(?:_nocast)?|gpu_index_kernel|"
    r"(?:FusedOptimizer)?TensorList(?:ScalarList)?Metadata"
)
_TYPE: Final = re.compile(r"\b(float|double|Half|BFloat16|__half|__nv_bfloat16|half_t|bfloat16_t)\b")
_WHOLE_TYPE: Final = re.compile(r"<(long|int)\b|\{lambda\((long|int)\b")  # others count or index
_SAID_TYPES: Final = {"Half": "half", "__half": "half", "half_t": "half"} | dict.fromkeys(
    ("BFloat16", "__nv_bfloat16", "bfloat16_t"), "bf16"
)
_WORN: Final = re.compile(
    r"^CUDAFunctor(?:OnSelf|OnOther)?_|(?:_kernel)?(?:_cuda)?(?:_kernel)?(?:_impl)?$|(?:CUDA)?(?:Kernel)?(?:Impl)?$|_?[fF]unctor$|Ops$"
)
_PARAMETERS: Final = re.compile(r"::|[*&]|^\((?:unsigned |const )?(?:int|long|float|double|bool|char)\b")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_LENGTH: Final = re.compile(r"\d{1,3}")
_NO_LENGTH: Final = re.compile(r"L[a-z]n?\d+E|[ST][0-9A-Z]*_")  # numbers, and what was named before
_HEAD: Final = re.compile(r"^(?:void )?((?:(?:\w+|\(anonymous namespace\))::)*)(\w+)([<(].*)$", re.DOTALL)


@lru_cache(maxsize=4096)  # the ranks of a job have the same names
def say_name(name: str) -> str:
    """The name as people say it, at most `MOST_CHARACTERS`."""
    spoken = name[:_MOST_READ].partition("…")[0] or name[:_MOST_READ]
    for pattern, replacement in RULES:
        spoken = pattern.sub(replacement, spoken)
    spoken = (_say_kernel(spoken) or spoken).strip() or name
    return spoken if len(spoken) <= MOST_CHARACTERS else f"{spoken[: MOST_CHARACTERS - _TAIL - 1]}…{spoken[-_TAIL:]}"


def _say_kernel(name: str) -> str:
    """A kernel of C++ without namespaces, parameters and most of its template; "" where it is none."""
    if name.startswith("_Z"):
        parts = [part for part in _mangled(name) if not _SILENT.fullmatch(part) and not part.startswith("_GLOBAL_")]
        base, arguments = (parts[0], " ".join(parts[1:])) if parts else ("", "")
    else:
        head = _HEAD.match(name)
        if head is None or (head[3][0] == "(" and not name.startswith("void ") and not _PARAMETERS.search(head[3])):
            return ""
        base, arguments = head[2], head[3]
    if not base:
        return ""
    kind = _TYPE.search(arguments) or _WHOLE_TYPE.search(arguments)
    of_type = "" if kind is None else f" {_SAID_TYPES.get(word := kind[kind.lastindex or 0], word)}"
    carried = _find_carried(arguments) if _CARRIERS.fullmatch(base) else ""
    if not carried:
        return base + of_type
    carrier = base.removesuffix("_kernel").replace("_", " ")
    return carried if carrier.startswith(("Kernel", "DeviceKernel")) else f"{carried}{of_type} ({carrier})"


def _find_carried(arguments: str) -> str:
    """The operation that a carrying kernel has in its template, or ""."""
    for found in _IDENTIFIER.finditer(arguments):
        if _SILENT.fullmatch(found[0]) or len(found[0]) < 3:
            continue
        worn = _WORN.sub("", found[0])
        return worn if len(worn) > 1 else found[0]
    return ""


def _mangled(name: str) -> Iterator[str]:
    """The identifiers in a name that the compiler mangled, in their order: each stands behind its length."""
    at = 2
    while at < len(name):
        if other := _NO_LENGTH.match(name, at):
            at = other.end()
            continue
        length = _LENGTH.match(name, at)
        if length is None:
            at += 1
            continue
        begin, at = length.end(), length.end() + int(length[0])
        part = name[begin:at]
        if _IDENTIFIER.fullmatch(part):
            yield part
        else:
            at = begin

"""Tells communication, memory and compute apart by the names of kernels and host ranges.

A table, first match wins; what matches nothing is compute. Users may put entries of their own before it. Guarantees:
the row's category goes before its name (a copy is memory whatever it is called); every rule has an example in the
tests. Names come from NCCL, RCCL, vLLM and SGLang (cross-device reduce), PyTorch symmetric memory (multimem), NVSHMEM,
DeepEP, MSCCL, TensorRT-LLM, ROCm, oneCCL, TransformerEngine.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from fleetprof_api.kernel_class import KernelClass, find_class

from fleetprof_analyzer.trace.naming import remembered


class WorkClass(IntEnum):
    """A class of work."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMORY = 2


_COMMUNICATION_KERNELS: Final = (
    r"\bnccl(?:Dev|Symk?)?(?:Dev)?Kernel",  # ncclKernel_, ncclDevKernel_, ncclSymkDevKernel_
    r"^nccl[A-Z_]",
    r"rccl(?:Generic|Dev)?(?:Op)?Kernel",
    r"cross_device_(?:reduce|store)",  # vLLM, SGLang, AITER
    r"\bmultimem_(?:all_reduce|one_shot|all_gather|reduce_scatter)",
    r"\b(?:one|two)_shot_(?:all_?reduce|all_?gather|reduce_?scatter|push|pull)",  # PyTorch, FBGEMM, Triton-distributed
    r"\b(?:stream_write_value32|barrier)_kernel\b",  # barriers of symmetric memory
    r"nvshmem",
    # DeepEP and what has its interface (UCCL); MoRI, TensorRT-LLM and FlashInfer
    r"\bdeep_ep::|\b(?:inter|intra)node(?:_ll)?::",
    r"\bmori::|\bEp(?:Dispatch|Combine)\w*Kernel|\bmoe_?A2A\w*Kernel",
    r"\bmscclpp?|\bmsccl",
    r"(?:all_?reduce|allgather|all_gather|reduce_?scatter|all_?to_?all)(?:_(?:fusion|out|(?:one|two)_?shot))?_?kernel",
    r"(?:one|two)_?shot_?all_?reduce",  # TensorRT-LLM, FlashInfer, SGLang
    r"(?:one|two)_?shot_(?:lamport|sync)|lamport_?(?:style_?)?(?:one|two)_?shot",
    r"\b[hox]ccl(?:Kernel|_)|^hcom_|\bhccl(?=All|Broadcast|Reduce|Send|Recv)",
    r"\bone_?ccl",
    r"\bquickreduce::|\ballreduce_prototype_(?:one|two)shot",  # vLLM on ROCm
    r"\bk?userbuffers_",  # TransformerEngine
    r"dda(?:All|Reduce)",  # NCCLX
)
_MEMORY_KERNELS: Final = (
    r"^__amd_rocclr_(?:copy|fill)Buffer",
    r"^(?:hip)?Mem(?:cpy|set)\b",
    r"^(?:HtoD|DtoH|DtoD|PtoP)\b",
)
_HOST_COMMUNICATION: Final = (
    r"^(?:gloo|mpi|ucc|nccl|xccl):",
    r"^_?c10d(?:_functional)?::",
    r"^record_param_comms$",
)
# One range per collective, on a thread of the backend's own: from taking it up until it is done.
_COLLECTIVE_RANGES: Final = (r"^(?:gloo|mpi|ucc):",)
# Older traces put these annotations among the operators.
_HOST_ANNOTATIONS: Final = (r"^ProfilerStep#", r"^Optimizer\.", r"^enumerate\(DataLoader\)", r"^##")

_DATA_LOADING: Final = (
    r"^enumerate\(DataLoader\)",
    r"data[ _]?load",
    r"\b(?:next|load|fetch|get)[ _](?:next[ _])?(?:batch|data)\b|\b(?:copy_batch_to|wait_for_batch)",
)
_COLLECTIONS: Final = (r"\bgc\b", r"gc[._]collect", r"garbage.?collect", r"<built-in (?:function|method) collect\b")


def _any_of(patterns: Sequence[str], flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags)


_IS_COMMUNICATION: Final = _any_of(_COMMUNICATION_KERNELS, re.IGNORECASE)
_IS_MEMORY: Final = _any_of(_MEMORY_KERNELS)
_IS_HOST_COMMUNICATION: Final = _any_of(_HOST_COMMUNICATION)
_IS_COLLECTIVE_RANGE: Final = _any_of(_COLLECTIVE_RANGES)
_IS_HOST_ANNOTATION: Final = _any_of(_HOST_ANNOTATIONS)
_IS_DATA_LOADING: Final = _any_of(_DATA_LOADING, re.IGNORECASE)
_IS_COLLECTION: Final = _any_of(_COLLECTIONS, re.IGNORECASE)


def classify_kernel(name: str, classes: Sequence[KernelClass] = ()) -> WorkClass:
    """The class of a kernel row (category kernel) by its name: as `classes` say, else by the table."""
    if classes and (found := find_class(name, classes)) is not None:
        return WorkClass[found.work_class.upper()]
    return _classify(name)


@remembered
def _classify(name: str) -> WorkClass:
    if _IS_MEMORY.search(name):
        return WorkClass.MEMORY
    return WorkClass.COMMUNICATION if _IS_COMMUNICATION.search(name) else WorkClass.COMPUTE


@remembered
def is_host_communication(name: str) -> bool:
    """Tells whether an operator or annotation of the host is a collective or its dispatch."""
    return _IS_HOST_COMMUNICATION.search(name) is not None


@remembered
def is_collective_range(name: str) -> bool:
    """Tells whether a host range is a collective itself, not its dispatch."""
    return _IS_COLLECTIVE_RANGE.search(name) is not None


@remembered
def is_host_annotation(name: str) -> bool:
    """Tells whether a row that old traces file under operators is an annotation."""
    return _IS_HOST_ANNOTATION.search(name) is not None


@remembered
def is_collection(name: str) -> bool:
    """Tells whether a Python frame or annotation is a run of the garbage collector."""
    return _IS_COLLECTION.search(name) is not None


@remembered
def is_data_loading(name: str) -> bool:
    """Tells whether a range of the host is the wait for the next batch."""
    return _IS_DATA_LOADING.search(name) is not None

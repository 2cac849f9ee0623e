"""The kinds of rows that decide on modules: marks, nodes of autograd's graph, collectives; by name alone."""

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.trace import Category, Int64s, Rows

_MODULE: Final = re.compile(r"^fleetprof\.module:(\d{1,9}) (.*)$", re.DOTALL)
NODE: Final = "autograd::engine::evaluate_function: "
ACCUMULATE: Final = NODE + "torch::autograd::AccumulateGrad"
_COLLECTIVE: Final = re.compile(r"^(?:c10d::|_c10d_functional::|nccl:|gloo:|mpi:|ucc:|xccl:|record_param_comms)")


class RowKind(IntEnum):
    """A row's kind."""

    OTHER = 0
    MARK = 1
    NODE = 2
    COLLECTIVE = 3


class ModulePhase(IntEnum):
    """The part of an iteration that a row belongs to."""

    FORWARD = 0
    BACKWARD = 1
    RECOMPUTE = 2
    COMMUNICATION = 3


def classify(rows: Rows, names: Sequence[str]) -> tuple[Int64s, dict[int, str]]:
    """The kind of each row, shape (n,), and the module of each name of a mark."""
    of_name = np.zeros(len(names), np.int64)
    labels: dict[int, str] = {}
    for number in np.unique(rows.name).tolist():
        name = names[number]
        if match := _MODULE.match(name):
            of_name[number] = RowKind.MARK
            labels[number] = match[2]
        elif name.startswith(NODE):
            of_name[number] = RowKind.NODE
        elif _COLLECTIVE.match(name):
            of_name[number] = RowKind.COLLECTIVE
    return np.where(rows.category == Category.OPERATOR, of_name[rows.name], RowKind.OTHER), labels

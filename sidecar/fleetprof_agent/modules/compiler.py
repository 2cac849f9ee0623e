"""Keeps torch.compile's frame evaluation away from our functions that run inside the job's modules.

Guarantees: imports nothing; where Dynamo is not loaded, nothing is done.
"""

from __future__ import annotations

import sys
from typing import Any, Callable


def hide(*functions: Any) -> None:
    """Has Dynamo run these as they are: it neither compiles nor counts them."""
    evaluator = sys.modules.get("torch._dynamo.eval_frame")
    if evaluator is not None and hasattr(evaluator, "skip_code"):
        for function in (run_hidden, *functions):
            function._torchdynamo_disable = True
            evaluator.skip_code(function.__code__)


def run_hidden(function: Callable[..., Any], *args: Any) -> Any:
    """Calls `function`, and nothing that it calls is compiled either."""
    evaluator: Any = sys.modules.get("torch._dynamo.eval_frame")
    if evaluator is None:
        return function(*args)
    before = evaluator.set_eval_frame(None)
    try:
        return function(*args)
    finally:
        evaluator.set_eval_frame(before)

"""The names by which stages of the training loop are known: PyTorch's own marks, autograd, losses, in-place updates.

Guarantees: a table per question, each with examples in the tests; nothing of a user's own annotations is needed.
Sources: torch/optim/optimizer.py, torch/nn/parallel/distributed.py, torch/distributed/fsdp, torch/csrc/autograd.
"""

import re
from typing import Final

ZERO_GRAD: Final = re.compile(r"^Optimizer\.zero_grad#")
OPTIMIZER_STEP: Final = re.compile(r"^Optimizer\.step#")
MODEL: Final = re.compile(
    r"^DistributedDataParallel\.forward$|^FullyShardedDataParallel\.forward$|^Torch-Compiled Region|^Forward \d+$"
)
# What begins the forward pass of a module, and has ended long before that does.
MODEL_BEGINS: Final = re.compile(r"^FSDP::(?:root_)?pre_forward")
AUTOGRAD: Final = re.compile(
    r"^autograd::engine::evaluate_function|^(?:struct )?torch::autograd::|Backward\d*$|^Backward \d+$"
)
COLLECTIVE: Final = re.compile(r"^(?:nccl|gloo|mpi|ucc|xccl):")
COMMUNICATES: Final = re.compile(r"^(?:c10d|_c10d_functional)::|^record_param_comms$")
# Between the stages of a pipeline.
POINT_TO_POINT: Final = re.compile(r"^(?:nccl|gloo|mpi|ucc|xccl):(?:send|recv)")
RECEIVED: Final = re.compile(r"^(?:gloo|mpi|ucc):recv")  # on a thread of its own, until it is there
PASSES_ON: Final = re.compile(r"^c10d::(?:send|recv|recv_any_source)_?$")
EXCHANGES: Final = re.compile(r"^(?:c10d|_c10d_functional)::_?all_?to_?all")
# What backward() does on its own thread behind autograd's last function: gradients leave their buckets.
BEHIND: Final = re.compile(
    r"^torch(?:\.|::)distributed(?:\.|::)(?:ddp(?:\.|::))?reducer::|^FSDP::(?:root_)?post_backward"
    r"|^FullyShardedDataParallel\._post_backward"
)
# Gradients are summed up over ranks before anything is measured of them; a sharded optimizer gathers its parameters.
REDUCES: Final = re.compile(r"^(?:c10d|_c10d_functional)::_?(?:all_?reduce|reduce)")
MEASURES: Final = re.compile(r"^aten::(?:linalg_(?:vector_)?norm|norm|_foreach_norm|isinf|isnan|isfinite)$")
GATHERS: Final = re.compile(r"^(?:c10d|_c10d_functional)::(?:_allgather_base_|all_?gather_into_tensor)")
SENDS_TO_ALL: Final = re.compile(r"^c10d::broadcast_$")
PLACES: Final = re.compile(
    r"^aten::(?:copy_|to|narrow|slice|view|select|detach|split|chunk|flatten|empty\w*|_has_compatible_shallow_copy_type)$"
)
SEED: Final = re.compile(r"^aten::ones(?:_like)?$")
UPDATE: Final = re.compile(
    r"^aten::(?:_foreach_(?!zero_|copy_)\w+_|_fused_(?:adam|adamw|sgd|adagrad)_?|add_|sub_|mul_|div_|addcdiv_|addcmul_|lerp_|sqrt_)$"
)
# Gradients are divided by the number of ranks, or clipped: that is no update.
SCALES: Final = re.compile(r"^aten::(?:_foreach_)?(?:mul|div)_$")
ZEROES: Final = re.compile(r"^aten::(?:_foreach_)?zero_$")
DETACHES: Final = re.compile(r"^aten::(?:detach|requires_grad)_$")
_LOSS: Final = re.compile(
    r"loss|nll|cross_entropy|bce|mse|softmax|logsigmoid|logit|sum|mean|div|mul|add|sub|neg|pow|abs|exp|log|select|slice"
    r"|view|reshape|squeeze|expand|clone|to_?copy|where|clamp|sigmoid|index|gather|unbind|stack|cat|permute|transpose",
    re.IGNORECASE,
)
_MODEL_LIKE: Final = re.compile(
    r"mm|matmul|linear|conv|norm|embedding|attention|lstm|gru|rnn|pool|dropout|relu|gelu|silu", re.IGNORECASE
)
LOSS_OPERATOR: Final = re.compile(r"loss|cross_entropy|nll|kl_div", re.IGNORECASE)
_BARE_FUNCTION: Final = re.compile(r"^\w+Backward\d*$")
_FUNCTION: Final = re.compile(r"^autograd::engine::evaluate_function: (\w+)$")


def is_loss_like(name: str) -> bool:
    """Tells whether a backward function may belong to the loss: nothing of a layer, something of a loss."""
    return _MODEL_LIKE.search(name) is None and _LOSS.search(name) is not None


def is_layer(name: str) -> bool:
    """Tells whether an operator is a layer by its name."""
    return _MODEL_LIKE.search(name) is not None and LOSS_OPERATOR.search(name) is None


def function_of(name: str) -> str:
    """`NllLossBackward0` of an autograd row that evaluates it; "" for others."""
    match = _FUNCTION.match(name)
    return "" if match is None else match[1]


def is_function(name: str) -> bool:
    """Tells whether an autograd row is such a function itself, which older traces have alone."""
    return _BARE_FUNCTION.match(name) is not None

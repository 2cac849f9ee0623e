"""The kernels of a model's layers, as their operators launch them."""

from harness.traces.simulated.rank import SimulatedRank

_FORWARD = (
    ("layer_norm_kernel", 0.2, "aten::layer_norm", 128), ("sm90_gemm_qkv", 1.0, "aten::linear", 264),
    ("flash_fwd_kernel", 0.8, "aten::scaled_dot_product_attention", 512), ("sm90_gemm_out", 0.6, "aten::linear", 132),
)  # fmt: skip
_FORWARD_DENSE = (
    ("sm90_gemm_up", 1.4, "aten::linear", 528), ("gelu_kernel", 0.3, "aten::gelu", 128),
    ("sm90_gemm_down", 1.4, "aten::linear", 264),
)  # fmt: skip
_BACKWARD_DENSE = (
    ("sm90_gemm_down_dgrad", 1.4, "aten::mm", 264), ("sm90_gemm_down_wgrad", 1.4, "aten::mm", 264),
    ("gelu_backward_kernel", 0.4, "aten::gelu_backward", 128), ("sm90_gemm_up_dgrad", 1.3, "aten::mm", 264),
)  # fmt: skip
_BACKWARD = (
    ("flash_bwd_kernel", 1.7, "aten::_flash_attention_backward", 512), ("sm90_gemm_qkv_wgrad", 1.0, "aten::mm", 264),
    ("layer_norm_backward_kernel", 0.4, "aten::native_layer_norm_backward", 128),
)  # fmt: skip


_EXPERT = (
    ("sm90_gemm_expert_up", 1.6, "aten::mm", 528), ("silu_expert_kernel", 0.3, "aten::silu", 128),
    ("sm90_gemm_expert_down", 1.6, "aten::mm", 264),
)  # fmt: skip
_EXPERT_BACKWARD = (
    ("sm90_gemm_expert_down_dgrad", 1.6, "aten::mm", 264), ("sm90_gemm_expert_down_wgrad", 1.6, "aten::mm", 264),
    ("silu_expert_backward_kernel", 0.4, "aten::silu_backward", 128),
    ("sm90_gemm_expert_up_dgrad", 1.5, "aten::mm", 264),
)  # fmt: skip
_MORE = (("fake_quantize_kernel", 1.0, "aten::fake_quantize", 256), ("sm90_gemm_up", 1.4, "aten::linear", 528))
_LEAST_LOAD = 0.02
_Kernels = tuple[tuple[str, float, str, int], ...]


def _run(rank: SimulatedRank, kernels: _Kernels, name: str = "", tokens: float | None = None) -> None:
    begin = rank.time
    of_batch = rank.batch.tokens if tokens is None else tokens
    for kernel, share, operator, threads in kernels:
        rank.kernel(kernel, share * rank.shape.kernel_us, operator, threads=threads, tokens=of_batch)
    if name:
        rank.operator(name, begin)


def attend(rank: SimulatedRank) -> None:
    _run(rank, _FORWARD)


def feed_forward(rank: SimulatedRank) -> None:
    rank.run_more(lambda size: _run(rank, tuple((one[0], size * one[1], *one[2:]) for one in _MORE)))
    if rank.batch.loads:
        load = rank.batch.loads[rank.batch.layer]
        rank.batch.layer += 1
        _run(rank, (("moe_topk_kernel", 0.1, "aten::topk", 128),))
        _run_experts(rank, _EXPERT, load)
    else:
        _run(rank, _FORWARD_DENSE)


def attend_backward(rank: SimulatedRank) -> None:
    _run(rank, _BACKWARD, "autograd::engine::evaluate_function: FlashAttentionBackward0")


def feed_backward(rank: SimulatedRank) -> None:
    if rank.batch.loads:
        rank.batch.layer -= 1
        _run_experts(rank, _EXPERT_BACKWARD, rank.batch.loads[rank.batch.layer])
    else:
        _run(rank, _BACKWARD_DENSE, "autograd::engine::evaluate_function: AddmmBackward0")


def _run_experts(rank: SimulatedRank, kernels: _Kernels, load: list[float]) -> None:
    dynamic = rank.shape.dynamic
    assert dynamic is not None
    if dynamic.grouped:
        _run(rank, kernels, tokens=sum(load))
        return
    for tokens in load:
        if not (dynamic.skips and tokens < _LEAST_LOAD):
            _run(rank, kernels, tokens=tokens)


def measure_loss(rank: SimulatedRank) -> None:
    tokens = rank.batch.tokens
    rank.kernel("log_softmax_kernel", 0.5 * rank.shape.kernel_us, "aten::cross_entropy_loss", tokens=tokens)
    rank.kernel("nll_loss_kernel", 0.1 * rank.shape.kernel_us, "aten::nll_loss", tokens=tokens)


def optimize(rank: SimulatedRank) -> None:
    begin = rank.time
    rank.spend(20)
    work_us = 0.5 * rank.shape.kernel_us * rank.shape.optimizer
    for _ in range(3):
        rank.kernel("multi_tensor_apply_kernel", work_us, "aten::_fused_adamw_", threads=320)
    rank.annotate("Optimizer.step#AdamW.step", begin)

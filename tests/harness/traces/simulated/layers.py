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


def _run(rank: SimulatedRank, kernels: tuple[tuple[str, float, str, int], ...], name: str = "") -> None:
    begin = rank.time
    for kernel, share, operator, threads in kernels:
        rank.kernel(kernel, share * rank.shape.kernel_us, operator, threads=threads)
    if name:
        rank.operator(name, begin)


def attend(rank: SimulatedRank) -> None:
    _run(rank, _FORWARD)


def feed_forward(rank: SimulatedRank) -> None:
    _run(rank, _FORWARD_DENSE)


def attend_backward(rank: SimulatedRank) -> None:
    _run(rank, _BACKWARD, "autograd::engine::evaluate_function: FlashAttentionBackward0")


def feed_backward(rank: SimulatedRank) -> None:
    _run(rank, _BACKWARD_DENSE, "autograd::engine::evaluate_function: AddmmBackward0")


def measure_loss(rank: SimulatedRank) -> None:
    rank.kernel("log_softmax_kernel", 0.5 * rank.shape.kernel_us, "aten::cross_entropy_loss")
    rank.kernel("nll_loss_kernel", 0.1 * rank.shape.kernel_us, "aten::nll_loss")


def optimize(rank: SimulatedRank) -> None:
    begin = rank.time
    rank.spend(20)
    for _ in range(3):
        rank.kernel("multi_tensor_apply_kernel", 0.5 * rank.shape.kernel_us, "aten::_fused_adamw_", threads=320)
    rank.annotate("Optimizer.step#AdamW.step", begin)

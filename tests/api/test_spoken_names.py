"""Names are said as people say them; two may be said alike, none is lost."""

import pytest
from fleetprof_api.spoken_names import MOST_CHARACTERS, say_name
from hypothesis import given
from hypothesis import strategies as st

_COPY = (
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda("
    "at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)>(int)"
)


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("aten::mm", "mm"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward"),
        ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "AccumulateGrad"),
        ("torch::autograd::CppNode<SplitLookupFunction_Op>", "SplitLookupFunction_Op"),
        ("Optimizer.step#SGD.step", "SGD.step"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "DataLoader next (MultiProcessing)"),
        ("torch/nn/modules/module.py(1532): _call_impl", "_call_impl module.py:1532"),
        ("<built-in method linear of type object at 0x7bcd86e1df60>", "linear"),
        ("## forward ##", "forward"),
        ("nn.Module: Linear_0", "Linear_0"),
        ("mine::fused", "mine::fused"),
        ("ProfilerStep#12", "ProfilerStep#12"),
        ("cudaLaunchKernel", "cudaLaunchKernel"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD Pageable"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
        ("Memset (Device)", "Memset"),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "NCCL AllReduce_Sum_bf16_RING_LL",
        ),
        (_COPY, "direct_copy float (elementwise)"),
        (f"{_COPY[:149]}…0123abcd", "direct_copy (elementwise)"),  # as a report cuts it
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, x>(int, y)",
            "add bf16 (vectorized elementwise)",
        ),
        (
            "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true>(cudnnTensorStruct, float const*)",
            "bn_fw_tr_1C11_singleread float",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_gemm_128x64>(cutlass_80_tensorop_bf16_gemm_128x64::Params)",
            "cutlass_80_tensorop_bf16_gemm_128x64",
        ),
        ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE", "add (vectorized elementwise)"),
        ("Cijk_Ailk_Bljk_BBS_BH_Bias_MT16x64x64_MI16x16x1_SN_LDSB0", "Cijk_Ailk_Bljk_BBS MT16x64x64"),
        (
            "sm90_xmma_gemm_bf16_tn_n_tilesize128x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
            "sm90_xmma_gemm_bf16_tn_n_tilesize128x64x64",
        ),
        ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0"),
        ("my function (of a person)", "my function (of a person)"),
        ("train.forward(batch 3)", "train.forward(batch 3)"),
    ],
)
def test_a_name_is_said_as_people_say_it(name: str, spoken: str) -> None:
    assert say_name(name) == spoken


@given(st.text(min_size=1) | st.from_regex(r"(void )?(at::|aten::|_ZN|CppNode<|## )[a-z<>(){}:0-9 #]*", fullmatch=True))
def test_something_short_is_said_of_every_name(name: str) -> None:
    assert 1 <= len(say_name(name)) <= MOST_CHARACTERS

"""The table of kernel names, one example per rule, and names that mislead."""

import pytest
from fleetprof_analyzer.trace.classes import WorkClass, classify_kernel, is_host_annotation, is_host_communication

COMMUNICATION = [
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
    "void ncclKernel<1>(ncclDevComm*)",
    "rcclGenericKernel<1, false>(ncclDevComm*, unsigned long, ncclWork*)",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*, RankSignals)",
    "void sglang::cross_device_reduce_2stage<float, 4>()",
    "void multimem_all_reduce_kernel<16>()",
    "multimem_one_shot_all_reduce_kernel",
    "one_shot_all_reduce_kernel",
    "void nvshmemi_transfer_rma<1>()",
    "void deep_ep::internode::dispatch<false, 8>(int4*)",
    "void deep_ep::intranode::combine<__nv_bfloat16>()",
    "mscclKernel_Sum_half_LL_false(ncclDevComm*, mscclAlgo*)",
    "oneccl_reduce_base<float, 2, 16, 1, 1, 2>",
    "typeinfo name for oneccl_allreduce_large<sycl::half>",
    "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half>>()",
    "userbuffers_fp16_sum_inplace_gpu_rr_rs_oop(int, int)",
    "kuserbuffers_pushrecv(int, int)",
    "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<0>()",
    "void tensorrt_llm::kernels::ar_fusion::moe::moereduce_allreduce_fusion_kernel_oneshot_lamport<1>()",
    "void tensorrt_llm::kernels::reduce_fusion::lamport_style_one_shot_all_reduce_norm_kernel<__half>()",
    "void tensorrt_llm::kernels::low_precision_allreduce::lowPrecisionTwoShotAllReduceKernel<__half, 8>()",
    "void trt_llm::twoShotAllReduceKernel<float, 4>(trt_llm::AllReduceParams)",
    "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8, __nv_bfloat16>()",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<0, __nv_bfloat16, 4>()",
    "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<1>()",
    "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>()",
    "void fbgemm_gpu::two_shot_all_reduce<8, true>()",
    "two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>",
    "allreduce_one_shot_kernel",
    "one_shot_push_kernel",
    "void deep_ep::internode_ll::combine<true, 7168, 9>(void*)",
    "void uccl::internode_ll::dispatch<true, false, 7168>()",
    "void mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>()",
    "void userbuffers_fp16_sum_inplace_gpu_mc_rmsnorm<8>()",
    "hcom_allReduce__573_0_1",
    "HcclAllReduce",
    "ddaAllReduceFlatIpc",
]
MEMORY = [
    "__amd_rocclr_copyBuffer",
    "__amd_rocclr_fillBufferAligned",
    "Memcpy HtoD (Pageable -> Device)",
    "Memset (Device)",
]
COMPUTE = [
    "onednn_gemm_kernel",
    "hipblaslt_gemm_kernel",
    "void SyncBatchNorm_forward",
    "sm80_xmma_gemm_dmma_16x16",
    "void (anonymous namespace)::softmax_warp_forwardSync",
    "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>",
    "void at::native::reduce_kernel<512, 1, ReduceOp<float>>",
    "triton_poi_fused_all_to_host_0",
    "void cutlass::Kernel2<scatter_gather>",
    "moe_align_block_size_kernel",
    "dispatch_to_experts_kernel",
    "softmax_one_shot_kernel",
    "all_reduce_sum_local",
    "",
]


@pytest.mark.parametrize("name", COMMUNICATION)
def test_communication(name: str) -> None:
    assert classify_kernel(name) is WorkClass.COMMUNICATION


@pytest.mark.parametrize("name", MEMORY)
def test_memory(name: str) -> None:
    assert classify_kernel(name) is WorkClass.MEMORY


@pytest.mark.parametrize("name", COMPUTE)
def test_everything_else_is_compute(name: str) -> None:
    assert classify_kernel(name) is WorkClass.COMPUTE


@pytest.mark.parametrize(
    ("name", "communicates"),
    [
        ("gloo:all_reduce", True),
        ("mpi:barrier", True),
        ("ucc:allgather", True),
        ("nccl:all_reduce", True),
        ("c10d::allreduce_", True),
        ("_c10d_functional::all_gather_into_tensor", True),
        ("record_param_comms", True),
        ("aten::mm", False),
        ("torch.distributed.ddp.reducer::copy_bucket_to_grad", False),
        ("DistributedDataParallel.forward", False),
    ],
)
def test_host_communication(name: str, communicates: bool) -> None:
    assert is_host_communication(name) is communicates


def test_annotations_that_old_traces_call_operators() -> None:
    assert [name for name in ("ProfilerStep#5", "Optimizer.step#SGD.step", "aten::mm") if is_host_annotation(name)] == [
        "ProfilerStep#5",
        "Optimizer.step#SGD.step",
    ]

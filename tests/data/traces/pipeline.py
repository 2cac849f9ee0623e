"""The job behind `torchrec_pipeline`: torchrec's pipeline that sends the next batch's sparse inputs around ahead.

    torchrun --nproc-per-node 2 pipeline.py FOLDER

Writes rankN.json into FOLDER: four iterations with the annotations of torchrec itself.
"""

import sys

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.datasets.random import RandomRecDataset
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.train_pipeline import TrainPipelineSparseDist
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter

FEATURES, ROWS, WIDTH, DENSE = [f"feature_{n}" for n in range(8)], 20_000, 64, 13

if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    tables = [
        EmbeddingBagConfig(name=f"of_{name}", embedding_dim=WIDTH, num_embeddings=ROWS, feature_names=[name])
        for name in FEATURES
    ]
    dlrm = DLRM(
        embedding_bag_collection=EmbeddingBagCollection(tables=tables, device=torch.device("meta")),
        dense_in_features=DENSE,
        dense_arch_layer_sizes=[256, WIDTH],
        over_arch_layer_sizes=[512, 256, 1],
    )
    model = DistributedModelParallel(DLRMTrain(dlrm), device=torch.device("cpu"))
    dense = KeyedOptimizerWrapper(
        dict(in_backward_optimizer_filter(model.named_parameters())),
        lambda params: torch.optim.Adagrad(params, lr=0.01),
    )
    optimizer = CombinedOptimizer([model.fused_optimizer, dense])
    data = RandomRecDataset(
        keys=FEATURES, batch_size=256, hash_sizes=[ROWS] * len(FEATURES), ids_per_feature=8, num_dense=DENSE
    )
    pipeline = TrainPipelineSparseDist(model, optimizer, torch.device("cpu"))
    batches = iter(DataLoader(data, batch_size=None))
    for _ in range(5):
        pipeline.progress(batches)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(4):
            pipeline.progress(batches)
    recorded.export_chrome_trace(f"{sys.argv[1]}/rank{dist.get_rank()}.json")
    dist.barrier()

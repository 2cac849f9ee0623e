"""torchrec's DLRM: sharded embedding tables, a dense part in DDP, and its own training pipeline."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.datasets.random import RandomRecDataset
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.train_pipeline import TrainPipelineBase
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter

FEATURES, ROWS, WIDTH, DENSE = [f"feature_{n}" for n in range(8)], 20_000, 64, 13

if __name__ == "__main__":
    dist.init_process_group("gloo")
    device = torch.device("cpu")
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
    model = DistributedModelParallel(DLRMTrain(dlrm), device=device)
    dense = KeyedOptimizerWrapper(
        dict(in_backward_optimizer_filter(model.named_parameters())),
        lambda params: torch.optim.Adagrad(params, lr=0.01),
    )
    optimizer = CombinedOptimizer([model.fused_optimizer, dense])
    data = RandomRecDataset(
        keys=FEATURES, batch_size=512, hash_sizes=[ROWS] * len(FEATURES), ids_per_feature=8, num_dense=DENSE
    )
    pipeline = TrainPipelineBase(model, optimizer, device)
    batches = iter(DataLoader(data, batch_size=None, num_workers=1))
    for step in range(1_000_000):
        loss, _ = pipeline.progress(batches)[:2]
        if step % 20 == 0 and dist.get_rank() == 0:
            print(step, loss.item(), flush=True)

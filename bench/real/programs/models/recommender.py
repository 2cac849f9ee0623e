"""A recommender after DLRM: sparse features in EmbeddingBags, dense ones in a perceptron, their dot products on top."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

ROWS, TABLES, WIDTH, DENSE = 20_000, 8, 32, 13


class Clicks(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        source = torch.Generator().manual_seed(index)
        lengths = torch.randint(1, 5, (TABLES,), generator=source)
        ids = torch.randint(0, ROWS, (int(lengths.sum()),), generator=source)
        return torch.rand(DENSE, generator=source), lengths, ids, torch.rand(1, generator=source).round()


def collate(samples):
    dense, lengths, ids, clicks = zip(*samples, strict=True)
    bags = [torch.split(one, length.tolist()) for one, length in zip(ids, lengths, strict=True)]
    columns = [torch.cat([bag[table] for bag in bags]) for table in range(TABLES)]
    offsets = [torch.tensor([0, *[int(n[table]) for n in lengths[:-1]]]).cumsum(0) for table in range(TABLES)]
    return torch.stack(dense), columns, offsets, torch.stack(clicks)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(TABLES))
        self.bottom = nn.Sequential(nn.Linear(DENSE, 128), nn.ReLU(), nn.Linear(128, WIDTH), nn.ReLU())
        pairs = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(nn.Linear(WIDTH + pairs, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, dense, columns, offsets):
        bottom = self.bottom(dense)
        found = [table(ids, at) for table, ids, at in zip(self.tables, columns, offsets, strict=True)]
        vectors = torch.stack([bottom, *found], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        row, column = torch.tril_indices(TABLES + 1, TABLES + 1, -1)
        return self.top(torch.cat([bottom, products[:, row, column]], 1))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Recommender())
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    criterion = nn.BCEWithLogitsLoss()
    loader = DataLoader(Clicks(), batch_size=128, collate_fn=collate, num_workers=1)
    for step, (dense, columns, offsets, clicks) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(dense, columns, offsets), clicks)
        loss.backward()
        optimizer.step()
        if step % 20 == 0 and dist.get_rank() == 0:
            print(step, loss.item(), flush=True)

"""Small models of many kinds, each with one training iteration: what `make bench-modules` and its test run.

A case is made by a function that returns its modules by name and a function that makes one iteration.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH: Final = 64


class Case(NamedTuple):
    """`roots`: what is called from outside, by its class; `iterate(tell)`: forward, `tell(loss)`, backward, step."""

    roots: Mapping[str, nn.Module]
    iterate: Callable[[Callable[[Any], None]], None]
    optimizers: list[torch.optim.Optimizer]


def _train(
    model: nn.Module, make_batch: Callable[[], Any], measure: Callable[[Any], torch.Tensor] | None = None
) -> Case:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss_of = measure or (lambda output: output.square().mean())

    def iterate(tell: Callable[[Any], None]) -> None:
        optimizer.zero_grad()
        loss = loss_of(model(make_batch()))
        tell(loss)
        loss.backward()
        optimizer.step()

    return Case({type(model).__name__: model}, iterate, [optimizer])


def mlp() -> Case:
    """Layers in a row."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(0.1))]
    return _train(nn.Sequential(*layers), lambda: torch.randn(32, WIDTH))


class Residual(nn.Module):
    """Two convolutions with norms around which the input goes."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels),
        )  # fmt: skip

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return functional.relu(values + self.body(values))


def resnet() -> Case:
    """Convolutions with residuals."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), *(Residual(8) for _ in range(3)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
    )
    return _train(model, lambda: torch.randn(4, 3, 16, 16))


class UNet(nn.Module):
    """Down, up, and across."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 3, 2, stride=2)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        low = self.down(image)
        return self.up(torch.cat([low, self.middle(low).relu()], 1)) + image


def unet() -> Case:
    """An encoder and a decoder with a connection across."""
    return _train(UNet(), lambda: torch.randn(4, 3, 16, 16))


class AttentionBlock(nn.Module):
    """Attention and a perceptron, each behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.other_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        normed = self.norm(tokens)
        tokens = tokens + self.attention(normed, normed, normed, need_weights=False)[0]
        return tokens + self.down(functional.gelu(self.up(self.other_norm(tokens))))


class Transformer(nn.Module):
    """Blocks between an embedding and a head that has its weights."""

    def __init__(self, again: str = "") -> None:
        super().__init__()
        self.embed = nn.Embedding(100, WIDTH)
        self.blocks = nn.ModuleList(AttentionBlock() for _ in range(3))
        self.head = nn.Linear(WIDTH, 100, bias=False)
        self.head.weight = self.embed.weight
        self.again = again

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        values = self.embed(tokens)
        for block in self.blocks:
            values = checkpoint(block, values, use_reentrant=self.again == "reentrant") if self.again else block(values)
        return self.head(values)


def transformer() -> Case:
    """Attention, with tied weights."""
    return _train(Transformer(), lambda: torch.randint(0, 100, (4, 16)))


def checkpointed() -> Case:
    """The same, each block computed again in backward; it stops as soon as it has what is needed."""
    return _train(Transformer("early stop"), lambda: torch.randint(0, 100, (4, 16)))


def reentrant() -> Case:
    """The same by the older kind of checkpoints, with a backward inside backward."""
    return _train(Transformer("reentrant"), lambda: torch.randint(0, 100, (4, 16)))


class RecurrentModel(nn.Module):
    """An LSTM whose last state is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(values)[0][:, -1])


def lstm() -> Case:
    """RecurrentModel cells."""
    return _train(RecurrentModel(), lambda: torch.randn(4, 8, WIDTH))


class Mixture(nn.Module):
    """Tokens go to the expert that a router chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        weights = self.router(tokens).softmax(-1)
        chosen = weights.argmax(-1)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                output = output.index_add(0, rows, expert(tokens[rows]) * weights[rows, number, None])
        return output


def mixture() -> Case:
    """A mixture of experts."""
    return _train(Mixture(), lambda: torch.randn(64, WIDTH))


class Interactions(nn.Module):
    """Sparse features, dense ones, and their products."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(100, WIDTH) for _ in range(3))
        self.dense, self.top = nn.Linear(8, WIDTH), nn.Linear(16, 1)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        sparse, dense = batch
        rows = torch.stack([self.dense(dense), *(table(sparse) for table in self.tables)], 1)
        return self.top((rows @ rows.transpose(1, 2)).flatten(1))


def recommender() -> Case:
    """Like DLRM."""
    return _train(Interactions(), lambda: (torch.randint(0, 100, (16, 4)), torch.randn(16, 8)))


class Deep(nn.Module):
    """Each block is left out now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(8))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            if torch.rand(()) < 0.5:
                values = values + block(values)
        return values


def stochastic_depth() -> Case:
    """Blocks that are left out by chance."""
    return _train(Deep(), lambda: torch.randn(16, WIDTH))


class Diffusion(nn.Module):
    """One network that is called twice, the second time on what it said first."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            guess = self.net(noise)
        return self.net(noise - guess)


def diffusion() -> Case:
    """Without gradients first, then with."""
    return _train(Diffusion(), lambda: torch.randn(16, WIDTH))


class Shared(nn.Module):
    """One layer in two parents."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.left, self.right = nn.Sequential(self.layer), nn.Sequential(nn.ReLU(), self.layer)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.right(self.left(values))


def shared() -> Case:
    """A module that two parents share."""
    return _train(Shared(), lambda: torch.randn(16, WIDTH))


def gan() -> Case:
    """Two models and two optimizers."""
    maker, judge = nn.Sequential(nn.Linear(8, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)), nn.Linear(WIDTH, 1)
    of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())

    def iterate(tell: Callable[[Any], None]) -> None:
        made = maker(torch.randn(16, 8))
        loss = (
            functional.softplus(judge(made.detach())).mean()
            + functional.softplus(-judge(torch.randn(16, WIDTH))).mean()
        )
        tell(loss)
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
        loss = functional.softplus(-judge(made)).mean()
        tell(loss)
        of_maker.zero_grad()
        loss.backward()
        of_maker.step()

    return Case({"Sequential": maker, "Linear": judge}, iterate, [of_judge, of_maker])


def data_parallel() -> Case:
    """Under DDP, one rank of gloo."""
    if not torch.distributed.is_initialized():
        path = os.path.join(tempfile.mkdtemp(), "ranks")
        torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(Transformer("early stop"))
    return _train(model, lambda: torch.randint(0, 100, (4, 16)))


class Outer(nn.Module):
    """Compiled blocks between layers that are not."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(WIDTH, WIDTH)
        self.block = torch.compile(AttentionBlock(), backend="aot_eager")
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.out(self.block(self.into(values)))


def compiled() -> Case:
    """A block that is compiled; inside it there are no modules."""
    return _train(Outer(), lambda: torch.randn(4, 16, WIDTH))


CASES: Final = {
    make.__name__: make
    for make in (
        mlp, resnet, unet, transformer, checkpointed, reentrant, lstm, mixture, recommender, stochastic_depth,
        diffusion, shared, gan, data_parallel, compiled,
    )
}  # fmt: skip

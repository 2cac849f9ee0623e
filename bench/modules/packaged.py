"""Models of well-known packages, unmodified and untrained, where the packages are installed; they are no dependency.

uv pip install --no-deps --target DIR torchvision timm transformers tokenizers huggingface_hub safetensors regex
accelerate lightning pytorch-lightning lightning-utilities torchmetrics psutil fsspec packaging pyyaml tqdm requests
typing-extensions, and PYTHONPATH=DIR for run.py.
"""

import importlib.util
from collections.abc import Callable
from typing import Any, Final

import torch
from architectures import Case

Make = Callable[[], Case]


def _train(model: torch.nn.Module, step: Callable[[], torch.Tensor]) -> Case:
    optimizer = torch.optim.AdamW(model.parameters())

    def iterate(tell: Callable[[Any], None]) -> None:
        optimizer.zero_grad()
        loss = step()
        tell(loss)
        loss.backward()
        optimizer.step()

    return Case({type(model).__name__: model}, iterate, [optimizer])


def _see(model: torch.nn.Module, size: int) -> Case:
    return _train(model, lambda: model(torch.randn(2, 3, size, size)).square().mean())


def _read(model: torch.nn.Module, words: int) -> Case:
    def step() -> torch.Tensor:
        ids = torch.randint(0, words, (2, 32))
        loss: torch.Tensor = model(input_ids=ids, labels=ids).loss
        return loss

    return _train(model, step)


def torchvision_resnet() -> Case:
    """ResNet-18."""
    from torchvision.models import resnet18

    return _see(resnet18(), 64)


def torchvision_segmentation() -> Case:
    """A fully convolutional network, which returns a dictionary."""
    from torchvision.models.segmentation import fcn_resnet50

    model = fcn_resnet50(weights=None, weights_backbone=None)
    return _train(model, lambda: model(torch.randn(2, 3, 64, 64))["out"].square().mean())


def timm_vit() -> Case:
    """A vision transformer with stochastic depth."""
    import timm

    return _see(timm.create_model("vit_tiny_patch16_224", drop_path_rate=0.3), 224)


def timm_convnext() -> Case:
    """Depthwise convolutions."""
    import timm

    return _see(timm.create_model("convnext_atto"), 64)


def transformers_bert() -> Case:
    """BERT, called with names."""
    from transformers import BertConfig, BertForMaskedLM

    return _read(BertForMaskedLM(BertConfig(hidden_size=64, num_hidden_layers=3, num_attention_heads=4)), 30_000)


def transformers_llama() -> Case:
    """Llama with gradient checkpointing."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=1000, intermediate_size=128, **sizes))
    model.gradient_checkpointing_enable()
    return _read(model, 1000)


def transformers_mixtral() -> Case:
    """A mixture of experts."""
    from transformers import MixtralConfig, MixtralForCausalLM

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = MixtralConfig(vocab_size=1000, intermediate_size=128, num_local_experts=4, **sizes)
    return _read(MixtralForCausalLM(config), 1000)


def accelerate_encoder() -> Case:
    """A loop that accelerate prepares, with gradients accumulated over two batches."""
    from accelerate import Accelerator
    from torch import nn

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model, optimizer = accelerator.prepare(nn.TransformerEncoder(layer, 2), torch.optim.AdamW(layer.parameters()))

    def iterate(tell: Callable[[Any], None]) -> None:
        for _ in range(2):
            with accelerator.accumulate(model):
                loss = model(torch.randn(4, 16, 64)).square().mean()
                tell(loss)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()

    return Case({type(model).__name__: model}, iterate, [optimizer])


def lightning_fabric() -> Case:
    """A module of Lightning in the loop of its Fabric."""
    import lightning
    from torch import nn

    class Classifier(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten())
            self.head = nn.LazyLinear(10)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.head(self.body(images))

        def training_step(self, images: torch.Tensor) -> torch.Tensor:
            return self(images).square().mean()

    model = Classifier()
    model(torch.randn(2, 3, 16, 16))
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    prepared, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters()))
    prepared.mark_forward_method("training_step")

    def iterate(tell: Callable[[Any], None]) -> None:
        optimizer.zero_grad()
        loss = prepared.training_step(torch.randn(2, 3, 16, 16))
        tell(loss)
        fabric.backward(loss)
        optimizer.step()

    return Case({type(model).__name__: model}, iterate, [optimizer])


_ALL: Final[tuple[Make, ...]] = (
    torchvision_resnet, torchvision_segmentation, timm_vit, timm_convnext, transformers_bert, transformers_llama,
    transformers_mixtral, accelerate_encoder, lightning_fabric,
)  # fmt: skip


def find_packaged() -> dict[str, Make]:
    """The cases whose package is installed."""
    return {make.__name__: make for make in _ALL if importlib.util.find_spec(make.__name__.partition("_")[0])}

"""Models of well-known packages, unmodified and untrained, where the packages are installed; they are no dependency.

uv pip install --no-deps --target DIR torchvision timm transformers tokenizers huggingface_hub safetensors regex, and
PYTHONPATH=DIR for run.py.
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


_ALL: Final[tuple[Make, ...]] = (
    torchvision_resnet, torchvision_segmentation, timm_vit, timm_convnext, transformers_bert, transformers_llama,
    transformers_mixtral,
)  # fmt: skip


def find_packaged() -> dict[str, Make]:
    """The cases whose package is installed."""
    return {make.__name__: make for make in _ALL if importlib.util.find_spec(make.__name__.partition("_")[0])}

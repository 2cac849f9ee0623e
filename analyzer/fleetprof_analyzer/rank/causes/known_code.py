"""Code that says what a thread does: PyTorch's own files, and those of packages.

Guarantees: a table per question. Sources: torch/utils/data/dataloader.py, torch/_dynamo/convert_frame.py,
torch/serialization.py, torch/distributed/checkpoint.
"""

import re
from collections.abc import Sequence
from typing import Final

Frames = Sequence[re.Pattern[str]]
"""Patterns of `file:function`; a stack shows them where each of them is one of its frames."""


def _frames(*patterns: str) -> Frames:
    return [re.compile(pattern) for pattern in patterns]


WORKERS_START: Final = (
    _frames(r"torch/utils/data/dataloader\.py:", r"multiprocessing/process\.py:(?:BaseProcess\.)?start$"),
    _frames(r"torch/utils/data/dataloader\.py:(?:_MultiProcessingDataLoaderIter\.)?_shutdown_workers$"),
    # Their queues and events; of workers that live on nothing is made again.
    _frames(r"torch/utils/data/dataloader\.py:(?:DataLoader\.)?_get_iterator$", r"/multiprocessing/"),
)
COMPILES: Final = (
    _frames(
        r"torch/_dynamo/(?!(?:eval_frame|external_utils|utils|decorators|callback|compiled_autograd)\.)"
        r"|torch/_functorch/_aot_autograd/(?!(?:runtime_wrappers|utils|subclass_utils|functional_utils)\.)"
        r"|torch/_inductor/(?!(?:output_code|utils|cudagraph_trees|standalone_compile)\.|runtime/|.*\brun$)"
        r"|torch/fx/experimental/(?:proxy_tensor|symbolic_shapes)\.py:"
    ),
)
SAVES: Final = (
    _frames(r"torch/serialization\.py:(?:_?save$|_legacy_save|_open_zipfile_writer)"),
    _frames(r"torch/distributed/checkpoint/(?:state_dict_saver|filesystem|planner_helpers|default_planner)\.py:"),
    _frames(r"safetensors/\w+\.py:save"),
)
LOGS: Final = (
    # A process that forks passes through its locks.
    _frames(
        r"/python3[.\d]*t?/logging/(?:__init__|handlers)\.py:(?!_(?:acquire|release)Lock|_after_at_fork|_prepareFork)"
    ),
    # A bar that goes around a loader is on the stack while that loads.
    _frames(
        r"/tqdm/\w+\.py:(?:tqdm\w*\.)?(?:refresh|display|set_postfix\w*|set_description\w*|write)$|/rich/console\.py:"
    ),
    _frames(
        r"/(?:wandb|mlflow|comet_ml|neptune|clearml|aim|tensorboard|tensorboardX|loguru|swanlab)/|torch/utils/tensorboard/"
    ),
)

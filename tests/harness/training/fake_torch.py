"""A PyTorch of the few lines that the agent looks at, for tests of how it gets into an interpreter."""

from pathlib import Path

FAKE_TORCH = {
    "torch/__init__.py": "import torch.optim.optimizer, torch.autograd.profiler\nfrom torch import profiler\n",
    "torch/version.py": "__version__ = '2.15.0'\n",
    "torch/optim/__init__.py": "",
    "torch/optim/optimizer.py": """
_global_optimizer_post_hooks = {}
class Handle:
    id = 0
def register_optimizer_step_post_hook(hook):
    handle = Handle()
    handle.id = len(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[handle.id] = hook
    return handle
""",
    "torch/autograd/__init__.py": "",
    "torch/autograd/profiler.py": """
class KinetoStepTracker:
    @classmethod
    def current_step(cls):
        return 0
""",
    "torch/profiler.py": """
from torch.optim.optimizer import register_optimizer_step_post_hook
def kineto_hook(*_): pass
register_optimizer_step_post_hook(kineto_hook)
""",
}


def put(root: Path, files: dict[str, str]) -> str:
    """Writes files below `root`; returns its path."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)

"""PyTorch without its compiler: imported before torch by jobs that do not compile.

The first optimizer imports the compiler, and so does the first profile, for nothing but to be passed by: 1.1 of the
2.5 s of processor time that a small job takes on either PyTorch. A job that stands for all unmodified ones has
WITH_COMPILER in its environment.
"""

import sys
import types


class _Nothing(types.ModuleType):
    """Has every name, and can be called; each name is nothing again."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Nothing(name))
        return getattr(self, name)

    def __call__(self, *_, **__):
        return self

    def __bool__(self):
        return False


def _pass_by(function=None, recursive=True, **_):
    return function


for _name in ("torch._dynamo", "torch._inductor", "torch._inductor.config"):
    sys.modules[_name] = _Nothing(_name)
    sys.modules[_name].__path__ = []
sys.modules["torch._dynamo"].disable = _pass_by
sys.modules["torch._inductor"].config = sys.modules["torch._inductor.config"]

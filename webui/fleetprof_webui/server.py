"""A web server beside others in one process.

Guarantees: signals are left to whoever runs it, who ends all servers together.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


class Server(uvicorn.Server):
    """uvicorn's, which by itself would end at a signal."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Takes none."""
        yield

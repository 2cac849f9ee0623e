"""The agent's first word: PyTorch is being imported in this process, or one that is too old to be captured.

Kineto asks for orders from the middle of that import on, and the import may take minutes more (a slow disk, a busy
machine). Who asks and says nothing else is taken for a process without the agent, and traced by time: a trace of an
import holds no event.

Guarantees: imports nothing that PyTorch does not import as well; said once, before PyTorch's libraries load; the
socket is the agent's from `take` on; an import that fails, a forked child and the exit leave no word behind that
somebody would wait for. Who says the version of a PyTorch that is too old is not waited for.
"""

from __future__ import annotations

import atexit
import os
import time

from fleetprof_agent import wire
from fleetprof_agent.channel import Channel
from fleetprof_agent.process import identity

_channel: Channel | None = None


def announce(too_old: str = "") -> None:
    """Says it; `too_old`: this version is, and no agent will come. Raises OSError when the socket cannot be made."""
    global _channel
    if _channel is not None:
        return
    _channel = Channel(os.environ["KINETO_IPC_SOCKET_DIR"])
    atexit.register(withdraw)
    os.register_at_fork(after_in_child=withdraw)
    known = {**identity.describe_process(None), **identity.read_ranks(dict(os.environ), None)}
    known["torch"] = too_old
    _channel.send("hello", **known, role=wire.WAITING, kineto="", started_unix_ns=time.time_ns())


def begin() -> None:
    """PyTorch is there: the agent starts. Raises what goes wrong; then nobody waits for it."""
    try:
        from fleetprof_agent import agent

        agent.start(take)
    except Exception:
        withdraw()
        raise


def take() -> Channel | None:
    """The socket that said it, for the agent to go on with; None when nothing was said."""
    global _channel
    channel, _channel = _channel, None
    return channel


def withdraw() -> None:
    """Takes the word back: no agent will come. Does nothing once the agent has the socket."""
    channel = take()
    if channel is not None:
        channel.close()

"""The identity of this process: its rank, its versions, its device, and which of Kineto's sockets is its own.

Guarantees: nothing is initialised by asking (CUDA least of all); what is not known is None or ""; no question but the
search for a socket costs more than some hundred microseconds. Read at the first optimizer step, when the job has set
itself up; what is known before that (versions, the environment's ranks), once after PyTorch's import too.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from typing import Any

from fleetprof_agent.errors import pass_on
from fleetprof_agent.process import libc

CLIENT_PREFIX = "dynoconfigclient"
# A process with more descriptors than this is not searched to the end: 4,000 sockets take 64 ms (10: 0.1, 1,000: 11).
MAX_DESCRIPTORS = 4096


def read_ranks(environ: dict[str, str], distributed: Any) -> dict[str, int | None]:
    """rank, local_rank, world_size, restart_count. `distributed`: the torch.distributed module, or None.

    An initialised process group knows best: some launchers set RANK to the number of the node. Sources: torchrun's
    environment variables.
    """
    rank, world_size = _number(environ, "RANK"), _number(environ, "WORLD_SIZE")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank, world_size = int(distributed.get_rank()), int(distributed.get_world_size())
    except Exception as error:  # an exotic backend: the environment's word stands
        pass_on(error)
    return {
        "rank": rank,
        "local_rank": _number(environ, "LOCAL_RANK"),
        "world_size": world_size,
        "restart_count": _number(environ, "TORCHELASTIC_RESTART_COUNT") or 0,
    }


def _number(environ: dict[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def read_device(torch: Any, optimizer: Any) -> dict[str, Any]:
    """device_kind ("cuda", "rocm", "cpu", "xpu", ...), device_name, device_uuid, device_index (None: there is none).

    The device is that of the optimizer's first parameter, or the current one where a job keeps its optimizer's state on
    the CPU and has initialised CUDA.
    """
    kind, index = "", None
    try:
        device = optimizer.param_groups[0]["params"][0].device
        kind, index = str(device.type), device.index
    except Exception as error:
        pass_on(error)
    found = {"device_kind": kind, "device_name": "", "device_uuid": "", "device_index": index}
    try:
        cuda = torch.cuda
        if kind in ("", "cpu", "cuda") and cuda.is_initialized():
            if kind != "cuda" or index is None:
                index = int(cuda.current_device())
            properties = cuda.get_device_properties(index)
            found["device_kind"] = "rocm" if getattr(torch.version, "hip", None) else "cuda"
            found["device_name"] = str(properties.name)
            found["device_uuid"] = str(getattr(properties, "uuid", ""))
            found["device_index"] = index
    except Exception as error:
        pass_on(error)
    return found


def find_kineto_socket(directory: str) -> str:
    """The file name of this process's own Kineto client socket in `directory`, "" when it is not found.

    Asks each socket of the process for its name, until it is found: some microseconds for each. No table of the whole
    machine has to be read, and no descriptor of the job is touched (libc.py).
    """
    prefix = directory + "/" + CLIENT_PREFIX
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError as error:
        pass_on(error)
        return ""
    for descriptor in descriptors[:MAX_DESCRIPTORS]:
        try:
            if not os.readlink("/proc/self/fd/" + descriptor).startswith("socket:"):
                continue
        except OSError as error:
            pass_on(error)
            continue
        path = libc.read_socket_path(int(descriptor))
        if path.startswith(prefix):
            return path[len(directory) + 1 :]
    return ""


def describe_process(torch: Any) -> dict[str, Any]:
    """ppid, uid, torch, python, host."""
    return {
        "ppid": os.getppid(),
        "uid": os.getuid(),
        "torch": str(getattr(torch, "__version__", "")),
        "python": platform.python_version(),
        "host": socket.gethostname(),
    }


def loaded(name: str) -> Any:
    """The module `name` when the job has imported it, else None."""
    return sys.modules.get(name)

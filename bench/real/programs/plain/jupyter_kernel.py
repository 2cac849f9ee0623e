"""A Jupyter kernel, as a notebook server starts it, that is sent the cells of a small training session."""

import sys
from pathlib import Path

from jupyter_client.manager import KernelManager

script = Path(__file__).with_name("plain_loop.py").read_text()
imports, _, training = script.partition("\nmodel = ")
cells = [
    imports,
    "model = " + training.partition("\nfor epoch")[0],
    "for epoch" + training.partition("\nfor epoch")[2],
]

manager = KernelManager(kernel_name="python3")
manager.start_kernel()
client = manager.client()
client.start_channels()
try:
    client.wait_for_ready(timeout=120)
    for cell in cells:
        reply = client.execute_interactive(cell, allow_stdin=False)
        if reply["content"]["status"] != "ok":
            sys.exit(str(reply["content"].get("evalue", "")))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)

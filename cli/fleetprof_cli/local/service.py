"""Turns a process into the hub's: its files are its user's alone, and signals end it in order."""

import asyncio
import logging
import os
import resource
import signal

from fleetprof_api.memory_shortage import SERVICE, go_first


def enter_service() -> None:
    """Call it before the hub's modules are imported."""
    logging.basicConfig(level=logging.INFO, format="fleetprof: %(message)s")
    go_first(SERVICE)  # jobs train on this machine
    os.umask(0o077)
    # Read when gRPC is imported; it has a line for each connection that is no TLS, and anybody can make those.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    # A connection is a file; 1024 of them, most systems' first limit, are few for a hub of many nodes.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def stop_signals() -> asyncio.Event:
    """Set by the signals that end a service; call it in the event loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    return stop

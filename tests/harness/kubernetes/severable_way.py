"""A way to the API server that can be severed: connections stay open and nothing passes any more."""

import asyncio
from pathlib import Path
from typing import Self

import yaml

from harness.kubernetes.api_server import ApiServer


class SeverableWay:
    """Passes bytes between its clients and `api` until `is_severed`."""

    def __init__(self, api: ApiServer) -> None:
        self.is_severed = False
        self._api = api
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def kubeconfig(self) -> Path:
        """The administrator's, by this way."""
        assert self._server is not None
        document = yaml.safe_load(self._api.kubeconfig().read_text())
        port = self._server.sockets[0].getsockname()[1]
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        path = self._api.kubeconfig().with_name(f"way-{port}.kubeconfig")
        path.write_text(yaml.safe_dump(document))
        return path

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_connection("127.0.0.1", self._api.port)
        for source, sink in ((reader, to_there), (there, writer)):
            task = asyncio.create_task(self._pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(1 << 16):
                while self.is_severed:
                    await asyncio.sleep(0.1)
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()

"""The hub that sidecars dial in tests, and the store that it grants uploads to: real servers that follow a script."""

import asyncio
import hashlib
import threading
import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc.aio
import msgspec
from fleetprof_api.hub import hub_pb2, hub_pb2_grpc, local_hub
from fleetprof_api.private_directory import PrivateDirectory
from fleetprof_store.location import StoreLocation

TOKEN = "the-token"


class HttpStore:
    """Takes PUTs on loopback and checks the signed header; `script` is answered first, in order."""

    def __init__(self, port: int = 0) -> None:
        store = self
        self.parts: dict[str, bytes] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.script: list[int] = []

        class HubHandler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                store.requests.append((self.path, dict(self.headers)))
                status = store.script.pop(0) if store.script else 200
                wanted = self.headers.get("x-checksum")
                if wanted and wanted != hashlib.sha256(body).hexdigest():
                    status = 400
                if status == 200:
                    store.parts[self.path] = body
                self.send_response(status)
                self.send_header("ETag", f'"{hashlib.md5(body).hexdigest()}"')
                answer = b"" if status == 200 else b"<Code>Scripted</Code>"
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), HubHandler)
        self._server.daemon_threads = False
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


def write_state(state: Path, address: str = "unix:", ca_file: str = "", token: str = TOKEN) -> None:
    """A state directory as `fleetprof up` leaves it for sidecars."""
    state.mkdir(mode=0o700, exist_ok=True)
    (state / local_hub.TOKEN_FILE).write_text(f"{token}\n")
    record = local_hub.HubRecord(
        address=address, pid=1, store=StoreLocation(directory="/d"), started_unix_ns=1, ca_file=ca_file
    )
    (state / local_hub.RECORD_FILE).write_bytes(msgspec.json.encode(record))


class ScriptedHub(hub_pb2_grpc.HubServicer):
    """A real gRPC server that keeps what sidecars say, grants uploads to `store`, and sends what it is told.

    It listens in the state directory `state`.
    """

    def __init__(self, store: HttpStore, state: Path) -> None:
        self.store = store
        self.state_directory = state
        write_state(state)
        self.hellos: list[hub_pb2.Hello] = []
        self.events: list[hub_pb2.CaptureEvent] = []
        self.heartbeats: list[hub_pb2.Heartbeat] = []
        self.heartbeat_interval_ns = 200_000_000
        self.requests: list[hub_pb2.UploadRequest] = []
        self.uploads: dict[tuple[str, str, int], bytes] = {}
        self.tokens: list[str] = []
        self.grants = True  # False: upload requests stay unanswered
        self.verdicts: list[hub_pb2.UploadVerdict] = []  # answered first, before honest ones
        self.protocol_version = 1
        self._outgoing: asyncio.Queue[hub_pb2.HubMessage | None] = asyncio.Queue()
        self._server: grpc.aio.Server | None = None
        self._directory: PrivateDirectory | None = None

    async def start(self) -> None:
        self._outgoing = asyncio.Queue()
        self._server = grpc.aio.server()
        hub_pb2_grpc.add_HubServicer_to_server(self, self._server)
        self._directory = PrivateDirectory(self.state_directory)
        self._server.add_insecure_port(f"unix:{self._directory.place(local_hub.HUB_SOCKET)}")
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
        if self._directory is not None:
            self._directory.close()

    def send(self, **body: Any) -> None:
        self._outgoing.put_nowait(hub_pb2.HubMessage(**body))

    def drop(self) -> None:
        """Ends the stream, as a hub that is going away does."""
        self._outgoing.put_nowait(None)

    def state(self, capture_id: str, rank: int = 0) -> str:
        """The latest state of a rank by events and hellos."""
        events = [e for e in self.events if e.capture_id == capture_id and e.rank == rank]
        return hub_pb2.RankState.Name(events[-1].state) if events else ""

    def last(self, capture_id: str, rank: int = 0) -> hub_pb2.CaptureEvent:
        return [e for e in self.events if e.capture_id == capture_id and e.rank == rank][-1]

    def processes(self) -> list[hub_pb2.Process]:
        latest: list[hub_pb2.Hello | hub_pb2.Heartbeat] = [*self.hellos[-1:], *self.heartbeats[-1:]]
        return list(latest[-1].processes) if latest else []

    async def Connect(self, request_iterator: Any, context: Any) -> AsyncIterator[hub_pb2.HubMessage]:
        metadata = dict(context.invocation_metadata())
        self.tokens.append(str(metadata.get("authorization", "")))
        first = await anext(aiter(request_iterator))
        self.hellos.append(first.hello)
        self.events.extend(first.hello.held)
        yield hub_pb2.HubMessage(
            welcome=hub_pb2.Welcome(
                protocol_version=self.protocol_version, heartbeat_interval_ns=self.heartbeat_interval_ns
            )
        )
        outgoing = self._take_queue()
        listening = asyncio.create_task(self._listen(request_iterator, outgoing))
        try:
            while (message := await outgoing.get()) is not None:
                yield message
        finally:
            listening.cancel()

    def _take_queue(self) -> asyncio.Queue[hub_pb2.HubMessage | None]:
        """A stream's own queue with what nobody was there for. That of a sidecar that died takes nothing of it."""
        waiting, self._outgoing = self._outgoing, asyncio.Queue()
        while not waiting.empty():
            if message := waiting.get_nowait():
                self._outgoing.put_nowait(message)
        return self._outgoing

    async def _listen(self, messages: Any, outgoing: asyncio.Queue[hub_pb2.HubMessage | None]) -> None:
        async for message in messages:
            match message.WhichOneof("body"):
                case "event":
                    self.events.append(message.event)
                case "heartbeat":
                    self.heartbeats.append(message.heartbeat)
                case "upload_request":
                    self.requests.append(message.upload_request)
                    if self.grants:
                        outgoing.put_nowait(hub_pb2.HubMessage(upload_grant=self._grant(message.upload_request)))
                case "upload_done":
                    outgoing.put_nowait(hub_pb2.HubMessage(upload_verdict=self._judge(message.upload_done)))
        outgoing.put_nowait(None)  # a sidecar that has said all waits for this

    def _grant(self, request: hub_pb2.UploadRequest) -> hub_pb2.UploadGrant:
        upload_id = f"{request.capture_id}-{request.rank}-{request.object}-{len(self.requests)}"
        return hub_pb2.UploadGrant(
            capture_id=request.capture_id,
            process_id=request.process_id,
            object=request.object,
            upload_id=upload_id,
            parts=[
                hub_pb2.PartGrant(url=self.store.url(f"{upload_id}-{n}"), headers={"x-checksum": part.sha256.hex()})
                for n, part in enumerate(request.parts)
            ],
            expires_unix_ns=time.time_ns() + 60 * 10**9,
        )

    def _judge(self, completion: hub_pb2.UploadDone) -> hub_pb2.UploadVerdict:
        if self.verdicts:
            verdict = self.verdicts.pop(0)
            verdict.capture_id, verdict.process_id, verdict.object = (
                completion.capture_id,
                completion.process_id,
                completion.object,
            )
            return verdict
        parts = [self.store.parts.get(f"/{completion.upload_id}-{n}") for n in range(len(completion.etags))]
        if any(part is None for part in parts):
            return hub_pb2.UploadVerdict(
                capture_id=completion.capture_id,
                process_id=completion.process_id,
                object=completion.object,
                retry_after_ns=1,
            )
        self.uploads[completion.capture_id, completion.process_id, completion.object] = b"".join(
            part or b"" for part in parts
        )
        return hub_pb2.UploadVerdict(
            capture_id=completion.capture_id, process_id=completion.process_id, object=completion.object, accepted=True
        )

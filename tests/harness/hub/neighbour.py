"""The pods of a tenant who means no harm dial one after the other, and note how long the hub takes to answer each.

    python neighbour.py PORT CA_FILE HUB_NAME DIALS PHASE

PHASE keeps the pods of two runs apart. Prints the seconds of each dial as JSON: from the call to the hub's first word,
over one connection, as a sidecar's that dials again.
"""

import json
import sys
import time
from pathlib import Path

import grpc
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import HubStub

PATIENCE_S = 60


def main(port: str, ca_file: str, name: str, dials: str, phase: str) -> None:
    credentials = grpc.ssl_channel_credentials(Path(ca_file).read_bytes())
    waits = []
    with grpc.secure_channel(
        f"127.0.0.1:{port}", credentials, options=[("grpc.ssl_target_name_override", name)]
    ) as channel:
        grpc.channel_ready_future(channel).result(PATIENCE_S)
        for number in range(int(dials)):
            pod = f"{phase}-{number}"
            identity = pb.Identity(namespace="other", pod_name=pod, pod_uid=f"u-{pod}")
            hello = pb.SidecarMessage(hello=pb.Hello(sidecar_id=pod, identity=identity, protocol_version=1))
            began = time.perf_counter()
            call = HubStub(channel).Connect(
                iter([hello]), metadata=(("authorization", f"Bearer other/{pod}"),), timeout=PATIENCE_S
            )
            for _ in call:
                break
            waits.append(time.perf_counter() - began)
            call.cancel()  # type: ignore[no-untyped-call]
    print(json.dumps(waits))


if __name__ == "__main__":
    main(*sys.argv[1:])

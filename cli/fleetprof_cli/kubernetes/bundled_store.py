"""The chart's bundled store, reached from outside the cluster: `kubectl port-forward`, and the keys of its reader.

The store's Service says which Secret holds the keys of a server that only reads. So nobody handles the keys that write,
and who may read that Secret and forward a port may see reports: Kubernetes' own rights decide.

Guarantees: the forwarding ends with the command; keys stay in this process, and out of what it starts; what is
missing is said with the next step.
"""

import base64
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec
from fleetprof_store.location import StoreLocation

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import ClusterPlace
from fleetprof_cli.kubernetes.port_forward import Kubectl
from fleetprof_cli.messages import Failure
from fleetprof_cli.store_location import open_store

if TYPE_CHECKING:
    from fleetprof_store.base import Store

READER_ANNOTATION: Final = "fleetprof.io/reader-secret"
READER_PORT: Final = 7071
_IN_CLUSTER: Final = re.compile(r"http://(?P<service>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc:\d+")
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@contextmanager
def reach_bundled_store(location: StoreLocation, place: ClusterPlace) -> "Iterator[Store]":
    """The store as it is reached from here, while the block runs. Raises Failure."""
    found = _IN_CLUSTER.fullmatch(location.endpoint or "")
    if found is None:
        raise Failure(
            f"--port-forward: {location.endpoint or 'the store'} is not a Service of the cluster",
            next_step="leave it out; your own S3 credentials are used then",
            code=ExitCode.INVALID,
        )
    kubectl = Kubectl(place, found["namespace"])
    service = kubectl.get("service", found["service"])
    secret = (service["metadata"].get("annotations") or {}).get(READER_ANNOTATION)
    if not secret:
        raise Failure(
            f"--port-forward: the store {found['service']} has no server that only reads",
            next_step="store.bundled.readerSecret of the chart names its keys (docs/gitops.md)",
            code=ExitCode.REFUSED,
        )
    data = kubectl.get("secret", secret).get("data") or {}
    if not set(_KEYS) <= data.keys():
        raise Failure(f"the Secret {secret} does not hold {' and '.join(_KEYS)}", code=ExitCode.REFUSED)
    with kubectl.forward(f"service/{found['service']}", READER_PORT) as port:
        with _with_keys({key: base64.b64decode(data[key]).decode() for key in _KEYS}):
            # boto3 takes the keys as it makes its client; a browser that is started later must not have them.
            store = open_store(msgspec.structs.replace(location, endpoint=f"http://127.0.0.1:{port}"))
        yield store


@contextmanager
def _with_keys(keys: Mapping[str, str]) -> Iterator[None]:
    """As the environment of this process alone has them; a profile or a session of the user does not come between."""
    names = (*keys, "AWS_SESSION_TOKEN", "AWS_PROFILE")
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ.update(keys)
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)

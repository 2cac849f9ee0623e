"""The layout of the object store (docs/architecture.md#the-object-store): the one place that knows the layout.

    v1/<namespace>/<request uid>/request.json
                                 ledger.json
                                 ranks/<rank>/trace.json.gz
                                 ranks/<rank>/samples.json.gz
                                 ranks/<rank>/summary.json.gz
                                 ranks/<rank>/operations.bin
                                 timeline/rank-<rank>.bin
                                 timeline/fleet.bin
                                 slices/<name>.json.gz
                                 report.json
                                 report.html
                                 stacks.json.gz
    v1/<namespace>/workloads/<digest of a target>.json
    v1/<namespace>/telemetry/day.json.gz
    v1/<namespace>/policies/now.json
    v1/<the operator's namespace>/probe/now

Where several clusters share a bucket, each has all this below `clusters/<its name>/`.

Guarantees: keys are made of checked parts only, so no name can climb out of its prefix; readers refuse another
major version by the first segment.
"""

import re
from typing import Final

from fleetprof_api.errors import FleetprofError

MAJOR: Final = "v1"
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


_CLUSTER: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
CLUSTERS: Final = "clusters/"
"""Prefix of what clusters with a name have written."""


class InvalidKeyPart(FleetprofError, ValueError):
    """A namespace, uid or digest that cannot stand in an object key; the message names it and the rule."""


def _checked(part: str, what: str) -> str:
    if not _PART.fullmatch(part) or ".." in part:
        raise InvalidKeyPart(f"{what} {part!r} is not usable in an object key: 1 to 128 of A-Z a-z 0-9 . _ -, no '..'")
    return part


def request_prefix(namespace: str, uid: str) -> str:
    """Prefix of all objects of one request, with its trailing slash. Raises InvalidKeyPart."""
    return f"{MAJOR}/{_checked(namespace, 'namespace')}/{_checked(uid, 'uid')}/"


def request_key(namespace: str, uid: str) -> str:
    """The request as submitted."""
    return request_prefix(namespace, uid) + "request.json"


def ledger_key(namespace: str, uid: str) -> str:
    """`fleetprof_api.ledger.Ledger` as JSON."""
    return request_prefix(namespace, uid) + "ledger.json"


def trace_key(namespace: str, uid: str, rank: int) -> str:
    """One rank's Kineto trace, gzip."""
    return f"{request_prefix(namespace, uid)}ranks/{_rank(rank)}/trace.json.gz"


def samples_key(namespace: str, uid: str, rank: int) -> str:
    """One rank's `fleetprof_api.samples.RankSamples`, gzip."""
    return f"{request_prefix(namespace, uid)}ranks/{_rank(rank)}/samples.json.gz"


def summary_key(namespace: str, uid: str, rank: int) -> str:
    """The report's data of one rank, gzip: made by the analyzer, or beside the trainer where traces stay there."""
    return f"{request_prefix(namespace, uid)}ranks/{_rank(rank)}/summary.json.gz"


def operations_key(namespace: str, uid: str, rank: int) -> str:
    """One rank's communication for the straggler analysis, where it is too long for the summary."""
    return f"{request_prefix(namespace, uid)}ranks/{_rank(rank)}/operations.bin"


def report_key(namespace: str, uid: str) -> str:
    """`fleetprof_api.report.report.Report` as JSON."""
    return request_prefix(namespace, uid) + "report.json"


def report_page_key(namespace: str, uid: str) -> str:
    """The report as one self-contained HTML page."""
    return request_prefix(namespace, uid) + "report.html"


def slice_key(namespace: str, uid: str, name: str) -> str:
    """One slice of the report (`fleetprof_api.slices.table.SLICES`), gzip; written before the report."""
    return f"{request_prefix(namespace, uid)}slices/{_checked(name, 'slice')}.json.gz"


def stacks_key(namespace: str, uid: str) -> str:
    """`fleetprof_api.stalls.JobStacks`, gzip: of a request that asks for stacks, in place of a report."""
    return request_prefix(namespace, uid) + "stacks.json.gz"


def timeline_prefix(namespace: str, uid: str) -> str:
    """Prefix of the files of a capture's timeline (docs/timeline-format.md), with its trailing slash."""
    return request_prefix(namespace, uid) + "timeline/"


def rank_timeline_key(namespace: str, uid: str, rank: int) -> str:
    """One rank's events at every level of detail."""
    return f"{timeline_prefix(namespace, uid)}rank-{_rank(rank)}.bin"


def fleet_timeline_key(namespace: str, uid: str) -> str:
    """The iterations of all ranks, and which ranks have a file; where it is not, there is no timeline."""
    return timeline_prefix(namespace, uid) + "fleet.bin"


def workload_key(namespace: str, digest: str) -> str:
    """The cost of earlier captures of one workload, and their begins; no request has the uid `workloads`."""
    return f"{MAJOR}/{_checked(namespace, 'namespace')}/workloads/{_checked(digest, 'digest')}.json"


def telemetry_day_key(namespace: str) -> str:
    """`fleetprof_api.telemetry.history.NamespaceDay`; no request has the uid `telemetry`."""
    return f"{MAJOR}/{_checked(namespace, 'namespace')}/telemetry/day.json.gz"


def policies_key(namespace: str) -> str:
    """`fleetprof_api.policy.stored.NamespacePolicies`; no request has the uid `policies`."""
    return f"{MAJOR}/{_checked(namespace, 'namespace')}/policies/now.json"


def probe_key(namespace: str) -> str:
    """The object that an operator writes to see whether the store works; no request has the uid `probe`."""
    return f"{MAJOR}/{_checked(namespace, 'namespace')}/probe/now"


def is_cluster_name(text: str) -> bool:
    """Tells whether a cluster may be called so: as a namespace of Kubernetes, without a dot."""
    return _CLUSTER.fullmatch(text) is not None


def cluster_root(cluster: str) -> str:
    """Prefix below which a cluster keeps its `v1/`, with its trailing slash; "" for one without a name.

    Raises InvalidKeyPart.
    """
    if cluster and not is_cluster_name(cluster):
        raise InvalidKeyPart(f"cluster {cluster!r} must be 1 to 63 of a-z 0-9 -, with a letter or digit at both ends")
    return f"{CLUSTERS}{cluster}/" if cluster else ""


def qualify(cluster: str, namespace: str) -> str:
    """A namespace as readers in other clusters call it: no namespace of Kubernetes has a dot."""
    return f"{cluster}.{namespace}" if cluster else namespace


def split_qualified(namespace: str) -> tuple[str, str]:
    """Cluster, "" for the reader's own, and namespace in it."""
    cluster, dot, plain = namespace.partition(".")
    return (cluster, plain) if cluster and dot else ("", namespace)


def split_request_prefix(key: str) -> tuple[str, str, str]:
    """(namespace, uid, rest) of any key. Raises ValueError for another major version or a foreign key."""
    parts = key.split("/", 3)
    if parts[0] != MAJOR:
        raise ValueError(f"{key!r} was written by another major version; this fleetprof reads {MAJOR}/")
    if len(parts) != 4:
        raise ValueError(f"{key!r} is not an object of a request")
    return _checked(parts[1], "namespace"), _checked(parts[2], "uid"), parts[3]


def _rank(rank: int) -> str:
    if rank < 0:
        raise ValueError(f"rank {rank} is negative")
    return str(rank)

"""Requests: the list, and one request with its ledger, a line per rank."""

from typing import Annotated

from msgspec import Meta

from fleetprof_webui.models.fleet import FacetValue
from fleetprof_webui.models.model import Model, UnixNs


class RankCounts(Model):
    """The number of ranks by state."""

    targeted: int
    armed: int
    captured: int
    uploaded: int
    failed: int


class Request(Model):
    """One ProfileRequest in a list."""

    namespace: str
    uid: str
    name: str
    kind: Annotated[str, Meta(description="kind of the target")]
    workload: Annotated[str, Meta(description="name of the target, or its labels")]
    requester: Annotated[str, Meta(description='who asked; "" in local mode')]
    state: Annotated[str, Meta(description="reason of its Succeeded condition; Running while it has none")]
    message: str
    finished: bool
    submitted_unix_ns: UnixNs | None
    completed_unix_ns: UnixNs | None
    ranks: RankCounts
    has_report: bool


class RequestFacets(Model):
    """Values to filter by, the most frequent first, at most 50 each; `cluster` where several share the store."""

    cluster: list[FacetValue]
    namespace: list[FacetValue]
    state: list[FacetValue]


class RequestPage(Model):
    """A page of requests; `next` is the next page's `after`, null on the last."""

    items: list[Request]
    facets: RequestFacets
    total: int
    next: str | None


class ConditionRow(Model):
    """One condition of the request."""

    type: str
    status: str
    reason: str
    message: str
    transition_unix_ns: UnixNs | None


class StageTimes(Model):
    """The times at which ranks first and last reached a stage, ns after the request was submitted; null: none did."""

    stage: Annotated[str, Meta(description="asked, armed, started, written, uploaded, failed, completed")]
    first_ns: int | None
    last_ns: int | None
    ranks: int


class LedgerColumns(Model):
    """The ledger by columns: equal indices are one line. Times are ns after `submitted_unix_ns`, null: not reached."""

    rank: list[int]
    process_id: list[str]
    state: Annotated[list[str], Meta(description="ASKED, ARMED, STARTED, WRITTEN, UPLOADED, FAILED")]
    reason: Annotated[list[str], Meta(description='why a rank failed (docs/reasons.md); ""')]
    message: list[str]
    node_name: list[str]
    pod_name: list[str]
    asked_ns: list[int | None]
    armed_ns: list[int | None]
    started_ns: list[int | None]
    written_ns: list[int | None]
    uploaded_ns: list[int | None]
    failed_ns: list[int | None]
    trace_bytes: list[int]
    compressed_bytes: list[int]


class CanaryState(Model):
    """The one rank that recorded an iteration before the others were asked."""

    verdict: str
    message: str
    rank: int | None


class RequestDetail(Model):
    """One request with its ledger, stages and next step."""

    request: Request
    version: Annotated[str, Meta(description="of the ledger: the id of its event in the stream")]
    yaml: Annotated[str, Meta(description='the request as YAML; "" where the store has none')]
    command: Annotated[str, Meta(description='what asks for the same with kubectl; ""')]
    next_step: str
    conditions: list[ConditionRow]
    stages: list[StageTimes]
    canary: CanaryState | None
    ledger: LedgerColumns
    asks_for_stacks: Annotated[bool, Meta(description="it reads stacks, and records nothing")]
    may_cancel: Annotated[bool, Meta(description="this service takes a cancel of it by this person")]


class LedgerChange(Model):
    """An event of the stream: lines that changed. `lines` are their indices; beyond the end they are new."""

    request: Request
    version: str
    conditions: list[ConditionRow]
    stages: list[StageTimes]
    lines: list[int]
    ledger: Annotated[LedgerColumns, Meta(description="the changed lines, in the order of `lines`")]


class NewCapture(Model):
    """A body that asks for a capture: a ProfileRequest as YAML (or JSON)."""

    yaml: Annotated[str, Meta(max_length=65_536)]
    namespace: Annotated[str, Meta(max_length=63, description='"" for that of the document')] = ""


class CaptureCheck(Model):
    """A request that could be asked for; nothing was made."""

    namespace: Annotated[str, Meta(description='where it would be made; "" where nothing says so')]
    checked_by: Annotated[
        str, Meta(description="API server: by its dry run, as the person; this service: by the request's fields alone")
    ]
    message: str


class CaptureAnswer(Model):
    """A capture that was asked for or cancelled."""

    namespace: str
    uid: str
    state: str
    message: str

"""The losses of jobs: what their GPUs would have done in the last day without what the last report found."""

from typing import Annotated, Literal

from msgspec import Meta

from fleetprof_webui.models.model import Model


class LossRow(Model):
    """A job that was captured, or told anything in the last day. A figure is null where a factor is not known."""

    namespace: str
    kind: str
    name: str
    labels: Annotated[list[str], Meta(description="key=value of its pods, as its last capture found them; at most 16")]
    report: Annotated[str | None, Meta(description="uid of its last report; null: it has none")]
    gpus: Annotated[int | None, Meta(description="ranks with a GPU in that report")]
    hours: Annotated[float | None, Meta(description="of the last day in which it told its pace; null: it told nothing")]
    gpu_hours: Annotated[float | None, Meta(description="gpus × hours")]
    finding: Annotated[str, Meta(description='kind of the first finding of the last report; ""')]
    gain_permille: Annotated[int | None, Meta(description="of the iteration, if that finding is mended")]
    lost_gpu_hours: Annotated[float | None, Meta(description="potential saving × gpus × hours")]
    lost_kwh: Annotated[
        float | None, Meta(description="lost_gpu_hours × mean power of its GPUs now, else in the report")
    ]


class LossPage(Model):
    """Jobs by what they lost, the most first; those of which that is not known come last; at most 1,000."""

    items: list[LossRow]
    total: Annotated[int, Meta(description="jobs")]
    label_keys: Annotated[list[str], Meta(description="keys of labels of any of them, to group by")]
    window: Annotated[Literal["last_day"], Meta(description="the time that hours are of")] = "last_day"

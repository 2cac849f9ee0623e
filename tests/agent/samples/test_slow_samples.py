"""Samples of the device outside captures: how often they are taken, and what is said."""

from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_agent.samples import slow_samples
from fleetprof_agent.samples.slow_samples import SlowSamples

S = 1_000_000_000


@pytest.mark.parametrize(
    ("cost_ns", "sampled_at"),
    [(100_000, [5, 10, 15, 20]), (2_500_000, [5, 15]), (10_000_000, [5])],
    ids=["quick driver", "2.5 ms: every 10 s", "10 ms: every 40 s"],
)
def test_a_slow_driver_is_asked_less_often(cost_ns: int, sampled_at: "list[int]", monkeypatch: Any) -> None:
    sent: list[tuple[str, dict[str, int]]] = []
    clock = [0]

    def sample_health() -> "dict[str, int]":
        clock[0] += cost_ns
        return {"power_milliwatts": 7}

    monkeypatch.setattr(slow_samples, "time", SimpleNamespace(perf_counter_ns=lambda: clock[0]))
    channel: Any = SimpleNamespace(send=lambda kind, **fields: sent.append((kind, fields)))
    samples = SlowSamples(channel, SimpleNamespace(sample_health=sample_health), now=0)  # type: ignore[arg-type]
    for tenth in range(1, 230):
        samples.send_due(tenth * S // 10, step=tenth)
    assert sent == [("telemetry", {"at_unix_ns": at * S, "step": 10 * at, "power_milliwatts": 7}) for at in sampled_at]

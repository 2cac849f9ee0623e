"""The host's figures, read from /proc and /sys."""

from pathlib import Path

import pytest
from fleetprof_sidecar.samples.host import HostHistory, HostSource


@pytest.fixture
def fake_host(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "stat").write_text("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2\n")
    (tmp_path / "meminfo").write_text("MemTotal:  10 kB\nMemFree: 1 kB\nMemAvailable:  4 kB\n")
    interfaces = [("lo", 99, 99), ("eth0", 5, 6), ("eth1", 1, 2)]
    rows = [f"  {name}: {received} 0 0 0 0 0 0 0 {sent} 0" for name, received, sent in interfaces]
    (tmp_path / "net/dev").write_text("\n".join(["Inter-|   Receive", " face |bytes", *rows]))
    port = tmp_path / "class/infiniband/mlx5_0/ports/1/counters"
    port.mkdir(parents=True)
    (port / "port_rcv_data").write_text("10\n")
    (port / "port_xmit_data").write_text("20\n")
    return tmp_path


def test_the_host_is_read_from_proc_and_sys(fake_host: Path) -> None:
    source = HostSource(fake_host, fake_host)
    first = source.read(1)
    (fake_host / "stat").write_text("cpu  150 0 100 750 100 0 0 0 0 0\n")
    second = source.read(2)
    assert (first.cpu_busy_permille, second.cpu_busy_permille) == (None, 500)
    assert (second.memory_available_bytes, second.memory_total_bytes) == (4096, 10240)
    assert (second.network_received_bytes, second.network_sent_bytes) == (6, 8)
    assert (second.infiniband_received_bytes, second.infiniband_sent_bytes) == (40, 80)
    history = HostHistory()
    history.add(first)
    history.add(second)
    assert history.columns(2, 9).cpu_busy_permille == [500]


def test_a_host_that_cannot_be_read_gives_nothing(tmp_path: Path) -> None:
    reading = HostSource(tmp_path, tmp_path).read(5)
    values = {getattr(reading, name) for name in reading.__slots__ if name != "at_unix_ns"}
    assert values == {None}
    (tmp_path / "stat").write_text("cpu  x\n")
    (tmp_path / "meminfo").write_text("MemTotal:\n")
    assert HostSource(tmp_path, tmp_path).read(5).cpu_busy_permille is None


def test_this_machine_can_be_read() -> None:
    reading = HostSource().read(1)
    assert reading.memory_total_bytes
    assert reading.network_received_bytes is not None

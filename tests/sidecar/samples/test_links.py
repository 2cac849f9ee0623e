"""Network, InfiniBand and pressure as the kernel's files say them, and files that say nothing."""

from pathlib import Path

import pytest
from fleetprof_sidecar.samples.links import NetworkLink, read_infiniband, read_network
from fleetprof_sidecar.samples.pressure import read_pressure

NET_DEV = """Inter-|   Receive                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets
    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0
  eth0: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
  veth1: 7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0
"""


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_links_with_their_speeds(tmp_path: Path) -> None:
    write(tmp_path / "proc/net", dev=NET_DEV)
    write(tmp_path / "sys/class/net", eth0__speed="25000\n", veth1__speed="-1\n")
    assert read_network(tmp_path / "proc", tmp_path / "sys") == {
        "eth0": NetworkLink(100, 200, 3_125_000_000),
        "veth1": NetworkLink(7, 8, 0),
    }
    assert read_network(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("rate", "bytes_per_s"),
    [("400 Gb/sec (4X NDR)\n", 50_000_000_000), ("2.5 Gb/sec (1X SDR)\n", 312_500_000), ("odd", 0)],
)
def test_infiniband_ports(rate: str, bytes_per_s: int, tmp_path: Path) -> None:
    port = {"rate": rate, "counters__port_rcv_data": "10\n", "counters__port_xmit_data": "20\n"}
    write(tmp_path / "class/infiniband/mlx5_0/ports/1", **port)
    assert read_infiniband(tmp_path) == {"mlx5_0/1": NetworkLink(40, 80, bytes_per_s)}
    assert read_infiniband(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("text", "permille"),
    [
        ("some avg10=12.34 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00\n", 123),
        ("some avg10=100.00 ", 1000),
        ("", None),
    ],
)
def test_pressure(text: str, permille: int | None, tmp_path: Path) -> None:
    write(tmp_path / "pressure", io=text)
    assert read_pressure(tmp_path, "io") == permille
    assert read_pressure(tmp_path, "cpu") is None

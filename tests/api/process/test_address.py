"""HOST:PORT, and what is this machine alone."""

import pytest
from fleetprof_api.process.address import HostPort, is_loopback, parse_host_port


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", HostPort("127.0.0.1", 0)),
        ("[::1]:80", HostPort("::1", 80)),
        ("host.example:80", HostPort("host.example", 80)),
    ],
)
def test_an_address_is_host_and_port(text: str, address: HostPort) -> None:
    assert parse_host_port(text) == address
    assert address.text() == text


@pytest.mark.parametrize("text", ["", "80", ":80", "[]:80", "host:", "host:x", "host:-1", "host:²", "host:70000"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be HOST:PORT with a port from 0 to 65535"):
        parse_host_port(text)


def test_a_port_to_connect_to_is_not_0() -> None:
    with pytest.raises(ValueError, match="with a port from 1 to 65535"):
        parse_host_port("host:0", least_port=1)


@pytest.mark.parametrize(
    ("target", "loopback"),
    [
        ("localhost:80", True),
        ("127.0.0.1:80", True),
        ("127.3.2.1:0", True),
        ("[::1]:80", True),
        ("unix:/run/hub", True),
        ("0.0.0.0:80", False),
        ("[::]:80", False),
        ("10.0.0.1:80", False),
        ("localhost.example:80", False),
        ("127.0.0.1.example:80", False),
        ("unix:relative", False),
        ("", False),
    ],
)
def test_what_is_this_machine_alone(target: str, loopback: bool) -> None:
    assert is_loopback(target) is loopback

"""Settings come from flags and the environment; a wrong one is named."""

from pathlib import Path

import pytest
from fleetprof_sidecar.hub.address import HubAddress, LocalHub
from fleetprof_sidecar.settings import read_settings

NEEDED = ["--directory", "/run/fp", "--spool", "/spool", "--hub", "127.0.0.1:9", "--token-file", "/t"]


def test_settings_come_from_flags_and_environment_and_the_flag_wins() -> None:
    environment = {
        "FLEETPROF_SPOOL": "/from-env",
        "FLEETPROF_NAMESPACE": "env",
        "FLEETPROF_WORKLOAD": "batch/v1/Job/llama",
        "FLEETPROF_LABEL": "a=1,b=2",
    }
    settings = read_settings([*NEEDED, "--namespace", "flag"], environment)
    assert (settings.namespace, settings.spool) == ("flag", Path("/spool"))
    assert settings.workload is not None
    assert (settings.workload.api_version, settings.workload.kind, settings.workload.name) == (
        "batch/v1",
        "Job",
        "llama",
    )
    assert settings.labels == {"a": "1", "b": "2"}
    assert settings.hub == HubAddress(target="127.0.0.1:9", token_file=Path("/t"))
    assert read_settings([*NEEDED[:4], "--state", "/state"], {}).hub == LocalHub(Path("/state"))
    pairs = zip(NEEDED[::2], NEEDED[1::2], strict=True)
    flagless = read_settings([], {f"FLEETPROF_{k[2:].upper().replace('-', '_')}": v for k, v in pairs})
    assert flagless.directory == Path("/run/fp")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--directory"),
        ([*NEEDED, "--hub", "nowhere"], "HOST:PORT"),
        ([*NEEDED, "--hub", "h:99999"], "HOST:PORT"),
        (NEEDED[:4], "--hub and --token-file are needed, or --state alone"),
        (NEEDED[:6], "--hub and --token-file are needed, or --state alone"),
        ([*NEEDED, "--state", "/state"], "exclude each other"),
        ([*NEEDED, "--workload", "llama"], "APIVERSION/KIND/NAME"),
        ([*NEEDED, "--label", "x"], "KEY=VALUE"),
        ([*NEEDED, "--storage-limit-bytes", "-1"], "--storage-limit-bytes: must be 0 or more"),
        ([*NEEDED, "--grace-seconds", "-1"], "from 0 to 3600"),
        ([*NEEDED, "--dcgm-url", "10.0.0.7:9400"], "must be http:// or https://"),
    ],
)
def test_wrong_settings_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings(arguments, {})
    assert ended.value.code == 2
    assert message in capsys.readouterr().err

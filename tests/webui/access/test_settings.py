"""`fleetprof-webui` is told how people are known, or it does not start."""

import pytest
from fleetprof_webui.cluster.settings import read_settings

BASE = {
    "FLEETPROF_STORE": "s3://bucket/prefix",
    "FLEETPROF_CATALOG": "postgresql://webui@db/fleetprof",
    "FLEETPROF_PUBLIC_URL": "https://Fleetprof.example.com/",
}
OIDC = {"FLEETPROF_OIDC_ISSUER_URL": "https://id.example.com", "FLEETPROF_OIDC_CLIENT_ID": "webui"}


def test_settings_come_from_the_environment() -> None:
    settings = read_settings([], BASE | OIDC)
    assert settings.public_url == "https://fleetprof.example.com"
    assert settings.writes == "none"
    assert settings.provider is not None
    assert settings.provider.scopes == ("openid", "email", "groups")


@pytest.mark.attack
def test_it_is_never_open_to_everybody(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings([], BASE)
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert "--oidc-issuer-url" in message
    assert "--proxy-jwks-url" in message


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--public-url=http://fleetprof.example.com", "https://"),
        ("--public-url=https://example.com/fleetprof", "a host alone"),
        ("--oidc-issuer-url=http://id.example.com", "https://"),
        ("--oidc-client-id=", "--oidc-client-id"),
        ("--proxy-jwt-header=X-User", "without proof"),
        ("--writes=service-account", "--writes"),
        ("--oidc-client-secret-file=/nowhere/secret", "cannot be read"),
    ],
)
def test_a_wrong_setting_is_named(flag: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings([flag], BASE | OIDC)
    assert ended.value.code == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert "secret@" not in stderr
    assert "=secret" not in stderr


@pytest.mark.parametrize(
    ("store", "downloads", "signs"),
    [
        ("s3://bucket/prefix?region=eu-central-1", "auto", True),
        ("s3://bucket/prefix?endpoint=http://minio.storage:9000", "auto", False),
        ("s3://bucket/prefix?endpoint=https://s3.example.com", "signed", True),
        ("s3://bucket/prefix", "service", False),
        ("/var/lib/captures", "auto", False),
    ],
)
def test_traces_come_from_the_store_where_browsers_reach_it(store: str, downloads: str, signs: bool) -> None:
    environment = {"FLEETPROF_STORE": store, "FLEETPROF_TRACE_DOWNLOADS": downloads}
    assert read_settings([], BASE | OIDC | environment).signs_traces is signs

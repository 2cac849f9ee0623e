"""The webhook's environment, as the chart writes it, and what is wrong with others."""

import json

import pytest
from fleetprof_operator.injection.webhook_settings import read_settings

GOOD = {
    "FLEETPROF_TLS_DIRECTORY": "/etc/fleetprof/tls",
    "FLEETPROF_HUB_CA_FILE": "/etc/fleetprof/hub/ca.crt",
    "FLEETPROF_HUB": "my-fleetprof-hub.tools.svc:8443",
    "FLEETPROF_SIDECAR_IMAGE": "ghcr.io/fleetprof/sidecar:0.1.0",
    "MY_FLEETPROF_HUB_SERVICE_HOST": "10.0.0.9",
}


def test_the_environment_of_the_chart() -> None:
    resources = {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"cpu": 1, "memory": "256Mi"}}
    settings = read_settings([], {**GOOD, "FLEETPROF_SIDECAR_RESOURCES": json.dumps(resources)})
    sidecar = settings.sidecar
    assert (sidecar.store_host, sidecar.store_ip) == ("", "")
    assert (sidecar.hub, sidecar.hub_ip) == ("my-fleetprof-hub.tools.svc:8443", "10.0.0.9")
    assert sidecar.resources.limits == {"cpu": "1", "memory": "256Mi"}
    assert sidecar.resources.guaranteed == {"cpu": "200m", "memory": "256Mi"}
    assert sidecar.run_as_user == 65532
    assert read_settings([], {**GOOD, "FLEETPROF_SIDECAR_USER": ""}).sidecar.run_as_user is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"FLEETPROF_HUB": ""}, "required: --hub"),
        ({"FLEETPROF_HUB": "hub"}, "hub: 'hub' must be HOST:PORT"),
        ({"FLEETPROF_HUB": "hub:99999"}, "must be HOST:PORT"),
        ({"FLEETPROF_TLS_DIRECTORY": ""}, "required: --tls-directory"),
        ({"FLEETPROF_HUB_CA_FILE": ""}, "required: --hub-ca-file"),
        ({"FLEETPROF_SIDECAR_IMAGE": "a b"}, "image"),
        ({"FLEETPROF_SIDECAR_PULL_POLICY": "Sometimes"}, "image_pull_policy"),
        ({"FLEETPROF_SIDECAR_PULL_POLICY": "Always", "FLEETPROF_REQUIRE_IMAGE": "true"}, "--require-image"),
        ({"FLEETPROF_SIDECAR_USER": "0"}, "run_as_user"),
        ({"FLEETPROF_SIDECAR_USER": "me"}, "--sidecar-user: 'me' is not a uid"),
        ({"FLEETPROF_LISTEN": "http=x:y"}, "--listen: 'x:y' must be HOST:PORT"),
        ({"FLEETPROF_LOG_LEVEL": "loud"}, "--log-level: invalid choice: 'loud'"),
        ({"FLEETPROF_SIDECAR_RESOURCES": "{"}, "--sidecar-resources: "),
        ({"FLEETPROF_SIDECAR_RESOURCES": '{"limit": {}}'}, "--sidecar-resources: "),
        ({"FLEETPROF_SIDECAR_RESOURCES": '{"limits": {"cpu": "much"}}'}, "limits.cpu: 'much' is not a quantity"),
        ({"FLEETPROF_SIDECAR_RESOURCES": '{"limits": {"memory": "1Mi"}}'}, "limits"),
        ({"FLEETPROF_SIDECAR_RESOURCES": '{"requests": {"cpu": "8"}}'}, "requests.cpu: is more than limits.cpu"),
        ({"FLEETPROF_SIDECAR_RESOURCES": '{"requests": {"cpu": "0"}}'}, "must be more than 0"),
        ({"FLEETPROF_SIDECAR_RESOURCES": '{"requests": {"gpu": "1"}}'}, "must have cpu and memory and nothing else"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings([], {**GOOD, **changes})
    assert ended.value.code == 2
    assert message in capsys.readouterr().err

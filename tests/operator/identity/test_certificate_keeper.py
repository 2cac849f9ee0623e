"""The Secret is filled once, whoever writes at the same time, and the API server is told whom to trust."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_operator.identity.certificate_keeper import CertificateKeeper
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from harness.kubernetes.scripted_cluster import ScriptedCluster

SECRET = "/api/v1/namespaces/fleetprof-system/secrets/fleetprof-tls"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fleetprof"


class World:
    """One cluster and any number of keepers over it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, tzinfo=UTC)
        service = {"name": "w", "namespace": "fleetprof-system"}
        hooks = [
            {"name": "a", "clientConfig": {"service": service}},
            {"name": "b", "clientConfig": {"service": service}},
        ]
        self.cluster = ScriptedCluster(
            {
                SECRET: {"metadata": {"name": "fleetprof-tls", "resourceVersion": "1"}, "type": "Opaque"},
                WEBHOOKS: {"metadata": {"name": "fleetprof", "resourceVersion": "1"}, "webhooks": hooks},
            }
        )

    def keeper(self, webhook: str = "fleetprof") -> CertificateKeeper:
        return CertificateKeeper(
            self.cluster,
            namespace="fleetprof-system",
            secret="fleetprof-tls",
            names=["hub"],
            webhook_configuration=webhook,
            now=lambda: self.now,
        )

    def data(self) -> dict[str, bytes]:
        return {key: base64.b64decode(value) for key, value in self.cluster.objects[SECRET].get("data", {}).items()}

    def bundles(self) -> list[Any]:
        return [hook["clientConfig"].get("caBundle") for hook in self.cluster.objects[WEBHOOKS]["webhooks"]]


@pytest.fixture
def world() -> World:
    return World()


async def test_an_empty_secret_is_filled_and_every_webhook_trusts_it(world: World) -> None:
    keeper = world.keeper()
    await keeper.ensure()
    assert set(world.data()) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert keeper.current().certificate_chain == world.data()["tls.crt"]
    assert keeper.current().private_key == world.data()["tls.key"]
    assert [base64.b64decode(bundle) for bundle in world.bundles()] == [world.data()["ca.crt"]] * 2
    assert all(hook["clientConfig"]["service"] for hook in world.cluster.objects[WEBHOOKS]["webhooks"])


async def test_what_is_good_is_not_written_again(world: World) -> None:
    await world.keeper().ensure()
    world.cluster.calls.clear()
    await world.keeper().ensure()
    assert world.cluster.calls == [f"GET {SECRET}", f"GET {WEBHOOKS}"]


async def test_a_keeper_that_was_slower_takes_what_the_other_wrote(world: World) -> None:
    other = world.keeper()

    async def write_between() -> None:
        await other.ensure()

    raced = False
    merge = world.cluster.merge

    async def merge_after_the_other(path: str, body: dict[str, Any]) -> dict[str, Any]:
        nonlocal raced
        if not raced:
            raced = True
            await write_between()
        return await merge(path, body)

    world.cluster.merge = merge_after_the_other  # type: ignore[method-assign]
    slower = world.keeper()
    await slower.ensure()
    assert slower.current() == other.current()


async def test_a_renewal_changes_the_pair_and_not_the_trust(world: World) -> None:
    keeper = world.keeper()
    await keeper.ensure()
    before, bundles = keeper.current(), world.bundles()
    world.now += timedelta(days=70)
    await keeper.ensure()
    assert keeper.current() != before
    assert world.bundles() == bundles


async def test_a_bundle_that_an_upgrade_took_away_comes_back(world: World) -> None:
    await world.keeper().ensure()
    for hook in world.cluster.objects[WEBHOOKS]["webhooks"]:
        hook["clientConfig"].pop("caBundle", None)
    await world.keeper().ensure()
    assert all(world.bundles())


async def test_what_was_trusted_before_an_upgrade_is_trusted_for_an_hour_more(world: World) -> None:
    before = renew_certificates(Certificates(), ["old"], world.now).ca_crt
    for hook in world.cluster.objects[WEBHOOKS]["webhooks"]:
        hook["clientConfig"]["caBundle"] = base64.b64encode(before).decode()
    keeper = world.keeper()
    await keeper.ensure()
    own = world.data()["ca.crt"]
    assert {base64.b64decode(bundle) for bundle in world.bundles()} == {own + before}
    world.now += timedelta(minutes=59)
    await keeper.ensure()
    assert {base64.b64decode(bundle) for bundle in world.bundles()} == {own + before}
    world.now += timedelta(minutes=1)
    await keeper.ensure()
    assert {base64.b64decode(bundle) for bundle in world.bundles()} == {own}


async def test_an_upgrade_from_one_certificate_for_both_keeps_the_hub_s_authority(world: World) -> None:
    both = renew_certificates(Certificates(), ["hub", "webhook"], world.now)
    fields = {"ca.crt": both.ca_crt, "ca.key": both.ca_key, "tls.crt": both.tls_crt, "tls.key": both.tls_key}
    world.cluster.objects[SECRET]["data"] = {key: base64.b64encode(value).decode() for key, value in fields.items()}
    keeper = world.keeper(webhook="")
    await keeper.ensure()
    assert world.data()["ca.crt"] == both.ca_crt  # pods that run trust it
    leaf = x509.load_pem_x509_certificate(keeper.current().certificate_chain)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["hub"]


async def test_a_bundle_that_is_none_is_replaced(world: World) -> None:
    for hook, text in zip(world.cluster.objects[WEBHOOKS]["webhooks"], ("!", "bm9uc2Vuc2U="), strict=True):
        hook["clientConfig"]["caBundle"] = text
    keeper = world.keeper()
    await keeper.ensure()
    assert {base64.b64decode(bundle) for bundle in world.bundles()} == {world.data()["ca.crt"]}
    assert keeper.trouble == ""


async def test_without_a_webhook_nobody_asks_for_its_configuration(world: World) -> None:
    await world.keeper(webhook="").ensure()
    assert not any(WEBHOOKS in call for call in world.cluster.calls)


async def test_a_refusal_is_the_callers_to_hear_and_the_pair_stays(world: World) -> None:
    keeper = world.keeper()
    await keeper.ensure()
    before = keeper.current()
    world.cluster.is_away = True
    with pytest.raises(ApiUnreachable):
        await keeper.ensure()
    assert keeper.current() == before
    world.cluster.is_away = False
    del world.cluster.objects[SECRET]
    with pytest.raises(ApiRefused, match="not found"):
        await keeper.ensure()


async def test_somebody_who_always_writes_first_is_given_up_on(world: World) -> None:
    def bump() -> None:
        metadata = world.cluster.objects[SECRET]["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    world.cluster.before_write = bump
    with pytest.raises(ApiUnreachable, match="changed by somebody else"):
        await world.keeper().ensure()


def test_there_is_no_pair_before_the_first_look(world: World) -> None:
    with pytest.raises(RuntimeError, match="no certificate yet"):
        world.keeper().current()

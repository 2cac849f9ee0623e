"""Certificates that are due: a table of what is found, and what comes of it."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from fleetprof_operator.identity.certificates import Certificates, renew_certificates
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAMES = ["fleetprof-hub.fleetprof-system.svc", "fleetprof-webhook.fleetprof-system.svc"]
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def good() -> Certificates:
    return renew_certificates(Certificates(), NAMES, NOW)


def leaf(certificates: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificates.tls_crt)


def authorities(certificates: Certificates) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(certificates.ca_crt)


def test_the_first_pair_is_good_for_the_names_and_signed_by_the_authority(good: Certificates) -> None:
    certificate = leaf(good)
    certificate.verify_directly_issued_by(authorities(good)[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == NAMES
    assert certificate.not_valid_after_utc == NOW + 90 * DAY
    assert authorities(good)[0].not_valid_after_utc == NOW + 3650 * DAY
    key = serialization.load_pem_private_key(good.tls_key, None)
    assert key.public_key() == certificate.public_key()


@pytest.mark.parametrize("days", [0, 30, 59])
def test_what_is_good_stays_byte_for_byte(good: Certificates, days: int) -> None:
    assert renew_certificates(good, NAMES, NOW + days * DAY) is good


@pytest.mark.parametrize("days", [61, 89, 91, 2000])
def test_a_certificate_is_renewed_at_two_thirds_and_the_authority_stays(good: Certificates, days: int) -> None:
    renewed = renew_certificates(good, NAMES, NOW + days * DAY)
    assert (renewed.ca_crt, renewed.ca_key) == (good.ca_crt, good.ca_key)
    assert leaf(renewed).serial_number != leaf(good).serial_number
    assert leaf(renewed).not_valid_after_utc == NOW + (days + 90) * DAY


@pytest.mark.parametrize(
    "broken",
    [
        {"tls_crt": b""},
        {"tls_key": b""},
        {"tls_crt": b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"},
        {"tls_key": b"nonsense"},
    ],
)
def test_a_broken_pair_is_made_anew_under_the_same_authority(good: Certificates, broken: dict[str, bytes]) -> None:
    fields = {name: getattr(good, name) for name in ("ca_crt", "ca_key", "tls_crt", "tls_key")}
    renewed = renew_certificates(Certificates(**{**fields, **broken}), NAMES, NOW)
    assert renewed.ca_crt == good.ca_crt
    leaf(renewed).verify_directly_issued_by(authorities(good)[0])


def test_a_pair_of_another_authority_is_replaced(good: Certificates) -> None:
    other = renew_certificates(Certificates(), NAMES, NOW)
    mixed = Certificates(good.ca_crt, good.ca_key, other.tls_crt, other.tls_key)
    leaf(renew_certificates(mixed, NAMES, NOW)).verify_directly_issued_by(authorities(good)[0])


def test_other_names_need_another_certificate(good: Certificates) -> None:
    renewed = renew_certificates(good, [*NAMES, "more.example"], NOW)
    assert renewed.tls_crt != good.tls_crt
    assert renewed.ca_crt == good.ca_crt


def test_a_new_authority_stands_beside_the_old_one_while_that_is_valid(good: Certificates) -> None:
    """Pods that were injected with the bundle meanwhile trust either."""
    renewed = renew_certificates(good, NAMES, NOW + 2500 * DAY)
    new, old = authorities(renewed)
    assert old == authorities(good)[0]
    leaf(renewed).verify_directly_issued_by(new)
    assert len(authorities(renew_certificates(renewed, NAMES, NOW + 5200 * DAY))) == 2


@pytest.mark.parametrize("found", [Certificates(ca_key=b"x"), Certificates(ca_crt=b"x", ca_key=b"y")])
def test_an_authority_that_cannot_be_read_is_made_anew(found: Certificates) -> None:
    renewed = renew_certificates(found, NAMES, NOW)
    leaf(renewed).verify_directly_issued_by(authorities(renewed)[0])


@given(st.builds(Certificates, *[st.binary(max_size=40)] * 4))
def test_nothing_that_is_found_is_an_error_and_what_comes_of_it_is_good(found: Certificates) -> None:
    renewed = renew_certificates(found, NAMES, NOW)
    assert renew_certificates(renewed, NAMES, NOW) is renewed

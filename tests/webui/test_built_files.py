"""Built files: in the smallest form that the browser takes, and not again to whoever has it."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Site

PLAIN = b"console.log(1);" * 100
BR = b"as the build wrote it"
GZ = gzip.compress(PLAIN)


@pytest.fixture
def site(make_site: Callable[..., Site], tmp_path: Path) -> Site:
    """A service whose build has two files: one compressed in both ways, one not at all."""
    folder = tmp_path / "built"
    (folder / "assets").mkdir(parents=True)
    for name, data in (("app.js", PLAIN), ("app.js.br", BR), ("app.js.gz", GZ), ("picture.png", b"png")):
        (folder / "assets" / name).write_bytes(data)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "index.html.gz").write_bytes(gzip.compress(b"<!doctype html>"))
    return make_site(static=folder)


@pytest.mark.parametrize(
    ("accepted", "encoding", "size"),
    [
        ("gzip, deflate, br, zstd", "br", len(BR)),
        ("gzip;q=1.0, br;q=0", "gzip", len(GZ)),
        ("GZIP", "gzip", len(GZ)),
        ("br; q=0.000, gzip; q=0", None, len(PLAIN)),
        ("identity", None, len(PLAIN)),
        ("", None, len(PLAIN)),
    ],
)
def test_a_file_comes_in_the_smallest_form_that_is_taken(
    site: Site, accepted: str, encoding: str | None, size: int
) -> None:
    answered = site.client.head("/assets/app.js", headers={"Accept-Encoding": accepted})
    assert answered.headers.get("content-encoding") == encoding
    assert int(answered.headers["content-length"]) == size
    assert answered.headers["content-type"].startswith("text/javascript")
    assert answered.headers["vary"] == "Accept-Encoding"


def test_the_page_comes_compressed_and_is_read_as_it_was(site: Site) -> None:
    page = site.client.get("/fleet", headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    assert (page.headers["content-encoding"], page.text) == ("gzip", "<!doctype html>")
    assert page.headers["vary"] == "Accept, Accept-Encoding"


def test_a_person_at_an_unknown_address_sees_the_page_and_a_program_json(site: Site) -> None:
    person = site.client.get("/flet", headers={"Accept": "text/html,*/*"})
    assert (person.status_code, person.text) == (404, "<!doctype html>")
    program = site.client.get("/flet", headers={"Accept": "*/*"})
    assert (program.status_code, program.headers["content-type"]) == (404, "application/problem+json")


def test_each_form_has_a_tag_of_its_own_and_is_not_sent_twice(site: Site) -> None:
    tags = {}
    for accepted in ("br", "gzip", "identity"):
        first = site.client.head("/assets/app.js", headers={"Accept-Encoding": accepted})
        tags[accepted] = first.headers["etag"]
        headers = {"Accept-Encoding": accepted, "If-None-Match": f'"other", W/{tags[accepted]}'}
        again = site.client.get("/assets/app.js", headers=headers)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["vary"] == "Accept-Encoding"
    assert len(set(tags.values())) == 3
    other = site.client.get("/assets/app.js", headers={"Accept-Encoding": "identity", "If-None-Match": tags["gzip"]})
    assert (other.status_code, other.content) == (200, PLAIN)


def test_what_the_build_did_not_compress_comes_as_it_is(site: Site) -> None:
    answered = site.client.get("/assets/picture.png", headers={"Accept-Encoding": "br"})
    assert "content-encoding" not in answered.headers
    assert answered.headers["content-type"] == "image/png"

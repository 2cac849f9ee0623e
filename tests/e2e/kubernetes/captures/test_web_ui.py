"""The web UI of an installation, by kubectl port-forward and a real provider: who sees a capture, and who does not."""

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fleetprof_api.ledger import RankState
from harness.browser import run_chromium
from playwright.sync_api import Browser, Page
from scene.api import Api
from scene.installation import ADDRESS, NAMESPACE, Installation
from scene.people import HOST, ISSUER, PORT, People
from scene.request import JobRequest
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

FETCH = """async address => {
    const answer = await fetch(address, {headers: {Accept: 'application/json'}});
    return [answer.status, await answer.json()];
}"""
PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def browser(api: Api, people: People, installation: Installation) -> Iterator[Browser]:
    """A browser to which two port-forwards are the web UI's and the provider's own addresses."""
    people.remove()
    people.start()
    with ExitStack() as opened:
        pages = _forwarded(opened, api.forward(NAMESPACE, "service/fleetprof-webui", 8770))
        provider = _forwarded(opened, people.forward())
        rules = f"MAP localhost:8770 127.0.0.1:{pages}, MAP {HOST}:{PORT} 127.0.0.1:{provider}"
        yield opened.enter_context(run_chromium(f"--host-resolver-rules={rules}"))


def _forwarded(opened: ExitStack, forward: "subprocess.Popen[str]") -> int:
    opened.callback(forward.wait, 10)
    opened.callback(forward.terminate)
    assert forward.stdout is not None
    opened.enter_context(forward.stdout)
    line = forward.stdout.readline()
    found = re.search(r"127\.0\.0\.1:(\d+)", line)
    assert found, line
    return int(found[1])


def sign_in(browser: Browser, person: str, then: str) -> Page:
    """A person opens an address, is not known yet, signs in at the provider, and comes back to that address."""
    page = browser.new_context(ignore_https_errors=True, viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{ISSUER}/person?name={person}")
    page.goto(then)
    page.get_by_role("link", name="Sign in").first.click()
    page.wait_for_url(then)
    return page


def fetch(page: Page, address: str) -> tuple[int, Any]:
    """Status and JSON of an address, asked for by the browser: only that knows the way."""
    status, document = page.evaluate(FETCH, address)
    return status, document


def test_who_may_read_sees_a_capture_as_it_goes_and_its_report_after_it_and_nobody_else_does(
    api: Api, team: str, training: Training, make_request: Callable[..., JobRequest], browser: Browser
) -> None:
    reader = f"{ISSUER}#ann"
    api.kubectl("create", "rolebinding", "ann", "-n", team, "--clusterrole=fleetprof-viewer", f"--user={reader}")
    request = make_request(training, "watched", window={"iterations": 20})
    request.await_states(RankState.ASKED, RankState.ARMED, RankState.STARTED, ranks=4)

    page = sign_in(browser, "ann", f"{ADDRESS}/requests/{team}/{request.uid}")
    page.get_by_text("Live: each change is shown as it happens.").wait_for()
    page.locator("[data-state=UPLOADED]").nth(3).wait_for()  # without a load of the page
    request.await_end()
    page.get_by_text("Complete").first.wait_for()
    status = request.get()["status"]
    assert status["reportURL"] == f"{ADDRESS}/reports/{team}/{request.uid}"
    assert status["storeURL"].startswith("s3://")
    page.goto(status["reportURL"])
    page.locator("#ranks .bar-row").nth(3).wait_for()
    assert fetch(page, status["reportURL"])[0] == 200

    stranger = sign_in(browser, "bob", status["reportURL"])
    stranger.get_by_text("there is no report here that you may see").first.wait_for()
    assert fetch(stranger, status["reportURL"])[0] == 404
    assert fetch(stranger, f"{ADDRESS}/requests")[1]["total"] == 0

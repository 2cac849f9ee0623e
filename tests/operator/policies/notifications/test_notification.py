"""The words to the administrator's webhook, and the proof that they are ours."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from fleetprof_operator.policies.notifications.delivery import TRIES, Delivery
from fleetprof_operator.policies.notifications.notification import DEFAULT_TEMPLATE, FIELDS, Notifier, build_body
from fleetprof_operator.web.connections import Connections

VALUES = dict.fromkeys(FIELDS, "") | {
    "namespace": "team",
    "workload": "Job/llama",
    "cause": "12 % of the GPUs' activity",
    "headline": "It waits for data.",
    "link": "https://fleetprof/r/1",
    "request": "starved-1",
}


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        (
            DEFAULT_TEMPLATE,
            VALUES,
            "Job/llama in team was captured because 12 % of the GPUs' activity. It waits for data. "
            "https://fleetprof/r/1",
        ),
        ("$workload <$link|report>", VALUES, "Job/llama <https://fleetprof/r/1|report>"),
        ("$headline", VALUES | {"headline": "<!channel> & *"}, "&lt;!channel&gt; &amp; *"),
        ("$nothing $$ ${cause}", VALUES | {"cause": "$workload"}, "$nothing $ $workload"),
        ("$headline", VALUES | {"headline": "x" * 9000}, "x" * 3000),
    ],
)
def test_a_message_is_the_template_with_escaped_values(template: str, values: dict[str, str], text: str) -> None:
    assert json.loads(build_body(template, values)) == {"text": text}


class Webhook:
    """Answers with these statuses in turn, and remembers what came."""

    def __init__(self) -> None:
        self.statuses = [200]
        self.came: list[tuple[dict[str, str], bytes]] = []
        application = web.Application()
        application.router.add_post("/hook", self._answer)
        self.server = Connections(application, None, what="webhook")

    async def _answer(self, request: web.Request) -> web.Response:
        self.came.append((dict(request.headers), await request.read()))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else {})


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    webhook = Webhook()
    await webhook.server.start("127.0.0.1", 0)
    (tmp_path / "url").write_text(f"http://127.0.0.1:{webhook.server.port}/hook\n")
    yield webhook
    await webhook.server.close()


async def test_a_message_is_signed_with_its_time(webhook: Webhook, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    assert await Notifier(tmp_path).send(VALUES)
    ((headers, body),) = webhook.came
    content = headers["X-Fleetprof-Timestamp"].encode() + b"." + body
    assert headers["X-Fleetprof-Signature"] == "sha256=" + hmac.new(b"secret", content, hashlib.sha256).hexdigest()
    assert headers["X-Fleetprof-Delivery"] == "starved-1"


async def test_without_a_key_there_is_no_signature(webhook: Webhook, tmp_path: Path) -> None:
    assert await Notifier(tmp_path).send(VALUES)
    assert "X-Fleetprof-Signature" not in webhook.came[0][0]


@pytest.mark.parametrize(("statuses", "delivered", "calls"), [([500, 302, 204], True, 3), ([500], False, TRIES)])
async def test_it_is_tried_again_for_a_while(
    webhook: Webhook, tmp_path: Path, statuses: list[int], delivered: bool, calls: int
) -> None:
    webhook.statuses = statuses
    assert await Notifier(tmp_path, Delivery(0.001)).send(VALUES) == delivered
    assert len(webhook.came) == calls


@pytest.mark.parametrize("url", [None, "", "ftp://x", "file:///etc/passwd", "http://127.0.0.1:1/"])
async def test_an_address_that_is_none_is_given_up(tmp_path: Path, url: str | None) -> None:
    if url is not None:
        (tmp_path / "url").write_text(url)
    assert not await Notifier(tmp_path, Delivery(0.001)).send(VALUES)
    assert not await Notifier(None).send(VALUES)


async def test_without_an_address_but_with_an_alertmanager_nothing_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "alertmanager").write_text("http://127.0.0.1:1")
    assert not await Notifier(tmp_path, Delivery(0.001)).send(VALUES)
    assert caplog.text == ""

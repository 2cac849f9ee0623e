"""Tells a webhook of the administrator's what a policy's capture found: Slack-compatible, signed.

The folder is a Secret that the administrator mounts: `url`; optionally `key`, with which the body is signed, and
`template`, the message's text. Users choose none of them, so that no report of theirs can be sent elsewhere. The same
Secret may name an Alertmanager (`report_alert`).
Guarantees: names and sentences cannot make links or mentions in Slack (its three characters are escaped); redirects are
not followed; an answer is not read; what cannot be delivered is tried again for a while and then given up, in the log.
"""

import hashlib
import hmac
import json
import logging
import string
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fleetprof_operator.policies.notifications.delivery import Delivery, is_address, read_key

DEFAULT_TEMPLATE: Final = "$workload in $namespace was captured because $cause. $headline $link"
FIELDS: Final = ("namespace", "workload", "policy", "trigger", "cause", "result", "headline", "link", "request")
_MOST: Final = 3000

log = logging.getLogger(__name__)


def build_body(template: str, values: Mapping[str, str]) -> bytes:
    """The message: `{"text": …}` with the values put in for `$name`, escaped as Slack wants it; unknown names stay."""
    escaped = {name: _escape(value) for name, value in values.items()}
    return json.dumps({"text": string.Template(template).safe_substitute(escaped)[:_MOST]}).encode()


def sign(key: bytes, at_unix_s: int, body: bytes) -> str:
    """The signature's header: HMAC-SHA256 over `<time>.<body>`, so that an old message cannot be sent anew."""
    return "sha256=" + hmac.new(key, b"%d." % at_unix_s + body, hashlib.sha256).hexdigest()


class Notifier:
    """Sends messages to the address in `folder`; None: nobody is told."""

    def __init__(self, folder: Path | None, delivery: Delivery | None = None) -> None:
        self._folder = folder
        self._delivery = delivery or Delivery()

    async def send(self, values: Mapping[str, str]) -> bool:
        """Tells whether it was delivered. False, after some tries, when it is given up, or there is nobody to tell."""
        if self._folder is None:
            return False
        try:
            url, key, template = (read_key(self._folder, name) for name in ("url", "key", "template"))
        except (OSError, UnicodeDecodeError) as problem:
            log.warning("nobody is notified, because the settings cannot be read: %s", problem)
            return False
        if not is_address(url):
            if url or not read_key(self._folder, "alertmanager"):
                log.warning("nobody is notified, because `url` in %s is no address of http or https", self._folder)
            return False
        body = build_body(template or DEFAULT_TEMPLATE, values)

        def make_headers() -> dict[str, str]:
            at = int(time.time())
            headers = {"X-Fleetprof-Delivery": values["request"], "X-Fleetprof-Timestamp": str(at)}
            return headers | ({"X-Fleetprof-Signature": sign(key.encode(), at, body)} if key else {})

        return await self._delivery.post(url, body, make_headers, f"the notification about request {values['request']}")


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

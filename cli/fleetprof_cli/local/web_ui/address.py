"""The address of a web UI on loopback, handed to people and to their browser.

Guarantees: the token in it is on no command line, which every user of the machine can read: the browser is given the
name of a file that this user alone can read, and the file leads it on.
"""

import html
import os
import pwd
import webbrowser
from pathlib import Path

from fleetprof_cli.messages import say

_PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>fleetprof</title><p><a href="{address}">the web UI of fleetprof</a></p>
"""


def open_in_browser(folder: Path, address: str) -> bool:
    """Starts a browser that goes to the address; False where none could be started. The file stays until `forget`."""
    path = _page(folder)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(_PAGE.format(address=html.escape(address)))
    return webbrowser.open(path.as_uri())


def forget_page(folder: Path) -> None:
    """Removes what `open_in_browser` left: its token opens nothing any more."""
    _page(folder).unlink(missing_ok=True)


def warn_of_squatter(user: int | None, port: int) -> None:
    """Names another user who has the usual port, where a bookmark would lead."""
    if user is None:
        return
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"uid {user}"
    say(f"port {port} belongs to another user ({name}): what answers there is not yours; use the address above alone")


def _page(folder: Path) -> Path:
    return folder.absolute() / "open-web-ui.html"

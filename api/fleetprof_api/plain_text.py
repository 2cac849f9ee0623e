"""Text from elsewhere (sidecars, traces, object stores, pods) as one line that a terminal, a log or a page can show.

The hub cleans what sidecars say when it comes in, so that its ledgers, logs, statuses and events hold nothing else; the
command line cleans again what it prints, since stores and API servers speak to it as well.

Guarantees: pure; the result has no line break, no control character, and nothing that turns the order of what is shown
around (Unicode's bidirectional overrides): everything in it is printable (str.isprintable). Plain text stays as it is.
"""

import re
from typing import Final

# Everything that str.splitlines breaks at, and tabulators.
_SPACES: Final = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
# What JSON writers leave raw in texts, and a terminal might obey; in JSON these stand in texts only.
_RAW_IN_JSON: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def make_printable(text: str) -> str:
    """One line: breaks and tabulators are spaces, all else that cannot be shown is U+FFFD."""
    if text.isprintable():
        return text
    spaced = _SPACES.sub(" ", text)
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in spaced)


def escape_json(document: str) -> str:
    """A JSON document with escapes for what its writer left raw and a terminal might obey; it means the same."""
    return _RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)

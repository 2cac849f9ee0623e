"""The pod's labels, from the file that Kubernetes' downward API keeps up to date.

Guarantees: raises nothing; a file that is missing or broken gives the labels that can be read. Source: the downward
API's format, one `key="value"` a line, values quoted as Go's %q does.
"""

import json
import re
from pathlib import Path
from typing import Final

MAX_LABELS: Final = 128
_MAX_CHARACTERS: Final = 1 << 16
_LINE: Final = re.compile(r'([A-Za-z0-9][A-Za-z0-9._/-]{0,316})=("(?:[^"\\]|\\.)*")')


def read_labels(path: Path | None) -> dict[str, str]:
    """The labels, read anew each time: they may change while the pod runs."""
    if path is None:
        return {}
    try:
        with path.open() as file:
            text = file.read(_MAX_CHARACTERS)
    except (OSError, ValueError):
        return {}
    labels = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        try:
            labels[match[1]] = str(json.loads(match[2]))
        except ValueError:
            continue
    return dict(list(labels.items())[:MAX_LABELS])

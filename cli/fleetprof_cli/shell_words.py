"""Names of files in what people may paste into a shell."""

import os
import shlex
from pathlib import Path


def quote_path(path: Path) -> str:
    """One word of a shell that is this path and nothing else; plain ASCII where a terminal could be deceived.

    `$'…'` is understood by bash, zsh, ksh and POSIX sh of 2024.
    """
    text = str(path)
    if text.isprintable():
        return shlex.quote(text)
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in os.fsencode(text))
    return f"$'{''.join(plain)}'"

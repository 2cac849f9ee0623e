"""Templates as they were compiled before, for a process that draws one page: compiling them is two thirds of that.

Guarantees: they are kept where Python keeps compiled modules, and unless Python was told to keep none. What was
compiled from another text, with other options or by another Python or jinja2 is compiled anew. A folder that cannot be
written and a file that cannot be read do no harm.
"""

import hashlib
import marshal
import os
import sys
from contextlib import suppress
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Final

from jinja2 import BytecodeCache, compiler
from jinja2.bccache import Bucket

_DIGEST_BYTES: Final = 32


class CompiledTemplates(BytecodeCache):
    """One file for each template in a folder that only those can write who can write our code.

    Of an optimized environment none is kept: what filters make of constants would be in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        jinja2 = Path(compiler.__file__).stat()
        self._maker = MAGIC_NUMBER + f"{jinja2.st_mtime_ns} {jinja2.st_size}".encode()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Takes what is kept of this text."""
        with suppress(OSError, EOFError, ValueError, TypeError):
            content = self._path(bucket).read_bytes()
            if content[:_DIGEST_BYTES] == self._digest(bucket):
                bucket.code = marshal.loads(content[_DIGEST_BYTES:])  # noqa: S302  as Python's own

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keeps it, in one step."""
        if sys.dont_write_bytecode or bucket.environment.optimized:
            return
        path = self._path(bucket)
        part = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            part.write_bytes(self._digest(bucket) + marshal.dumps(bucket.code))
            part.replace(path)

    def _path(self, bucket: Bucket) -> Path:
        return self._folder / f"template-{bucket.key}.{sys.implementation.cache_tag}.bin"

    def _digest(self, bucket: Bucket) -> bytes:
        its = bucket.environment
        options = f"{its.autoescape} {its.trim_blocks} {its.lstrip_blocks} {sorted(its.extensions)}"
        return hashlib.sha256(self._maker + options.encode() + bucket.checksum.encode()).digest()

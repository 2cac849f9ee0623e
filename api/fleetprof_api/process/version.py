"""The name of this build: a release by its number, any other build by its commit too.

Guarantees: two builds of different code have different names, where whoever builds an image says the commit
(`docker build --build-arg COMMIT=…`, which the Dockerfile writes here).
"""

from typing import Final

from fleetprof_api import __version__

COMMIT: Final = ""


def name_build(release: str, commit: str) -> str:
    """`0.1.0`, or `0.1.0.dev0+g1a2b3c4d`: the form of PEP 440."""
    return f"{release}.dev0+g{commit[:8]}" if commit else release


VERSION: Final = name_build(__version__, COMMIT)

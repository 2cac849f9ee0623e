"""Scenarios of `fleetprof whatif` as people write them: YAML that maps a name to one setting or a list of them.

Guarantees: read within limits; what is wrong is named.
"""

from pathlib import Path
from typing import Final

import msgspec
import yaml

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure

_MOST_BYTES: Final = 1 << 20
_MOST: Final = 100


def read_scenarios(path: Path) -> dict[str, list[str]]:
    """Settings by the scenario's name. Raises Failure."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Failure(f"{path} has more than {_MOST_BYTES:,} bytes", code=ExitCode.INVALID)
        document = yaml.safe_load(path.read_text("utf-8"))
        scenarios = msgspec.convert(document, dict[str, str | list[str]])
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", code=ExitCode.INVALID) from None
    except (yaml.YAMLError, msgspec.ValidationError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise Failure(
            f"{path} is no list of scenarios: {reason}",
            next_step="write a line for each: twice the network: [network=2x, loader=0]",
            code=ExitCode.INVALID,
        ) from None
    if not 0 < len(scenarios) <= _MOST:
        raise Failure(f"{path} has {len(scenarios)} scenarios: 1 to {_MOST} can be asked", code=ExitCode.INVALID)
    return {name: [texts] if isinstance(texts, str) else texts for name, texts in scenarios.items()}

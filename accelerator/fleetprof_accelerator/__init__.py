"""The optional accelerator of fleetprof's trace reader: the scanner in Rust (`src/`), compiled.

`fleetprof_analyzer.reading.scanning` uses it where it is installed; results are the same without. Guarantees: importing
it starts nothing; `load` raises OSError where the compiled file is missing or does not fit this machine.
"""

from typing import Any


def load() -> Any:
    """The compiled class `Scanner`. Raises OSError."""
    try:
        from fleetprof_accelerator._scan import Scanner
    except ImportError as error:
        reason = f"fleetprof_accelerator holds no compiled scanner, as when it was built without Rust: {error}"
        raise OSError(reason) from error
    return Scanner

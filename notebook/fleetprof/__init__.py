"""Reports in notebooks: `fleetprof.load("traces/")`.

Guarantees: reads only; traces are read within the analyzer's limits; packages that are not everybody's (pandas,
pyarrow, HTA) are loaded when they are needed, and what is missing is said with what to install. Pages:
docs/notebook.md, docs/tables.md.
"""

from fleetprof.loading import load
from fleetprof.profile import Profile
from fleetprof.tables import Tables

__all__ = ["Profile", "Tables", "load"]

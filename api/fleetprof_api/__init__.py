"""The contract between fleetprof's components: everything that crosses a process boundary is defined here.

Guarantees: imports nothing of ours; importing a module of this package performs no I/O. Which module holds what:

==============  =====================================================================================
`request`       ProfileRequest, what a user asks for (typed form of the YAML)
`hub.proto`     the gRPC protocol sidecar ↔ hub and command line ↔ hub (`hub_pb2`, `hub_pb2_grpc`)
`ledger`        what happened to every rank of a request, and why
`samples`       device, host and iteration-time samples of one rank
`report`        the report and its JSON Schema
`tables`        a report as flat tables: which there are, and their rows
`keys`          where all of that lies in the object store
`process`       what all our processes do alike: logs, settings, addresses, pauses
==============  =====================================================================================
"""

from typing import Final

__version__: Final = "0.1.0"

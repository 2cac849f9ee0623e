"""Makes the generated files of the contract from their sources; `--check` fails when one is stale.

hub.proto -> hub_pb2.py, hub_pb2.pyi, hub_pb2_grpc.py, hub_pb2_grpc.pyi. Run by `make generate`, checked by `make lint`.
"""

import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).parent
PACKAGE = HERE / "fleetprof_api"


def generate_protocol(out: Path) -> None:
    """Writes the four generated protocol modules below `out`/fleetprof_api."""
    status = protoc.main(
        [
            "protoc",
            f"-I{HERE}",
            f"-I{files('grpc_tools') / '_proto'}",
            f"--python_out={out}",
            f"--grpc_python_out={out}",
            f"--mypy_out={out}",
            f"--mypy_grpc_out={out}",
            "fleetprof_api/hub.proto",
        ]
    )
    if status != 0:
        raise SystemExit(f"protoc failed with {status}")


def main() -> None:
    """Generates in place, or compares with what is there."""
    if "--check" not in sys.argv:
        generate_protocol(HERE)
        return
    with tempfile.TemporaryDirectory() as folder:
        generate_protocol(Path(folder))
        fresh = sorted((Path(folder) / "fleetprof_api").iterdir())
        stale = [f.name for f in fresh if f.read_bytes() != (PACKAGE / f.name).read_bytes()]
    if stale:
        raise SystemExit(f"stale generated files: {', '.join(stale)}; run `make generate` and commit the result")


if __name__ == "__main__":
    main()

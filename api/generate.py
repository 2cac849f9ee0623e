"""Makes the generated files of the contract from their sources; `--check` fails when one is stale.

hub.proto, analyses.proto -> *_pb2.py, *_pb2.pyi, *_pb2_grpc.py, *_pb2_grpc.pyi; report.py, diff.py and slices ->
schemas/*.v1.schema.json. Run by `make generate`, checked by `make lint`.
"""

import json
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from fleetprof_api.report import diff, report
from fleetprof_api.slices import table as slices
from grpc_tools import protoc

HERE = Path(__file__).parent
SCRIPTS = Path(sys.executable).parent


def generate_protocol(out: Path) -> None:
    """Writes the four generated modules of each protocol below `out`/fleetprof_api."""
    status = protoc.main(
        [
            "protoc",
            f"-I{HERE}",
            f"-I{files('grpc_tools') / '_proto'}",
            # The plug-ins of this interpreter's environment, whatever PATH says.
            f"--plugin=protoc-gen-mypy={SCRIPTS / 'protoc-gen-mypy'}",
            f"--plugin=protoc-gen-mypy_grpc={SCRIPTS / 'protoc-gen-mypy_grpc'}",
            f"--python_out={out}",
            f"--grpc_python_out={out}",
            f"--mypy_out={out}",
            f"--mypy_grpc_out={out}",
            "fleetprof_api/hub/hub.proto",
            "fleetprof_api/hub/analyses.proto",
        ]
    )
    if status != 0:
        raise SystemExit(f"protoc failed with {status}")


def generate_schema(out: Path) -> None:
    """Writes the JSON Schemas of report, slices and comparison below `out`/schemas."""
    (out / "schemas").mkdir(exist_ok=True)
    schemas = {"report": report.json_schema(), "diff": diff.json_schema(), "slices": slices.json_schema()}
    for name, schema in schemas.items():
        (out / "schemas" / f"{name}.v1.schema.json").write_text(json.dumps(schema, indent=1) + "\n")


def main() -> None:
    """Generates in place, or compares with what is there."""
    if "--check" not in sys.argv:
        generate_protocol(HERE)
        generate_schema(HERE)
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "fleetprof_api").mkdir()
        generate_protocol(Path(folder))
        generate_schema(Path(folder))
        fresh = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        stale = [f.name for f in fresh if f.read_bytes() != _committed(HERE / f.relative_to(folder))]
    if stale:
        raise SystemExit(f"stale generated files: {', '.join(stale)}; run `make generate` and commit the result")


def _committed(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    main()

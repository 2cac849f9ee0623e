"""Makes the generated files of the contract from their sources; `--check` fails when one is stale.

hub.proto, analyses.proto -> *_pb2.py, *_pb2.pyi, *_pb2_grpc.py, *_pb2_grpc.pyi; report.py, diff.py and slices ->
schemas/*.v1.schema.json, the second half of docs/tables.md. Run by `make generate`, checked by `make lint`.
"""

import json
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from fleetprof_api.report import diff, report
from fleetprof_api.slices import table as slices
from fleetprof_api.tables import Column, list_tables
from grpc_tools import protoc

HERE = Path(__file__).parent
SCRIPTS = Path(sys.executable).parent
TABLES_PAGE = HERE.parent / "docs" / "tables.md"
TABLES_MARK = "<!-- From here on made by `make generate` out of the report's types. -->\n"


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


def tables_page() -> str:
    """docs/tables.md: what people wrote of it, and the tables as they are."""
    parts = [TABLES_PAGE.read_text().partition(TABLES_MARK)[0] + TABLES_MARK]
    for table in list_tables():
        path = f" (`{'.'.join(table.path)}`)" if table.path else ""
        parts.append(f"\n## {table.name}\n\n{table.meaning[0].upper()}{table.meaning[1:]}{path}.\n")
        parts.append("\n| column | type | unit | meaning |\n|---|---|---|---|\n")
        parts += [
            f"| `{c.name}` | {_type(c)} | {c.unit} | {c.meaning.replace('|', chr(92) + '|')} |\n" for c in table.columns
        ]
    return "".join(parts)


def _type(column: Column) -> str:
    return "list of " * column.lists + column.type + (", or null" if column.nullable else "")


def main() -> None:
    """Generates in place, or compares with what is there."""
    if "--check" not in sys.argv:
        generate_protocol(HERE)
        generate_schema(HERE)
        TABLES_PAGE.write_text(tables_page())
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "fleetprof_api").mkdir()
        generate_protocol(Path(folder))
        generate_schema(Path(folder))
        fresh = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        stale = [f.name for f in fresh if f.read_bytes() != _committed(HERE / f.relative_to(folder))]
    if tables_page() != TABLES_PAGE.read_text():
        stale.append(TABLES_PAGE.name)
    if stale:
        raise SystemExit(f"stale generated files: {', '.join(stale)}; run `make generate` and commit the result")


def _committed(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    main()

"""The generated files of the contract are those that their sources make."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_generated_files_are_fresh() -> None:
    result = subprocess.run([sys.executable, ROOT / "api/generate.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_no_module_of_the_contract_imports_pydantic_but_the_request() -> None:
    code = (
        "import sys; from fleetprof_api import keys, ledger, samples; "
        "from fleetprof_api.report import report; from fleetprof_api.hub import hub_pb2; "
        "from fleetprof_store import base, directory; "
        "print([m for m in ('pydantic', 'yaml', 'boto3') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"

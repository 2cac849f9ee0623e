"""Fixtures: the CRD as a document, and a real API server that serves it."""

from typing import Any

import pytest
import yaml
from harness.kubernetes.api_server import CRD_FILE


@pytest.fixture(scope="session")
def crd() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(CRD_FILE.read_text())
    return document


@pytest.fixture(scope="session")
def schema(crd: dict[str, Any]) -> dict[str, Any]:
    """The structural schema of a request."""
    (version,) = crd["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found

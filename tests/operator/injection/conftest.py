"""The common part of the tests of injection."""

from dataclasses import replace
from typing import Any

import pytest
from fleetprof_operator.injection.pods.change import Change, change_pod
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from harness.kubernetes.documents.pods_to_inject import SETTINGS, Inject


@pytest.fixture
def inject() -> Inject:
    """Changes a pod made of a container, the spec's and metadata's fields that are given, in a namespace's limits."""

    def change(
        *containers: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        limits: NamespaceLimits | None = None,
        settings: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Change:
        pod = {
            "metadata": {"generateName": "train-", **(metadata or {})},
            "spec": {"containers": list(containers) or [{"name": "train", "image": "train:1"}], **spec},
        }
        return change_pod(pod, limits or NamespaceLimits(), replace(SETTINGS, **(settings or {})))

    return change

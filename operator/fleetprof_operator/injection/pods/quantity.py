"""Kubernetes' quantities (200m, 1Gi) as exact numbers: the official client's reading, with a type."""

from decimal import Decimal

from kubernetes.utils.quantity import parse_quantity


def read_quantity(text: object) -> Decimal:
    """The amount in its base unit (cores, bytes). Raises ValueError."""
    return Decimal(parse_quantity(text))

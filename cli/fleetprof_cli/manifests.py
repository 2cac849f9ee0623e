"""Kubernetes manifests as people write them: read, searched for pods and pod templates, written again.

Guarantees: the order of documents and fields stays; comments do not (PyYAML does not keep them). Values that YAML would
turn into something else than JSON has (dates) stay text. Input is read within limits; what is wrong is named.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from fleetprof_api.errors import FleetprofError

MAX_CHARACTERS: Final = 8 << 20
MAX_VISITED: Final = 200_000
_DATE_TAG: Final = "tag:yaml.org,2002:timestamp"

Document = dict[str, Any]


class InvalidManifest(FleetprofError, ValueError):
    """The text is no manifest; the message says where and why."""


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATE_TAG]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that a certificate stays readable."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def read_manifests(text: str) -> list[Document]:
    """The documents of a YAML (or JSON) text; empty ones are left out. Raises InvalidManifest."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidManifest(f"more than {MAX_CHARACTERS} characters")
    try:
        documents = [document for document in yaml.load_all(text, _Loader) if document is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        raise InvalidManifest(f"not YAML: {problem}") from None
    for number, document in enumerate(documents, 1):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise InvalidManifest(f"document {number}: is no Kubernetes object, it has no kind")
    return documents


def write_manifests(documents: list[Document]) -> str:
    """The documents as YAML, their keys in the order they have, texts of several lines as blocks."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def find_objects(documents: list[Document]) -> Iterator[Document]:
    """The objects, those within a List among them."""
    for document in documents:
        items = document.get("items")
        if document["kind"].endswith("List") and isinstance(items, list):
            yield from (item for item in items if isinstance(item, dict))
        else:
            yield document


def find_pods(document: Document) -> Iterator[Document]:
    """The pod templates anywhere in an object (or the pod that it is): whatever has a `spec` with containers.

    Each may be changed in place. Raises InvalidManifest when the object is too large to be searched.
    """
    waiting: list[Any] = [document]
    seen: set[int] = set()
    for _ in range(MAX_VISITED):
        if not waiting:
            return
        value = waiting.pop()
        if id(value) in seen:  # an alias
            continue
        if isinstance(value, dict):
            seen.add(id(value))
            if _is_pod(value):
                yield value
                continue
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            seen.add(id(value))
            waiting.extend(reversed(value))
    raise InvalidManifest(f"an object has more than {MAX_VISITED} values")


def _is_pod(value: Mapping[str, Any]) -> bool:
    spec = value.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return isinstance(containers, list) and bool(containers) and all(isinstance(item, dict) for item in containers)


def name_workload(document: Document) -> str:
    """APIVERSION/KIND/NAME; "" for a pod of its own, and for what has no name yet."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if document["kind"] == "Pod" or not isinstance(name, str):
        return ""
    return f"{document.get('apiVersion')}/{document['kind']}/{name}"

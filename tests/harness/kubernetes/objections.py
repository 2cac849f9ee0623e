"""The objections of a real API server to objects, none of which it keeps."""

import json
from typing import Any

from harness.kubernetes.api_server import ApiServer


class Objections:
    """One server's objections. The same object is sent once: a CRD with rules in CEL takes the server half a second."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._found: dict[str, list[str]] = {}
        self._places: dict[tuple[str, str], tuple[str, bool]] = {}

    def to(self, item: dict[str, Any]) -> list[str]:
        """Its refusal, by an unknown field too, or else its warnings; empty where it takes the object as it is."""
        text = json.dumps(item, sort_keys=True)
        if text not in self._found:
            self._found[text] = self._try(item, text)
        return self._found[text]

    def _try(self, item: dict[str, Any], text: str) -> list[str]:
        # An apply, as helm's: where the object is there already it is the change.
        path = f"{self._find_place(item)}?dryRun=All&fieldValidation=Strict&fieldManager=tests&force=true"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        answer = self._server.send("PATCH", path, text.encode(), headers)
        return list(answer.headers.getlist("Warning")) if answer.status < 300 else [answer.data.decode()]

    def _find_place(self, item: dict[str, Any]) -> str:
        version, kind, metadata = item["apiVersion"], item["kind"], item["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._places:
            _, served = self._server.call("GET", root)
            for each in served["resources"]:
                if "/" not in each["name"]:
                    self._places[version, each["kind"]] = (each["name"], each["namespaced"])
        plural, namespaced = self._places[version, kind]
        where = f"/namespaces/{metadata['namespace']}" if namespaced else ""
        return f"{root}{where}/{plural}/{metadata['name']}"

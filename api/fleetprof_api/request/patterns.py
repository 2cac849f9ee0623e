"""The forms of texts in a request: a regular expression, and what it means in words.

Guarantees: Python and the API server (RE2) read each expression alike. Where a pattern has a message, the API server
checks it by a CEL rule, because with a pattern it would answer with the expression.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from annotated_types import GroupedMetadata
from pydantic import GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fleetprof_api import kernel_class
from fleetprof_api.request.rules import Cel, add_cel


@dataclass(frozen=True, slots=True)
class Pattern(GroupedMetadata):
    """For the annotation of a text. `words` follow "a text", in errors and in docs/request.md."""

    regex: str
    words: str
    message: str = ""

    def __iter__(self) -> Iterator[Any]:
        yield from StringConstraints(pattern=self.regex)
        if self.message:
            yield _InCel(self)

    def matches(self, value: str) -> str:
        """CEL that tells whether `value` has this form."""
        return f"{value}.matches('{self.regex}')"


@dataclass(frozen=True, slots=True)
class _InCel:
    pattern: Pattern

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = {name: value for name, value in handler(schema).items() if name != "pattern"}
        return add_cel(made, [Cel(self.pattern.matches("self"), self.pattern.message)])


DNS_LABEL: Final = Pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "of a-z, 0-9 and -, beginning and ending with a letter or digit"
)
_PARTS: Final = "of a-z, 0-9, - and ., each part beginning and ending with a letter or digit"
NAME: Final = Pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", _PARTS, f"must be a name, {_PARTS}"
)
GROUP_VERSION: Final = Pattern(
    r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$",
    "that are a version or group/version, e.g. v1, batch/v1, jobset.x-k8s.io/v1alpha2",
    "must be a version or group/version, for example v1, batch/v1, jobset.x-k8s.io/v1alpha2",
)
KIND: Final = Pattern(
    r"^[A-Z][A-Za-z0-9]*$",
    "of letters and digits, beginning with a capital, e.g. Job",
    "must be letters and digits, beginning with a capital, for example Job",
)
LABEL_NAME: Final = Pattern(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    "that are a label's name, e.g. app, app.kubernetes.io/name",
    "must be a label's name, for example app or app.kubernetes.io/name",
)
_LABEL_VALUE: Final = "of letters, digits, -, _ and ., with a letter or digit at both ends"
LABEL_VALUE: Final = Pattern(
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", _LABEL_VALUE, f"must be a label's value, {_LABEL_VALUE}"
)
QUANTITY: Final = Pattern(
    r"^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$", "that is a quantity, e.g. 500m, 2Gi"
)
KERNEL: Final = Pattern(kernel_class.PATTERN, "of printable ASCII, not of * alone, e.g. my_all_reduce*kernel")
CONDITION_TYPE: Final = Pattern(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    "of letters and digits",
)
REASON: Final = Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "of letters and digits")

"""The settings of a process: one table, from which flags, variables FLEETPROF_<FLAG>, bounds and help follow.

The table is a frozen dataclass. A field whose annotation holds a `Setting` is a flag of that name; its type says how
the text is read, its default is the flag's. Rules between fields stand in `__post_init__`.

Guarantees: the flag wins over the variable; an empty text counts as not set, as a chart writes it for a value that
was left out; what is wrong ends the process with exit code 2 and a message on stderr that names the flag.
"""

import argparse
import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from fleetprof_api.process.address import HostPort, parse_host_port

_TRUE: Final = ("1", "true", "yes")
Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True)
class Setting:
    """The part of a row that its type and its default do not say.

    `read` makes the value of a text, where the type alone does not say how; it raises ValueError with the rule.
    `least` and `most` bound a number. `may_be_empty`: an empty text is a value. `flag`: its name, where it is not the
    field's.
    """

    help: str = ""
    _: KW_ONLY
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    least: float | None = None
    most: float | None = None
    may_be_empty: bool = False
    flag: str = ""


LogLevel = Annotated[Literal["debug", "info", "warning", "error"], Setting()]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting in its table: its flag (without `--`), its type, and whether it must be given."""

    name: str
    flag: str
    type: Any
    setting: Setting
    required: bool

    @property
    def variable(self) -> str:
        """The environment variable."""
        return "FLEETPROF_" + self.flag.upper().replace("-", "_")

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that it takes; empty: any that can be read."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    def read(self, text: str) -> Any:
        """The value of a text. Raises ValueError that names the flag."""
        try:
            return self._read(text)
        except ValueError as problem:
            raise ValueError(f"--{self.flag}: {problem}") from None

    def _read(self, text: str) -> Any:
        if self.setting.read:
            return self.setting.read(text)
        if self.choices and text not in self.choices:
            raise ValueError(f"invalid choice: {text!r} (choose from {', '.join(self.choices)})")
        if self.type in (int, float):
            return self._read_number(text)
        if hasattr(self.type, "_fields"):
            return _read_addresses(self.type(), text)
        return _READERS.get(self.type, str)(text)

    def _read_number(self, text: str) -> float:
        least, most = self.setting.least, self.setting.most
        try:
            value = self.type(text)
        except ValueError:
            value = None
        if value is None or not (least is None or value >= least) or not (most is None or value <= most):
            bounds = f"from {least} to {most}" if most is not None else f"{least} or more"
            raise ValueError(f"must be {bounds}, got {text}")
        return float(value) if self.type is float else value


def list_settings(table: type) -> tuple[SettingRow, ...]:
    """The rows of a table, in its order."""
    annotations: dict[str, Any] = typing.get_type_hints(table, include_extras=True)
    rows = []
    for field in dataclasses.fields(table):
        kind, *more = _unfold(annotations[field.name])
        for setting in (item for item in more if isinstance(item, Setting)):
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            flag = setting.flag or field.name.replace("_", "-")
            rows.append(SettingRow(field.name, flag, kind, setting, required))
    return tuple(rows)


def read_table(
    table: type[Settings],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    program: str,
    description: str,
    exit_codes: str,
) -> Settings:
    """The settings by flags and environment. Ends the process with exit code 2 when they are wrong."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog="Each flag is also read from FLEETPROF_<FLAG>, e.g. FLEETPROF_LOG_LEVEL for --log-level; the flag "
        f"wins. Exit codes: {exit_codes}.",
        allow_abbrev=False,
    )
    rows = list_settings(table)
    for row in rows:
        if row.type is bool:
            parser.add_argument(
                f"--{row.flag}", action="store_const", const="true", dest=row.name, help=row.setting.help
            )
        else:
            choices = "{" + ",".join(row.choices) + "}" if row.choices else None
            parser.add_argument(
                f"--{row.flag}", dest=row.name, metavar=row.setting.metavar or choices, help=row.setting.help
            )
    given = vars(parser.parse_args(arguments))
    texts: dict[str, str] = {}
    for row in rows:
        text = environment.get(row.variable) if given[row.name] is None else given[row.name]
        if text or (text is not None and row.setting.may_be_empty):
            texts[row.name] = text
    missing = [f"--{row.flag}" for row in rows if row.required and row.name not in texts]
    if missing:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    try:
        return table(**{row.name: row.read(texts[row.name]) for row in rows if row.name in texts})
    except ValueError as problem:
        parser.error(str(problem))


def at_port(port: int) -> HostPort:
    """The address of a server that the whole cluster may reach."""
    return HostPort("0.0.0.0", port)  # noqa: S104 - network policies say who may


def split_names(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _read_addresses(usual: Any, text: str) -> Any:
    """The named addresses of a process (a NamedTuple), of which `NAME=HOST:PORT,…` moves some."""
    moved = {}
    for part in split_names(text):
        name, _, address = part.partition("=")
        if name not in usual._fields:
            raise ValueError(f"{part!r} must be NAME=HOST:PORT with a name of {', '.join(usual._fields)}")
        moved[name] = parse_host_port(address)
    return usual._replace(**moved)


def _unfold(annotation: Any) -> tuple[Any, ...]:
    """The type of an annotation, without `| None`, and what else it says."""
    kind, *more = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if get_origin(kind) is UnionType:
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    return (kind, *more)


_READERS: Final[Mapping[Any, Callable[[str], Any]]] = {
    bool: lambda text: text.lower() in _TRUE,
    Path: Path,
    HostPort: parse_host_port,
    tuple[str, ...]: split_names,
}

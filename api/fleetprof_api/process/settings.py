"""The settings of a process: flags, each also an environment variable FLEETPROF_<FLAG>.

Guarantees: the flag wins over the variable; an empty variable counts as not set, as a chart writes it for a value that
was left out; what is wrong ends the process with exit code 2 and a message on stderr that names the flag.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

LOG_LEVELS: Final = ("debug", "info", "warning", "error")


class SettingsParser(argparse.ArgumentParser):
    """Flags whose defaults are environment variables. `exit_codes`: what the process ends with, for `--help`."""

    def __init__(self, program: str, description: str, environment: Mapping[str, str], *, exit_codes: str) -> None:
        super().__init__(
            prog=program,
            description=description,
            epilog="Each flag is also read from FLEETPROF_<FLAG>, e.g. FLEETPROF_LOG_LEVEL for --log-level; the flag "
            f"wins. Exit codes: {exit_codes}.",
            allow_abbrev=False,
        )
        self._environment = environment

    def setting(self, flag: str, *, required: bool = False, may_be_empty: bool = False, **options: Any) -> None:
        """Adds `--flag`, taken from the environment when not given. `may_be_empty`: an empty variable is a value."""
        value = self._environment.get(_name_variable(flag))
        is_set = value is not None and (value != "" or may_be_empty)
        if is_set:
            options["default"] = value
        if "choices" in options:
            options["type"] = _one_of(options["choices"])  # argparse itself does not hold defaults to the choices
        self.add_argument(f"--{flag}", required=required and not is_set, **options)

    def switch(self, flag: str, *, help: str) -> None:
        """Adds `--flag`, on when given or when its variable is 1, true or yes."""
        value = self._environment.get(_name_variable(flag), "")
        self.add_argument(f"--{flag}", action="store_true", default=value.lower() in ("1", "true", "yes"), help=help)

    def log_level(self) -> None:
        """Adds `--log-level`, one of LOG_LEVELS, `info` by default."""
        self.setting("log-level", default="info", choices=LOG_LEVELS)


def split_names(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _name_variable(flag: str) -> str:
    return "FLEETPROF_" + flag.upper().replace("-", "_")


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(choices)})")
        return text

    return check

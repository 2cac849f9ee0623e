"""Flags and environment variables of a process."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from fleetprof_api.process.address import HostPort
from fleetprof_api.process.settings import LogLevel, Setting, at_port, read_table, split_names


class Listening(NamedTuple):
    """The addresses of a process."""

    hub: HostPort = at_port(8443)
    http: HostPort = at_port(8080)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The settings of some process."""

    hub_name: Annotated[str, Setting("the hub's name")]
    grace_seconds: Annotated[float, Setting(least=0, most=60)] = 20.0
    parts: Annotated[int, Setting(least=1)] = 2
    user: Annotated[str, Setting(may_be_empty=True)] = "65532"
    names: Annotated[tuple[str, ...], Setting()] = ()
    directory: Annotated[Path | None, Setting(flag="folder")] = None
    pod: Annotated[str, Setting(read=str.upper)] = ""
    listen: Annotated[Listening, Setting()] = field(default_factory=Listening)
    ends_with_pod: Annotated[bool, Setting("what it does")] = False
    log_level: LogLevel = "info"
    not_told: str = ""

    def __post_init__(self) -> None:
        if self.pod and self.directory:
            raise ValueError("--pod and --folder exclude each other")


def read(arguments: list[str], environment: dict[str, str]) -> Table:
    return read_table(
        Table, arguments, environment, program="program", description="Does something.", exit_codes="0 done; 2 wrong"
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "settings"),
    [
        (["--hub-name", "h"], {}, {}),
        ([], {"FLEETPROF_HUB_NAME": "h"}, {}),
        (["--hub-name", "h"], {"FLEETPROF_HUB_NAME": "another"}, {}),
        (["--hub-name", "h", "--grace-seconds", "1"], {"FLEETPROF_GRACE_SECONDS": "2"}, {"grace_seconds": 1.0}),
        (["--hub-name", "h"], {"FLEETPROF_GRACE_SECONDS": "2"}, {"grace_seconds": 2.0}),
        (["--hub-name", "h"], {"FLEETPROF_GRACE_SECONDS": "", "FLEETPROF_LOG_LEVEL": ""}, {}),
        (["--hub-name", "h"], {"FLEETPROF_USER": ""}, {"user": ""}),
        (["--hub-name", "h", "--ends-with-pod"], {}, {"ends_with_pod": True}),
        (["--hub-name", "h"], {"FLEETPROF_ENDS_WITH_POD": "True"}, {"ends_with_pod": True}),
        (["--hub-name", "h"], {"FLEETPROF_ENDS_WITH_POD": "0"}, {}),
        (["--hub-name", "h"], {"FLEETPROF_LOG_LEVEL": "debug"}, {"log_level": "debug"}),
        (["--hub-name", "h"], {"FLEETPROF_FOREIGN": "x", "HUB_NAME": "x"}, {}),
        (["--hub-name", "h", "--folder", "/a", "--parts=3"], {}, {"directory": Path("/a"), "parts": 3}),
        (["--hub-name", "h"], {"FLEETPROF_FOLDER": "", "FLEETPROF_NAMES": " a, b,"}, {"names": ("a", "b")}),
        (["--hub-name", "h", "--pod", "a"], {}, {"pod": "A"}),
        (["--hub-name", "h", "--listen", "hub=[::1]:1"], {}, {"listen": Listening(hub=HostPort("::1", 1))}),
    ],
)
def test_the_flag_wins_then_the_variable_then_the_default(
    arguments: list[str], environment: dict[str, str], settings: dict[str, Any]
) -> None:
    assert read(arguments, environment) == replace(Table(hub_name="h"), **settings)


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {}, "required: --hub-name"),
        ([], {"FLEETPROF_HUB_NAME": ""}, "required: --hub-name"),
        (["--hub-name", "h", "--grace", "1"], {}, "unrecognized arguments: --grace 1"),
        (["--hub-name", "h", "--grace-seconds", "x"], {}, "--grace-seconds: must be from 0 to 60, got x"),
        (["--hub-name", "h"], {"FLEETPROF_GRACE_SECONDS": "x"}, "--grace-seconds: must be from 0 to 60, got x"),
        (["--hub-name", "h", "--grace-seconds", "61"], {}, "--grace-seconds: must be from 0 to 60, got 61"),
        (["--hub-name", "h", "--parts", "0"], {}, "--parts: must be 1 or more, got 0"),
        (["--hub-name", "h", "--listen", "http=8080"], {}, "--listen: '8080' must be HOST:PORT"),
        (["--hub-name", "h", "--listen", "a:1"], {}, "--listen: 'a:1' must be NAME=HOST:PORT with a name of hub, http"),
        (["--hub-name", "h", "--pod", "a", "--folder", "/a"], {}, "--pod and --folder exclude each other"),
        (["--hub-name", "h", "--log-level", "loud"], {}, "--log-level: invalid choice: 'loud'"),
        (["--hub-name", "h"], {"FLEETPROF_LOG_LEVEL": "loud"}, "--log-level: invalid choice: 'loud'"),
    ],
)
def test_what_is_wrong_ends_the_process_with_the_flag_s_name(
    arguments: list[str], environment: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read(arguments, environment)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_help_says_where_else_settings_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(["--help"], {})
    shown = " ".join(capsys.readouterr().out.split())
    assert "FLEETPROF_LOG_LEVEL for --log-level" in shown
    assert "Exit codes: 0 done; 2 wrong." in shown


@pytest.mark.parametrize(("text", "names"), [("", ()), ("a", ("a",)), (" a, b,", ("a", "b")), (",,", ())])
def test_a_list_of_names(text: str, names: tuple[str, ...]) -> None:
    assert split_names(text) == names

"""Flags and environment variables of a process."""

from typing import Any

import pytest
from fleetprof_api.process.settings import SettingsParser, split_names


def read(arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    parser = SettingsParser("program", "Does something.", environment, exit_codes="0 done; 2 wrong settings")
    parser.setting("hub-name", required=True)
    parser.setting("grace-seconds", default=20.0, type=float)
    parser.setting("user", default="65532", may_be_empty=True)
    parser.switch("ends-with-pod", help="what it does")
    parser.log_level()
    return vars(parser.parse_args(arguments))


DEFAULTS = {"hub_name": "h", "grace_seconds": 20.0, "user": "65532", "ends_with_pod": False, "log_level": "info"}


@pytest.mark.parametrize(
    ("arguments", "environment", "settings"),
    [
        (["--hub-name", "h"], {}, {}),
        ([], {"FLEETPROF_HUB_NAME": "h"}, {}),
        (["--hub-name", "h"], {"FLEETPROF_HUB_NAME": "another"}, {}),
        (["--hub-name", ""], {"FLEETPROF_HUB_NAME": "another"}, {"hub_name": ""}),
        (["--hub-name", "h", "--grace-seconds", "1"], {"FLEETPROF_GRACE_SECONDS": "2"}, {"grace_seconds": 1.0}),
        (["--hub-name", "h"], {"FLEETPROF_GRACE_SECONDS": "2"}, {"grace_seconds": 2.0}),
        (["--hub-name", "h"], {"FLEETPROF_GRACE_SECONDS": "", "FLEETPROF_LOG_LEVEL": ""}, {}),
        (["--hub-name", "h"], {"FLEETPROF_USER": ""}, {"user": ""}),
        (["--hub-name", "h", "--ends-with-pod"], {}, {"ends_with_pod": True}),
        (["--hub-name", "h"], {"FLEETPROF_ENDS_WITH_POD": "True"}, {"ends_with_pod": True}),
        (["--hub-name", "h"], {"FLEETPROF_ENDS_WITH_POD": "0"}, {}),
        (["--hub-name", "h"], {"FLEETPROF_LOG_LEVEL": "debug"}, {"log_level": "debug"}),
        (["--hub-name", "h"], {"FLEETPROF_FOREIGN": "x", "HUB_NAME": "x"}, {}),
    ],
)
def test_the_flag_wins_then_the_variable_then_the_default(
    arguments: list[str], environment: dict[str, str], settings: dict[str, Any]
) -> None:
    assert read(arguments, environment) == DEFAULTS | settings


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {}, "required: --hub-name"),
        ([], {"FLEETPROF_HUB_NAME": ""}, "required: --hub-name"),
        (["--hub-name", "h", "--grace", "1"], {}, "unrecognized arguments: --grace 1"),
        (["--hub-name", "h", "--grace-seconds", "x"], {}, "--grace-seconds: invalid float value: 'x'"),
        (["--hub-name", "h"], {"FLEETPROF_GRACE_SECONDS": "x"}, "--grace-seconds: invalid float value: 'x'"),
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
    assert "Exit codes: 0 done; 2 wrong settings." in shown


@pytest.mark.parametrize(("text", "names"), [("", ()), ("a", ("a",)), (" a, b,", ("a", "b")), (",,", ())])
def test_a_list_of_names(text: str, names: tuple[str, ...]) -> None:
    assert split_names(text) == names

"""Hooks of the docs site (mkdocs.yml): the index is its navigation, commands bring their help, rows have addresses.

Guarantees: pages are those of docs/, unchanged for GitHub; a reason of docs/reasons.md, a field of docs/measures.md
and a cause of docs/glossary.md have the address PAGE/#NAME, as long as the name is.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.testing import CliRunner
from fleetprof_cli.kubectl import COMMANDS as ON_KUBERNETES
from fleetprof_cli.kubectl import group as plugin
from fleetprof_cli.main import COMMANDS, main

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT: Final = Path(__file__).parents[1]
REPOSITORY: Final = "https://github.com/fleetprof/fleetprof/blob/main/"
HELP: Final = "help.md"
ADDRESSED: Final = ("reasons.md", "measures.md", "glossary.md")
_LINK: Final = re.compile(r"\]\(((?:\.\./)+[^)\s#]+)(#[^)\s]*)?\)")
_FIRST_CELL: Final = re.compile(r"<tr>\s*<td><code>([\w.\[\]]+)</code>")


def read_navigation(index: str) -> list[dict[str, Any]]:
    """The sections of docs/index.md with their pages, those of other folders left out."""
    sections: list[dict[str, Any]] = [{"Documentation": "index.md"}]
    for title, body in re.findall(r"^\*\*([^*]+)\*\*\n(.*?)(?=^\*\*|\Z)", index, re.MULTILINE | re.DOTALL):
        pages = [page for page in re.findall(r"^\| \[[^\]]+\]\(([^)]+)\)", body, re.MULTILINE) if ".." not in page]
        sections.append({title: pages})
    return [*sections, {"Help of each command": HELP}]


def lead_out(markdown: str, page: str) -> str:
    """The page with links to files outside of docs/ as addresses of the repository."""
    folder = (ROOT / "docs" / page).parent

    def spell(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return found[0]
        return f"]({REPOSITORY}{target.relative_to(ROOT)}{found[2] or ''})"

    return _LINK.sub(spell, markdown)


def address_rows(html: str) -> str:
    """The page's HTML with the name of each table row as its address; the first row of a name has it."""
    known: set[str] = set()

    def mark(found: re.Match[str]) -> str:
        name = found[1]
        if name in known:
            return found[0]
        known.add(name)
        return f'<tr id="{name}"><td><code>{name}</code>'

    return _FIRST_CELL.sub(mark, html)


def write_help() -> str:
    """A page with what each command says with `--help`."""
    parts = ["# Help of each command", "This page is what `--help` prints. It is made from the commands themselves."]
    for group, program, names in ((main, "fleetprof", COMMANDS), (plugin, "kubectl fleetprof", ON_KUBERNETES)):
        parts.append(f"## {program}")
        for name in names:
            parts.append(f"### {program} {name}\n\n```text\n{_help(group, program, name)}\n```")
    return "\n\n".join(parts) + "\n"


def _help(group: click.Command, program: str, name: str) -> str:
    shown = CliRunner().invoke(group, [name, "--help"], prog_name=program, terminal_width=100)
    return shown.output.rstrip()


def on_config(config: Any) -> Any:
    """Takes the navigation from the index."""
    config.nav = read_navigation((ROOT / "docs/index.md").read_text())
    return config


def on_files(files: "Files", config: Any) -> "Files":
    """Adds the page of help."""
    from mkdocs.structure.files import File  # the web UI's build has no mkdocs

    files.append(File.generated(config, HELP, content=write_help()))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Leads links out of docs/ to the repository."""
    return lead_out(markdown, page.file.src_uri)


def on_page_content(html: str, page: Any, **_more: Any) -> str:
    """Gives rows their addresses."""
    return address_rows(html) if page.file.src_uri in ADDRESSED else html

"""Writes docs/ as plain HTML pages for `fleetprof ui`: where nobody reaches the docs site, messages lead to them.

`python webui/docs_pages.py FOLDER`. Guarantees: the navigation, the headings' anchors and the addresses of reasons,
measures and causes are those of the docs site; no script, and nothing from elsewhere. Pictures stay in the repository.
"""

import html
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from markdown_it import MarkdownIt

DOCS: Final = Path(__file__).parents[1] / "docs"
STYLE: Final = """\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { display: flex; gap: 2rem; max-width: 80rem; margin: 0 auto; padding: 1rem }
nav { flex: 0 0 12rem; font-size: .9rem }
nav ul { list-style: none; padding: 0 }
main { min-width: 0; flex: 1 }
table { border-collapse: collapse; display: block; overflow-x: auto }
td, th { border: 1px solid GrayText; padding: .25rem .5rem; text-align: left; vertical-align: top }
pre { overflow-x: auto; padding: .5rem; border: 1px solid GrayText }
tr:target, :target { outline: 2px solid Highlight }
@media (max-width: 50rem) { body { display: block } }
"""
_PAGE: Final = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="stylesheet" href="{up}docs.css">
<nav aria-label="Documentation"><p><a href="/fleet">The fleet</a></p>{navigation}</nav>
<main>
{body}</main></html>
"""
_TO_PAGE: Final = re.compile(r"\]\(((?!https?:)[^)\s#]+)\.md(#[^)\s]*)?\)")
_PICTURE: Final = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"<h([1-6])>(.*?)</h\1>")


def load_site() -> ModuleType:
    """The hooks of the docs site, which know its navigation and addresses."""
    spec = importlib.util.spec_from_file_location("docs_site", DOCS / "site.py")
    if spec is None or spec.loader is None:
        raise ImportError("docs/site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def anchor_headings(body: str) -> str:
    """The page with an anchor at each heading, as GitHub makes it."""

    def mark(found: re.Match[str]) -> str:
        text = html.unescape(re.sub(r"<[^>]+>", "", found[2]))
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        return f'<h{found[1]} id="{anchor}">{found[2]}</h{found[1]}>'

    return _HEADING.sub(mark, body)


def write_pages(folder: Path) -> None:
    """One file for each page of docs/, below `folder`."""
    site = load_site()
    texts = {str(path.relative_to(DOCS)): path.read_text() for path in sorted(DOCS.rglob("*.md"))}
    texts[site.HELP] = site.write_help()
    titles = {name: text.partition("\n")[0].lstrip("# ") for name, text in texts.items()}
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    for name, text in texts.items():
        up = "../" * name.count("/")
        text = _PICTURE.sub(rf"[\1]({site.REPOSITORY}docs/\2)", text)
        text = _TO_PAGE.sub(r"](\1.html\2)", site.lead_out(text, name))
        body = anchor_headings(markdown.render(text))
        if name in site.ADDRESSED:
            body = site.address_rows(body)
        navigation = _list_pages(site.read_navigation(texts["index.md"]), titles, up)
        path = folder / Path(name).with_suffix(".html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_PAGE.format(title=html.escape(titles[name]), up=up, navigation=navigation, body=body))
    (folder / "docs.css").write_text(STYLE)


def _list_pages(sections: list[dict[str, str | list[str]]], titles: dict[str, str], up: str) -> str:
    parts = []
    for section in sections:
        for title, pages in section.items():
            names = [pages] if isinstance(pages, str) else pages
            links = "".join(
                f'<li><a href="{up}{name.removesuffix(".md")}.html">{html.escape(titles[name])}</a></li>'
                for name in names
            )
            parts.append(f"<p>{html.escape(title)}</p><ul>{links}</ul>")
    return "".join(parts)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
